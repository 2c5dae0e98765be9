"""Integers element by element, and the ways between integers and floats, on elements as they are."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.instructions.requantize import dequantize
from bmcompiler.backends.bm1684x.kernels.borders import BorderKernel
from bmcompiler.backends.bm1684x.kernels.channel_end import KINDS
from bmcompiler.backends.bm1684x.kernels.int_steps import RESULT, Number, Register, Step, steps_of
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, item_bytes
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Relu
from bmcompiler.ops.elements.elementwise import Max, Min
from bmcompiler.ops.elements.integer import (
    AddShift,
    AddsShift,
    AffineSum,
    MacShift,
    Maxs,
    Mins,
    MulShift,
    MulsShift,
    RoundRshift,
    SubShift,
)
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.target import OpT, rule

_FP32 = Precision.FP32


class NarrowKernel(LocalKernel[OpT]):
    """Base: operands of the shape of the result, each element in as many bytes as it has."""

    def grid(self, op: OpT) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(self.view(op), self.widest(op))

    def widest(self, op: OpT) -> int:
        """Bytes of the largest elements."""
        return max(item_bytes(op.operands[0]), item_bytes(op.results[0]))

    def view(self, op: OpT) -> Shape:
        """The tensors as feature maps."""
        return self.machine.flat_view(op.results[0].shape, self.widest(op), self.is_made(op))

    def views_result(self, op: OpT) -> bool:
        return True

    def tile(self, op: OpT, box: Box, view: Shape) -> tuple[list[Buffer], Buffer]:
        """(operands of the shape of the result, result)."""
        data = dict.fromkeys(v for v in op.operands if v.shape == op.results[0].shape)
        return [self.machine.activation_in(v, view, box) for v in data], self.machine.activation_out(
            op.results[0], view, box
        )


class IntegersKernel(NarrowKernel[TensorOp]):
    """Weighted sums and products with a rounding shift and saturation, relu, maxima and minima of integers."""

    ops = (
        AddShift,
        SubShift,
        MulShift,
        MulsShift,
        AddsShift,
        RoundRshift,
        MacShift,
        AffineSum,
        Relu,
        Max,
        Min,
        Maxs,
        Mins,
    )

    @rule("Operands must have the shape of the result, and one must be an activation")
    def known_operands(self, op: TensorOp) -> bool:
        return all(v.shape == op.results[0].shape for v in op.operands) and any(map(is_activation, op.operands))

    @rule("Integers must be i8, u8, i16, u16 or i32, and no sum may leave 32 bits")
    def known_types(self, op: TensorOp) -> bool:
        return all(v.dtype in KINDS for v in (*op.operands, *op.results)) and steps_of(op) is not None

    def evaluate(self, op: TensorOp, *arrays: Array) -> Array:
        """Exact, so what the op says."""
        return op.evaluate(*arrays)

    def work(self, op: TensorOp, box: Box) -> TileWork:
        inputs, out = self.tile(op, box, self.view(op))
        dims, steps = extents(box), steps_of(op)
        assert steps is not None, "a rule of the kernel asks for it"
        tensors = list(dict.fromkeys(op.operands))
        given = [tensors.index(value) for value in op.operands]
        inner = {step.target for step in steps if step.target.number != RESULT}
        between = sorted(inner, reverse=True)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            places = {
                **{i: ins[k] for i, k in enumerate(given)},
                **{r.number: p for r, p in zip(between, scratch)},
                RESULT: outs[0],
            }
            for step in steps:
                _emit(build, dims, step, places)

        def twice(step: Step) -> bool:
            read = [given[each.number] for each in (step.a, step.b) if isinstance(each, Register) and each.number >= 0]
            return len(set(read)) < len(read)

        passes = self.machine.cycles.pass_cycles
        cycles = sum(passes(dims, _width(step), in_place=twice(step)) for step in steps)
        sizes = tuple(self.chip.aligned_bytes(dims, _bytes(register)) for register in between)
        return TileWork(tuple(inputs), (out,), sizes, compute, cycles)


def _emit(build: Build, dims: Shape, step: Step, places: dict[int, int]) -> None:
    def operand(source: Register | Number) -> Operand:
        if isinstance(source, Number):
            return constant(source.value, Precision.INT32, source.signed)
        return Operand(places[source.number], *KINDS[source.dtype])

    def touched(register: Register) -> tuple[int, int]:
        return build.chip.plane(places[register.number], dims, _bytes(register))

    target, a = operand(step.target), operand(step.a)
    reads = [touched(source) for source in (step.a, step.b) if isinstance(source, Register)]
    if step.b is None:
        command = arithmetic.cast(dims, target, a, Rounding.HALF_EVEN)
    elif step.unit in (Ar.MAX, Ar.MIN):
        other = operand(step.b)._replace(precision=a.precision, signed=a.signed)
        command = arithmetic.binary(step.unit, dims, target, a, other)
    else:
        command = arithmetic.integer(
            step.unit, dims, target, a, operand(step.b), -step.shift, Rounding.HALF_UP, saturation=True
        )
    build.issue(command, reads, [touched(step.target)])


def _bytes(register: Register) -> int:
    return numpy_dtype(register.dtype).itemsize


def _width(step: Step) -> int:
    return max(_bytes(each) for each in (step.target, step.a, step.b) if isinstance(each, Register))


class QuantizeKernel(NarrowKernel[Quantize], BorderKernel[Quantize]):
    """quantize: the product with the inverse of the scale, rounded half away from zero; NaN becomes the zero point."""

    ops = (Quantize,)

    @rule('The operand must be an activation of f32, rounding "away", one scale for the tensor')
    def known_form(self, op: Quantize) -> bool:
        quant = op.type.quant
        return (
            is_activation(op.x)
            and op.x.dtype == "f32"
            and op.rounding == "away"
            and quant is not None
            and not quant.scales
        )

    def seen_as(self, op: Quantize, box: Box, view: Shape) -> TileWork:
        inputs, out = self.tile(op, box, view)
        dims, quant, item = extents(box), op.type.quant, item_bytes(op.result)
        assert quant is not None, "a rule of the kernel asks for it"
        inverse = int((np.float32(1) / np.float32(quant.scale)).view(np.uint32))
        kind, signed = KINDS[op.type.dtype]
        zero = quant.zero_point
        chip, cycles = self.chip, self.machine.cycles

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            real = Operand(scratch[0], _FP32)
            product = arithmetic.binary(Ar.MUL, dims, real, Operand(ins[0], _FP32), constant(inverse, _FP32))
            words, made = chip.plane(scratch[0], dims), chip.plane(outs[0], dims, item)
            build.issue(product, [chip.plane(ins[0], dims)], [words])
            result = Operand(outs[0], kind, signed)
            if not zero:
                build.issue(arithmetic.cast(dims, result, real, Rounding.HALF_AWAY), [words], [made])
                return
            whole = real._replace(precision=Precision.INT32)
            build.issue(arithmetic.cast(dims, whole, real, Rounding.HALF_AWAY), [words], [words])
            point = constant(zero, Precision.INT32)
            build.issue(arithmetic.integer(Ar.ADD, dims, whole, whole, point, saturation=True), [words], [words])
            build.issue(arithmetic.cast(dims, result, whole, Rounding.HALF_EVEN), [words], [made])

        passes = 2 * cycles.pass_cycles(dims) + 2 * bool(zero) * cycles.pass_cycles(dims, in_place=True)
        return TileWork(tuple(inputs), (out,), (chip.aligned_bytes(dims),), compute, passes)

    def evaluate(self, op: Quantize, *arrays: Array) -> Array:
        """The op; the chip makes 0 of NaN."""
        (x,) = arrays
        return op.evaluate(np.where(np.isnan(x), np.float32(0), x))


class DequantizeKernel(NarrowKernel[Dequantize], BorderKernel[Dequantize]):
    """dequantize: (x - zero point) * scale, one command."""

    ops = (Dequantize,)

    @rule("The operand must be an activation of i8, u8, i16 or u16, with one scale for the tensor")
    def known_form(self, op: Dequantize) -> bool:
        quant = op.x.type.quant
        known = op.x.dtype in ("i8", "u8", "i16", "u16")
        return is_activation(op.x) and known and quant is not None and not quant.scales

    def seen_as(self, op: Dequantize, box: Box, view: Shape) -> TileWork:
        inputs, out = self.tile(op, box, view)
        dims, quant, item = extents(box), op.x.type.quant, item_bytes(op.x)
        assert quant is not None, "a rule of the kernel asks for it"
        scale, zero = int(np.float32(quant.scale).view(np.uint32)), quant.zero_point

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            command = dequantize(dims, outs[0], Operand(ins[0], *KINDS[op.x.dtype]), scale, zero)
            build.issue(command, [self.chip.plane(ins[0], dims, item)], [self.chip.plane(outs[0], dims)])

        return TileWork(tuple(inputs), (out,), (), compute, self.machine.cycles.pass_cycles(dims))
