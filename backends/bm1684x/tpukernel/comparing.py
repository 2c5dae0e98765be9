"""Compare and select (tpukernel-api.md 6)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Ar, Cmp
from bmcompiler.backends.bm1684x.instructions import arithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.tpukernel.elementwise import TWO, WITH_C, swapped
from bmcompiler.backends.bm1684x.tpukernel.local import compact, place, tensor
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import computed, different, floats, same_lane
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4, variable_t, variable_type_t

_TYPES = ", data_type_t dst_dtype, data_type_t src_dtype"
_TRUE_TWO = TWO.replace("src1_addr, ", "src1_addr, scalar_t true_val, ") + _TYPES
_TRUE_C = WITH_C.replace("scalar_t C, ", "scalar_t C, scalar_t true_val, ") + _TYPES
_SELECT = (
    "local_addr_t dst_addr, const variable_t *src0, const variable_t *src1, const variable_t *src2, "
    "const variable_t *src3, const dim4 *shape, data_type_t src0_src1_dtype, data_type_t dst_dtype"
)
_FIELD_OF_NO_STRIDES = dim4(0, 0, 0, 0)
_NARROWS = Rule(
    "elements of src_dtype must be at least as wide as those of dst_dtype",
    lambda a: a.src_dtype.size >= a.dst_dtype.size,
)
_WIDENS = Rule(
    "elements of dst_dtype must be at least as wide as those of src0_src1_dtype",
    lambda a: a.dst_dtype.size >= a.src0_src1_dtype.size,
)
_HALVES = (data_type_t.DT_FP16, data_type_t.DT_BFP16)
_SAME_HALVES = Rule(
    "a comparison of 16-bit floats selects elements of 16 bits",
    lambda a: a.src0_src1_dtype not in _HALVES or a.dst_dtype.size == 2,
)
_NO_VECTOR = Rule(
    "src2 and src3 must be tensors or scalars",
    lambda a: variable_type_t.VECTOR not in (a.src2.type, a.src3.type),
)


def _compare(operation: Ar, with_constant: bool, complement: bool = False) -> Emit:
    """True values where the comparison holds; of a complement, where it does not: all others are turned over."""

    def emit(k: Recorder, a: Arguments) -> None:
        result = tensor(a, "dst", a.dst_dtype)
        if with_constant:
            x = tensor(a, "src", a.src_dtype)
            y = constant(a.C, x.precision, x.signed)
        else:
            x, y = tensor(a, "src0", a.src_dtype), tensor(a, "src1", a.src_dtype)
            x, y = swapped(a, x, y) if operation is Ar.SELECT_EQ else (x, y)
        k.add(arithmetic.where(operation, a.shape, result, x, y, a.true_val))
        if complement:
            bits = result.bits()
            k.add(arithmetic.binary(Ar.XOR, a.shape, bits, bits, constant(a.true_val, bits.precision, bits.signed)))

    return emit


def _select(operation: Cmp) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        types = (a.src0_src1_dtype, a.src0_src1_dtype, a.dst_dtype, a.dst_dtype)
        sources = [_variable(a, f"src{i}", dtype) for i, dtype in enumerate(types)]
        k.add(arithmetic.select(operation, a.shape, tensor(a, "dst", a.dst_dtype), *sources))

    return emit


def _variable(a: Arguments, name: str, dtype: data_type_t) -> Operand:
    found: variable_t = getattr(a, name)
    operand = Operand(found.value, dtype.precision, dtype.signed)
    if found.type is variable_type_t.SCALAR:
        return operand._replace(constant=True)
    if found.type is variable_type_t.TENSOR:
        place(name, found.value, a.shape, dtype)
        return operand
    place(name, found.value, dim4(1, a.shape.c, 1, 1), dtype, layout=compact)
    return operand._replace(strides=_FIELD_OF_NO_STRIDES)


_COMPARES = (computed("dst_dtype", "src_dtype"), _NARROWS)


def _row(name: str, sign: str, operation: Ar, complement: bool = False) -> tuple[Function, Function]:
    two = f"void tpu_bdc_{name}({_TRUE_TWO})"
    one = f"void tpu_bdc_{name}_C({_TRUE_C})"
    return (
        Function(two, f"src0 {sign} src1 ? true_val : 0", _compare(operation, False, complement), _COMPARES),
        Function(one, f"src {sign} C ? true_val : 0", _compare(operation, True, complement), _COMPARES),
    )


def _selects(name: str, sign: str, operation: Cmp) -> Function:
    rules = (computed("src0_src1_dtype", "dst_dtype"), _WIDENS, _SAME_HALVES, _NO_VECTOR)
    return Function(
        f"void tpu_bdc_{name}_select({_SELECT})", f"src0 {sign} src1 ? src2 : src3", _select(operation), rules
    )


_BOTH = _SELECT.replace("dst_addr, ", "dst0_addr, local_addr_t dst1_addr, ").replace(
    "data_type_t src0_src1_dtype, data_type_t dst_dtype", "data_type_t dst0_dtype, data_type_t dst1_dtype"
)
_ONE_WIDTH = Rule("dst0_dtype and dst1_dtype must have one width", lambda a: a.dst0_dtype.size == a.dst1_dtype.size)


def _extremes(operation: Cmp) -> Emit:
    """The larger or smaller one of src0 and src1, and what stands beside it of src2 and src3."""

    def emit(k: Recorder, a: Arguments) -> None:
        types = (a.dst0_dtype, a.dst0_dtype, a.dst1_dtype, a.dst1_dtype)
        sources = [_variable(a, f"src{i}", dtype) for i, dtype in enumerate(types)]
        results = tensor(a, "dst0", a.dst0_dtype), tensor(a, "dst1", a.dst1_dtype)
        k.add(arithmetic.select_both(operation, a.shape, *results, *sources))

    return emit


def _prelu(k: Recorder, a: Arguments) -> None:
    result, source = tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype)
    k.add(arithmetic.binary(Ar.MUL, a.shape, result, source, constant(a.alpha, source.precision, source.signed)))
    zero = constant(0, source.precision, source.signed)
    k.add(arithmetic.select(Cmp.SELECT_GT, a.shape, result, source, zero, source, result))


_PRELU = "local_addr_t dst_addr, local_addr_t src_addr, scalar_t alpha, const dim4 *shape, data_type_t dtype"
DRAWN = in_group(
    "Compare and select",
    Function(
        f"void tpu_bdc_maximum_greater_select({_BOTH})",
        "dst0 = max(src0, src1), dst1 = src0 > src1 ? src2 : src3",
        _extremes(Cmp.MAX_AND_SELECT),
        (computed("dst0_dtype", "dst1_dtype"), _ONE_WIDTH, _NO_VECTOR),
    ),
    Function(
        f"void tpu_bdc_minimum_less_select({_BOTH})",
        "dst0 = min(src0, src1), dst1 = src0 < src1 ? src2 : src3",
        _extremes(Cmp.MIN_AND_SELECT),
        (computed("dst0_dtype", "dst1_dtype"), _ONE_WIDTH, _NO_VECTOR),
    ),
    Function(
        f"void tpu_bdc_prelu({_PRELU})",
        "src > 0 ? src : alpha * src",
        _prelu,
        (floats("dtype"), same_lane("dst", "src"), different("dst", "src")),
    ),
    source=Known.DRAWN,
)
ROWS = in_group(
    "Compare and select",
    *_row("equal", "==", Ar.SELECT_EQ),
    *_row("less", "<", Ar.SELECT_LT),
    *_row("greater", ">", Ar.SELECT_GT),
    *_row("not_equal", "!=", Ar.SELECT_EQ, complement=True),
    *_row("less_equal", "<=", Ar.SELECT_GT, complement=True),
    *_row("greater_equal", ">=", Ar.SELECT_LT, complement=True),
    _selects("equal", "==", Cmp.SELECT_EQ),
    _selects("less", "<", Cmp.SELECT_LT),
    _selects("greater", ">", Cmp.SELECT_GT),
    *DRAWN,
)
