"""Straight-line programs of commands on packed integers that are exact for all values of their operands.

The machine follows the range of every register and picks precisions and signs by it: results are unsigned if all
operands are, and saturate to their own type before anything else happens (bm1684.md 6.0.1, 6.4). A program that a
range does not allow is refused with `NotExactError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.instructions.packed import Number, Packed, emit_packed
from bmcompiler.backends.bm1684.isa import Eu
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.ir.types import DTYPES


def packed_cycles(cycles: LaneCycles, dims: Shape, result: int, operand: int, pair: bool = False) -> int:
    """Of `emit_packed`; result, operand: bytes of the elements of the result and of a. pair: b is a tensor, too."""
    return cycles.pass_cycles(dims, max(result, operand), pair=pair)


def pixel_cycles(cycles: LaneCycles, dims: Shape, pair: bool = False) -> int:
    """Of `emit_packed` on all of `pixel_halves`."""
    n, c, h, w = dims
    return packed_cycles(cycles, (2 * -(-n // 4), c, h, 2 * w), 2, 2, pair)


def pack_words_cycles(cycles: LaneCycles, dims: Shape) -> int:
    """Cycles of `pack_words` on a tile of words."""
    n, c, h, w = dims
    return (n > 1) * packed_cycles(cycles, (2 * n, c, h, w), 1, 2) + packed_cycles(cycles, dims, 1, 2)


def multiply_cycles(cycles: LaneCycles, dims: Shape, multiplier: int, item: int = 1) -> int:
    """Cycles of `int_requantize.emit_multiply` on a tile of `item` bytes each."""
    if multiplier <= 255:
        return packed_cycles(cycles, dims, item, 1)
    return (2 + (item == 1)) * packed_cycles(cycles, dims, 2, 1)


Span = tuple[int, int]
"""Lowest and highest value."""
_ACCUMULATOR = (-(1 << 31), (1 << 31) - 1)
_MAX_SHIFT = 31
_SAME_WIDTH = (Eu.MAX, Eu.MIN, Eu.AND, Eu.OR, Eu.XOR, Eu.SHIFT)


class NotExactError(Exception):
    """Raised where the commands for packed integers would not give the exact result."""


class Register(NamedTuple):
    """A tile of integers of `item` bytes with values in `span`."""

    number: int
    item: int
    span: Span


Operand = Register | int


class _Read(NamedTuple):
    """A register as a command reads it."""

    number: int
    signed: bool


class IntStep(NamedTuple):
    """One command; with `old`, the register that it adds to and replaces."""

    unit: Eu
    a: _Read | Number
    b: _Read | Number
    target: int
    signed: bool
    right: int = 0
    left: int = 0
    old: int | None = None


def limits(dtype: str) -> Span:
    """Lowest and highest value of an element type; bool is a byte of 0 or 1."""
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(DTYPES[dtype][1])
    return int(info.min), int(info.max)


def item_of(dtype: str) -> int:
    """Bytes of an element."""
    return int(np.dtype(DTYPES[dtype][1]).itemsize)


def _type_span(item: int, signed: bool) -> Span:
    bits = 8 * item
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _within(span: Span, limit: Span) -> bool:
    return limit[0] <= span[0] and span[1] <= limit[1]


def _clip(span: Span, limit: Span) -> Span:
    low, high = (min(max(value, limit[0]), limit[1]) for value in span)
    return low, high


def _rounded(span: Span, right: int) -> Span:
    half = (1 << right) >> 1
    if not _within((span[0], span[1] + half), _ACCUMULATOR):
        raise NotExactError("the accumulator of 32 bits would overflow")
    return (span[0] + half) >> right, (span[1] + half) >> right


def _span(x: Operand) -> Span:
    return (x, x) if isinstance(x, int) else x.span


def _combined(unit: Eu, a: Span, b: Span) -> Span:
    if unit == Eu.ADD:
        return a[0] + b[0], a[1] + b[1]
    if unit == Eu.SUB:
        return a[0] - b[1], a[1] - b[0]
    if unit == Eu.MAX:
        return max(a[0], b[0]), max(a[1], b[1])
    if unit == Eu.MIN:
        return min(a[0], b[0]), min(a[1], b[1])
    corners = [x * y for x, y in product(a, b)]
    return min(corners), max(corners)


class _Choice(NamedTuple):
    """A way to read the operands, and the type of the result that follows from it."""

    item: int
    signed: bool
    signs: tuple[bool, bool]


class IntMachine:
    """Records commands. `dtype` is the type that a result saturates to: "i8", "u8", "i16" or "u16"."""

    def __init__(self, dtypes: Sequence[str]) -> None:
        self.items = [item_of(dtype) for dtype in dtypes]
        self.steps: list[IntStep] = []
        self.inputs = [Register(i, item_of(dtype), limits(dtype)) for i, dtype in enumerate(dtypes)]

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def add(self, a: Operand, b: Operand, dtype: str, right: int = 0) -> Register:
        """round_shift(a + b, right)."""
        return self._arithmetic(Eu.ADD, a, b, dtype, right)

    def sub(self, a: Operand, b: Operand, dtype: str, right: int = 0) -> Register:
        """round_shift(a - b, right)."""
        return self._arithmetic(Eu.SUB, a, b, dtype, right)

    def mul(self, a: Operand, b: Operand, dtype: str, right: int = 0) -> Register:
        """round_shift(a * b, right) of bytes."""
        return self._arithmetic(Eu.MUL, a, b, dtype, right)

    def mac(self, old: Register, a: Operand, b: Operand, dtype: str, right: int = 0, left: int = 0) -> Register:
        """round_shift(a * b + (old << left), right) of bytes a, b and 16 bits old; `old` must not be used again."""
        return self._arithmetic(Eu.MAC, a, b, dtype, right, left, old)

    def max(self, a: Operand, b: Operand) -> Register:
        """The larger one of two integers of one type."""
        return self._arithmetic(Eu.MAX, a, b, None)

    def min(self, a: Operand, b: Operand) -> Register:
        """The smaller one of two integers of one type."""
        return self._arithmetic(Eu.MIN, a, b, None)

    def bits(self, unit: Eu, a: Register, b: Operand, span: Span) -> Register:
        """Logic or a logical shift of the bits of a; the caller knows the `span` of the result."""
        signed = span[0] < 0
        if isinstance(b, Register) and b.item != a.item:
            raise NotExactError("operands of different widths")
        other = _Read(b.number, signed) if isinstance(b, Register) else Number(b, a.item, b < 0)
        return self._step(unit, _Read(a.number, signed), other, a.item, signed, span)

    def wide(self, span: Span) -> str:
        """The 16-bit type that holds `span`."""
        found = next((dtype for dtype in ("i16", "u16") if _within(span, limits(dtype))), None)
        if found is None:
            raise NotExactError("an intermediate result needs more than 16 bits")
        return found

    def product(self, a: Operand, b: Operand) -> Register:
        """a * b of bytes, whole, in 16 bits."""
        return self.mul(a, b, self.wide(_combined(Eu.MUL, _span(a), _span(b))))

    def cast(self, a: Register, dtype: str) -> Register:
        """a, saturated."""
        wanted = limits(dtype)
        if wanted[0] == 0 and a.span[0] < 0:
            a = self.max(a, 0)
        item, signed = item_of(dtype), wanted[0] < 0
        if a.item == item and _within(a.span, wanted):
            return a
        read = _Read(a.number, a.span[0] < 0)  # the sign of the 0 decides that of the sum
        span = _clip(a.span, _type_span(item, signed))
        return self._step(Eu.ADD, read, Number(0, a.item, signed), item, signed, span)

    # -- recording -----------------------------------------------------------------------------------------------------
    def _arithmetic(
        self,
        unit: Eu,
        a: Operand,
        b: Operand,
        dtype: str | None,
        right: int = 0,
        left: int = 0,
        old: Register | None = None,
    ) -> Register:
        """One command, and what its result needs to become `dtype`."""
        if right > _MAX_SHIFT:
            raise NotExactError("shifts have five bits")
        span = _combined(unit, _span(a), _span(b))
        if old is not None:
            span = (span[0] + (old.span[0] << left), span[1] + (old.span[1] << left))
        span = _rounded(span, right)
        widths = self._widths(unit, a, b)
        choice = min(
            self._choices(unit, (a, b), widths, span, dtype, old), key=lambda c: _casts(c, span, dtype), default=None
        )
        if choice is None:
            raise NotExactError("no signs and widths of the operands give the exact result")
        reads = [
            Number(x, width, sign) if isinstance(x, int) else _Read(x.number, sign)
            for x, width, sign in zip((a, b), widths, choice.signs)
        ]
        found = _clip(span, _type_span(choice.item, choice.signed))
        out = self._step(unit, reads[0], reads[1], choice.item, choice.signed, found, right, left, old)
        return out if dtype is None else self.cast(out, dtype)

    def _widths(self, unit: Eu, a: Operand, b: Operand) -> tuple[int, int]:
        """Bytes of each operand."""
        own = [x.item for x in (a, b) if isinstance(x, Register)]
        if unit in (Eu.MUL, Eu.MAC) and max(own) > 1:
            raise NotExactError("products need operands of 8 bits")
        if unit in _SAME_WIDTH and len(set(own)) > 1:
            raise NotExactError("operands of different widths")

        def width(x: Operand) -> int:
            if isinstance(x, Register):
                return x.item
            if unit in (Eu.MUL, Eu.MAC, *_SAME_WIDTH):
                return own[0]
            return 1 if -128 <= x <= 255 else 2

        return width(a), width(b)

    def _choices(
        self,
        unit: Eu,
        operands: tuple[Operand, Operand],
        widths: tuple[int, int],
        span: Span,
        dtype: str | None,
        old: Register | None,
    ) -> Iterator[_Choice]:
        """Ways to read the operands under which saturation does no harm."""
        one_type = unit in _SAME_WIDTH
        items = [widths[0]] if one_type or dtype is None else sorted({item_of(dtype), 2})
        if unit == Eu.MAC:
            items = [2]
        signs = [[s for s in (False, True) if _within(_span(x), _type_span(w, s))] for x, w in zip(operands, widths)]
        for item, (first, second) in product(items, product(*signs)):
            if one_type and first != second:
                continue
            signed = first or second or unit == Eu.SUB
            if old is not None and not _within(old.span, _type_span(2, signed)):
                continue
            have, wanted = _type_span(item, signed), span if dtype is None else limits(dtype)
            if (span[1] <= have[1] or wanted[1] <= have[1]) and (have[0] <= span[0] or have[0] <= wanted[0]):
                yield _Choice(item, signed, (first, second))

    def _step(
        self,
        unit: Eu,
        a: _Read | Number,
        b: _Read | Number,
        item: int,
        signed: bool,
        span: Span,
        right: int = 0,
        left: int = 0,
        old: Register | None = None,
    ) -> Register:
        register = Register(len(self.items), item, span)
        self.items.append(item)
        self.steps.append(IntStep(unit, a, b, register.number, signed, right, left, old.number if old else None))
        return register


def _casts(choice: _Choice, span: Span, dtype: str | None) -> int:
    """Commands that `IntMachine.cast` adds."""
    if dtype is None:
        return 0
    low, high = _clip(span, _type_span(choice.item, choice.signed))
    wanted = limits(dtype)
    negative = wanted[0] == 0 and low < 0
    return negative + (choice.item != item_of(dtype) or high > wanted[1] or (not negative and low < wanted[0]))


@dataclass(frozen=True)
class IntProgram:
    """Recorded commands; `items`: bytes of the elements of each register, inputs first. The last step is the result."""

    inputs: int
    items: tuple[int, ...]
    steps: tuple[IntStep, ...]

    @cached_property
    def _planes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(plane of each register that is no input, bytes of the elements of each plane); the result is in plane 0."""
        last_use = {n: k for k, step in enumerate(self.steps) for n in _numbers(step)}
        end = len(self.steps) - 1
        kinds = [self.items[-1]]
        holders: dict[int, int] = {}  # plane -> register
        planes: list[int] = []
        for k, step in enumerate(self.steps):
            if step.old is not None:
                plane = planes[step.old - self.inputs]
            else:
                free = [
                    p
                    for p, item in enumerate(kinds)
                    if item == self.items[step.target] and (p not in holders or last_use.get(holders[p], -1) <= k)
                ]
                plane = free[0] if free else len(kinds)
            if k == end:
                plane = 0
            if plane == len(kinds):
                kinds.append(self.items[step.target])
            holders[plane] = step.target
            planes.append(plane)
        return tuple(planes), tuple(kinds)

    @property
    def scratch(self) -> tuple[int, ...]:
        """Bytes of the elements of each scratch plane."""
        return self._planes[1][1:]

    def cycles(self, cycles: LaneCycles, dims: Shape) -> int:
        """Cycles of the commands for a tile."""
        return sum(packed_cycles(cycles, dims, *widths) for widths in self._widths)

    @cached_property
    def _widths(self) -> list[tuple[int, int, bool]]:
        """Of each step, bytes of the elements of its result and of its first operand, and whether both are tensors."""
        first = [self.items[s.a.number] if isinstance(s.a, _Read) else s.a.item for s in self.steps]
        pairs = [isinstance(s.a, _Read) and isinstance(s.b, _Read) for s in self.steps]
        return [(self.items[step.target], item, pair) for step, item, pair in zip(self.steps, first, pairs)]

    def emit(self, build: Build, dims: Shape, inputs: Sequence[Packed], output: int, scratch: Sequence[int]) -> None:
        """Emit the commands for a tile of `dims`; the signs of `inputs` do not matter."""
        planes = [output, *scratch]
        where = list(inputs)
        for step, plane in zip(self.steps, self._planes[0]):
            where.append(Packed(planes[plane], self.items[step.target], step.signed))
            a, b = (x if isinstance(x, Number) else where[x.number]._replace(signed=x.signed) for x in (step.a, step.b))
            emit_packed(build, step.unit, dims, where[-1], a, b, step.right, step.left)


def _numbers(step: IntStep) -> list[int]:
    """Registers that a step reads."""
    read = [x.number for x in (step.a, step.b) if isinstance(x, _Read)]
    return read if step.old is None else [*read, step.old]


def record(recipe: Callable[..., Register], dtypes: Sequence[str], *arguments: object) -> IntProgram:
    """The program of `recipe(machine, *registers, *arguments)`. Raises NotExactError."""
    machine = IntMachine(dtypes)
    out = recipe(machine, *machine.inputs, *arguments)
    if out.number != len(machine.items) - 1 or not machine.steps:  # nothing to do: the operand as it is
        machine.bits(Eu.OR, out, 0, out.span)
    return IntProgram(len(dtypes), tuple(machine.items), tuple(machine.steps))
