"""Casts between fp32 and 16-bit floats, and of pictures to floats."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.half_arithmetic import HalfArithmetic
from bmcompiler.backends.bm1684x.kernels.borders import BorderKernel
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import item_bytes
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.target import rule

_BYTES = "u8"
"""What pictures are."""


class FloatCastKernel(BorderKernel[Cast]):
    """cast between f32 and a 16-bit float type, rounded to nearest even, or of bytes: one command on a tile."""

    ops = (Cast,)

    @rule("One of the types must be f32, the other one f16 or bf16, or u8 becomes a float")
    def known_types(self, op: Cast) -> bool:
        types, floats = {op.x.dtype, op.type.dtype}, set(self.machine.float_types)
        of_bytes = op.x.dtype == _BYTES and op.type.dtype in floats
        return of_bytes or ("f32" in types and len(types) == 2 and types <= floats)

    def grid(self, op: Cast) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(self.view(op))

    def views_result(self, op: Cast) -> bool:
        return True

    def view(self, op: Cast) -> Shape:
        return self.machine.flat_view(op.type.shape, made=self.is_made(op))

    def widest(self, op: Cast) -> int:
        return max(item_bytes(op.x), item_bytes(op.result))

    def seen_as(self, op: Cast, box: Box, view: Shape) -> TileWork:
        dims = extents(box)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            source, target = (
                Words(place, dims, item=item_bytes(value), dtype=value.dtype)
                for place, value in ((ins[0], op.x), (outs[0], op.result))
            )
            build.cast(target, source)

        inputs = (self.machine.activation_in(op.x, view, box),)
        outputs = (self.machine.activation_out(op.result, view, box),)
        return TileWork(inputs, outputs, (), compute, self.machine.cycles.pass_cycles(dims, self.widest(op)))

    def evaluate(self, op: Cast, *arrays: Array) -> Array:
        if op.x.dtype == _BYTES:  # exact in all float types, up to 255 in the 8 bits of bf16
            floats = arrays[0].astype(np.float32)
            return floats if op.type.dtype == "f32" else self._half(op.type.dtype).cast_from(floats)
        wide = op.x.dtype == "f32"
        half = self._half(op.type.dtype if wide else op.x.dtype)
        return half.cast_from(arrays[0]) if wide else half.cast(arrays[0])

    def _half(self, dtype: str) -> HalfArithmetic:
        half = self.machine.arithmetic_of(dtype)
        assert isinstance(half, HalfArithmetic), "one side of the cast has 16 bits"
        return half
