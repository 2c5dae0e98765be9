"""Concatenation along channels: parts lie one after the other in the map of the whole (dv.md 2)."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.dv.arithmetic.stages import to_half
from bmcompiler.backends.dv.driver.commands import Run
from bmcompiler.backends.dv.driver.structs import HALF_ONE, Activation
from bmcompiler.backends.dv.formats.layout import GROUP
from bmcompiler.backends.dv.kernels.base import DvKernel
from bmcompiler.backends.dv.lowering.build import extent_of
from bmcompiler.backends.dv.lowering.parts import Part
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.places.shape import Concat
from bmcompiler.target import rule


class ConcatKernel(DvKernel[Concat]):
    """concat of channels: runs write their results into the whole; what no run makes is copied by one."""

    ops = (Concat,)

    def maps(self, op: Concat) -> list[Value]:
        return list(op.operands)

    def evaluate(self, op: Concat, *arrays: Array) -> Array:
        return np.concatenate([to_half(array) for array in arrays], axis=op.axis).astype(np.float32)

    @rule("Maps must have 4 dimensions and be joined along channels, axis 1", "axis")
    def joins_channels(self, op: Concat) -> bool:
        return op.type.rank == 4 and op.axis % 4 == 1

    @rule(f"All parts but the last must have a multiple of {GROUP} channels", last=True)
    def has_whole_groups(self, op: Concat) -> bool:
        return all(extent_of(value).c % GROUP == 0 for value in op.operands[:-1])


def copy_part(channels: int) -> Part:
    """A run that changes nothing: a leaky ReLU with slope 1."""
    return Part(Run(m=channels, actfunc=Activation.LEAKY_RELU, actfunc_param=HALF_ONE))
