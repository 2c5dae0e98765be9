"""Element-wise functions: one AR command each (tpukernel-api.md 5)."""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.backends.bm1684x.codes import Ar, Rounding
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.tpukernel.local import tensor
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import ROUNDS, computed, floats, integers, same_lane, single, within
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, fp32_bits

FP32 = data_type_t.DT_FP32
_DST = "local_addr_t dst_addr, "
_SHAPE = "const dim4 *shape, const dim4 *dst_stride, "
TWO = f"{_DST}local_addr_t src0_addr, local_addr_t src1_addr, {_SHAPE}const dim4 *src0_stride, const dim4 *src1_stride"
ONE = f"{_DST}local_addr_t src_addr, {_SHAPE}const dim4 *src_stride"
WITH_C = f"{_DST}local_addr_t src_addr, scalar_t C, {_SHAPE}const dim4 *src_stride"
WITH_FLOAT = f"{_DST}local_addr_t src_addr, float C, {_SHAPE}const dim4 *src_stride"
_DTYPE = ", data_type_t dtype"
_SHIFT = "char shift, rounding_mode_t rounding_mode, bool saturation"
_INT_TWO = f", data_type_t dst_dtype, data_type_t src0_dtype, data_type_t src1_dtype, {_SHIFT}"
_INT_C = f", data_type_t dst_dtype, data_type_t src_dtype, data_type_t C_dtype, {_SHIFT}"


def swapped(a: Arguments, one: Operand, other: Operand) -> tuple[Operand, Operand]:
    """The sources of a commutative function: the only one with strides comes first."""
    return (other, one) if one.strides is None and other.strides is not None else (one, other)


def _same(operand: Operand) -> Operand:
    return operand


def _two(operation: Ar, commutes: bool, seen: Callable[[Operand], Operand] = _same) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        result, *sources = (seen(tensor(a, name, a.dtype)) for name in ("dst", "src0", "src1"))
        x, y = swapped(a, *sources) if commutes else sources
        k.add(arithmetic.binary(operation, a.shape, result, x, y))

    return emit


def _with_constant(operation: Ar, first: bool = False, seen: Callable[[Operand], Operand] = _same) -> Emit:
    """The constant is operand B, or A where it comes `first`."""

    def emit(k: Recorder, a: Arguments) -> None:
        result, source = (seen(tensor(a, name, a.dtype)) for name in ("dst", "src"))
        fixed = constant(a.get("C") or 0, source.precision, source.signed)
        x, y = (fixed, source) if first else (source, fixed)
        k.add(arithmetic.binary(operation, a.shape, result, x, y))

    return emit


def _one(operation: Ar) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        k.add(arithmetic.unary(operation, a.shape, tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype)))

    return emit


def _square(k: Recorder, a: Arguments) -> None:
    source = tensor(a, "src", a.dtype)
    k.add(arithmetic.binary(Ar.MUL, a.shape, tensor(a, "dst", a.dtype), source, source))


def _divide(*sources: str | float) -> Emit:
    """The sources by name; "C" is the argument as a number, "bits" as its bits, a float a constant.

    `num_iter`, where the function has it: steps.
    """

    def operand(a: Arguments, source: str | float) -> Operand:
        if source == "bits":
            return constant(a.C, FP32.precision)
        if source == "C" or not isinstance(source, str):
            return constant(fp32_bits(a.C if source == "C" else float(source)), FP32.precision)
        return tensor(a, source, FP32)

    def emit(k: Recorder, a: Arguments) -> None:
        x, y = (operand(a, source) for source in sources)
        k.add(arithmetic.divide(a.shape, tensor(a, "dst", FP32), x, y, a.get("num_iter") or 3))

    return emit


def _integer_two(operation: Ar) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        x, y = tensor(a, "src0", a.src0_dtype), tensor(a, "src1", a.src1_dtype)
        x, y = (x, y) if operation is Ar.SUB else swapped(a, x, y)
        _integer(k, a, operation, x, y)

    return emit


def _integer_c(operation: Ar, first: bool = False) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        x, y = tensor(a, "src", a.src_dtype), constant(a.C, a.C_dtype.precision, a.C_dtype.signed)
        _integer(k, a, operation, *((y, x) if first else (x, y)))

    return emit


def _integer(k: Recorder, a: Arguments, operation: Ar, x: Operand, y: Operand) -> None:
    shifted = a.shift, Rounding(a.rounding_mode), a.saturation
    k.add(arithmetic.integer(operation, a.shape, tensor(a, "dst", a.dst_dtype), x, y, *shifted))


def _cast(k: Recorder, a: Arguments) -> None:
    result, source = tensor(a, "dst", a.dst_dtype), tensor(a, "src", a.src_dtype)
    if a.dst_dtype == a.src_dtype:
        k.add(arithmetic.unary(Ar.COPY, a.shape, result, source))
    else:
        k.add(arithmetic.cast(a.shape, result, source, Rounding(a.rounding_mode)))


def _set(k: Recorder, a: Arguments) -> None:
    result = tensor(a, "dst", a.dtype)
    k.add(arithmetic.unary(Ar.COPY, a.shape, result, constant(a.C, a.dtype.precision, a.dtype.signed)))


def _any_signed(a: Arguments) -> bool:
    names = ("src0_dtype", "src1_dtype", "src_dtype", "C_dtype")
    return any(a.get(name).signed for name in names if a.get(name) is not None)


SIGN_FOLLOWS = Rule(
    "dst_dtype must be signed if a source is signed, and unsigned if none is",
    lambda a: a.dst_dtype.signed == _any_signed(a),
)
SIGNED = Rule("dst_dtype of a difference must be signed", lambda a: a.dst_dtype.signed)
OF_TWO, OF_C = integers("dst_dtype", "src0_dtype", "src1_dtype"), integers("dst_dtype", "src_dtype", "C_dtype")
_HALVES = {data_type_t.DT_FP16, data_type_t.DT_BFP16}
_CONVERTS = Rule(
    "DT_FP16 and DT_BFP16 are not converted into each other; go by way of DT_FP32",
    lambda a: {a.dst_dtype, a.src_dtype} != _HALVES,
)
_WHOLE = Rule("dtype must be an integer type", lambda a: a.dtype.is_int)
_ITERATIONS = within("num_iter", 1, 4)
SHIFTS = within("shift", -63, 31)


def _fp(name: str, form: str, formula: str, emit: Emit, *rules: Rule) -> Function:
    return Function(f"void tpu_bdc_{name}({form}{_DTYPE})", formula, emit, (floats("dtype"), *rules))


def _any(name: str, form: str, formula: str, emit: Emit, *rules: Rule) -> Function:
    return Function(f"void tpu_bdc_{name}({form}{_DTYPE})", formula, emit, (computed("dtype"), *rules))


def _int(name: str, form: str, formula: str, emit: Emit, sign: Rule) -> Function:
    more, types = (_INT_TWO, OF_TWO) if form is TWO else (_INT_C, OF_C)
    return Function(f"void tpu_bdc_{name}({form}{more})", formula, emit, (types, sign, SHIFTS))


def _tunable(name: str, form: str, formula: str, emit: Emit) -> Function:
    return Function(f"void tpu_bdc_{name}({form}{_DTYPE}, int num_iter)", formula, emit, (single("dtype"), _ITERATIONS))


def _fp32(name: str, form: str, formula: str, emit: Emit, *rules: Rule) -> Function:
    return Function(f"void tpu_bdc_fp32_{name}({form})", formula, emit, rules)


_BITS = Operand.bits
FLOATS = in_group(
    "Arithmetic on floats",
    _fp("fp_add", TWO, "src0 + src1", _two(Ar.ADD, True)),
    _fp("fp_sub", TWO, "src0 - src1", _two(Ar.SUB, False)),
    _fp("fp_mul", TWO, "src0 * src1", _two(Ar.MUL, True)),
    _fp("fp_add_C", WITH_C, "src + C", _with_constant(Ar.ADD)),
    _fp("fp_mul_C", WITH_C, "src * C", _with_constant(Ar.MUL)),
    _fp("fp_C_sub", WITH_C, "C - src", _with_constant(Ar.SUB, first=True)),
    _fp("fp_square", ONE, "src * src", _square),
    _fp("fp_div", TWO, "src0 / src1", _divide("src0", "src1"), single("dtype")),
    _fp32("div", TWO, "src0 / src1", _divide("src0", "src1")),
    _fp32("div_C", WITH_FLOAT, "src / C", _divide("src", "C")),
    _fp32("C_div", WITH_FLOAT, "C / src", _divide("C", "src")),
    _fp32("reciprocal", ONE, "1 / src", _divide(1.0, "src")),
    _fp32("tunable_div", f"{TWO}, int num_iter", "src0 / src1", _divide("src0", "src1"), _ITERATIONS),
    _fp32("tunable_reciprocal", f"{ONE}, int num_iter", "1 / src", _divide(1.0, "src"), _ITERATIONS),
)
DRAWN_FLOATS = in_group(
    "Arithmetic on floats",
    _fp("fp_sub_C", WITH_C, "src - C", _with_constant(Ar.SUB)),
    _fp("fp_div_C", WITH_C, "src / C", _divide("src", "bits"), single("dtype")),
    _fp("fp_C_div", WITH_C, "C / src", _divide("bits", "src"), single("dtype")),
    _fp("fp_reciprocal", ONE, "1 / src", _divide(1.0, "src"), single("dtype")),
    _tunable("fp_tunable_div", TWO, "src0 / src1", _divide("src0", "src1")),
    _tunable("fp_tunable_div_C", WITH_C, "src / C", _divide("src", "bits")),
    _tunable("fp_tunable_C_div", WITH_C, "C / src", _divide("bits", "src")),
    _tunable("fp_tunable_reciprocal", ONE, "1 / src", _divide(1.0, "src")),
    _fp32("tunable_div_C", f"{WITH_FLOAT}, int num_iter", "src / C", _divide("src", "C"), _ITERATIONS),
    _fp32("tunable_C_div", f"{WITH_FLOAT}, int num_iter", "C / src", _divide("C", "src"), _ITERATIONS),
    _fp("fp_diff_abs", TWO, "abs(src0 - src1)", _two(Ar.ABS_DIFFERENCE, True)),
    _fp("fp_diff_abs_C", WITH_C, "abs(src - C)", _with_constant(Ar.ABS_DIFFERENCE)),
    source=Known.DRAWN,
)
ANY = in_group(
    "Arithmetic on any type",
    _any("max", TWO, "max(src0, src1)", _two(Ar.MAX, True)),
    _any("min", TWO, "min(src0, src1)", _two(Ar.MIN, True)),
    _any("max_C", WITH_C, "max(src, C)", _with_constant(Ar.MAX)),
    _any("min_C", WITH_C, "min(src, C)", _with_constant(Ar.MIN)),
    _any("neg", ONE, "0 - src", _with_constant(Ar.SUB, first=True)),
    _any("abs", ONE, "abs(src)", lambda k, a: _one(Ar.ABS if a.dtype.signed else Ar.COPY)(k, a)),
    _any("and", TWO, "src0 & src1", _two(Ar.AND, True, _BITS)),
    _any("or", TWO, "src0 | src1", _two(Ar.OR, True, _BITS)),
    _any("and_C", WITH_C, "src & C", _with_constant(Ar.AND, seen=_BITS)),
)
DRAWN_ANY = in_group(
    "Arithmetic on any type",
    _any("xor", TWO, "src0 ^ src1", _two(Ar.XOR, True, _BITS)),
    _any("or_C", WITH_C, "src | C", _with_constant(Ar.OR, seen=_BITS)),
    _any("relu", ONE, "max(src, 0)", _with_constant(Ar.MAX)),
    _any("not", ONE, "~src", _one(Ar.NOT), _WHOLE),
    _any("xor_C", WITH_C, "src ^ C", _with_constant(Ar.XOR, seen=_BITS)),
    source=Known.DRAWN,
)
INTEGERS = in_group(
    "Arithmetic on integers",
    _int("int_mul", TWO, "(src0 * src1) shifted", _integer_two(Ar.MUL), SIGN_FOLLOWS),
    _int("int_add_C", WITH_C, "(src + C) shifted", _integer_c(Ar.ADD), SIGN_FOLLOWS),
    _int("int_sub_C", WITH_C, "(src - C) shifted", _integer_c(Ar.SUB), SIGNED),
    _int("int_C_sub", WITH_C, "(C - src) shifted", _integer_c(Ar.SUB, first=True), SIGNED),
    _int("int_mul_C", WITH_C, "(src * C) shifted", _integer_c(Ar.MUL), SIGN_FOLLOWS),
)
DRAWN_INTEGERS = in_group(
    "Arithmetic on integers",
    _int("int_add", TWO, "(src0 + src1) shifted", _integer_two(Ar.ADD), SIGN_FOLLOWS),
    _int("int_sub", TWO, "(src0 - src1) shifted", _integer_two(Ar.SUB), SIGNED),
    source=Known.DRAWN,
)
MOVED = in_group(
    "Copies, constants and conversion in local memory",
    _any("cpy", ONE, "src, in the layout of dst", _one(Ar.COPY), same_lane("dst", "src")),
    Function(
        f"void tpu_bdc_cast({ONE}, data_type_t dst_dtype, data_type_t src_dtype, rounding_mode_t rounding_mode)",
        "src in another type, saturated",
        _cast,
        (computed("dst_dtype", "src_dtype"), ROUNDS, _CONVERTS),
    ),
    Function(
        f"void tpu_bdc_set_C({_DST}scalar_t C, const dim4 *shape, const dim4 *dst_stride{_DTYPE})",
        "C",
        _set,
        (computed("dtype"),),
    ),
)
ROWS = (*FLOATS, *DRAWN_FLOATS, *ANY, *DRAWN_ANY, *INTEGERS, *DRAWN_INTEGERS, *MOVED)
