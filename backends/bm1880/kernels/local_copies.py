"""Feature maps copied and enlarged in local memory."""

from __future__ import annotations

from itertools import product

from bmcompiler.backends.bm1880.build import Build, extents
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.moves.local_copies import LaneCopier
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.tiling import Box, Contents, TileWork
from bmcompiler.ops.places.shape import Upsample


class ByteCopier(LaneCopier):
    """Copies of bytes by the TPU; transfers know the default strides only, so that no shape changes."""

    def reshapes(self, source: Contents, target: Contents) -> bool:
        return False


def repeat_pixels(machine: LaneMachine, op: Upsample, box: Box) -> TileWork:
    """The `box` of an upsampling by whole factors: one strided copy per place in a block of equal pixels."""
    factors = op.scale
    spans = [(lo // factor, -(-hi // factor)) for (lo, hi), factor in zip(box[2:], factors)]
    read: Box = (box[0], box[1], *spans)
    dims, out_dims = extents(read), extents(box)
    phases = [_phases(lo, hi - lo, factor) for (lo, hi), factor in zip(box[2:], factors)]

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        by, to = CHIP.aligned_strides(dims, item=1), CHIP.aligned_strides(out_dims, item=1)
        steps = (to[0], to[1], out_dims[3] * factors[0], factors[1])
        for row, high in enumerate(phases[0]):
            for column, wide in enumerate(phases[1]):
                shape = (*dims[:2], high[1], wide[1])
                source = Words(ins[0] + high[0] * dims[3] + wide[0], shape, by)
                build.copy(source, Words(outs[0] + row * out_dims[3] + column, shape, steps))

    return TileWork(
        (machine.activation_in(op.x, dims4(op.x), read),),
        (machine.activation_out(op.result, dims4(op.result), box),),
        (),
        compute,
        sum(machine.cycles.pass_cycles((*dims[:2], high, wide), 1) for (_, high), (_, wide) in product(*phases)),
    )


def _phases(first: int, size: int, factor: int) -> list[tuple[int, int]]:
    """For each of the first `factor` pixels from `first`: (which pixel read it repeats, how many pixels are so made).

    Pixels read count from that of pixel `first`.
    """
    return [((first + k) // factor - first // factor, -(-(size - k) // factor)) for k in range(min(factor, size))]
