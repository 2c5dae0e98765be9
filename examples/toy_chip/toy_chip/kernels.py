"""Kernels: what the chip runs, and the command of a tile."""

from math import prod
from typing import Any

import numpy as np

from bmcompiler.chip import MAX_STEP
from bmcompiler.codegen.build import dense_strides, extents
from bmcompiler.codegen.hazards import Range
from bmcompiler.codegen.kernels import ViewKernel, is_activation, is_constant
from bmcompiler.codegen.tile_kernels import SlidingKernel, TileKernel
from bmcompiler.codegen.tiling import Box, Buffer, Tiler
from bmcompiler.codegen.window import WindowAxis
from bmcompiler.ops.elements.activation import Relu
from bmcompiler.ops.elements.integer import MacShift
from bmcompiler.ops.layers.nn import Conv, Matmul
from bmcompiler.ops.layers.pool import MaxPool
from bmcompiler.target import OpT, rule
from toy_chip.build import Build
from toy_chip.isa import CHIP, PADS, WINDOW, Compute


class ToyKernel(TileKernel[OpT]):
    """One command per tile: its addresses, the shape of the result, and what `fields` adds."""

    chip = CHIP
    tiler = Tiler(CHIP.lmem_size, CHIP.alignment, bytes_per_cycle=4, tile_cycles=32)
    code: Compute

    @rule("Input and result must be int8")
    def integer_types(self, op: OpT) -> bool:
        return op.operands[0].dtype == op.result.dtype == "i8"

    def fields(self, op: OpT, box: Box) -> dict[str, int]:
        return {}

    def command(self, op: OpT, box: Box, build: Build, ins: list[Range], out: Range) -> None:
        places = dict(zip(("in_addr", "arg_addr"), (start for start, _ in ins)))
        sizes = dict(zip(("n", "out_c", "out_h", "out_w"), extents(box)))
        build.compute(self.code, ins, [out], out_addr=out[0], **places, **sizes, **self.fields(op, box))


class ReluKernel(ToyKernel[Relu]):
    ops = (Relu,)
    code = Compute.RELU


class AddKernel(ToyKernel[MacShift]):
    """A sum of two tensors, each times a factor: what quantization makes of add and sub."""

    ops = (MacShift,)
    code = Compute.ADD

    @rule("There must be two int8 operands with factors from -128 to 127 and a right shift of at most 31")
    def two_operands(self, op: MacShift) -> bool:
        fit = all(-128 <= factor <= 127 for factor in op.multipliers) and 0 <= op.rshift <= 31
        return fit and [value.dtype for value in op.operands] == ["i8", "i8"]

    def fields(self, op: MacShift, box: Box) -> dict[str, int]:
        first, second = (factor & 0xFF for factor in op.multipliers)
        return {"factor_in": first, "factor_arg": second, "shift": op.rshift}


class WindowKernel(SlidingKernel[OpT], ToyKernel[OpT]):
    """What slides windows over its input."""

    @rule("Windows must not be dilated, have at most 255 taps per axis and strides up to 15, and reach into the input")
    def window_range(self, op: OpT) -> bool:
        known = (0 < one.stride <= MAX_STEP and one.dilation == 1 and one.kernel <= 255 for one in self.windows(op))
        return all(known) and all(one.fits(size) for one, size in zip(self.windows(op), self.view(op.result)[2:]))

    def fields(self, op: OpT, box: Box) -> dict[str, int]:
        high, wide = self.windows(op)
        window = dict(zip(WINDOW, (high.kernel, wide.kernel, high.stride, wide.stride)))
        sizes = dict(zip(("in_c", "in_h", "in_w"), extents(self.source(op, box))[1:]))
        return {**window, **sizes, **dict(zip(PADS, self.slide(op, box).pads))}


class PoolKernel(WindowKernel[MaxPool]):
    ops = (MaxPool,)
    code = Compute.MAX_POOL


class ConvKernel(WindowKernel[Conv | Matmul]):
    """conv, and matmul as the 1x1 convolution of images of one pixel."""

    ops = (Conv, Matmul)
    code = Compute.CONV

    @rule("The input must be computed, weights a constant of int8, the bias one of int16")
    def constant_weights(self, op: Conv | Matmul) -> bool:
        constants = is_activation(op.operands[0]) and is_constant(op.operands[1]) and is_constant(op.bias)
        return constants and op.operands[1].dtype == "i8" and (op.bias is None or op.bias.dtype == "i16")

    @rule("Products must be whole (one group, a matrix at the right) and end with a right shift of at most 31")
    def plain_product(self, op: Conv | Matmul) -> bool:
        whole = op.group == 1 if isinstance(op, Conv) else op.right.type.rank == 2 and not op.transpose_left
        return whole and not op.activation and not op.mode and 0 <= op.rshift <= 31

    def windows(self, op: Conv | Matmul) -> tuple[WindowAxis, WindowAxis]:
        return super().windows(op) if isinstance(op, Conv) else (WindowAxis(1, 1, 1, 0),) * 2

    def channels(self, op: Conv | Matmul, box: Box) -> tuple[int, int]:
        return 0, self.view(op.operands[0])[1]

    def taps(self, op: Conv | Matmul) -> int:
        return super().taps(op) * self.view(op.operands[0])[1]

    def fields(self, op: Conv | Matmul, box: Box) -> dict[str, int]:
        return {**super().fields(op, box), "shift": op.rshift}

    def sources(self, op: Conv | Matmul, box: Box) -> list[Buffer]:
        (c0, c1), size = box[1], self.taps(op) + 2
        dims = (1, c1 - c0, 1, size)
        by_column = isinstance(op, Matmul) and not op.transpose_right

        def pack(weight: Any, bias: Any = None) -> Any:
            rows = (weight.T if by_column else weight).reshape(-1, size - 2)
            last = np.zeros(len(rows), "<i2") if bias is None else bias.astype("<i2")
            return np.hstack([rows, last.view(np.int8).reshape(-1, 2)])

        def load(build: Build, address: int) -> None:
            start = build.coefficients.place(op.operands[1], f"rows {by_column}", pack, *op.operands[2:])
            build.load(start + c0 * size, True, dims, dense_strides(dims), address)

        weights = Buffer(CHIP.lane_bytes(dims), "c", prod(dims), load, coefficient=True)
        return [self.tile(op.operands[0], self.source(op, box), "nhw"), weights]


KINDS = (ConvKernel, PoolKernel, AddKernel, ReluKernel, ViewKernel)
