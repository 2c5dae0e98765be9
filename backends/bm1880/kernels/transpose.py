"""Permutations that exchange two blocks of axes: transposed matrices, by way of local memory.

Copied inside global memory every byte would be a run of its own. The GDMA transposes a matrix while it loads or stores
it (bm1880.md 5.1), so that both sides of the bus have long runs. In local memory the shorter side makes the rows.
"""

from __future__ import annotations

from math import prod

from bmcompiler.backends.bm1880.bmkernel import CTRL_TP, bmk1880_copy_param_t, bmk1880_tpu_copy
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM
from bmcompiler.backends.bm1880.bmkernel.tensors import matrix_dims
from bmcompiler.backends.bm1880.build import Build, Dims, aligned, base_of, matrix, matrix_lane_bytes
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.kernels.base import LocalKernel
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ops.places.shape import Permute

_MOST_STRIDE = 65535
_MOST_COLUMNS = 65504
"""Sizes and row strides of the GDMA have 16 bits (bm1880.md 5.3); tiles are multiples of 32 columns."""
_MOST_COMMANDS = 16
"""Transfers of one tile: beyond that copies inside global memory are not slower."""


class TransposeKernel(LocalKernel[Permute]):
    """A permute that is matrices (batch, columns, rows) -> (batch, rows, columns), bytes."""

    @staticmethod
    def matrices(op: Permute) -> tuple[int, int, int] | None:
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

    def takes(self, op: Permute) -> bool:
        """Whether this kernel computes the op: the shorter side of the matrices is never cut."""
        found = self.matrices(op)
        if found is None or len(_commands(*found[1:])) > _MOST_COMMANDS:
            return False
        return min(found[1:]) <= MAX_TPU_DIM and self.tiling(op) is not None

    def grid(self, op: Permute) -> tuple[Axis, ...]:
        batch, rows, columns = self.matrices(op) or (1, 1, 1)
        few, many = sorted((rows, columns))
        return Axis(batch, 1, max(1, MAX_TPU_DIM // few)), Axis(many, CHIP.lanes, _MOST_COLUMNS), Axis(1), Axis(1)

    def work(self, op: Permute, box: Box) -> TileWork:
        _, rows, columns = self.matrices(op) or (1, 1, 1)
        few, many = sorted((rows, columns))
        (n0, n1), (start, end) = box[:2]
        extent = few, end - start
        step = matrix_lane_bytes(*extent)
        images = [(n * few * many, (n - n0) * step) for n in range(n0, n1)]
        _, chunks, _, width = matrix_dims(*extent)
        dims: Dims = ((n1 - n0) * few, chunks, 1, width)

        row_bytes = matrix_lane_bytes(1, extent[1])
        plain = [
            (place + start + row * many, (count, extent[1]), at + row * row_bytes)
            for place, at in images
            for row, count in _commands(rows, columns)
        ]

        def load(build: Build, address: int) -> None:
            base, flag = base_of(build.source(op.operands[0]))
            if rows == few:
                for place, at in images:
                    build.load(matrix(address + at, *extent), base + place + start * few, flag | CTRL_TP)
                return
            for place, part, at in plain:
                build.load_matrix(base + place, part, many, address + at, flag)

        def store(build: Build, address: int) -> None:
            base = build.neuron(op.result)
            if rows != few:
                for place, at in images:
                    build.store(matrix(address + at, *extent), base + place + start * few, transposed=True)
                return
            for place, part, at in plain:
                build.store_matrix(base + place, part, many, address + at)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            param = bmk1880_copy_param_t(aligned(outs[0], dims), aligned(ins[0], dims))
            build.tpu(bmk1880_tpu_copy, param)

        nbytes = len(images) * few * (end - start)
        source, target = (Buffer(len(images) * step, "nc", nbytes, transfer) for transfer in (load, store))
        return TileWork((source,), (target,), (), compute, self.machine.cycles.pass_cycles(dims, 1))


def _commands(rows: int, columns: int) -> list[tuple[int, int]]:
    """(first, count) of the rows in local memory that one transfer moves without transposing them."""
    few, many = sorted((rows, columns))
    return [(0, few)] if many <= _MOST_STRIDE else [(row, 1) for row in range(few)]
