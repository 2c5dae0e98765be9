"""Sums of products and windows: convolutions, pooling, matrices (bm1684.md 6.1 to 6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides, local_address
from bmcompiler.backends.bm1684.instructions.transfers import Side, in_lane, matrix, of_words
from bmcompiler.backends.bm1684.instructions.words import (
    Commands,
    bytes_of,
    need_default_layout,
    placed,
    sizes,
    strides,
)
from bmcompiler.backends.bm1684.isa import Direction, Eu, Precision, StrideCode, Task
from bmcompiler.backends.lanes.facts import Range, Shape, Strides
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.windows import Geometry
from bmcompiler.instructions.isa import Fields

ONE = Immediate(0x3F80_0000)


class LocalPlace(NamedTuple):
    """Bytes of a lane that hold an operand: address and how many."""

    address: int
    size: int

    @property
    def range(self) -> Range:
        """(first, behind the last) byte address."""
        return self.address, self.address + self.size


def map_at(address: int, shape: Shape, item: int = 4) -> LocalPlace:
    """An aligned feature map of `item`-byte elements."""
    return LocalPlace(address, CHIP.aligned_bytes(shape, item))


class Integers(NamedTuple):
    """What a command makes of integers: types, shift and saturation.

    Attributes:
        item: bytes of the results. data_signed, weight_signed, bias_signed: how the bits of bytes, and of the 16-bit
            bias, are read; results are signed if any of these operands is (bm1684.md 6.0.1).
        shift: rounding right shift of the sums. unsigned: whether they saturate to the unsigned range though an operand
            is signed.
        bias: precision of the bias; commands without one hold whatever.
    """

    item: int
    data_signed: bool
    weight_signed: bool
    bias_signed: bool = True
    shift: int = 0
    unsigned: bool = False
    bias: Precision = Precision.FP32

    @property
    def fields(self) -> Fields:
        """Register fields; weights and bias are compact."""
        return {
            "opt_right_shift": self.shift,
            "opt_relu": int(self.unsigned),
            "opt_res0_prec": int(Precision.INT8 if self.item == 1 else Precision.INT16),
            "opt_opd0_prec": int(Precision.INT8),
            "opt_opd1_prec": int(Precision.INT8),
            "opt_opd2_prec": int(self.bias),
            "opt_opd0_sign": int(self.data_signed),
            "opt_opd1_sign": int(self.weight_signed),
            "opt_opd2_sign": int(self.bias_signed),
            "short_opd2_str": int(StrideCode.COMPACT),
        }


_FLOATS: Fields = {"opt_relu": 1}  # which floats do not mind


def geometry_fields(geometry: Geometry) -> Fields:
    """Register fields of a window."""
    (h, w), taps, dilations, pads, steps, zeros = geometry
    down, across = (step - 1 if size > 1 else 0 for size, step in zip(taps, dilations))
    fields = {f"opd0_{name}_pad": pad for name, pad in zip(("up", "dn", "lf", "rt"), pads)}
    return fields | {
        "opd0_h": h,
        "opd0_w": w,
        "opd1_h": taps[0],
        "opd1_w": taps[1],
        "opd1_y_ins0": down,
        "opd1_x_ins0": across,
        "res_op_y_str": steps[0],
        "res_op_x_str": steps[1],
        "opd0_y_ins0": zeros[0],
        "opd0_x_ins0": zeros[1],
    }


def _slide(
    build: Commands,
    task: Task,
    target: tuple[Shape, LocalPlace],
    data: int,
    geometry: Geometry,
    reads: Sequence[Range],
    fields: Fields,
) -> None:
    shape, result = target
    build.tiu(
        reads,
        [result.range],
        tsk_typ=task,
        res0_addr=local_address(result.address),
        opd0_addr=local_address(data),
        **sizes("res0", shape),
        **geometry_fields(geometry),
        **fields,
    )


def convolution(
    build: Commands,
    target: tuple[Shape, LocalPlace],
    data: int,
    kernel: tuple[Immediate | int, int],
    bias: int | None,
    geometry: Geometry,
    numbers: Integers | None,
    reads: Sequence[Range],
    by: Strides | None = None,
    *,
    pitch: int | None = None,
    add: bool = False,
) -> None:
    """Sums over windows and input channels.

    Args:
        target: shape of the results, and where they go.
        data, bias: addresses. kernel: address of the weights, or what all of them are, and their input channels.
        numbers: None for floats. reads: the bytes of all operands. by: strides of data in words, None = the default.
        pitch: groups of input channels from the weights of an output channel to those of the next one of a lane, None =
            without gaps. add: to what the result held before.
    """
    weights, depth = kernel
    group = 2 if numbers is None else 4  # weights lie in groups of input channels (bm1684.md 4.4)
    groups = -(-depth // group)
    down, across = geometry.taps
    steps = (1, down * across * groups if pitch is None else pitch, across * groups, groups)
    layout = {"opd0_c": depth, "short_opd1_str": int(StrideCode.EXPLICIT), **strides("opd1", steps)}
    fields = {**_kinds(numbers), **layout, **_weights(weights), **_bias(bias)}
    if add:
        fields["opt_res_add"] = 1
    if by is not None:
        fields |= {"short_opd0_str": int(StrideCode.EXPLICIT), **strides("opd0", by)}
    _slide(build, Task.CONV, target, data, geometry, reads, fields)


def depthwise(
    build: Commands,
    target: tuple[Shape, LocalPlace],
    data: int,
    weights: Immediate | int,
    bias: int | None,
    geometry: Geometry,
    numbers: Integers | None,
    reads: Sequence[Range],
) -> None:
    """Sums over windows of each channel; arguments as for `convolution`."""
    fields = {**_kinds(numbers), "tsk_eu_typ": int(Eu.MAC), **_weights(weights), **_bias(bias)}
    _slide(build, Task.POOL_OR_DEPTHWISE, target, data, geometry, reads, fields)


def largest(
    build: Commands, target: tuple[Shape, LocalPlace], data: LocalPlace, geometry: Geometry, signed: bool | None = None
) -> None:
    """Maxima over windows, of floats or of bytes that are `signed` or not."""
    fields: Fields = {"tsk_eu_typ": int(Eu.MAX), "tsk_opd_num": 1, **_FLOATS}
    if signed is not None:
        precision = int(Precision.INT8)
        fields |= {"opt_relu": 0, "opt_res0_prec": precision, "opt_opd0_prec": precision, "opt_opd0_sign": int(signed)}
    _slide(build, Task.POOL_OR_DEPTHWISE, target, data.address, geometry, [data.range], fields)


def _kinds(numbers: Integers | None) -> Fields:
    return _FLOATS if numbers is None else numbers.fields


def _weights(weights: Immediate | int) -> Fields:
    return placed("opd1", weights) if isinstance(weights, Immediate) else {"opd1_addr": local_address(weights)}


def _bias(bias: int | None) -> Fields:
    return {} if bias is None else {"tsk_opd_num": 3, "opd2_addr": local_address(bias)}


# -- tiles of words ----------------------------------------------------------------------------------------------------
def float_sums(build: Commands, target: Words, source: Words, geometry: Geometry, factor: int) -> None:
    """Sums over windows of floats times a float, its bits, in the default layout."""
    _reduce(build, target, source, geometry, {"tsk_eu_typ": int(Eu.MAC), **placed("opd1", Immediate(factor))})


def float_largest(build: Commands, target: Words, source: Words, geometry: Geometry) -> None:
    """Maxima over windows of floats in the default layout."""
    _reduce(build, target, source, geometry, {"tsk_eu_typ": int(Eu.MAX), "tsk_opd_num": 1})


def _reduce(build: Commands, target: Words, source: Words, geometry: Geometry, fields: Fields) -> None:
    need_default_layout("a reduction", target, source)
    (first, end), reads = bytes_of(target), [bytes_of(source)]
    place = LocalPlace(target.address, end - first)
    _slide(build, Task.POOL_OR_DEPTHWISE, (target.shape, place), source.address, geometry, reads, fields)


def product(
    build: Commands, target: Matrix, left: Matrix, right: Matrix, bias: Matrix | None = None, *, add: bool = False
) -> None:
    """target = left @ right (+ bias), or target += left @ right."""
    reads = [bytes_of(left.words), bytes_of(right.words)]
    fields: Fields = {}
    if add:
        reads.append(bytes_of(target.words))
        fields["opt_res_add"] = 1
    elif bias is not None:
        reads.append(bytes_of(bias.words))
        fields |= {"tsk_opd_num": 3, "opd2_addr": local_address(bias.words.address)}
    build.tiu(
        reads,
        [bytes_of(target.words)],
        opt_relu=1,
        **_matrices(target.words, left.columns, left.words, right.words.address),
        **fields,
    )


class _Sections(Protocol):
    """Where a matrix lies, and the tensor (rows, sections, 1, width) that holds it."""

    @property
    def address(self) -> int: ...

    @property
    def shape(self) -> Shape: ...


def _matrices(target: _Sections, depth: int, left: _Sections, right: int) -> Fields:
    """Fields of a product of depth `depth` with the matrix at `right`, whose sections are the result's."""
    _, sections, _, width = target.shape
    rows, parts, _, part = left.shape
    return {
        "tsk_typ": Task.MATRIX,
        "res0_c": sections,
        "res0_w": width,
        "opd0_n": rows,
        "opd0_c": parts,
        "opd0_w": part,
        "opd1_w": depth - (parts - 1) * part,
        "res0_addr": local_address(target.address),
        "opd0_addr": local_address(left.address),
        "opd1_addr": local_address(right),
    }


def load_matrix(build: Commands, source: int, pitch: int, target: Matrix, transposed: bool = False) -> None:
    """Load a matrix of fp32; in global memory rows lie `pitch` elements apart, columns do when `transposed`."""
    rows, columns, words = target
    shape = (1, 1, columns, rows) if transposed else (1, 1, rows, columns)
    outer = Side(source, shape, (0, 0, pitch, 1))
    matrix(build, Direction.SYSTEM_TO_LOCAL, outer, of_words(words), transposed=transposed)


def store_matrix(build: Commands, target: int, pitch: int, source: Matrix) -> None:
    """Store a matrix of fp32 to rows `pitch` elements apart."""
    outer = Side(target, (1, 1, source.rows, source.columns), (0, 0, pitch, 1))
    matrix(build, Direction.LOCAL_TO_SYSTEM, of_words(source.words), outer)


# -- matrices of bytes -------------------------------------------------------------------------------------------------
class ByteMatrix(NamedTuple):
    """A matrix of `item`-byte integers in local memory, in sections of `width` columns (bm1684.md 4.5)."""

    address: int
    rows: int
    columns: int
    width: int
    item: int = 1

    @property
    def shape(self) -> Shape:
        """The tensor (rows, sections, 1, width) that holds it."""
        return self.rows, -(-self.columns // self.width), 1, self.width

    @property
    def strides(self) -> Strides:
        """Between its elements, in elements."""
        return aligned_strides(self.shape, item=self.item)

    @property
    def lane_bytes(self) -> int:
        """Bytes of a lane."""
        return self.item * self.strides[0] * self.rows

    @property
    def range(self) -> Range:
        """(first, behind the last) byte of a lane."""
        return self.address, self.address + self.lane_bytes


def byte_product(
    build: Commands,
    target: ByteMatrix,
    left: ByteMatrix,
    right: ByteMatrix,
    bias: ByteMatrix | None,
    numbers: Integers,
) -> None:
    """target = left @ right (+ bias), shifted and saturated."""
    reads = [left.range, right.range, *([bias.range] if bias else [])]
    fields = {name: value for name, value in numbers.fields.items() if name != "short_opd2_str"}
    if bias is not None:
        fields |= {"tsk_opd_num": 3, "opd2_addr": local_address(bias.address)}
    build.tiu(
        reads,
        [target.range],
        **_matrices(target, left.columns, left, right.address),
        **fields,
    )


def move_bytes(build: Commands, address: int, pitch: int, local: ByteMatrix, *, store: bool = False) -> None:
    """Load a matrix of bytes, or store it; in global memory rows lie `pitch` elements apart."""
    outer = Side(address, (1, 1, local.rows, local.columns), (0, 0, pitch, 1))
    inner = in_lane(local.address, local.shape, local.strides, local.range)
    if store:
        matrix(build, Direction.LOCAL_TO_SYSTEM, inner, outer, item=local.item)
    else:
        matrix(build, Direction.SYSTEM_TO_LOCAL, outer, inner, item=local.item)
