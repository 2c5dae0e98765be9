"""A BM1880 command buffer decoded for analysis: columns of fields, and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.backends.bm1880.cmdbuf import Records, records
from bmcompiler.backends.bm1880.isa import GDMA, TIU, Engine
from bmcompiler.errors import FileFormatError, SimulatorError
from bmcompiler.instructions.isa import Columns
from bmcompiler.numeric.arrays import Ints
from bmcompiler.runtime.simulator.timing import CommandList, resolved

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
    commands = resolved(ENGINES, _numbers(index), own, wanted)
    return Decoded(tpu, gdma, tpu_at, gdma_at, index.flags, commands)


def _numbers(index: Records) -> Ints:
    table = np.zeros(max(Engine) + 1, np.int64)
    for engine, number in _NUMBER.items():
        table[engine] = number
    return table[index.engine]
