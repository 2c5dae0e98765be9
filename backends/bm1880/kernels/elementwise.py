"""Element-wise ops: one value in, one value out, all tensors of one shape (or a per-channel factor)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmcompiler.backends.bm1880.bmkernel import (
    bmk1880_and_int8_param_t,
    bmk1880_depthwise_param_t,
    bmk1880_lut_param_t,
    bmk1880_max_const_param_t,
    bmk1880_max_param_t,
    bmk1880_min_const_param_t,
    bmk1880_min_param_t,
    bmk1880_mul_const_param_t,
    bmk1880_mul_param_t,
    bmk1880_or_int8_param_t,
    bmk1880_relu_param_t,
    bmk1880_tpu_and_int8,
    bmk1880_tpu_depthwise,
    bmk1880_tpu_lut,
    bmk1880_tpu_max,
    bmk1880_tpu_max_const,
    bmk1880_tpu_min,
    bmk1880_tpu_min_const,
    bmk1880_tpu_mul,
    bmk1880_tpu_mul_const,
    bmk1880_tpu_or_int8,
    bmk1880_tpu_relu,
    bmk1880_tpu_xor_int8,
    bmk1880_xor_int8_param_t,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.build import FORMATS, Build, Dims, aligned, aligned_lane_bytes, extents
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.kernels.base import (
    BYTES,
    LocalKernel,
    dims4,
    flat_view,
    is_activation,
    is_constant,
    kept_view,
)
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Prelu, Relu
from bmcompiler.ops.elements.elementwise import Binary, Max, Min
from bmcompiler.ops.elements.integer import BitAnd, BitOr, BitXor, Lut, Maxs, Mins, MulShift, MulsShift
from bmcompiler.target import OpT, rule

TABLE = (1, CHIP.lanes, 16, 16)


@dataclass(frozen=True)
class LocalTile:
    """A tile in local memory: operands, result and scratch as tensors of one shape, addresses of further operands."""

    x: list[tensor_lmem]
    out: tensor_lmem
    scratch: list[tensor_lmem]
    extra: list[int]


class ElementwiseKernel(LocalKernel[OpT]):
    """All activation operands and the result share one shape; `compute` sees them as local tensors."""

    @rule("Operands and result must be int8")
    def integer_types(self, op: OpT) -> bool:
        return all(v.dtype == "i8" for v in (*self.activations(op), op.result))

    @rule("An operand must be an activation, not all of them constants")
    def some_activation(self, op: OpT) -> bool:
        return any(is_activation(v) for v in self.activations(op))

    @rule("Operands and result must have the same shape")
    def same_shape(self, op: OpT) -> bool:
        return all(v.shape == op.type.shape for v in self.activations(op))

    def activations(self, op: OpT) -> list[Value]:
        """The operands that are tiled like the result."""
        return op.operands

    def coefficients(self, op: OpT, view: Dims, box: Box) -> list[Buffer]:
        """Further buffers, loaded after the activations."""
        return []

    scratch_tensors = 0
    """Scratch tensors of the tile's shape."""
    as_bytes = False
    """Whether commands see the bits of operands alone, whatever their sign."""

    def view(self, op: OpT) -> Dims:
        """The tensors as (N, C, H, W)."""
        return flat_view(self.machine, op.type.shape)

    def cycles(self, op: OpT, dims: Dims) -> int:
        """Cycles of the instructions of a tile."""
        return self.machine.cycles.pass_cycles(dims, 1)

    def copy_cycles(self, op: OpT, dims: Dims) -> int:
        """Of what a tile needs beside `cycles` where its scratch lies below its result."""
        return 0

    def grid(self, op: OpT) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(self.view(op), 1)

    def work(self, op: OpT, box: Box) -> TileWork:
        return self._work(op, self.view(op), box)

    def whole_work(self, op: OpT, box: Box) -> TileWork:
        return self._work(op, kept_view(op.result), box)

    def whole(self, op: OpT) -> TileWork | None:
        return self._one_tile(op, kept_view(op.result)) or self._one_tile(op, self.view(op))

    def boxed(self, op: OpT, box: Box) -> TileWork | None:
        return self._part(op, self.machine.elementwise_grid(dims4(op.result), 1), box) if op.type.rank == 4 else None

    def _one_tile(self, op: OpT, view: Dims) -> TileWork | None:
        if any(axis.size > axis.most for axis in self.machine.elementwise_grid(view, 1)):
            return None
        work = self._work(op, view, tuple((0, size) for size in view))
        return work if self.fits(work) else None

    def _work(self, op: OpT, view: Dims, box: Box) -> TileWork:
        dims = extents(box)
        sources = [self.machine.activation_in(v, view, box) for v in self.activations(op)]
        extra = self.coefficients(op, view, box)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            formats = [FORMATS["i8" if self.as_bytes else value.dtype] for value in self.activations(op)]
            tensors = [aligned(address, dims, fmt) for address, fmt in zip(ins, formats)]
            room = [aligned(address, dims) for address in scratch]
            self.compute(op, build, LocalTile(tensors, aligned(outs[0], dims), room, ins[len(sources) :]))

        return TileWork(
            (*sources, *extra),
            (self.machine.activation_out(op.result, view, box),),
            (aligned_lane_bytes(dims),) * self.scratch_tensors,
            compute,
            self.cycles(op, dims),
            below=self.copy_cycles(op, dims),
        )

    def compute(self, op: OpT, build: Build, tile: LocalTile) -> None:
        """Emit the instructions of one tile."""
        raise TypeError(f"{type(self).__name__} computes nothing")


class ReluKernel(ElementwiseKernel[Relu | Mins | Maxs]):
    """relu, mins, maxs: one comparison with a constant."""

    ops = (Relu, Mins, Maxs)

    def compute(self, op: Relu | Mins | Maxs, build: Build, tile: LocalTile) -> None:
        if isinstance(op, Relu):
            build.tpu(bmk1880_tpu_relu, bmk1880_relu_param_t(tile.out, tile.x[0]))
        elif isinstance(op, Mins):
            build.tpu(bmk1880_tpu_min_const, bmk1880_min_const_param_t(tile.out, tile.x[0], op.value, True))
        else:
            build.tpu(bmk1880_tpu_max_const, bmk1880_max_const_param_t(tile.out, tile.x[0], op.value, True))


Calls = dict[type[TensorOp], tuple[Callable[..., Op], Callable[..., Any]]]


class PairKernel(ElementwiseKernel[Binary]):
    """max, min of two tensors."""

    ops: tuple[type[Binary], ...] = (Max, Min)
    _calls: ClassVar[Calls] = {
        Max: (bmk1880_tpu_max, bmk1880_max_param_t),
        Min: (bmk1880_tpu_min, bmk1880_min_param_t),
    }

    def compute(self, op: Binary, build: Build, tile: LocalTile) -> None:
        call, param = self._calls[type(op)]
        build.tpu(call, param(tile.out, tile.x[0], tile.x[1]))


class BitsKernel(PairKernel):
    """bit_and, bit_or, bit_xor of two tensors of bytes."""

    ops = (BitAnd, BitOr, BitXor)
    as_bytes = True
    _calls: ClassVar[Calls] = {
        BitAnd: (bmk1880_tpu_and_int8, bmk1880_and_int8_param_t),
        BitOr: (bmk1880_tpu_or_int8, bmk1880_or_int8_param_t),
        BitXor: (bmk1880_tpu_xor_int8, bmk1880_xor_int8_param_t),
    }

    @rule("Operands and result must be bytes of one type: int8, uint8 or bool")
    def integer_types(self, op: Binary) -> bool:
        return op.type.dtype in BYTES and all(v.dtype == op.type.dtype for v in op.operands)


class MulsShiftKernel(ElementwiseKernel[MulsShift]):
    """muls_shift: mul_const, signed constant or unsigned one above 127."""

    ops = (MulsShift,)

    @rule("Operands and result must be int8; with a multiplier below 128 the operand may be uint8")
    def integer_types(self, op: MulsShift) -> bool:
        return op.type.dtype == "i8" and (op.x.dtype == "i8" or (op.x.dtype == "u8" and op.multiplier < 128))

    @rule("The multiplier must be between -128 and 255", got="multiplier")
    def multiplier_range(self, op: MulsShift) -> bool:
        return bool(-128 <= op.multiplier <= 255)

    def compute(self, op: MulsShift, build: Build, tile: LocalTile) -> None:
        emit_muls(build, tile.out, tile.x[0], op.multiplier, op.rshift)


class LutKernel(ElementwiseKernel[Lut]):
    """lut: the table stands in every lane."""

    ops = (Lut,)
    as_bytes = True

    @rule("Operands and result must be bytes: int8, uint8 or bool")
    def integer_types(self, op: Lut) -> bool:
        return op.x.dtype in BYTES and op.type.dtype in BYTES

    @rule("The table must be a constant")
    def constant_table(self, op: Lut) -> bool:
        return is_constant(op.table)

    def activations(self, op: Lut) -> list[Value]:
        return [op.x]

    def coefficients(self, op: Lut, view: Dims, box: Box) -> list[Buffer]:
        def load(build: Build, address: int) -> None:
            offset = build.coefficients.place(op.table, "table", lambda t: np.tile(t, CHIP.lanes))
            build.load_weight(offset, TABLE, address, align=True)

        return [Buffer(aligned_lane_bytes(TABLE), "", 256 * CHIP.lanes, load, True)]

    def compute(self, op: Lut, build: Build, tile: LocalTile) -> None:
        build.tpu(bmk1880_tpu_lut, bmk1880_lut_param_t(tile.out, tile.x[0], aligned(tile.extra[0], TABLE)))


class PreluKernel(ElementwiseKernel[Prelu]):
    """prelu: positive part times a constant, negative part times a 1x1 depthwise weight, joined by or (12.1)."""

    ops = (Prelu,)
    scratch_tensors = 1

    def view(self, op: Prelu) -> Dims:
        return dims4(op.result)

    def cycles(self, op: Prelu, dims: Dims) -> int:
        return (4 + self._scales(op)) * self.machine.cycles.pass_cycles(dims, 1)

    @staticmethod
    def _scales(op: Prelu) -> bool:
        """Whether the positive part is multiplied."""
        return (op.multiplier, op.rshift) != (1, 0)

    @rule("Slopes must be constants of int8, along axis 1 of a 4-D tensor")
    def constant_slopes(self, op: Prelu) -> bool:
        return is_constant(op.slope) and op.slope.dtype == "i8" and op.axis == 1 and op.type.rank == 4

    def activations(self, op: Prelu) -> list[Value]:
        return [op.input]

    def coefficients(self, op: Prelu, view: Dims, box: Box) -> list[Buffer]:
        channels = view[1]
        (c0, c1) = box[1]
        dims = (1, c1 - c0, 1, 1)

        def load(build: Build, address: int) -> None:
            offset = build.coefficients.place(
                op.slope, f"slopes {channels}", lambda s: np.broadcast_to(s, (channels,)).copy()
            )
            build.load_weight(offset + c0, dims, address, align=True)

        return [Buffer(aligned_lane_bytes(dims), "c", c1 - c0, load, True)]

    def compute(self, op: Prelu, build: Build, tile: LocalTile) -> None:
        source, out, negative = tile.x[0], tile.out, tile.scratch[0]
        build.tpu(bmk1880_tpu_min_const, bmk1880_min_const_param_t(out, source, 0, True))
        weight = aligned(tile.extra[0], (1, source.shape.c, 1, 1))
        emit_channel_mul(build, negative, out, weight, op.slope_rshift)
        build.tpu(bmk1880_tpu_relu, bmk1880_relu_param_t(out, source))
        if self._scales(op):
            emit_muls(build, out, out, op.multiplier, op.rshift)
        build.tpu(bmk1880_tpu_or_int8, bmk1880_or_int8_param_t(out, out, negative))


class MulShiftKernel(ElementwiseKernel[MulShift]):
    """mul_shift: mul for equal shapes; a factor (N, C, 1, 1) is the weight of 1x1 depthwise convolutions."""

    ops = (MulShift,)

    @rule("Operands must have the same shape, or one be an int8 (N or 1, C, 1, 1) against (N, C, H, W)")
    def same_shape(self, op: MulShift) -> bool:
        factor = self.factor(op)
        return op.a.shape == op.b.shape if factor is None else factor.dtype == "i8"

    @staticmethod
    def factor(op: MulShift) -> Value | None:
        """The per-channel operand, if there is one."""
        for one, other in ((op.a, op.b), (op.b, op.a)):
            if other.shape != op.type.shape or one.shape == other.shape or one.type.rank != 4:
                continue
            n, c = op.type.shape[:2]
            if one.shape in ((n, c, 1, 1), (1, c, 1, 1)):
                return one
        return None

    def activations(self, op: MulShift) -> list[Value]:
        factor = self.factor(op)
        return op.operands if factor is None else [op.b if factor is op.a else op.a]

    def view(self, op: MulShift) -> Dims:
        return super().view(op) if self.factor(op) is None else dims4(op.result)

    def coefficients(self, op: MulShift, view: Dims, box: Box) -> list[Buffer]:
        factor = self.factor(op)
        if factor is None:
            return []
        images = box[0] if factor.shape[0] > 1 else (0, 1)
        part: Box = (images, box[1], (0, 1), (0, 1))
        return [self.machine.activation_in(factor, dims4(factor), part, "nc" if factor.shape[0] > 1 else "c")]

    def cycles(self, op: MulShift, dims: Dims) -> int:
        factor = self.factor(op)
        if factor is None or factor.shape[0] == 1:
            return self.machine.cycles.pass_cycles(dims, 1)
        return dims[0] * self.machine.cycles.pass_cycles((1, *dims[1:]), 1)

    def compute(self, op: MulShift, build: Build, tile: LocalTile) -> None:
        factor, x, out = self.factor(op), tile.x[0], tile.out
        if factor is None:
            build.tpu(bmk1880_tpu_mul, bmk1880_mul_param_t(None, out, x, tile.x[1], op.rshift))
            return
        dims = out.shape.dims
        weights = (1, dims[1], 1, 1)
        if factor.shape[0] == 1:
            emit_channel_mul(build, out, x, aligned(tile.extra[0], weights), op.rshift)
            return
        image = (1, *dims[1:])
        size, step = aligned_lane_bytes(image), aligned_lane_bytes(weights)
        for i in range(dims[0]):
            weight = aligned(tile.extra[0] + i * step, weights)
            result, source = (aligned(t.address + i * size, image) for t in (out, x))
            emit_channel_mul(build, result, source, weight, op.rshift)


def emit_muls(build: Build, out: tensor_lmem, x: tensor_lmem, multiplier: int, rshift: int) -> None:
    """out = sat(round(x * multiplier >> rshift)); multipliers above 127 go out unsigned."""
    param = bmk1880_mul_const_param_t(None, out, x, multiplier, multiplier <= 127, rshift)
    build.tpu(bmk1880_tpu_mul_const, param)


def emit_channel_mul(build: Build, out: tensor_lmem, x: tensor_lmem, weight: tensor_lmem, rshift: int) -> None:
    """out = sat(round(x * weight[channel] >> rshift)): a 1x1 depthwise convolution (bm1880.md 12.1 PReLU)."""
    param = bmk1880_depthwise_param_t(ofmap=out, ifmap=x, weight=weight, rshift_width=rshift)
    build.tpu(bmk1880_tpu_depthwise, param)
