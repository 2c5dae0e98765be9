"""Boxes of feature maps copied inside local memory."""

from __future__ import annotations

from bmcompiler.backends.bm1880.bmkernel import (
    bmk1880_copy_with_stride_param_t,
    bmk1880_tpu_copy_with_stride,
    stride_t4,
)
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM, MAX_TPU_HW
from bmcompiler.backends.bm1880.build import Build, aligned
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.kernels.base import pass_cycles
from bmcompiler.chip import Dims
from bmcompiler.codegen.groups.regions import Move, Mover
from bmcompiler.codegen.tiling import Held
from bmcompiler.ir import Value


class LocalMover(Mover):
    """One strided copy by the TPU."""

    chip = CHIP

    def stored(self, value: Value, dims: Dims) -> tuple[Dims, int]:
        return dims, 1

    def cycles(self, move: Move) -> int:
        return pass_cycles(move.shape)

    def move(self, source: Held, target: Held) -> Move | None:
        found = super().move(source, target)
        if found is None or source.value.type.numpy.itemsize != 1:
            return None
        n, c, h, w = found.shape
        return found if max(n, c) <= MAX_TPU_DIM and max(h, w) <= MAX_TPU_HW else None

    def emit(self, build: Build, move: Move, source: int, target: int) -> None:
        (start, by), (end, to) = move.source, move.target
        build.tpu(
            bmk1880_tpu_copy_with_stride,
            bmk1880_copy_with_stride_param_t(
                aligned(target + end, move.shape), stride_t4(*to), aligned(source + start, move.shape), stride_t4(*by)
            ),
        )
