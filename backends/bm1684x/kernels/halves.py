"""Casts between fp32 and 16-bit floats."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.half_arithmetic import HalfArithmetic
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel, item_bytes
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.target import rule


class FloatCastKernel(LocalKernel[Cast]):
    """cast between f32 and a 16-bit float type, rounded to nearest even: one command on a tile."""

    ops = (Cast,)

    @rule("One of the types must be f32, the other one f16 or bf16")
    def known_types(self, op: Cast) -> bool:
        types = {op.x.dtype, op.type.dtype}
        return "f32" in types and len(types) == 2 and types <= set(self.machine.float_types)

    def grid(self, op: Cast) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(self._view(op))

    def views_result(self, op: Cast) -> bool:
        return True

    def _view(self, op: Cast) -> Shape:
        return self.machine.flat_view(op.type.shape, made=self.is_made(op))

    def work(self, op: Cast, box: Box) -> TileWork:
        view, dims = self._view(op), extents(box)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            source, target = (
                Words(place, dims, item=item_bytes(value), dtype=value.dtype)
                for place, value in ((ins[0], op.x), (outs[0], op.result))
            )
            build.cast(target, source)

        inputs = (self.machine.activation_in(op.x, view, box),)
        outputs = (self.machine.activation_out(op.result, view, box),)
        return TileWork(inputs, outputs, (), compute, self.machine.cycles.pass_cycles(dims))

    def evaluate(self, op: Cast, *arrays: Array) -> Array:
        wide = op.x.dtype == "f32"
        half = self.machine.arithmetic_of(op.type.dtype if wide else op.x.dtype)
        assert isinstance(half, HalfArithmetic), "one side of the cast has 16 bits"
        return half.cast_from(arrays[0]) if wide else half.cast(arrays[0])
