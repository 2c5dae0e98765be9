"""A stage of a BM1684 model decoded for analysis: columns of fields, the order of execution, and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.isa import COMMAND_BYTES, FORMATS, OWN_ID, WAIT_ID, Engine
from bmcompiler.bmodel.bm168x import Bm168xStage, CommandGroup, CpuSubnet
from bmcompiler.errors import EncodingError, SimulatorError
from bmcompiler.instructions.isa import Columns
from bmcompiler.instructions.order import Ids, execution_order
from bmcompiler.runtime.simulator.timing import NO_WAIT, CommandList, Ints

ENGINES = ("TIU", "GDMA", "host")
"""Names of engine numbers in a CommandList: those of `Engine`, then the host."""
HOST = ENGINES.index("host")
NO_COMMAND = -1


@dataclass(frozen=True)
class Decoded:
    """All commands of a stage.

    Records are the commands in the order they run, and one of the host for each of its subnets and each border between
    groups: both engines are done before the next group starts.

    Attributes:
        fields: one column per field of each engine's commands, in file order over the whole stage.
        at: the record of each engine's commands. number: of each record its place in `fields`, or NO_COMMAND.
        position: of each record how many commands come before it: its number in listings.
        subnet: of each record whether it is a subnet of the host.
        commands: engines in order, wait ids resolved to records.
    """

    stage: Bm168xStage
    fields: dict[Engine, Columns]
    at: dict[Engine, Ints]
    number: Ints
    position: Ints
    subnet: NDArray[np.bool_]
    commands: CommandList

    def __len__(self) -> int:
        return len(self.commands)


class _Records:
    """Records as they are found: engine, number of the command, record waited for, whether the host computes."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, bool]] = []
        self.first = {engine: 0 for engine in Engine}

    def host(self, subnet: bool) -> None:
        self.rows.append((HOST, NO_COMMAND, NO_WAIT, subnet))

    def group(self, queues: dict[Engine, list[Ids]], number: int) -> None:
        """Add the commands of a group. Raises SimulatorError when one waits for an id that never comes."""
        newest = {engine: np.maximum.accumulate([ids.own for ids in queue]) for engine, queue in queues.items()}
        record = {engine: np.zeros(len(queue), np.int64) for engine, queue in queues.items()}
        for engine, at in execution_order(queues, number):
            wanted, wait = queues[engine][at].wait, NO_WAIT
            if wanted:
                other = Engine.GDMA if engine is Engine.TIU else Engine.TIU
                wait = int(record[other][np.searchsorted(newest[other], wanted)])
            record[engine][at] = len(self.rows)
            self.rows.append((engine, self.first[engine] + at, wait, False))
        for engine, queue in queues.items():
            self.first[engine] += len(queue)


def decode(stage: Bm168xStage) -> Decoded:
    """Decode all static subnets of a stage.

    Raises:
        SimulatorError: malformed commands, waits that would never end, a subnet whose commands are made at run time.
    """
    records = _Records()
    fields = {engine: _decode(engine, stage.groups) for engine in Engine}
    ids = {engine: _ids(engine, fields[engine]) for engine in Engine}
    number = 0
    for subnet in stage.subnets:
        if isinstance(subnet, CpuSubnet):
            records.host(subnet=True)
            continue
        if subnet.dynamic:
            raise SimulatorError("a subnet is dynamic: its commands are made by the firmware, nothing is known of them")
        for group in subnet.groups:
            if records.rows and records.rows[-1][0] != HOST:
                records.host(subnet=False)
            records.group(
                {engine: _next(ids[engine], records.first[engine], group[engine]) for engine in Engine}, number
            )
            number += 1
    return _columns(stage, fields, records)


def _decode(engine: Engine, groups: list[CommandGroup]) -> Columns:
    try:
        parts = [FORMATS[engine].decode(np.frombuffer(group[engine], np.uint8)) for group in groups]
    except EncodingError as error:
        raise SimulatorError(error.reason) from error
    empty = np.zeros(0, np.int64)
    return {f.name: np.concatenate([empty, *(part[f.name] for part in parts)]) for f in FORMATS[engine].fields}


def _ids(engine: Engine, columns: Columns) -> list[Ids]:
    return [Ids(*pair) for pair in zip(columns[OWN_ID[engine]].tolist(), columns[WAIT_ID[engine]].tolist())]


def _next(ids: list[Ids], first: int, commands: bytes) -> list[Ids]:
    return ids[first : first + len(commands) // COMMAND_BYTES]


def _columns(stage: Bm168xStage, fields: dict[Engine, Columns], records: _Records) -> Decoded:
    columns = [np.array(column, np.int64) for column in zip(*records.rows)] or [np.zeros(0, np.int64)] * 4
    engine, number, wait, subnet = columns
    host = engine == HOST
    at = {}
    for one in Engine:
        own = np.flatnonzero(engine == one)
        at[one] = own[np.argsort(number[own], kind="stable")]
    commands = CommandList(len(ENGINES), engine, wait, host)
    return Decoded(stage, fields, at, number, np.cumsum(~host) - ~host, subnet != 0, commands)
