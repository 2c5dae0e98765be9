"""Copies, transposes, constants, matrices, gather and scatter of the GDMA (tpukernel-api.md 4)."""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Move
from bmcompiler.backends.bm1684x.instructions import transfers
from bmcompiler.backends.bm1684x.instructions.transfers import Rows, Side, in_window
from bmcompiler.backends.bm1684x.tpukernel.local import aligned, continuous, elements_at_once, lane_of
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, computed
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4
from bmcompiler.chip import align_up
from bmcompiler.errors import UsageError

MOST_SIZE = (1 << 16) - 1
"""Elements along an axis of a transfer."""
_MOST_STEP = 128  # bytes between elements of a row
_KIND = {"L": "local_addr_t", "S": "system_addr_t"}
_WORDS = {"L": "local", "S": "system"}


def side_of(
    a: Arguments, name: str, kind: str, shape: dim4, dtype: data_type_t, begins: Callable[[int], int] = lane_of
) -> Side:
    """Destination or source in local memory ("L") or outside of it ("S"), in its own strides or the default's.

    Args: begins: the lane that default strides are for, of a local address.

    Raises:
        UsageError: it is not aligned to its elements, or ends behind its lane.
    """
    address: int = getattr(a, f"{name}_addr")
    if address % dtype.size:
        raise UsageError(f"{name} must begin at a multiple of {dtype.size} bytes, got 0x{address:x}")
    if (kind == "L") != (address < CHIP.lmem_total):
        raise UsageError(f"{name}, 0x{address:x}, is {'no' if kind == 'L' else 'a'} local address")
    strides: dim4 | None = a.get(f"{name}_stride")
    if kind == "S":
        return Side(address, shape, strides or continuous(shape))
    steps = strides or aligned(begins(address), shape, dtype)
    rows = CHIP.channel_rows(lane_of(address), shape.c)
    last = sum((count - 1) * step for count, step in zip((shape.n, rows, shape.h, shape.w), steps))
    end = address % CHIP.lmem_size + (last + 1) * dtype.size
    if end > CHIP.lmem_size:
        raise UsageError(f"{name} ends at byte {end} of its lane, which has {CHIP.lmem_size}")
    return Side(in_window(address), shape, steps)


def _pair(a: Arguments, way: str, to: dim4, of: dim4, begins: Callable[[int], int] = lane_of) -> tuple[Side, Side]:
    return side_of(a, "dst", way[2], to, a.dtype, begins), side_of(a, "src", way[0], of, a.dtype, begins)


def _first_lane(_: int) -> int:
    """As the vendor's library has it for plain copies and constants, wherever the tensor begins.

    So several images of channels that reach behind the last lane lie in each other, unless strides are given.
    """
    return 0


def _copy(way: str) -> Emit:
    alike = way in ("S2L", "L2S")
    make, begins = (transfers.copy_alike, _first_lane) if alike else (transfers.copy, lane_of)

    def emit(k: Recorder, a: Arguments) -> None:
        k.add(make(*_pair(a, way, a.shape, a.shape, begins), a.dtype.precision))

    return emit


def _reshape(way: str) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        k.add(transfers.copy(*_pair(a, way, a.dst_shape, a.src_shape), a.dtype.precision))

    return emit


def _transpose_nc(way: str) -> Emit:
    alike = way in ("S2L", "L2S")

    def emit(k: Recorder, a: Arguments) -> None:
        n, c, h, w = a.dst_shape
        to, of = _pair(a, way, a.dst_shape, dim4(c, n, h, w))
        strides = not alike or a.dst_stride is not None or a.src_stride is not None
        k.add(transfers.transpose_nc(to, of, a.dtype.precision, alike, strides))

    return emit


def _transpose_cw(way: str) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        n, c, h, w = a.dst_shape
        to, of = _pair(a, way, a.dst_shape, dim4(n, w, h, c))
        strides = a.dst_stride is not None or a.src_stride is not None
        k.add(transfers.transpose_cw(to, of, a.dtype.precision, strides))

    return emit


def _fill(kind: str) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        to = side_of(a, "dst", kind, a.shape, a.dtype, _first_lane)
        k.add(transfers.fill(to, a.C & (1 << a.dtype.bits) - 1, a.dtype.precision))

    return emit


def _fill_count(k: Recorder, a: Arguments) -> None:
    """As many whole rows as a command holds, then what is left of one."""
    side_of(a, "dst", "S", dim4(1, 1, 1, 1), a.dtype)
    address, left = a.dst_addr, a.count
    while left:
        width = min(left, MOST_SIZE)
        shape = dim4(1, 1, min(left // width, MOST_SIZE), width)
        to = Side(address, shape, dim4(0, 0, width, 1))
        k.add(transfers.fill(to, a.C & (1 << a.dtype.bits) - 1, a.dtype.precision))
        left -= shape.h * width
        address += shape.h * width * a.dtype.size


def _matrix(way: str) -> Emit:
    load = way == "S2L"
    local, outer = ("dst", "src") if load else ("src", "dst")

    def emit(k: Recorder, a: Arguments) -> None:
        address = getattr(a, f"{local}_addr")
        sections = -(-a.cols // a.cols_per_channel)
        width = align_up(a.cols_per_channel, elements_at_once(a.dtype))
        side_of(a, local, "L", dim4(a.rows, sections, 1, a.cols_per_channel), a.dtype)
        side_of(a, outer, "S", dim4(1, 1, a.rows, a.cols), a.dtype)
        steps = dim4(CHIP.channel_rows(lane_of(address), sections) * width, width, 0, 0)
        inside = Side(in_window(address), dim4(a.rows, sections, 0, a.cols_per_channel), steps)
        outside = Side(getattr(a, f"{outer}_addr"), dim4(0, 0, a.rows, a.cols), dim4(0, 0, a.row_stride, 0))
        k.add(transfers.matrix(inside, outside, load, a.dtype.precision))

    return emit


def _indexed(move: Move, way: str) -> Emit:
    gather = move is Move.GATHER

    def emit(k: Recorder, a: Arguments) -> None:
        n, c, h, w = a.shape
        count = h if gather else a.param_h
        output = _rows(a, "output", way[2], dim4(n, c, h, w), a.dtype, (0, h, 0))
        param = _rows(a, "param", way[0], dim4(n, c, a.param_h, w), a.dtype, (c, a.param_h, w))
        where = "L" if a.index_is_local else "S"
        index = _rows(a, "index", where, dim4(n, c, count, 1), data_type_t.DT_UINT32, (c, count, 0))
        strides = any(a.get(f"{name}_stride") is not None for name in ("output", "param", "index"))
        constant = {"constant_value": a.C} if gather else {}
        k.add(transfers.indexed(move, output, param, index, a.dtype.precision, strides, **constant))

    return emit


def _rows(a: Arguments, name: str, kind: str, shape: dim4, dtype: data_type_t, sizes: tuple[int, int, int]) -> Rows:
    side = side_of(a, name, kind, shape, dtype)
    return Rows(side.address, sizes, (side.strides[1], side.strides[2]))


# -- rules -------------------------------------------------------------------------------------------------------------
def _row_steps(a: Arguments) -> bool:
    given = [a.get(name) for name in ("dst_stride", "src_stride")]
    return all(1 <= steps.w * a.dtype.size <= _MOST_STEP for steps in given if steps is not None)


def _dense_rows(a: Arguments) -> bool:
    return all(a.get(name) is None or a.get(name).w == 1 for name in ("dst_stride", "src_stride"))


def _count(shape: dim4) -> int:
    return shape.n * shape.c * shape.h * shape.w


_ANY = computed("dtype")
_STEPS = Rule(f"strides of w must be 1 to {_MOST_STEP} bytes", _row_steps)
_DENSE = Rule("strides of w must be 1", _dense_rows)
_SAME_COUNT = Rule(
    "dst_shape and src_shape must have the same number of elements",
    lambda a: _count(a.dst_shape) == _count(a.src_shape),
)
_ONE_IMAGE = Rule("n must be 1", lambda a: a.shape.n == 1)
_SIZES = at_least(1, "rows", "cols", "cols_per_channel")
_PITCH = Rule(
    "row_stride must be at least cols where there are several rows", lambda a: a.rows == 1 or a.row_stride >= a.cols
)
_FORWARD = at_least(0, "row_stride")


def _addresses(way: str) -> str:
    return f"{_KIND[way[2]]} dst_addr, {_KIND[way[0]]} src_addr, "


_STRIDES = "const dim4 *dst_stride, const dim4 *src_stride, data_type_t dtype"


def _cpy(way: str) -> Function:
    prototype = f"void tpu_gdma_cpy_{way}({_addresses(way)}const dim4 *shape, {_STRIDES})"
    return Function(prototype, "src", _copy(way), (_ANY, _STEPS))


def _nc(way: str) -> Function:
    prototype = f"void tpu_gdma_cpy_nc_trans_{way}({_addresses(way)}const dim4 *dst_shape, {_STRIDES})"
    return Function(prototype, "src(c, n, h, w)", _transpose_nc(way), (_ANY, _DENSE))


def _cw(way: str) -> Function:
    prototype = f"void tpu_gdma_cpy_cw_trans_{way}({_addresses(way)}const dim4 *dst_shape, {_STRIDES})"
    return Function(prototype, "src(n, w, h, c)", _transpose_cw(way), (_ANY, _DENSE))


def _general(way: str) -> Function:
    shapes = "const dim4 *dst_shape, const dim4 *src_shape, "
    prototype = f"void tpu_gdma_general_cpy_{way}({_addresses(way)}{shapes}{_STRIDES})"
    return Function(prototype, "the elements of src in order", _reshape(way), (_ANY, _SAME_COUNT, _STEPS))


def _set(kind: str) -> Function:
    prototype = (
        f"void tpu_gdma_set_C_{_WORDS[kind]}({_KIND[kind]} dst_addr, scalar_t C, const dim4 *shape, "
        "const dim4 *dst_stride, data_type_t dtype)"
    )
    return Function(prototype, "C", _fill(kind), (_ANY,))


def _matrices(way: str) -> Function:
    sizes = "int rows, int cols, int cols_per_channel, int row_stride, data_type_t dtype"
    rules = (_ANY, _SIZES, _FORWARD, *((_PITCH,) if way == "L2S" else ()))
    formula = "row r, column j: n = r, c = j / cols_per_channel, w = j mod cols_per_channel"
    return Function(f"void tpu_gdma_matrix_{way}({_addresses(way)}{sizes})", formula, _matrix(way), rules)


def _rows_by_index(move: Move, way: str) -> Function:
    constant = "scalar_t C, " if move is Move.GATHER else ""
    name = "gather" if move is Move.GATHER else "scatter"
    prototype = (
        f"void tpu_gdma_h_{name}_{way}({_KIND[way[2]]} output_addr, {_KIND[way[0]]} param_addr, addr_t index_addr, "
        f"bool index_is_local, {constant}const dim4 *shape, int param_h, const dim4 *output_stride, "
        "const dim4 *param_stride, const dim4 *index_stride, data_type_t dtype)"
    )
    formula = {
        Move.GATHER: "param(0, c, index(0, c, h, 0), w), or C where index >= param_h",
        Move.SCATTER: "output(0, c, index(0, c, k, 0), w) = param(0, c, k, w)",
    }[move]
    return Function(prototype, formula, _indexed(move, way), (_ANY, _ONE_IMAGE, at_least(1, "param_h")))


RECORDED = in_group(
    "Between memories",
    *(_cpy(way) for way in ("S2L", "L2S", "S2S", "L2L")),
    _general("S2L"),
    *(_nc(way) for way in ("S2S", "L2S")),
    *(_cw(way) for way in ("L2S", "S2L", "S2S")),
    _set("S"),
    _set("L"),
    *(_matrices(way) for way in ("S2L", "L2S")),
    *(_rows_by_index(Move.GATHER, way) for way in ("S2S", "S2L")),
    _rows_by_index(Move.SCATTER, "L2S"),
)
DERIVED = in_group(
    "Between memories",
    _general("S2S"),
    Function(
        "void tpu_gdma_system_set(system_addr_t dst_addr, scalar_t C, unsigned int count, data_type_t dtype)",
        "count elements of C",
        _fill_count,
        (_ANY, at_least(1, "count")),
    ),
    source=Known.DERIVED,
)
DRAWN = in_group(
    "Between memories",
    *(_general(way) for way in ("L2S", "L2L")),
    *(_nc(way) for way in ("S2L", "L2L")),
    _cw("L2L"),
    *(_rows_by_index(Move.GATHER, way) for way in ("L2S", "L2L")),
    *(_rows_by_index(Move.SCATTER, way) for way in ("S2S", "S2L", "L2L")),
    source=Known.DRAWN,
)
ROWS = (*RECORDED, *DERIVED, *DRAWN)
