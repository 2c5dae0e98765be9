"""A stage decoded for analysis: columns of fields, the order of execution, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bmcompiler.bmodel.bm168x import Bm168xStage, CpuSubnet
from bmcompiler.errors import EncodingError, SimulatorError
from bmcompiler.instructions.isa import Columns
from bmcompiler.instructions.order import STREAMS, Engine, IdFields, Ids, Poll, execution_order
from bmcompiler.numeric.arrays import Ints, Mask
from bmcompiler.runtime.simulator.bm168x.commands import streams
from bmcompiler.runtime.simulator.timing import NO_WAIT, CommandList
from bmcompiler.runtime.simulator.traffic import NetMemory

ENGINES = ("TIU", "GDMA", "host", "HAU")
"""Names of engine numbers in a CommandList: those of `Engine`, and the host."""
HOST = ENGINES.index("host")
NO_COMMAND = -1


@dataclass(frozen=True)
class DecodedStage:
    """All commands of a stage.

    Records are the commands in the order they run, one of the host for each of its subnets and each border between
    groups (all engines are done before the next group starts), and where a kernel's processor polled an engine before
    it went on, one without cycles of each engine that had to wait for what came next.

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
    subnet: Mask
    commands: CommandList

    def __len__(self) -> int:
        return len(self.commands)

    @property
    def engines(self) -> tuple[str, ...]:
        """Names of the engines; the sort engine has commands in kernels alone."""
        return ENGINES[: self.commands.engines]

    def streams(self, engine: Engine) -> Iterator[bytes]:
        """The commands of an engine, group by group."""
        return (streams(group).get(engine, b"") for group in self.stage.groups)


def stage_memory(stage: Bm168xStage) -> NetMemory:
    """Where the inputs and outputs of a stage lie, and how many bytes of coefficients it has."""
    inputs, outputs = (
        tuple((tensor.address, tensor.size) for tensor in side) for side in (stage.inputs, stage.outputs)
    )
    return NetMemory(inputs, outputs, len(stage.coefficients))


class _Records:
    """Records as they are found: engine, number of the command, record waited for, whether the host computes."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, bool]] = []
        self.first = {engine: 0 for engine in Engine}

    def host(self, subnet: bool) -> None:
        self.rows.append((HOST, NO_COMMAND, NO_WAIT, subnet))

    def group(self, queues: dict[Engine, list[Ids]], polls: Sequence[Poll], number: int) -> None:
        """Add the commands of a group. Raises SimulatorError when one waits for an id that never comes."""
        newest = {engine: np.maximum.accumulate([ids.own for ids in queue]) for engine, queue in queues.items()}
        record = {engine: np.zeros(len(queue), np.int64) for engine, queue in queues.items()}
        for engine, at in execution_order(queues, number, polls):
            for poll in polls:
                if poll.engine is not engine and poll.issued(engine) == at and (done := poll.issued(poll.engine)):
                    self.rows.append((engine, NO_COMMAND, int(record[poll.engine][done - 1]), False))
            wanted, wait = queues[engine][at].wait, NO_WAIT
            if wanted:
                other = Engine.GDMA if engine is Engine.TIU else Engine.TIU
                wait = int(record[other][np.searchsorted(newest[other], wanted)])
            record[engine][at] = len(self.rows)
            self.rows.append((engine, self.first[engine] + at, wait, False))
        for engine, queue in queues.items():
            self.first[engine] += len(queue)


ColumnsOf = Callable[[Engine, bytes], Columns]
"""The fields of the commands of a stream, one column per field; raises EncodingError for bytes that are no commands."""


def decode_stage(stage: Bm168xStage, columns_of: ColumnsOf, ids: Mapping[Engine, IdFields]) -> DecodedStage:
    """Decode all static subnets of a stage.

    Args:
        columns_of: decodes a stream. ids: names of the fields of ids.

    Raises:
        SimulatorError: malformed commands, waits that would never end, a subnet whose commands are made at run time.
    """
    records = _Records()
    parts: dict[Engine, list[Columns]] = {engine: [] for engine in STREAMS}
    for subnet in stage.subnets:
        if isinstance(subnet, CpuSubnet):
            records.host(subnet=True)
            continue
        if subnet.dynamic:
            raise SimulatorError("a subnet is dynamic: its commands are made by the firmware, nothing is known of them")
        for group in subnet.groups:
            if records.rows and records.rows[-1][0] != HOST:
                records.host(subnet=False)
            try:
                found = {engine: columns_of(engine, data) for engine, data in streams(group).items()}
            except EncodingError as error:
                raise SimulatorError(error.reason) from error
            queues = {engine: _ids(ids.get(engine), columns) for engine, columns in found.items()}
            records.group(queues, group.polled.polls, len(parts[Engine.TIU]))
            for engine, columns in found.items():
                parts.setdefault(engine, []).append(columns)
    fields = {engine: _joined(found or [columns_of(engine, b"")]) for engine, found in parts.items()}
    return _columns(stage, fields, records)


def _joined(parts: list[Columns]) -> Columns:
    """Columns one after the other; fields that some parts lack are 0 there."""
    names = dict.fromkeys(name for part in parts for name in part)
    sizes = [len(next(iter(part.values()), ())) for part in parts]
    empty = np.zeros(0, np.int64)
    return {
        name: np.concatenate([empty, *(part.get(name, np.zeros(size, np.int64)) for part, size in zip(parts, sizes))])
        for name in names
    }


def _ids(names: IdFields | None, columns: Columns) -> list[Ids]:
    if names is None:
        return [Ids(number, 0) for number in range(1, len(next(iter(columns.values()))) + 1)]
    return [Ids(*pair) for pair in zip(*(columns[name].tolist() for name in names))] if columns else []


def _columns(stage: Bm168xStage, fields: dict[Engine, Columns], records: _Records) -> DecodedStage:
    columns = [np.array(column, np.int64) for column in zip(*records.rows)] or [np.zeros(0, np.int64)] * 4
    engine, number, wait, subnet = columns
    host = engine == HOST
    at = {}
    numbered = number != NO_COMMAND
    for one in fields:
        own = np.flatnonzero((engine == one) & numbered)
        at[one] = own[np.argsort(number[own], kind="stable")]
    count = len(ENGINES) if Engine.HAU in fields else HOST + 1
    commands = CommandList(count, engine, wait, host)
    return DecodedStage(stage, fields, at, number, np.cumsum(numbered) - numbered, subnet != 0, commands)
