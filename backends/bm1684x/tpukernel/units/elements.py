"""Element-wise functions: integers with shifts, products that are added up, roundings; one AR command each."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Ar, Rounding
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.tpukernel.elementwise import (
    OF_C,
    OF_TWO,
    ONE,
    SHIFTS,
    SIGN_FOLLOWS,
    SIGNED,
    TWO,
    WITH_C,
    WITH_FLOAT,
    swapped,
)
from bmcompiler.backends.bm1684x.tpukernel.local import compact, place, tensor
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import ROUNDS, floats, integers, same_lane, within
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4, fp32_bits

FP32 = data_type_t.DT_FP32


def _shifted_by_channel(operation: Ar, *names: str) -> Emit:
    """The two sources by name, "C" is the argument; a compact vector of INT8 says the shift of each channel."""

    def emit(k: Recorder, a: Arguments) -> None:
        x, y = (
            constant(a.C, a.C_dtype.precision, a.C_dtype.signed)
            if name == "C"
            else tensor(a, name, a.get(f"{name}_dtype"))
            for name in names
        )
        x, y = (x, y) if operation is Ar.SUB or "C" in names else swapped(a, x, y)
        place("shift", a.shift_addr, dim4(1, a.shape.c, 1, 1), data_type_t.DT_INT8, layout=compact)
        result, rounding = tensor(a, "dst", a.dst_dtype), Rounding(a.rounding_mode)
        k.add(
            arithmetic.integer(
                operation,
                a.shape,
                result,
                x,
                y,
                Operand(a.shift_addr, data_type_t.DT_INT8.precision),
                rounding,
                a.saturation,
            )
        )

    return emit


def _shift(operation: Ar) -> Emit:
    """By a tensor of places, or by the argument C."""

    def emit(k: Recorder, a: Arguments) -> None:
        by = a.get("C")
        places = tensor(a, "shift", a.shift_dtype) if by is None else constant(by & 0xFF, data_type_t.DT_INT8.precision)
        result, source = tensor(a, "dst", a.dst_dtype), tensor(a, "src", a.src_dtype)
        k.add(arithmetic.shift(operation, a.shape, result, source, places, Rounding(a.rounding_mode)))

    return emit


def _square_of_integers(k: Recorder, a: Arguments) -> None:
    source = tensor(a, "src", a.src_dtype)
    shifted = a.shift, Rounding(a.rounding_mode), a.saturation
    k.add(arithmetic.integer(Ar.MUL, a.shape, tensor(a, "dst", a.dst_dtype), source, source, *shifted))


def _bounded(operation: Ar) -> Emit:
    """The larger or smaller one of src and C, shifted."""

    def emit(k: Recorder, a: Arguments) -> None:
        x, y = tensor(a, "src", a.dtype), constant(a.C, a.dtype.precision, a.dtype.signed)
        k.add(
            arithmetic.integer(operation, a.shape, tensor(a, "dst", a.dtype), x, y, a.shift, Rounding(a.rounding_mode))
        )

    return emit


def _rounded(mode: Rounding | None = None) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        rounding = Rounding(a.rounding_mode) if mode is None else mode
        k.add(arithmetic.cast(a.shape, tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype), rounding))

    return emit


def _accumulate(name: str) -> Emit:
    """Floats: dst += src0 * src1, or src * C."""

    def emit(k: Recorder, a: Arguments) -> None:
        if name == "C":
            x, y = tensor(a, "src", FP32), constant(fp32_bits(a.C), FP32.precision)
        else:
            x, y = swapped(a, tensor(a, "src0", FP32), tensor(a, "src1", FP32))
        k.add(arithmetic.mac(a.shape, tensor(a, "dst", FP32), x, y))

    return emit


def _accumulate_bytes(name: str) -> Emit:
    """Bytes: dst, of 16 bits, = (dst << lshift + src0 * src1, or src * C) >> rshift."""

    def emit(k: Recorder, a: Arguments) -> None:
        if name == "C":
            x, y = tensor(a, "src", a.src_dtype), constant(a.C, a.C_dtype.precision, a.C_dtype.signed)
        else:
            x, y = swapped(a, tensor(a, "src0", a.src0_dtype), tensor(a, "src1", a.src1_dtype))
        result, shifts = tensor(a, "dst", data_type_t.DT_INT16), (a.lshift, a.rshift)
        k.add(arithmetic.mac_of_bytes(a.shape, result, x, y, shifts, Rounding(a.rounding_mode)))

    return emit


_ROUNDS, _SATURATES = "rounding_mode_t rounding_mode", "bool saturation"
_TYPES = "data_type_t dst_dtype, data_type_t src0_dtype, data_type_t src1_dtype"
_C_TYPES = "data_type_t dst_dtype, data_type_t src_dtype, data_type_t C_dtype"
_WITH_SHIFTS = TWO.replace("src1_addr, ", "src1_addr, local_addr_t shift_addr, ")
_C_WITH_SHIFTS = WITH_C.replace("scalar_t C, ", "local_addr_t shift_addr, scalar_t C, ")
_BY_TENSOR = ONE.replace("src_addr, ", "src_addr, local_addr_t shift_addr, ") + ", const dim4 *shift_stride"
_BY_C = WITH_C.replace("scalar_t C", "char C")
_ONE_TYPE = "data_type_t dst_dtype, data_type_t src_dtype"
_LANES = same_lane("dst", "shift")


def _pcs(name: str, formula: str, operation: Ar, *names: str) -> Function:
    form, types, known = (_C_WITH_SHIFTS, _C_TYPES, OF_C) if "C" in names else (_WITH_SHIFTS, _TYPES, OF_TWO)
    sign = SIGNED if operation is Ar.SUB else SIGN_FOLLOWS
    emit = _shifted_by_channel(operation, *names)
    prototype = f"void tpu_bdc_int_pcs_{name}({form}, {types}, {_ROUNDS}, {_SATURATES})"
    return Function(prototype, f"({formula}) shifted by channel", emit, (known, sign, _LANES))


def _shifts(name: str, formula: str, operation: Ar) -> tuple[Function, Function]:
    unsigned = operation is Ar.SHIFT_LOGICAL
    sign = Rule(
        "dst_dtype and src_dtype must be unsigned" if unsigned else "dst_dtype and src_dtype must have one sign",
        lambda a: a.dst_dtype.signed == a.src_dtype.signed and not (unsigned and a.src_dtype.signed),
    )
    kinds = integers("dst_dtype", "src_dtype")
    places = Rule("shift_dtype must be a signed integer", lambda a: a.shift_dtype.is_int and a.shift_dtype.signed)
    by_tensor = f"void tpu_bdc_{name}({_BY_TENSOR}, {_ONE_TYPE}, data_type_t shift_dtype, {_ROUNDS})"
    by_c = f"void tpu_bdc_{name}_C({_BY_C}, {_ONE_TYPE}, {_ROUNDS})"
    return (
        Function(by_tensor, f"{formula} << shift", _shift(operation), (kinds, integers("shift_dtype"), places, sign)),
        Function(by_c, f"{formula} << C", _shift(operation), (kinds, sign)),
    )


def _bound(name: str, formula: str, operation: Ar) -> Function:
    prototype = f"void tpu_bdc_int_{name}_C({WITH_C}, data_type_t dtype, char shift, {_ROUNDS})"
    return Function(prototype, f"{formula}(src, C) shifted", _bounded(operation), (integers("dtype"), SHIFTS))


def _round(name: str, formula: str, mode: Rounding | None = None) -> Function:
    more = f", {_ROUNDS}" if mode is None else ""
    prototype = f"void tpu_bdc_fp_{name}({ONE}, data_type_t dtype{more})"
    return Function(prototype, formula, _rounded(mode), (floats("dtype"), *((ROUNDS,) if mode is None else ())))


_MAC_SHIFTS = f"unsigned char lshift, unsigned char rshift, {_ROUNDS}"
_PLACES = (within("lshift", 0, 31), within("rshift", 0, 31))


def _bytes(*names: str) -> Rule:
    text = f"{' and '.join(names)} must be DT_INT8 or DT_UINT8"
    return Rule(text, lambda a: all(getattr(a, each).is_int and getattr(a, each).size == 1 for each in names))


_SUM = "(dst << lshift + {}) >> rshift, of 16 bits"
ROWS = in_group(
    "Shifted integers, sums and roundings",
    _pcs("add", "src0 + src1", Ar.ADD, "src0", "src1"),
    _pcs("add_C", "src + C", Ar.ADD, "src", "C"),
    _pcs("sub", "src0 - src1", Ar.SUB, "src0", "src1"),
    _pcs("sub_C", "src - C", Ar.SUB, "src", "C"),
    _pcs("C_sub", "C - src", Ar.SUB, "C", "src"),
    _pcs("mul", "src0 * src1", Ar.MUL, "src0", "src1"),
    _pcs("mul_C", "src * C", Ar.MUL, "src", "C"),
    *_shifts("arithmetic_shift", "src", Ar.SHIFT_ARITHMETIC),
    *_shifts("logical_shift", "src, unsigned,", Ar.SHIFT_LOGICAL),
    Function(
        f"void tpu_bdc_int_square({ONE}, {_ONE_TYPE}, char shift, {_ROUNDS}, {_SATURATES})",
        "(src * src) shifted", _square_of_integers, (integers("dst_dtype", "src_dtype"), SIGN_FOLLOWS, SHIFTS),
    ),
    _bound("min", "min", Ar.MIN),
    _bound("max", "max", Ar.MAX),
    Function(
        f"void tpu_bdc_int8_mac({TWO}, data_type_t src0_dtype, data_type_t src1_dtype, {_MAC_SHIFTS})",
        _SUM.format("src0 * src1"), _accumulate_bytes("src1"), (_bytes("src0_dtype", "src1_dtype"), *_PLACES),
    ),
    Function(
        f"void tpu_bdc_int8_mac_C({WITH_C}, data_type_t src_dtype, data_type_t C_dtype, {_MAC_SHIFTS})",
        _SUM.format("src * C"), _accumulate_bytes("C"), (_bytes("src_dtype", "C_dtype"), *_PLACES),
    ),
    Function(f"void tpu_bdc_fp32_mac({TWO})", "dst + src0 * src1", _accumulate("src1")),
    Function(f"void tpu_bdc_fp32_mac_C({WITH_FLOAT})", "dst + src * C", _accumulate("C")),
    _round("round", "src rounded to an integral value"),
    _round("floor", "the largest integral value up to src", Rounding.DOWN),
    _round("ceil", "the smallest integral value from src on", Rounding.UP),
    source=Known.DRAWN,
)  # fmt: skip
