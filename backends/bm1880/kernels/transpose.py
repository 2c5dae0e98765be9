"""Permutations that exchange two blocks of axes: transposed matrices, by way of local memory.

Copied inside global memory every byte would be a run of its own. The GDMA reads a matrix column by column while it
loads it (bm1880.md 5.1), so that both sides of the bus have long runs.
"""

from __future__ import annotations

from math import prod

from bmcompiler.backends.bm1880.bmkernel import bmk1880_copy_param_t, bmk1880_tpu_copy
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM
from bmcompiler.backends.bm1880.bmkernel.tensors import matrix_dims
from bmcompiler.backends.bm1880.build import Build, Dims, aligned, matrix_lane_bytes
from bmcompiler.backends.bm1880.kernels.base import LocalKernel, pass_cycles
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ops.base import TensorOp

_MOST_COLUMNS = 65504
"""Sizes of the GDMA have 16 bits (bm1880.md 5.3); a multiple of 32."""


class TransposeKernel(LocalKernel):
    """A permute that is matrices (batch, columns, rows) -> (batch, rows, columns), bytes."""

    @staticmethod
    def matrices(op: TensorOp) -> tuple[int, int, int] | None:
        """(batch, rows, columns) of the result, None when the permute is something else."""
        shape = op.operands[0].shape
        order = [axis for axis in op.order if shape[axis] != 1]
        first = next((i for i, (axis, home) in enumerate(zip(order, sorted(order))) if axis != home), len(order))
        rest = order[first:]
        cut = rest.index(min(rest)) if rest else 0
        if not cut or rest[cut:] + rest[:cut] != sorted(rest):
            return None
        batch, rows, columns = (prod(shape[axis] for axis in axes) for axes in (order[:first], rest[:cut], rest[cut:]))
        return batch, rows, columns

    def takes(self, op: TensorOp) -> bool:
        """Whether this kernel computes the op; rows are never cut."""
        found = self.matrices(op)
        return found is not None and found[1] <= MAX_TPU_DIM and self.tiling(op) is not None

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        batch, rows, columns = self.matrices(op) or (1, 1, 1)
        return Axis(batch, 1, max(1, MAX_TPU_DIM // rows)), Axis(columns, 32, _MOST_COLUMNS), Axis(1), Axis(1)

    def work(self, op: TensorOp, box: Box) -> TileWork:
        _, rows, total = self.matrices(op) or (1, 1, 1)
        (n0, n1), (c0, c1) = box[:2]
        columns, size = c1 - c0, rows * total
        lane_bytes = matrix_lane_bytes(rows, columns)
        _, chunks, _, width = matrix_dims(rows, columns)
        dims: Dims = ((n1 - n0) * rows, chunks, 1, width)

        def load(build: Build, address: int) -> None:
            for i in range(n0, n1):
                place = address + (i - n0) * lane_bytes
                build.load_transposed(op.operands[0], i * size + c0 * rows, (rows, columns), place)

        def store(build: Build, address: int) -> None:
            base = build.neuron(op.result) + n0 * size + c0
            if columns == total:
                build.store_matrix(base, ((n1 - n0) * rows, columns), total, address)
                return
            for i in range(n1 - n0):
                build.store_matrix(base + i * size, (rows, columns), total, address + i * lane_bytes)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            param = bmk1880_copy_param_t(aligned(outs[0], dims), aligned(ins[0], dims))
            build.tpu(bmk1880_tpu_copy, param)

        nbytes = (n1 - n0) * rows * columns
        source = Buffer((n1 - n0) * lane_bytes, "nc", nbytes, load)
        target = Buffer((n1 - n0) * lane_bytes, "nc", nbytes, store)
        return TileWork((source,), (target,), (), compute, pass_cycles(dims))
