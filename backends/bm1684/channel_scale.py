"""scale of float channels: one command multiplies by a vector and adds another one (bm1684.md 6.7)."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import LINEAR_STEPS
from bmcompiler.backends.bm1684.instructions.words import linear
from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.lanes.kernels.activation import ChannelKernel
from bmcompiler.backends.lanes.kernels.base import dims4, is_constant
from bmcompiler.backends.lanes.kernels.channel_constants import joined_buffer
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.norm import Scale


def is_linear(op: TensorOp) -> bool:
    """Whether an op is a scale of float channels that lie in lanes, by constants."""
    if not isinstance(op, Scale) or not op.type.is_float or op.bias is None:
        return False
    if op.type.rank != 4 or op.axis % 4 != 1:
        return False
    return is_constant(op.weight) and is_constant(op.bias) and CHIP.fits_fields(op.type.shape)


class LinearScaleKernel(ChannelKernel):
    """scale by constants along channels, rounded as product and sum are; both vectors are loaded together."""

    def grid(self, op: Scale) -> tuple[Axis, ...]:  # type: ignore[override]
        return MACHINE.elementwise_grid(dims4(op.result))

    def work(self, op: Scale, box: Box) -> TileWork:  # type: ignore[override]
        dims, shape = extents(box), dims4(op.result)
        assert op.bias is not None  # `is_linear`
        joined = joined_buffer(CHIP, op.weight, op.bias, "scale", np.asarray, CHIP.word, box[1])

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            factor, added = (Words(ins[1] + at, dims, (0, 1, 0, 0)) for at in (0, joined.bias))
            linear(build, Words(outs[0], dims), Words(ins[0], dims), factor, added)

        return TileWork(
            (MACHINE.activation_in(op.input, shape, box), joined.buffer),
            (MACHINE.activation_out(op.result, shape, box),),
            (),
            compute,
            MACHINE.cycles.pass_cycles(dims, steps=LINEAR_STEPS),
        )
