"""Runs without arithmetic on maps, and normalisation: upsampling, zero borders, LRN (dv.md 1.6, 5)."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

from bmcompiler.backends.dv.driver.commands import Pads, Run
from bmcompiler.backends.dv.driver.structs import HALF_ONE, LRN, Pool
from bmcompiler.backends.dv.kernels.base import RunKernel
from bmcompiler.backends.dv.lowering.build import extent_of
from bmcompiler.backends.dv.lowering.parts import Part
from bmcompiler.ops.layers.norm import Lrn
from bmcompiler.ops.places.shape import Pad, Upsample
from bmcompiler.target import rule


class UpsampleKernel(RunKernel[Upsample]):
    """upsample: a run per doubling."""

    ops = (Upsample,)

    def parts(self, op: Upsample) -> Sequence[Part]:
        run = Run(m=extent_of(op.results[0]).c, pool_enable=Pool.UPSAMPLE)
        return (Part(run),) * (op.scale[0].bit_length() - 1)

    @rule("Both scales must be the same power of two, from 2 on", "scale")
    def doubles(self, op: Upsample) -> bool:
        down, across = op.scale
        return down == across > 1 and down & (down - 1) == 0


class PadKernel(RunKernel[Pad]):
    """pad with zeros: the border of an average pooling of single elements."""

    ops = (Pad,)

    def parts(self, op: Pad) -> Sequence[Part]:
        top, bottom, left, right = op.pads[4:]
        run = Run(
            m=extent_of(op.results[0]).c,
            pool_enable=Pool.AVERAGE,
            pool_avg_param=HALF_ONE,
            pool_pad=Pads(left, right, top, bottom),
        )
        return (Part(run),)

    @rule("Rows and columns of zeros can be added, nothing else")
    def adds_zeros(self, op: Pad) -> bool:
        return op.mode == "constant" and op.value == 0 and not any(op.pads[:4])


class LrnKernel(RunKernel[Lrn]):
    """lrn with the one set of parameters that the device has; piecewise linear, as the device computes it."""

    ops = (Lrn,)

    def parts(self, op: Lrn) -> Sequence[Part]:
        return (Part(Run(m=extent_of(op.results[0]).c, lrn=LRN)),)

    @rule("size must be 5, alpha 1e-4, beta 0.75 and k 1")
    def has_the_parameters(self, op: Lrn) -> bool:
        given, wanted = (op.alpha, op.beta, op.k), (1e-4, 0.75, 1.0)
        return op.size == 5 and all(isclose(a, b, rel_tol=1e-6) for a, b in zip(given, wanted))
