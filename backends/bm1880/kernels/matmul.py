"""Inner products with constant weights, and products of two activations.

Two forms with the same exact 32-bit sums, so that no partial result is ever rounded. Where all K rows of a wide column
tile fit local memory, one matrix_mac per tile: it keeps all lanes and execution units busy. Else a convolution whose
window is the whole row of the left operand: its weights take K bytes per lane for 32 columns (bm1880.md 2.3, 2.4).
Products of two activations are matrix_macs, one batch at a time.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    CTRL_WEIGHT,
    FMT_I8,
    bmk1880_conv_param_t,
    bmk1880_matrix_mac_param_t,
    bmk1880_tpu_conv,
    bmk1880_tpu_matrix_mac,
    shape_t4,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM
from bmcompiler.backends.bm1880.bmkernel.tensors import matrix_dims
from bmcompiler.backends.bm1880.build import Build, Dims, aligned, aligned_lane_bytes, matrix, matrix_lane_bytes
from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.backends.bm1880.kernels.base import LocalKernel, is_activation, is_constant, kept_view
from bmcompiler.backends.bm1880.kernels.conv import bias_buffer, byte_planes
from bmcompiler.backends.bm1880.machine import cycles_of
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule

_NARROW, _WIDE = 16, 32
"""Bytes per lane and row of K of a matrix tile with up to 32, and with more columns (bm1880.md 2.3)."""
_MOST_TAPS = 1024
"""Columns of a window (bm1880.md 8.3)."""
_BESIDE = 1024
"""Bytes per lane for one row of the other operands."""


class MatmulKernel(LocalKernel[Matmul]):
    """matmul of activations (R, K) with a constant (K, N), or of activations (..., M, K) and (..., K, N).

    Rows R are all leading axes of the left operand; two activations have equal leading axes.
    """

    ops = (Matmul,)
    grid_of_result = False

    @rule("The left operand must be an activation, the right one too or a constant matrix, the bias a constant")
    def kinds_of_operands(self, op: Matmul) -> bool:
        right = op.right.type.rank == 2 if is_constant(op.right) else is_activation(op.right)
        return is_activation(op.left) and right and is_constant(op.bias)

    @rule("A product of two activations takes no bias, and both have the same leading axes")
    def same_batches(self, op: Matmul) -> bool:
        return is_constant(op.right) or (op.bias is None and op.left.shape[:-2] == op.right.shape[:-2])

    @rule("The right operand must not be transposed unless it is a constant")
    def plain_right(self, op: Matmul) -> bool:
        return is_constant(op.right) or not op.transpose_right

    @rule("The left operand must not be transposed")
    def plain_left(self, op: Matmul) -> bool:
        return not op.transpose_left

    @rule("An activation inside the op is not possible, it must be an op of its own", got="activation")
    def no_activation(self, op: Matmul) -> bool:
        return not op.activation

    @rule("Only a plain right shift, no quantization mode", got="mode")
    def plain_shift(self, op: Matmul) -> bool:
        return not op.mode

    @rule("Operands must be int8, bias int16, result int8")
    def integer_types(self, op: Matmul) -> bool:
        return (op.left.dtype, op.right.dtype, op.type.dtype) == ("i8", "i8", "i8") and (
            op.bias is None or op.bias.dtype == "i16"
        )

    @rule("The depth of the product must be at most 4032, or be channels * taps with at most 4095 and 1024 of them")
    def depth_range(self, op: Matmul) -> bool:
        whole = is_constant(op.right) and window_of(self.depth(op), self.tiler.lane_bytes) is not None
        return self.as_matrix(op) or whole

    @staticmethod
    def depth(op: Matmul) -> int:
        """K of (M, K) x (K, N): how many products each result sums up."""
        return int(op.left.shape[-1])

    @staticmethod
    def rows(op: Matmul) -> int:
        """Rows of one product: those of all batches at once where the right side is one matrix."""
        return int(op.left.type.size // op.left.shape[-1] if is_constant(op.right) else op.left.shape[-2])

    @staticmethod
    def batches(op: Matmul) -> int:
        """Number of products that are computed one after the other."""
        return 1 if is_constant(op.right) else prod(op.left.shape[:-2])

    def as_matrix(self, op: Matmul) -> bool:
        """Which form: a matrix tile of 32 columns uses two lanes only, so it is better than a window only if wide."""
        row = _WIDE if is_constant(op.right) else _NARROW  # only constants can be windows, and up to here all are
        return self.depth(op) * row <= self.tiler.lane_bytes - _BESIDE

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        columns = op.type.shape[-1]
        most = MAX_TPU_DIM // CHIP.lanes * CHIP.lanes
        return (
            Axis(self.rows(op), 1, MAX_TPU_DIM),
            Axis(columns, CHIP.lanes, most),
            Axis(self.batches(op), 1, 1),
            Axis(1),
        )

    def work(self, op: Matmul, box: Box) -> TileWork:
        if self.as_matrix(op):
            return self._matrix_work(op, box)
        return self._window_work(op, box, window_of(self.depth(op), self.tiler.lane_bytes) or (1, self.depth(op)))

    def whole_work(self, op: Matmul, box: Box) -> TileWork:
        """As a convolution over what the left operand is in local memory, unless that takes longer than moving it."""
        window = self._kept_window(op) if is_constant(op.right) else None
        other = self.work(op, box)
        if window is None:
            return other
        work = self._window_work(op, box, window)
        crossing = 2 * (op.left.type.size + op.type.size) / self.tiler.bytes_per_cycle + 4 * self.tiler.tile_cycles
        return work if work.cycles <= other.cycles + crossing else other

    def _kept_window(self, op: Matmul) -> tuple[int, int] | None:
        """(channels, taps) of the rows of the left operand as other ops leave it in local memory, or the best one."""
        n, c, h, w = kept_view(op.left)
        if n == self.rows(op) and c <= MAX_TPU_DIM and h * w <= _MOST_TAPS:
            return c, h * w
        return window_of(self.depth(op), self.tiler.lane_bytes)

    # -- matrix_mac ----------------------------------------------------------------------------------------------------
    def _matrix_work(self, op: Matmul, box: Box) -> TileWork:
        (r0, r1), (c0, c1), (batch, _) = box[:3]
        rows, columns, depth, total = r1 - r0, c1 - c0, self.depth(op), op.type.shape[-1]
        computed = not is_constant(op.right)
        first = batch * self.rows(op) + r0

        def load_left(build: Build, address: int) -> None:
            build.load_matrix(build.neuron(op.left) + first * depth, (rows, depth), depth, address, CTRL_NEURON)

        def load_right(build: Build, address: int) -> None:
            if computed:
                base = build.neuron(op.right) + batch * depth * total + c0
                build.load_matrix(base, (depth, columns), total, address, CTRL_NEURON)
                return
            layout, pack = ("columns", np.transpose) if op.transpose_right else ("plain", np.asarray)
            offset = build.coefficients.place(op.right, layout, pack)
            build.load_matrix(offset + c0, (depth, columns), total, address, CTRL_WEIGHT)

        def load_bias(build: Build, address: int) -> None:
            assert op.bias is not None, "else nothing loads it"
            offset = build.coefficients.place(op.bias, "planes", byte_planes)
            build.load_matrix(offset + c0, (2, columns), total, address, CTRL_WEIGHT)

        def store(build: Build, address: int) -> None:
            build.store_matrix(build.neuron(op.result) + first * total + c0, (rows, columns), total, address)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            param = bmk1880_matrix_mac_param_t(
                res=matrix(outs[0], rows, columns),
                left=matrix(ins[0], rows, depth),
                right=matrix(ins[1], depth, columns),
                bias=None if op.bias is None else matrix(ins[2], 2, columns),
                rshift_width=op.rshift,
            )
            build.tpu(bmk1880_tpu_matrix_mac, param)

        inputs = [
            Buffer(matrix_lane_bytes(rows, depth), "nh", rows * depth, load_left),
            Buffer(matrix_lane_bytes(depth, columns), "ch", depth * columns, load_right, not computed),
        ]
        if op.bias is not None:
            inputs.append(Buffer(matrix_lane_bytes(2, columns), "c", 2 * columns, load_bias, True))
        out = Buffer(matrix_lane_bytes(rows, columns), "nch", rows * columns, store)
        return TileWork(
            tuple(inputs), (out,), (), compute, cycles_of(self.machine).product(matrix_dims(rows, columns), depth)
        )

    # -- convolution over the whole input ------------------------------------------------------------------------------
    def _window_work(self, op: Matmul, box: Box, window: tuple[int, int]) -> TileWork:
        """`window`: which (channels, taps) of an image a row of the left operand is."""
        rows, total, depth = self.rows(op), op.type.shape[-1], self.depth(op)
        channels, taps = window
        (r0, r1), (c0, c1) = box[:2]
        source: Box = ((r0, r1), (0, channels), (0, 1), (0, taps))

        def pack(w: np.ndarray) -> np.ndarray:
            by_column = w if op.transpose_right else w.T
            return by_column.reshape(total, channels, taps).transpose(0, 2, 1)

        def load_weight(build: Build, address: int) -> None:
            layout = f"window {channels} {op.transpose_right}"
            offset = build.coefficients.place(op.right, layout, pack)
            build.load_weight(offset + c0 * depth, (1, c1 - c0, taps, channels), address, align=False)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            bias = None if op.bias is None else tensor_lmem(ins[2], shape_t4(2, c1 - c0, 1, 1), FMT_I8)
            param = bmk1880_conv_param_t(
                ofmap=aligned(outs[0], (r1 - r0, c1 - c0, 1, 1)),
                ifmap=aligned(ins[0], (r1 - r0, channels, 1, taps)),
                weight=tensor_lmem(ins[1], shape_t4(channels, c1 - c0, 1, taps), FMT_I8),
                bias=bias,
                rshift_width=op.rshift,
            )
            build.tpu(bmk1880_tpu_conv, param)

        inputs = [
            self.machine.activation_in(op.left, (rows, channels, 1, taps), source, "n"),
            Buffer(-(-(c1 - c0) // CHIP.lanes) * depth, "c", (c1 - c0) * depth, load_weight, True),
        ]
        if op.bias is not None:
            inputs.append(bias_buffer(op.bias, [(c0, c1)]))
        view: Dims = (rows, total, 1, 1)
        cycles = cycles_of(self.machine).product((r1 - r0, c1 - c0, 1, 1), depth)
        return TileWork(tuple(inputs), (self.machine.activation_out(op.result, view, box),), (), compute, cycles)


@lru_cache(maxsize=1024)
def window_of(depth: int, lane_bytes: int) -> tuple[int, int] | None:
    """(channels, taps) with channels * taps = depth that take least local memory; None when depth has no such split."""
    limit = lane_bytes - align_up(depth, CHIP.alignment) - 256
    best: tuple[int, int, int] | None = None
    for taps in range(1, _MOST_TAPS + 1):
        channels, rest = divmod(depth, taps)
        if rest or not 1 <= channels <= MAX_TPU_DIM:
            continue
        size = aligned_lane_bytes((1, channels, 1, taps))
        if size <= limit and (best is None or size < best[0]):
            best = size, channels, taps
    return None if best is None else best[1:]
