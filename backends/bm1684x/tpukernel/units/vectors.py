"""Outer operations of two vectors: dst(i, j) = src0(i) op src1(j), all in matrix layout (bm1684x-vector.md)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Ar, Task
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.isa import VC
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, computed, floats, integers
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4
from bmcompiler.backends.bm1684x.tpukernel.units.form import Form, Tensor, Value, Values, addresses, prototype, signs

FP32 = data_type_t.DT_FP32
_LENGTHS = ("src0_len", "src1_len", "src0_len_per_channel", "src1_len_per_channel")
_WORDS = f"{' '.join(_LENGTHS)}"


def _parts(number: int) -> Value:
    """Channels of a vector."""
    return lambda a: -(-getattr(a, f"src{number}_len") // getattr(a, f"src{number}_len_per_channel"))


_SHAPE = ("src0_len", _parts(1), 1, "src1_len_per_channel")
_SIZES: Values = {
    "res0_c": _parts(1),
    "res0_w": "src1_len_per_channel",
    "opd0_c": _parts(0),
    "opd0_w": "src0_len_per_channel",
    "opd1_w": lambda a: a.src0_len - (-(-a.src0_len // a.src0_len_per_channel) - 1) * a.src0_len_per_channel,
    "opd2_n_str": 2,
    **addresses(res0="dst", opd0="src0", opd1="src1"),
}


def _tensors(result: str | data_type_t, first: str | data_type_t, second: str | data_type_t) -> tuple[Tensor, ...]:
    return (
        Tensor("dst", _SHAPE, result),
        Tensor("src0", (1, _parts(0), 1, "src0_len_per_channel"), first),
        Tensor("src1", (1, _parts(1), 1, "src1_len_per_channel"), second),
    )


def _bits(name: str) -> Value:
    """The precision of a type as integers of its width."""
    return lambda a: Operand(0, getattr(a, name).precision).bits().precision


def _precisions(result: Value, first: Value, second: Value) -> Values:
    return {"res0_prec": result, "opd0_prec": first, "opd1_prec": second}


_EACH = at_least(1, *_LENGTHS)


def _alike(name: str, unit: Ar, formula: str, rule: Rule, bitwise: bool = False) -> Function:
    """Of one type."""
    precision = _bits("dtype") if bitwise else "dtype.precision"
    fields = {**_SIZES, **_precisions(precision, precision, precision)}
    fields |= signs(opd0="dtype", opd1="dtype")
    command = Form(VC, Task.VECTOR, unit, fields, _tensors("dtype", "dtype", "dtype"))
    return Function(prototype(name, f"&dst &src0 &src1 {_WORDS} dtype"), formula, command.emit, (_EACH, rule))


def _mixed(name: str, plain: Ar, saturating: Ar, formula: str, sign: Rule) -> Function:
    """Of integers of three types."""
    types = ("dst_dtype", "src0_dtype", "src1_dtype")
    fields = {**_SIZES, **_precisions(*(f"{each}.precision" for each in types))}
    fields |= signs(opd0="src0_dtype", opd1="src1_dtype")
    unit = lambda a: saturating if a.saturation else plain  # noqa: E731
    command = Form(VC, Task.VECTOR, unit, fields, _tensors(*types))
    words = f"&dst &src0 &src1 {_WORDS} {' '.join(types)} saturation"
    return Function(prototype(f"int_vc_{name}", words), formula, command.emit, (_EACH, integers(*types), sign))


_COMPARED: Values = {
    **_SIZES,
    **_precisions("dst_dtype.precision", "src_dtype.precision", "src_dtype.precision"),
    **signs(opd0="src_dtype", opd1="src_dtype"),
    "opd2_addr": "true_val",
}
_NARROWS = Rule(
    "elements of src_dtype must be at least as wide as those of dst_dtype",
    lambda a: a.src_dtype.size >= a.dst_dtype.size,
)


def _complemented(command: Form) -> Emit:
    """All true values become 0, all zeros true values."""

    def emit(k: Recorder, a: Arguments) -> None:
        command.emit(k, a)
        shape = dim4(a.src0_len, -(-a.src1_len // a.src1_len_per_channel), 1, a.src1_len_per_channel)
        bits = Operand(a.dst_addr, a.dst_dtype.precision, a.dst_dtype.signed).bits()
        flipped = constant(a.true_val, bits.precision, bits.signed)
        k.add(arithmetic.binary(Ar.XOR, shape, bits, bits, flipped))

    return emit


def _compared(name: str, sign: str, unit: Ar, complement: bool = False) -> Function:
    command = Form(VC, Task.VECTOR, unit, _COMPARED, _tensors("dst_dtype", "src_dtype", "src_dtype"))
    emit = _complemented(command) if complement else command.emit
    words = f"&dst &src0 &src1 true_val {_WORDS} dst_dtype src_dtype"
    formula = f"src0(i) {sign} src1(j) ? true_val : 0"
    return Function(
        prototype(f"vc_{name}", words), formula, emit, (_EACH, computed("dst_dtype", "src_dtype"), _NARROWS)
    )


def _divided() -> Function:
    fields = {**_SIZES, **_precisions(FP32.precision, FP32.precision, FP32.precision), "opd0_sign": 1, "opd1_sign": 1}
    command = Form(VC, Task.VECTOR, Ar.DIVIDE, fields, _tensors(FP32, FP32, FP32))
    words = f"&dst &src0 &src1 {_WORDS}"
    return Function(prototype("fp32_vc_div", words), "src0(i) / src1(j)", command.emit, (_EACH,))


_FOLLOWS = Rule(
    "dst_dtype must be signed if a source is signed, and unsigned if none is",
    lambda a: a.dst_dtype.signed == (a.src0_dtype.signed or a.src1_dtype.signed),
)
_SIGNED = Rule("dst_dtype of a difference must be signed", lambda a: a.dst_dtype.signed)
_ANY, _FLOAT = computed("dtype"), floats("dtype")
ROWS = in_group(
    "Outer operations of vectors",
    _alike("fp_vc_add", Ar.ADD, "src0(i) + src1(j)", _FLOAT),
    _alike("fp_vc_sub", Ar.SUB, "src0(i) - src1(j)", _FLOAT),
    _alike("fp_vc_mul", Ar.MUL, "src0(i) * src1(j)", _FLOAT),
    _divided(),
    _mixed("add", Ar.ADD, Ar.ADD_SATURATING, "src0(i) + src1(j)", _FOLLOWS),
    _mixed("sub", Ar.SUB, Ar.SUB_SATURATING, "src0(i) - src1(j)", _SIGNED),
    _mixed("mul", Ar.MUL, Ar.MUL_SATURATING, "src0(i) * src1(j)", _FOLLOWS),
    _alike("vc_min", Ar.MIN, "min(src0(i), src1(j))", _ANY),
    _alike("vc_max", Ar.MAX, "max(src0(i), src1(j))", _ANY),
    _alike("vc_and", Ar.AND, "src0(i) & src1(j)", _ANY, bitwise=True),
    _alike("vc_or", Ar.OR, "src0(i) | src1(j)", _ANY, bitwise=True),
    _alike("vc_xor", Ar.XOR, "src0(i) ^ src1(j)", _ANY, bitwise=True),
    _compared("equal", "==", Ar.SELECT_EQ),
    _compared("less", "<", Ar.SELECT_LT),
    _compared("greater", ">", Ar.SELECT_GT),
    _compared("not_equal", "!=", Ar.SELECT_EQ, complement=True),
    _compared("less_equal", "<=", Ar.SELECT_GT, complement=True),
    _compared("greater_equal", ">=", Ar.SELECT_LT, complement=True),
    source=Known.DRAWN,
)
