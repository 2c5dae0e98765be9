"""What memory holds before a recorded call: drawn by a seed, so that recordings need not carry it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Function
from bmcompiler.backends.bm1684x.tpukernel.units.form import Form
from bmcompiler.tpukernel import (
    DT_BFP16,
    DT_FP16,
    DT_FP32,
    DT_INT8,
    LOCAL_MEM_SIZE,
    data_type_t,
    variable_t,
    variable_type_t,
)

Array = NDArray[Any]
GLOBAL_BYTES = 1 << 20
_ODD = np.array([0, 1 << 31, 1, 0x8000_0002, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFC0_0001], np.uint32).view("f4")
_OUTSIDE, _OUTSIDE_FILLED = ("system_addr_t", "global_addr_t", "addr_t"), 1 << 15
FILLED = 4096
"""Bytes of each lane that are drawn from the address of a tensor on."""


class Memory(NamedTuple):
    """Local memory, (lanes, bytes), and the beginning of global memory."""

    local: NDArray[np.uint8]
    globals: NDArray[np.uint8]

    def digest(self) -> int:
        """Of all bytes."""
        found = crc32(self.globals)
        for lane in self.local:
            found = crc32(lane, found)
        return found


def place(memory: Memory, arrays: Mapping[int, Array]) -> None:
    """Put arrays into global memory, by their addresses."""
    for address, values in arrays.items():
        at = address - CHIP.global_base
        memory.globals[at : at + values.nbytes] = values.view(np.uint8)


def fill(memory: Memory, row: Function, a: Arguments, seed: int) -> None:
    """Draw what lies at each address of a call: numbers of the tensor's type, indices in range."""
    rng = np.random.default_rng(seed)
    for each in row.parameters:
        if each.base in _OUTSIDE:
            name, at = each.name.removesuffix("_addr"), getattr(a, each.name) - CHIP.global_base
            drawn = _drawn(rng, row, a, name, _OUTSIDE_FILLED).view(np.uint8)
            memory.globals[at : at + _OUTSIDE_FILLED] = drawn
        given = getattr(a, each.name)
        if isinstance(given, variable_t):
            given = given.value if given.type is variable_type_t.TENSOR else None
        if given is None or each.base not in ("local_addr_t", "variable_t"):
            continue
        offset, name = given % LOCAL_MEM_SIZE, each.name.removesuffix("_addr")
        size = min(FILLED, LOCAL_MEM_SIZE - offset)
        drawn = _drawn(rng, row, a, name, memory.local.shape[0] * size)
        memory.local[:, offset : offset + size] = drawn.view(np.uint8).reshape(-1, size)


def _drawn(rng: np.random.Generator, row: Function, a: Arguments, name: str, size: int) -> Array:
    if name == "src" and "table_lookup" in row.name:
        return rng.integers(0, min(a.len, 256), size // a.src_dtype.size).astype(f"u{a.src_dtype.size}")
    if row.name.startswith("tpu_hau_sort"):
        return _sorted(rng, a, size)
    if name in _SPECIAL:
        return _SPECIAL[name](rng, row, a, size)
    return numbers(rng, type_of(row, a, name), size)


def numbers(rng: np.random.Generator, dtype: data_type_t, size: int) -> Array:
    """`size` bytes of ordinary numbers of a type."""
    if dtype in (DT_FP32, DT_FP16, DT_BFP16):
        values = (rng.integers(-4096, 4096, size // dtype.size) / 256).astype(np.float32)
        if dtype == DT_BFP16:
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        return values.astype(np.float16) if dtype == DT_FP16 else values
    if dtype.size == 4:  # products of sums that stay far from 64 bits
        return rng.integers(0 if not dtype.signed else -(1 << 20), 1 << 20, size // 4).astype(np.int32)
    return rng.integers(0, 256, size, dtype=np.uint8)


def type_of(row: Function, a: Arguments, name: str) -> data_type_t:
    """The type of a tensor: as the row says it, or by the names of the parameters."""
    form = getattr(row.emit, "__self__", None)
    if isinstance(form, Form):
        for tensor in form.tensors:
            if tensor.name == name:
                found: data_type_t = getattr(a, tensor.dtype) if isinstance(tensor.dtype, str) else tensor.dtype
                return found
    if row.name.endswith("_select") and "mask" not in row.name and a.get("dst0_dtype") is not None:
        both: data_type_t = a.dst0_dtype if name in ("src0", "src1", "dst0") else a.dst1_dtype
        return both
    group = "src" if name.startswith("src") else name
    names = (f"{name}_dtype", f"{group}_dtype", "dtype", "data_dtype", "src0_src1_dtype", "src_dtype")
    return next((getattr(a, each) for each in names if a.get(each) is not None), DT_FP32)


# -- operands that are no plain numbers --------------------------------------------------------------------------------
def _index(rng: np.random.Generator, row: Function, a: Arguments, size: int) -> Array:
    """Positions in the tensor that is indexed; of exceptions, some that say "none"."""
    scatters = "scatter" in row.name
    if a.get("index_is_local") is not None:  # of the GDMA
        return rng.integers(0, a.shape.h if scatters else a.param_h, size // 4).astype(np.uint32)
    if a.get("param_h") and a.get("param_w"):
        most = min(a.shape.h, a.shape.w) if scatters else min(a.param_h, a.param_w)
    else:
        most = (a.shape.h if "_h_" in row.name else a.shape.w) if scatters else a.get("param_w") or a.param_h
    dtype = a.get("index_dtype")
    kind = np.uint8 if dtype is not None and dtype.size == 1 else np.uint16
    found = rng.integers(0, min(most, 256), size // np.dtype(kind).itemsize).astype(kind)
    if "exception" in row.name:
        found[rng.random(found.size) < 0.2] = np.iinfo(kind).max
    return found


def _sorted(rng: np.random.Generator, a: Arguments, size: int) -> Array:
    """Few numbers, so that many are equal; of floats also zeros of both signs, denormals, infinity and NaN."""
    some = rng.integers(-5, 5, size // 4).astype(np.int32)
    if a.dtype != DT_FP32 or rng.random() < 0.3:
        return some.astype(np.float32) if a.dtype == DT_FP32 else some
    return np.where(rng.random(some.size) < 0.5, some.astype(np.float32), rng.choice(_ODD, some.size))


def _mask(rng: np.random.Generator, row: Function, a: Arguments, size: int) -> Array:
    found = rng.integers(0, 3, size // a.mask_dtype.size)
    return found.astype({1: np.uint8, 2: np.uint16, 4: np.uint32}[a.mask_dtype.size])


def _places(rng: np.random.Generator, row: Function, a: Arguments, size: int) -> Array:
    """Shifts of a few places in both directions, also at a pair's first word."""
    return rng.integers(-6, 7, size, dtype=np.int8) if a.get("shift_dtype") in (None, DT_INT8) else _few(rng, a, size)


def _few(rng: np.random.Generator, a: Arguments, size: int) -> Array:
    kind = {1: np.int8, 2: np.int16, 4: np.int32}[a.shift_dtype.size]
    return rng.integers(-6, 7, size // a.shift_dtype.size).astype(kind)


def _factors(rng: np.random.Generator, row: Function, a: Arguments, size: int) -> Array:
    """Words of each channel: 64 bytes, of which three words count."""
    found = rng.integers(0, 100, (size // 64, 16)).astype(np.int32)
    words: Mapping[str, Any] = {
        "multiplier": rng.integers(-(1 << 20), 1 << 20, len(found)),
        "shift": rng.integers(-24, -12, len(found)),
        "zero": rng.integers(-20, 20, len(found)),
        "scale": rng.uniform(-1, 1, len(found)).astype(np.float32).view(np.int32),
        "offset": rng.uniform(-20, 20, len(found)).astype(np.float32).view(np.int32),
    }
    for column, word in enumerate(_WORDS[row.name]):
        found[:, column] = words[word]
    return found


def _zeros(rng: np.random.Generator, row: Function, a: Arguments, size: int) -> Array:
    """Zero points: rows of them must be the same in all lanes."""
    lanes = CHIP.lanes if "all_trans" not in row.name else 1
    return np.tile(rng.integers(0, 256, size // lanes, dtype=np.uint8), lanes)


_WORDS = {
    "tpu_bdc_int_pc_requant": ("multiplier", "shift", "zero"),
    "tpu_bdc_int_pc_dequant": ("zero", "multiplier", "shift"),
    "tpu_bdc_fp32_pc_requant": ("scale", "offset"),
    "tpu_bdc_fp32_pc_dequant": ("zero", "scale"),
}
_SPECIAL = {"index": _index, "mask": _mask, "shift": _places, "quant": _factors, "zp": _zeros}
