"""Copies, constants and matrices of the GDMA."""

from __future__ import annotations

from bmcompiler.backends.bm168x.calls import Arguments, Rule
from bmcompiler.backends.bm1684.chip import CHIP, align_up
from bmcompiler.backends.bm1684.isa import DataFormat, Direction
from bmcompiler.backends.bm1684.isa import Function as Special
from bmcompiler.backends.bm1684.okkernel.places import Tensor, aligned, continuous, lane_of, tensor
from bmcompiler.backends.bm1684.okkernel.recorder import Recorder
from bmcompiler.backends.bm1684.okkernel.rows import Emit, Function, in_group, within
from bmcompiler.backends.bm1684.okkernel.types import dim4
from bmcompiler.errors import UsageError

_FORMATS = {4: DataFormat.FP32, 2: DataFormat.INT16, 1: DataFormat.INT8}
_DIRECTIONS = {
    "S2L": Direction.SYSTEM_TO_LOCAL,
    "L2S": Direction.LOCAL_TO_SYSTEM,
    "S2S": Direction.SYSTEM_TO_SYSTEM,
    "L2L": Direction.LOCAL_TO_LOCAL,
}
_KIND = {"L": "local_addr_t", "S": "system_addr_t"}
_NAMES = ("dst_stride", "src_stride")


def _side(name: str, shape: dim4, strides: dim4 | None = None) -> dict[str, int]:
    fields = {f"{name}_{axis}": size for axis, size in zip("nchw", shape)}
    return fields | {f"{name}_{axis}_str": step for axis, step in zip("nchw", strides or ())}


def _end(a: Arguments, name: str, kind: str, shape: dim4, item: int) -> tuple[int, dim4]:
    """Address as commands have it, and strides. Raises UsageError where a tensor leaves its lane."""
    if kind == "L":
        place = tensor(a, name, shape, item)
        return place.window, place.strides
    address = getattr(a, f"{name}_addr")
    if address % item:
        raise UsageError(f"{name} must begin at a multiple of {item} bytes, got 0x{address:x}")
    return address, a.get(f"{name}_stride") or continuous(shape)


def _formats(item: int) -> dict[str, int]:
    return {"src_data_format": int(_FORMATS[item]), "dst_data_format": int(_FORMATS[item])}


def _copy(way: str, item: int) -> Emit:
    implied = way in ("S2L", "L2S")

    def emit(k: Recorder, a: Arguments) -> None:
        target, to = _end(a, "dst", way[2], a.shape, item)
        source, of = _end(a, "src", way[0], a.shape, item)
        given = not implied or any(a.get(name) is not None for name in _NAMES)
        k.gdma(
            src_addr=source,
            dst_addr=target,
            direction=_DIRECTIONS[way],
            stride_enable=int(given),
            **_side("src", a.shape, of if given else None),
            **_side("dst", a.shape, to if given else None),
            **_formats(item),
        )

    return emit


def _fill(kind: str, item: int) -> Emit:
    direction = Direction.LOCAL_TO_LOCAL if kind == "L" else Direction.SYSTEM_TO_SYSTEM

    def emit(k: Recorder, a: Arguments) -> None:
        target, strides = _end(a, "dst", kind, a.shape, item)
        if kind == "L" and a.dst_stride is None:
            strides = aligned(lane_of(a.dst_addr), a.shape)  # recorded: of words, whatever the elements
        k.gdma(
            dst_addr=target,
            direction=direction,
            special_func=Special.FILL,
            stride_enable=1,
            constant_value=a.C,
            **_side("dst", a.shape, strides),
            **_formats(item),
        )

    return emit


def _matrix(way: str) -> Emit:
    load = way == "S2L"
    local, outer = ("dst", "src") if load else ("src", "dst")

    def emit(k: Recorder, a: Arguments) -> None:
        sections = -(-a.cols // a.cols_per_channel)
        shape = dim4(a.rows, sections, 1, a.cols_per_channel)
        inside: Tensor = tensor(a, local, shape)
        width = align_up(a.cols_per_channel, CHIP.alignment // 4)
        steps = dim4(CHIP.channel_rows(0, sections) * width, width, width, 1)  # recorded: as from lane 0 on
        addresses = {f"{local}_addr": inside.window, f"{outer}_addr": getattr(a, f"{outer}_addr")}
        k.gdma(
            direction=_DIRECTIONS[way],
            stride_enable=1,
            sys_mem_type=1,
            **addresses,
            **_side(local, shape, steps),
            **_side(outer, dim4(1, 1, a.rows, a.cols), dim4(0, 0, a.row_stride, 1)),
        )

    return emit


_DENSE = Rule("strides of w must be 1", lambda a: all(a.get(name) is None or a.get(name).w == 1 for name in _NAMES))
_MATRIX = (
    within(1, 65535, "rows", "cols", "cols_per_channel"),
    Rule(
        "row_stride must be at least cols where there are several rows", lambda a: a.rows == 1 or a.row_stride >= a.cols
    ),
    within(0, (1 << 31) - 1, "row_stride"),
)
_SHAPE, _TO, _OF = "const dim4 *shape", "const dim4 *dst_stride", "const dim4 *src_stride"


def _addresses(way: str) -> str:
    return f"{_KIND[way[2]]} dst_addr, {_KIND[way[0]]} src_addr"


def _copies(item: int) -> list[Function]:
    return [
        Function(
            f"void okk_gdma_{8 * item}bit_cpy_{way}({_addresses(way)}, {_SHAPE}, {_TO}, {_OF})",
            f"src, elements of {8 * item} bits",
            _copy(way, item),
            (_DENSE,),
        )
        for way in ("S2L", "L2S", "L2L", "S2S")
    ]


def _constants(item: int) -> list[Function]:
    return [
        Function(
            f"void okk_gdma_{8 * item}bit_set_C_{word}({_KIND[word[0].upper()]} dst_addr, x{8 * item} C, "
            f"{_SHAPE}, {_TO})",
            "C" if item == 4 or word == "system" else "C; without strides in the layout of 32 bits",
            _fill(word[0].upper(), item),
            (_DENSE,),
        )
        for word in ("system", "local")
    ]


ROWS = in_group(
    "Between memories",
    *_copies(4),
    *(
        Function(
            f"void okk_gdma_32bit_matrix_{way}({_addresses(way)}, "
            "int rows, int cols, int cols_per_channel, int row_stride)",
            "row r, column j: n = r, c = j / cols_per_channel, w = j mod cols_per_channel",
            _matrix(way),
            _MATRIX,
        )
        for way in ("S2L", "L2S")
    ),
    *_constants(4),
    *(row for item in (2, 1) for row in (*_copies(item), *_constants(item))),
)
