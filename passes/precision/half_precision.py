"""Float nets in 16-bit floats, for chips that compute them faster and move half the bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from bmcompiler.codegen.pictures import is_picture
from bmcompiler.conditions import A_CHIP, NO_LAYOUT, ONE_FLOAT, SOURCE_TYPES
from bmcompiler.errors import UsageError
from bmcompiler.ir import Function, Module, Operation, Rewriter, TensorType, Value, erase_dead
from bmcompiler.ir.keys import HALF, LARGE, WIDE, is_weight
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.layers.nn import Convolution
from bmcompiler.ops.places.index import Gather
from bmcompiler.passes.precision.held import UNUSUAL_LOSS
from bmcompiler.passes.rewriting import Patterns, make
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target, unsupported_reason

HALVES = ("f16", "bf16")
_WEIGHT, _BIAS = 1, 2
_WORTH = 0.75
"""Part of the cycles in f32 that a sum of products takes in a type that holds its numbers less exactly, at most."""
_SIGN, _INFINITE = 0x8000, {"f16": 0x7C00, "bf16": 0x7F80}
"""Bits of 16-bit floats."""
_BLOCK = 1 << 15
"""Elements whose wide copies stay in the cache."""


@dataclass(frozen=True)
class HalfPrecision(Pass):
    """Compute in a 16-bit float type what loses little by it; everything else stays f32.

    1. sums of products               : operands and result in `dtype`, a bias of dense conv and deconv in f32
    2. what else the target computes in `dtype`, where an operand is of `dtype` already : the same
    3. gather of a table of numbers that `dtype` holds : the same, half the bytes
    4. what is noted to be held by the other 16-bit type alone : rules 1 and 2 with that, where it takes fewer cycles
    5. all else                       : f32, with casts where types meet

    Inputs and outputs of the net keep their types; with `inputs` and `outputs` those of f32 become `dtype`. A target
    takes in `dtype` what loses little by it: moves, sums and products of elements, choices; but no sums with constants
    that are 0 in f16, nor what they add to, and no sums of products with weights that f16 does not hold. In nets of
    integers what stays in float does, unless calibration found numbers that f16 might not hold. Norms, softmax and
    other functions of exponentials add many numbers, or numbers whose difference counts.
    """

    name = "half-precision"
    requires = (A_CHIP, ONE_FLOAT, NO_LAYOUT)
    breaks = (ONE_FLOAT, SOURCE_TYPES)
    loses_bits = True
    dtype: str = "f16"
    inputs: bool = False
    outputs: bool = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if self.dtype not in HALVES:
            raise UsageError(f"half-precision: '{self.dtype}' is no 16-bit float type", remedy="choose f16 or bf16")
        counts: Counter[str] = Counter()
        for function in module.functions:
            work = _Halves(module, ctx.target, self.dtype, function)
            if self.inputs:
                work.narrow_inputs()
            work.rewrite(self.dtype if self.outputs else "f32")
            counts += work.counts
        halves = [f"{counts[dtype]} ops are computed in {dtype}" for dtype in (self.dtype, *HALVES) if counts[dtype]]
        if not halves:
            return PassResult(False)
        ctx.notes.append(", ".join([*dict.fromkeys(halves), f"{counts['f32']} in f32"]))
        return PassResult(True)


class _Halves(Patterns):
    """One function; `counts` has how many ops on floats became of which type."""

    def __init__(self, module: Module, target: Target, dtype: str, function: Function) -> None:
        super().__init__(module)
        self._target, self._dtype, self._function = target, dtype, function
        self._known: dict[tuple[Value, str], Value] = {}
        self._borders: set[Operation] = set()
        self._rewriter = Rewriter()
        self._types = {"f32", dtype}
        self.counts: Counter[str] = Counter()

    def narrow_inputs(self) -> None:
        """Inputs of f32 come in the type, and as f32 to who reads them so far."""
        first = self._function.ops[0]
        for argument in self._function.arguments:
            if argument.dtype == "f32":
                argument.type = TensorType(argument.shape, self._dtype)
                cast = make("cast", [argument], {"dtype": "f32"}, location=self._function.origin(argument))
                argument.replace_all_uses_with(cast.results[0])
                cast.set_operand(0, argument)
                self._borders.add(cast)
                self._rewriter.insert_before(first, cast)
                self._known[argument, "f32"], self._known[cast.results[0], self._dtype] = cast.results[0], argument

    def rewrite(self, returned: str) -> None:
        """All ops in order, then what the net returns; floats of f32 among it in this type."""
        *ops, end = self._function.ops
        wanted = [returned if value.dtype == "f32" else value.dtype for value in self._function.returned]
        for op in ops:
            if op in self._borders:
                continue
            if not isinstance(op, TensorOp) or is_weight(op.results[0]) or not op.results[0].type.is_float:
                self._in_f32(op)
                continue
            half = self._half_of(op)
            if half is None or not self._halve(op, half):
                self._in_f32(op)
                half = "f32"
            self.counts[half] += 1
        for index, (value, dtype) in enumerate(zip(self._function.returned, wanted)):
            end.set_operand(index, self._as(value, dtype, end))
        erase_dead(self._function)  # weights that are read in f16 now

    def _half_of(self, op: TensorOp) -> str | None:
        """The type of rules 1 to 4, as far as the target does not decide."""
        types = {value.dtype for value in (*op.operands, *op.results) if value.type.is_float}
        if WIDE in op.attributes or not types <= self._types:
            return None
        half = op.attributes.get(HALF)
        if half is None:
            return self._dtype if self._fits(op) else None
        return half if op.affine or half in types else None

    def _fits(self, op: TensorOp) -> bool:
        """Rules 1 to 3 for what has no note."""
        makers = (op, *(value.op for value in op.operands if value.op is not None))
        if self._dtype == "f16" and any(LARGE in maker.attributes for maker in makers):
            return False
        if self._dtype == "f16" and (self._tiny(op) or any(self._tiny(user) for user in op.results[0].users)):
            return False
        return op.affine or any(value.dtype == self._dtype for value in op.operands) or self._looks_up(op)

    def _looks_up(self, op: TensorOp) -> bool:
        """Rule 3: rows of a table that the type holds as it is."""
        table = self.constant(op.operands[0]) if isinstance(op, Gather) else None
        if table is None or table.dtype != np.float32:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array_equal(table.astype(numpy_dtype(self._dtype)).astype(np.float32), table)

    def _tiny(self, op: Operation) -> bool:
        """Whether what a sum adds is all rounded to 0 in f16: its other part may be as small, as before a logarithm."""
        added = op.operands[_BIAS:] if op.short_name == "scale" else op.operands if op.short_name == "add" else ()
        arrays = [array for array in map(self.constant, added) if array is not None]
        with np.errstate(over="ignore"):
            return any(array.any() and not array.astype(np.float16).any() for array in arrays)

    def _halve(self, op: TensorOp, dtype: str) -> bool:
        """Put the op in the type before this one, if the target takes it so."""
        operands = [self._operand(op, index, dtype) for index in range(len(op.operands))]
        fresh = op.clone(operands)
        for result in fresh.results:
            result.type = TensorType(result.shape, dtype)
        self._rewriter.insert_before(op, fresh, op)
        taken = unsupported_reason(self._target, fresh) is None and self._held(op, operands, dtype)
        if not taken or (dtype != self._dtype and not self._quicker(fresh, op)):
            fresh.erase()
            return False
        self._types.add(dtype)
        self._rewriter.replace(op, fresh.results)
        return True

    def _quicker(self, fresh: TensorOp, op: TensorOp) -> bool:
        """Whether a sum of products is so much quicker in another type than in f32 that it pays for casts and bits."""
        taken, before = self._target.cycles(fresh), self._target.cycles(op)
        return not op.affine or taken is None or before is None or taken < _WORTH * before

    def _operand(self, op: TensorOp, index: int, dtype: str) -> Value:
        value = op.operands[index]
        sums = isinstance(op, Convolution) and index == _BIAS and not _depthwise(op)
        return self._as(value, "f32" if sums else dtype, op) if value.type.is_float else value

    def _in_f32(self, op: Operation) -> None:
        for index, value in enumerate(op.operands):
            if value.dtype != "f32" and value.dtype in self._types:
                op.set_operand(index, self._as(value, "f32", op))

    def _as(self, value: Value, dtype: str, anchor: Operation) -> Value:
        """The value in a float type: itself, a constant made at compile time, or a cast."""
        if value.dtype == dtype:
            return value
        key = value, dtype
        array = self.constant(value)
        if array is None and "f32" not in (value.dtype, dtype):  # chips cast to and from f32 alone
            return self._as(self._as(value, "f32", anchor), dtype, anchor)
        if key not in self._known:
            if array is None:
                cast = self._cast(value, dtype)
                self._rewriter.insert_before(self._place(value, dtype, anchor), cast)
                self._known[key] = cast.results[0]
                self._known[cast.results[0], value.dtype] = value
            else:
                with np.errstate(over="ignore"):
                    rounded = array.astype(numpy_dtype(dtype))
                self._known[key] = self.weight(rounded, value, anchor, self._rewriter, "weight")
        return self._known[key]

    def _cast(self, value: Value, dtype: str) -> Operation:
        """A cast of the value; of a picture that was cast to it, where the chip has that: 16-bit floats hold bytes."""
        where = self._function.origin(value)
        if isinstance(value.op, Cast) and is_picture(value.op.x) and dtype != "f32":
            short = make("cast", [value.op.operands[0]], {"dtype": dtype}, location=where)
            if unsupported_reason(self._target, short) is None:
                return short
            short.erase()
        return make("cast", [value], {"dtype": dtype}, location=where)

    def _place(self, value: Value, dtype: str, reader: Operation) -> Operation:
        """Before which op a cast stands: that of a mask behind what makes it, not between ops computed together.

        So does one that makes a value smaller, which others need not wait for.
        """
        repeats = isinstance(reader, TensorOp) and reader.broadcasts and value.type.size < reader.results[0].type.size
        if value.op is None or not (repeats or dtype != "f32"):
            return reader
        ops = self._function.ops
        return ops[ops.index(value.op) + 1]

    def _held(self, op: TensorOp, operands: list[Value], dtype: str) -> bool:
        """Whether no constant grew beyond the type, and no weight is so small that f16 loses it."""
        for index, value in enumerate(operands):
            array = self.constant(value) if value.dtype == dtype else None
            if array is None:
                continue
            if not _finite(array, dtype):
                return False
            exact = self.constant(op.operands[index]) if op.affine and index == _WEIGHT else None
            if dtype == "f16" and exact is not None and rounding_loss(exact, array) > UNUSUAL_LOSS["f16"]:
                return False
        return True


def _finite(array: np.ndarray, dtype: str) -> bool:
    """Whether all 16-bit floats are numbers: read as integers, no others are as large, with and without a sign."""
    least = _INFINITE[dtype]
    largest = array.view(np.int16).max(initial=0), array.view(np.uint16).max(initial=0)
    return bool(largest[0] < least and largest[1] < least + _SIGN)


def rounding_loss(array: np.ndarray, rounded: np.ndarray) -> float:
    """What rounding to f16 took of floats, as a part of their length; 0.02 % where all are of usual sizes."""
    lost, whole, flat, halves = 0.0, 0.0, array.reshape(-1), rounded.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, array.size, _BLOCK):
            exact = flat[first : first + _BLOCK].astype(np.float64)
            rest = halves[first : first + _BLOCK] - exact
            lost, whole = lost + np.dot(rest, rest), whole + np.dot(exact, exact)
    return float(np.sqrt(lost / max(whole, np.finfo(np.float64).tiny)))


def _depthwise(op: Convolution) -> bool:
    return bool(op.group == op.input.shape[1] == op.type.shape[1] > 1)
