"""The simulated BM1684: 64 lanes, L2 with its constant tables, global memory."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP, is_local, lane_offset
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.memory import Bytes, GlobalMemory, LaneMemory, Shape, Tensor

_FIRST_EXP, _LAST_EXP = -103, 88
_SERIES = 64
_SERIAL = 2048
_UNINITIALISED = 0xDEADBEEF


class Machine:
    """One chip: its local memory, its L2 and the global memory it sees.

    L2 is part of `globals`, where GDMA finds it, at `CHIP.l2_window`. All memory but the L2 tables is zero at first;
    `poisoned` fills local memory with the word 0xDEADBEEF instead, as the vendor's model does (bm1684.md 3.1).
    """

    def __init__(self, global_memory: GlobalMemory | None = None, *, poisoned: bool = False) -> None:
        self.local = LaneMemory(CHIP.lanes, CHIP.lmem_size)
        self.globals = global_memory or GlobalMemory()
        self.l2: Bytes = np.zeros(CHIP.l2_size, np.uint8)
        tables = l2_tables()
        self.l2[CHIP.l2_tables : CHIP.l2_tables + tables.size] = tables
        self.globals.map(CHIP.l2_window, self.l2)
        if poisoned:
            self.local.bytes[...] = np.tile(np.array([_UNINITIALISED], "<u4").view(np.uint8), CHIP.lmem_size // 4)

    def local_tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype) -> Tensor:
        """Tensor at a descriptor address in local memory; strides (n, c, h, w) in bytes.

        Raises SimulatorError when the address or an element is outside local memory.
        """
        if not is_local(address):
            raise SimulatorError(f"address 0x{address:x} is not in local memory")
        lane, offset = lane_offset(address)
        return self.local.tensor(lane, offset, shape, strides, dtype)

    def table(self, offset: int, entries: int) -> NDArray[np.float32]:
        """`entries` fp32 words at byte `offset` of L2, as a view. Raises SimulatorError outside L2."""
        if offset % 4 or not 0 <= offset <= CHIP.l2_size - 4 * entries:
            raise SimulatorError(f"a table of {entries} words at offset 0x{offset:x} does not lie in L2")
        return self.l2[offset : offset + 4 * entries].view(np.float32)


@cache
def l2_tables() -> Bytes:
    """The 14336 bytes of constant tables from offset 0x300000 of L2, computed (bm1684.md 8). Do not write to it."""
    signed = np.arange(256).astype(np.int8).astype(np.float64)
    inside = (signed >= _FIRST_EXP) & (signed <= _LAST_EXP)
    factorials = _inverse_factorials()
    signs = np.array([1, 0, -1, 0], np.float32)[np.arange(_SERIES) % 4]
    tables = (
        np.where(inside, signed, 0),  # EX_INT
        np.where(inside, np.exp(np.where(inside, signed, 0)), 0),  # EX
        (np.arange(256) - 127) * math.log(2),  # LNX
        factorials,  # EX_TAYLOR
        np.array([(-1) ** k / (k + 1) for k in range(_SERIES)]),  # LN_TAYLOR
        _arcsine_series(),  # ARCSIN_TAYLOR
        np.arange(256),  # UINT8 -> FLOAT
        signed,  # INT8 -> FLOAT
        signs * factorials,  # SIN_TAYLOR
        np.arange(_SERIAL),  # SERIAL
    )
    joined = np.concatenate([np.asarray(table).astype("<f4") for table in tables])
    return joined.view(np.uint8)


def _inverse_factorials() -> NDArray[np.float32]:
    """1/(k+1)! by repeated float32 division, which is why some entries are off by one in the last bit."""
    return np.divide.accumulate(np.maximum(np.arange(_SERIES + 1), 1).astype(np.float32))[1:]


def _arcsine_series() -> NDArray[np.float32]:
    """Odd terms (2m-1)!! / (2m)!! / (2m+1) in float32, even ones 0; the last are inf / inf, as on the chip."""
    m = np.arange(1, _SERIES // 2, dtype=np.float32)
    one = np.ones(1, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        odd = np.concatenate([one, np.multiply.accumulate(2 * m - 1)])
        even = np.concatenate([one, np.multiply.accumulate(2 * m)])
        terms = odd / even / (2 * np.arange(_SERIES // 2, dtype=np.float32) + 1)
    series = np.zeros(_SERIES, np.float32)
    series[::2] = terms
    return series
