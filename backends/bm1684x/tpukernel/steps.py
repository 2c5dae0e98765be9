"""Composite functions as steps on registers: tensors of one shape in local memory, in the aligned layout."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Ar, Cmp, Lin, Rounding
from bmcompiler.backends.bm1684x.instructions import arithmetic, special
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.tpukernel.local import aligned, lane_of, place
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.scalars import scalar_cast
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4, fp32_bits, rounding_mode_t
from bmcompiler.errors import UsageError

FP32, INT32 = data_type_t.DT_FP32, data_type_t.DT_INT32


class Register(NamedTuple):
    """A tensor by the name of its parameter, and its address."""

    name: str
    address: int


class Bits(int):
    """A constant by its bits; a constant by its value is a float."""


Source = Register | Bits | float
Types = tuple[data_type_t, data_type_t, data_type_t]


class Steps:
    """Emits the steps of one call, each in the type of the registers unless it says another.

    Reading a register after another one at the same address was written is an error: those two must be different
    tensors.
    """

    def __init__(self, recorder: Recorder, shape: dim4, dtype: data_type_t, registers: Sequence[Register]) -> None:
        self.shape, self.dtype = shape, dtype
        self._recorder = recorder
        self._written: dict[int, str] = {}
        for register in registers:
            place(register.name, register.address, shape, dtype)
        _check_apart(registers, shape, dtype)

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def add(self, to: Register, a: Source, b: Source) -> None:
        """To = a + b."""
        self._binary(Ar.ADD, to, a, b)

    def sub(self, to: Register, a: Source, b: Source) -> None:
        """To = a - b."""
        self._binary(Ar.SUB, to, a, b)

    def mul(self, to: Register, a: Source, b: Source) -> None:
        """To = a * b."""
        self._binary(Ar.MUL, to, a, b)

    def max(self, to: Register, a: Source, b: Source, dtype: data_type_t | None = None) -> None:
        """To = a > b ? a : b."""
        self._binary(Ar.MAX, to, a, b, dtype)

    def min(self, to: Register, a: Source, b: Source, dtype: data_type_t | None = None) -> None:
        """To = b <= a ? b : a."""
        self._binary(Ar.MIN, to, a, b, dtype)

    def bitwise(self, operation: Ar, to: Register, a: Source, b: Source) -> None:
        """AND, OR or XOR of the bits."""
        sources = [self._read(source).bits() for source in (a, b)]
        self._recorder.add(arithmetic.binary(operation, self.shape, self._write(to).bits(), *sources))

    def div(self, to: Register, a: Source, b: Source, iterations: int = 3) -> None:
        """To = a / b."""
        x, y = self._read(a), self._read(b)
        self._recorder.add(arithmetic.divide(self.shape, self._write(to), x, y, iterations))

    def mac(self, to: Register, a: Source, b: Source) -> None:
        """To = a * b + to."""
        sources = [self._read(source) for source in (a, b)]
        self._recorder.add(arithmetic.mac(self.shape, self._write(to), *sources))

    def abs(self, to: Register, a: Register) -> None:
        """To = the bits of a without the sign."""
        source = self._read(a)
        self._recorder.add(arithmetic.unary(Ar.ABS, self.shape, self._write(to), source))

    def copy(self, to: Register, a: Source) -> None:
        """To = a; of a constant, fill."""
        source = self._read(a)
        self._recorder.add(arithmetic.unary(Ar.COPY, self.shape, self._write(to), source))

    def square_of_sum(self, to: Register, a: Register, b: float) -> None:
        """To = (a + b)^2."""
        source, term = self._read(a), self._read(b)
        self._recorder.add(arithmetic.linear(Lin.SQUARE_SUM, self.shape, self._write(to), source, term))

    # -- integers and conversion ---------------------------------------------------------------------------------------
    def cast(self, to: Register, a: Register, types: tuple[data_type_t, data_type_t], rounding: Rounding) -> None:
        """To = a, from the first type to the second; floats of one type are rounded to whole numbers."""
        source = self._read(a, types[0])
        self._recorder.add(arithmetic.cast(self.shape, self._write(to, types[1]), source, rounding))

    def round(self, to: Register, a: Register, rounding: Rounding) -> None:
        """To = a rounded to whole numbers."""
        self.cast(to, a, (self.dtype, self.dtype), rounding)

    def shifted(self, operation: Ar, to: Register, a: Source, b: Source, types: Types, shift: int = 0) -> None:
        """To = (a op b) << shift, saturated; the types of a, b and the result."""
        x, y = self._read(a, types[0]), self._read(b, types[1])
        result = self._write(to, types[2])
        rounding = Rounding.HALF_AWAY if shift else Rounding.HALF_EVEN
        self._recorder.add(arithmetic.integer(operation, self.shape, result, x, y, shift, rounding, saturation=True))

    def exponent(self, to: Register, a: Register, dtype: data_type_t) -> None:
        """To = the biased exponent of a as an integer."""
        source = self._read(a)
        result = self._write(to, dtype)
        self._recorder.add(special.exponent(self.shape, result.place, source.place, source.precision, result.precision))

    # -- functions and choices -----------------------------------------------------------------------------------------
    def taylor(self, to: Register, a: Register, series: int, terms: int) -> None:
        """To = sum of series[i] * a**i; `series` is an address in lane 0."""
        place("coeff", series, dim4(1, CHIP.lanes, 1, terms), self.dtype)
        if lane_of(series):
            raise UsageError(f"coefficients must begin in lane 0, got 0x{series:x}")
        source = self._read(a)
        row = series + lane_of(a.address) * CHIP.lmem_size
        result = self._write(to)
        self._recorder.add(special.taylor(self.shape, result.place, source.place, row, terms, self.dtype.precision))

    def rsqrt(self, to: Register, a: Register, iterations: int = 3) -> None:
        """To = 1 / sqrt(a)."""
        source = self._read(a)
        self._recorder.add(special.rsqrt(self.shape, self._write(to).place, source.place, iterations))

    def select(
        self, operation: Cmp, to: Register, a: Source, b: Source, yes: Source, no: Source, words: bool = False
    ) -> None:
        """To = a op b ? yes : no; `words` compares unsigned words."""
        dtype = data_type_t.DT_UINT32 if words else self.dtype
        sources = [self._read(source, dtype) for source in (a, b, yes, no)]
        self._recorder.add(arithmetic.select(operation, self.shape, self._write(to, dtype), *sources))

    def equal(self, to: Register, a: Source, b: Source, value: float) -> None:
        """To = a == b ? value : 0."""
        left, right, bits = self._read(a), self._read(b), bits_of(value, self.dtype)
        self._recorder.add(arithmetic.where(Ar.SELECT_EQ, self.shape, self._write(to), left, right, bits))

    # -- registers -----------------------------------------------------------------------------------------------------
    def _binary(self, operation: Ar, to: Register, a: Source, b: Source, dtype: data_type_t | None = None) -> None:
        sources = [self._read(source, dtype) for source in (a, b)]
        self._recorder.add(arithmetic.binary(operation, self.shape, self._write(to, dtype), *sources))

    def _read(self, source: Source, dtype: data_type_t | None = None) -> Operand:
        dtype = self.dtype if dtype is None else dtype
        if isinstance(source, Register):
            writer = self._written.get(source.address, source.name)
            if writer != source.name:
                raise UsageError(f"{source.name} and {writer} must be different tensors")
            return Operand(source.address, dtype.precision, dtype.signed)
        bits = int(source) & (1 << dtype.bits) - 1 if isinstance(source, Bits) else bits_of(source, dtype)
        return constant(bits, dtype.precision, dtype.signed)

    def _write(self, to: Register, dtype: data_type_t | None = None) -> Operand:
        self._written[to.address] = to.name
        dtype = self.dtype if dtype is None else dtype
        return Operand(to.address, dtype.precision, dtype.signed)


def bits_of(value: float, dtype: data_type_t) -> int:
    """The bits of a constant in a float type."""
    return scalar_cast(fp32_bits(value), dtype, FP32, rounding_mode_t.RM_HALF_TO_EVEN)


def _check_apart(registers: Sequence[Register], shape: dim4, dtype: data_type_t) -> None:
    """Registers are one tensor or have no byte in common. Raises UsageError."""
    ordered = sorted(registers, key=lambda register: register.address % CHIP.lmem_size)
    for one, other in pairwise(ordered):
        strides = aligned(lane_of(one.address), shape, dtype)
        end = one.address + shape.n * strides.n * dtype.size
        if lane_of(one.address) == lane_of(other.address) and one.address < other.address < end:
            raise UsageError(f"{one.name} and {other.name} overlap")
