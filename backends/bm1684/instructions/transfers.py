"""Transfers of the GDMA: strided copies, conversions, fills and matrices (bm1684.md 5)."""

from __future__ import annotations

from bmcompiler.backends.bm1684.chip import local_address
from bmcompiler.backends.bm1684.instructions.words import Commands, bytes_of, steps_of
from bmcompiler.backends.bm1684.isa import DataFormat, Direction, Function
from bmcompiler.backends.lanes.facts import Range, Shape, Strides
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.transfers import Side
from bmcompiler.instructions.isa import Fields

__all__ = ["FORMAT_OF_SIZE", "Side", "convert", "fill", "in_lane", "matrix", "of_words", "side_fields", "transfer"]

FORMAT_OF_SIZE = {1: DataFormat.INT8, 2: DataFormat.INT16, 4: DataFormat.FP32}


def in_lane(offset: int, shape: Shape, strides: Strides, *touched: Range, lane: int = 0, byte: int = 0) -> Side:
    """A side in local memory: from byte `byte` of the word at `offset` of a lane on."""
    return Side(local_address(offset, lane) + byte, shape, strides, touched)


def of_words(words: Words) -> Side:
    """A tensor of words as a side."""
    return in_lane(words.address, words.shape, steps_of(words), bytes_of(words), lane=words.lane)


def side_fields(name: str, shape: Shape, strides: Strides) -> Fields:
    """Size and stride fields; an axis of one element has stride 0, its own could exceed the field."""
    steps = [stride if size > 1 else 0 for size, stride in zip(shape, strides)]
    steps[3] = strides[3]
    return {
        **{f"{name}_{axis}": size for axis, size in zip("nchw", shape)},
        **{f"{name}_{axis}_str": step for axis, step in zip("nchw", steps)},
    }


def transfer(build: Commands, direction: Direction, source: Side, target: Side, item: int = 4) -> None:
    """Copy elements of `item` bytes in order."""
    form = int(FORMAT_OF_SIZE[item])
    _copy(build, direction, source, target, {"src_data_format": form, "dst_data_format": form})


def convert(build: Commands, source: Side, target: Side, form: DataFormat) -> None:
    """Load bytes of a format as floats."""
    formats = {"src_data_format": int(form), "dst_data_format": int(DataFormat.FP32)}
    _copy(build, Direction.SYSTEM_TO_LOCAL, source, target, {"special_func": int(Function.CONVERT), **formats})


def matrix(
    build: Commands, direction: Direction, source: Side, target: Side, *, transposed: bool = False, item: int = 4
) -> None:
    """Copy a matrix of `item`-byte elements, rows on one side, sections of them on the other (bm1684.md 5.3)."""
    form = int(FORMAT_OF_SIZE[item])
    function = Function.NC_TRANSPOSE if transposed else Function.COPY
    kind = {"special_func": int(function), "sys_mem_type": 1}
    _copy(build, direction, source, target, {**kind, "src_data_format": form, "dst_data_format": form})


def fill(build: Commands, direction: Direction, target: Side, item: int, bits: int) -> None:
    """Fill elements of `item` bytes with the low bits of a constant."""
    form = int(FORMAT_OF_SIZE[item])
    build.gdma(
        [],
        target.touched,
        direction=direction,
        special_func=Function.FILL,
        stride_enable=1,
        src_data_format=form,
        dst_data_format=form,
        constant_value=bits & 0xFFFF_FFFF,
        dst_addr=target.address,
        **side_fields("dst", target.shape, target.strides),
    )


def _copy(build: Commands, direction: Direction, source: Side, target: Side, fields: Fields) -> None:
    build.gdma(
        source.touched,
        target.touched,
        direction=direction,
        stride_enable=1,
        src_addr=source.address,
        dst_addr=target.address,
        **side_fields("src", source.shape, source.strides),
        **side_fields("dst", target.shape, target.strides),
        **fields,
    )
