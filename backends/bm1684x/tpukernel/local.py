"""Tensors in local memory as calls name them: layouts, and whether a tensor lies where it may (tpukernel.md 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.instructions.operands import Operand
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4
from bmcompiler.chip import align_up
from bmcompiler.errors import UsageError

_NARROW, _WIDE = (1 << 16) - 1, (1 << 18) - 1
Layout = Callable[[int, dim4, data_type_t], dim4]


def lane_of(address: int) -> int:
    """The lane in which a local address lies."""
    return address // CHIP.lmem_size


def elements_at_once(dtype: data_type_t) -> int:
    """Elements that a lane works on at once. Raises UsageError for types without whole bytes."""
    return CHIP.alignment // dtype.size


def aligned(lane: int, shape: dim4, dtype: data_type_t) -> dim4:
    """Strides of the 64-byte aligned layout."""
    channel = align_up(shape.h * shape.w, elements_at_once(dtype))
    return dim4(CHIP.channel_rows(lane, shape.c) * channel, channel, shape.w, 1)


def compact(lane: int, shape: dim4, dtype: data_type_t | None = None) -> dim4:
    """Strides of the compact layout."""
    channel = shape.h * shape.w
    return dim4(CHIP.channel_rows(lane, shape.c) * channel, channel, shape.w, 1)


def line_aligned(lane: int, shape: dim4, dtype: data_type_t) -> dim4:
    """Strides of the layout in which every row begins aligned."""
    row = align_up(shape.w, elements_at_once(dtype))
    return dim4(CHIP.channel_rows(lane, shape.c) * shape.h * row, shape.h * row, row, 1)


def continuous(shape: dim4) -> dim4:
    """Strides outside of local memory, without gaps."""
    return dim4(shape.c * shape.h * shape.w, shape.h * shape.w, shape.w, 1)


def place(
    name: str, address: int, shape: dim4, dtype: data_type_t, strides: dim4 | None = None, layout: Layout = aligned
) -> dim4:
    """The strides of a tensor, those given or the layout's.

    Raises:
        UsageError: it is not aligned, or does not fit into the lane.
    """
    lane, offset = divmod(address, CHIP.lmem_size)
    step = dtype.size if strides is not None or layout is compact else CHIP.alignment
    if offset % step:
        raise UsageError(f"{name} must begin at a multiple of {step} bytes, got 0x{address:x}")
    steps = layout(lane, shape, dtype) if strides is None else strides
    if strides is not None and (max(steps.n, steps.c) > _NARROW or max(steps.h, steps.w) > _WIDE):
        limits = f"n and c strides go up to {_NARROW}, h and w strides up to {_WIDE}"
        raise UsageError(f"{name} has strides {tuple(steps)}: {limits}")
    rows = CHIP.channel_rows(lane, shape.c)
    last = sum((count - 1) * step for count, step in zip((shape.n, rows, shape.h, shape.w), steps))
    if offset + (last + 1) * dtype.size > CHIP.lmem_size:
        need = offset + (last + 1) * dtype.size
        raise UsageError(f"{name} ends at byte {need} of its lane, which has {CHIP.lmem_size}")
    return steps


def tensor(a: Arguments, name: str, dtype: data_type_t, shape: dim4 | None = None) -> Operand:
    """The operand that `NAME_addr` and, where the function has it, `NAME_stride` describe."""
    strides: dim4 | None = a.get(f"{name}_stride")
    place(name, getattr(a, f"{name}_addr"), shape or a.shape, dtype, strides)
    return Operand(getattr(a, f"{name}_addr"), dtype.precision, dtype.signed, strides)


def disjoint(tensors: Iterable[tuple[int, dim4, data_type_t]]) -> bool:
    """Whether no bank holds parts of two tensors, which are aligned: of address, shape and type."""
    found = [_banks(*one) for one in tensors]
    return len(set().union(*found)) == sum(map(len, found))


def _banks(address: int, shape: dim4, dtype: data_type_t) -> set[int]:
    lane, offset = divmod(address, CHIP.lmem_size)
    last = offset + max(shape.n * aligned(lane, shape, dtype).n * dtype.size, 1) - 1
    return set(range(offset // CHIP.lmem_bank_size, last // CHIP.lmem_bank_size + 1))
