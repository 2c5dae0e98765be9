"""A BM1880 command buffer decoded for analysis: columns of fields, and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1880.cmdbuf import Records, records
from bmcompiler.backends.bm1880.isa import GDMA, TIU, Engine
from bmcompiler.errors import FileFormatError, SimulatorError
from bmcompiler.isa import Columns
from bmcompiler.runtime.simulator.timing import NO_WAIT, CommandList, Ints

ENGINES = ("TPU", "GDMA", "CPU")
"""Names of engine numbers in a CommandList."""
_NUMBER = {Engine.TPU: 0, Engine.GDMA: 1, Engine.CPU: 2}


@dataclass(frozen=True)
class Decoded:
    """Fields of all records.

    Attributes:
        tpu, gdma: one column per field, entry i for record `tpu_at[i]` or `gdma_at[i]`.
        flags: header flags (n,) of all records.
        commands: engines in order, wait ids resolved to records.
    """

    tpu: Columns
    gdma: Columns
    tpu_at: Ints
    gdma_at: Ints
    flags: Ints
    commands: CommandList

    def __len__(self) -> int:
        return len(self.commands)


def decode(cmdbuf: bytes) -> Decoded:
    """Decode a command buffer. Raises SimulatorError for malformed records and waits that would never end."""
    try:
        index = records(cmdbuf)
    except FileFormatError as error:
        raise SimulatorError(error.reason) from error
    tpu, gdma = TIU.decode(index.payloads(Engine.TPU)), GDMA.decode(index.payloads(Engine.GDMA))
    tpu_at, gdma_at = index.of(Engine.TPU), index.of(Engine.GDMA)
    own, wanted = np.zeros((2, len(index)), np.int64)
    own[tpu_at], wanted[tpu_at] = tpu["cmd_id_tpu"], tpu["cmd_id_gdma"]
    own[gdma_at], wanted[gdma_at] = gdma["cmd_id_gdma"], gdma["cmd_id_tpu"]
    engine = _numbers(index)
    barrier = engine == _NUMBER[Engine.CPU]
    commands = CommandList(len(ENGINES), engine, _waits(engine, own, wanted), barrier)
    return Decoded(tpu, gdma, tpu_at, gdma_at, index.flags, commands)


def _numbers(index: Records) -> Ints:
    table = np.zeros(max(Engine) + 1, np.int64)
    for engine, number in _NUMBER.items():
        table[engine] = number
    return table[index.engine]


def _waits(engine: Ints, own: Ints, wanted: Ints) -> Ints:
    """Record each one waits for: the latest earlier one of the other engine with the wanted id (bm1880.md 6).

    Ids start again after every CPU record. A wait for an id that no earlier record has would hang the chip, or mean
    another order than the buffer's, which the simulator does not execute.
    """
    seen: tuple[dict[int, int], dict[int, int]] = ({}, {})
    found: NDArray[np.int64] = np.full(len(engine), NO_WAIT, np.int64)
    for record, (number, own_id, wanted_id) in enumerate(zip(engine.tolist(), own.tolist(), wanted.tolist())):
        if number == _NUMBER[Engine.CPU]:
            seen = ({}, {})
            continue
        if wanted_id:
            other = 1 - number
            if wanted_id not in seen[other]:
                raise SimulatorError(
                    f"command {record} ({ENGINES[number]}) waits for {ENGINES[other]} id {wanted_id}, "
                    "which no command before it carries"
                )
            found[record] = seen[other][wanted_id]
        seen[number][own_id] = record
    return found
