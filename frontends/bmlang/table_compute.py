"""Rows of the operators that compute: products, elements, comparisons, bits, strided operands."""

from __future__ import annotations

from bmcompiler.frontends.bmlang.rows import Row, row, rows

_MIX = "Q Q -> Q if noS16->U16"
_SUM = f"F32 F32 -> F32; I32 I32 -> I32; {_MIX}"
_F2, _FI2 = "F32 F32 -> F32", "F32 F32 -> F32; I32 I32 -> I32"
_PRODUCT = f"{_FI2}; Q8 Q8 -> Q"
_SAME2, _SAME_F2 = "t:F32|I32|Q t:F32|I32|Q -> t:F32|I32|Q", "t:F32|Q t:F32|Q -> t:F32|Q"
_ANY1, _F1 = "t:F32|I32|Q -> t:F32|I32|Q", "F32 -> F32"
_TWO = "T tensor_i0, T tensor_i1, O tensor_o"
_ONE_SCALAR = "T tensor_i0, S scalar, O tensor_o"
_EITHER = {"broadcast": "both", "coeff": "tensor_i0, tensor_i1"}
_QUANTIZED = {
    "conv": "[low] Q8 Q8 Q16? -> Q8; [high,asymmetric] Q8 Q8 Q16|I32|F32? -> Q",
    "matrix_mul": (
        "[low] Q8 Q8 Q16? -> Q8 if unsigned-from-unsigned; "
        "[high,asymmetric] Q8 Q8 Q16|I32? -> Q if unsigned-from-unsigned"
    ),
}


def _two(name: str, bm1682: str, bm1684: str, text: str) -> Row:
    return row(name, _TWO, bm1682, bm1684, "L", text, **_EITHER)


def _scalar(name: str, bm1682: str, bm1684: str, text: str) -> Row:
    return row(name, _ONE_SCALAR, bm1682, bm1684, "L", text)


MATRIX = rows(
    "NN/Matrix Operator",
    row(
        "conv",
        "Ts tensor_i, O tensor_o, ConvParam param",
        "F32 F32 F32? -> F32",
        f"F32 F32 F32? -> F32; {_QUANTIZED['conv']}",
        "L",
        "2-D convolution of [input, weight, bias], NCHW; integers by the mode of param",
        broadcast="any",
        coeff="tensor_i",
    ),
    row(
        "deconv",
        "Ts tensor_i, O tensor_o, ConvParam param",
        "F32 F32 F32? -> F32",
        "F32 F32 F32? -> F32; [low] Q8 Q8 Q16? -> Q8",
        "L",
        "2-D transposed convolution of [input, weight, bias]; integers in LowPrecisionSymmetric only",
        broadcast="any",
        coeff="tensor_i",
    ),
    row(
        "matrix_mul",
        "Ts matrix_input, O matrix_result, MatrixMulParam param=MatrixMulParam()",
        "F32 F32 F32? -> F32",
        f"F32 F32 F32? -> F32; {_QUANTIZED['matrix_mul']}",
        "G",
        "matrix product of [left (M,K), right (K,N), bias (1,N)]; integers by the mode of param",
        broadcast="any",
        coeff="matrix_input",
    ),
)

_SHIFT = "T tensor_i0, T tensor_i1, uint shift, O tensor_o"
_SHIFT_SCALAR = "T tensor_i, S scalar, uint shift, O tensor_o"
_SHIFT_COEFF = {"coeff": "tensor_i0, tensor_i1"}
_UNARY = "T tensor_i, O tensor_o"

ELEMENTWISE = rows(
    "Base Element-wise Operator",
    _two("mul", _FI2, _PRODUCT, "a * b"),
    _two("div", _F2, _F2, "a / b"),
    _two("add", _FI2, _SUM, "a + b"),
    _two("sub", _FI2, _SUM, "a - b"),
    _two("max", _FI2, _SAME2, "the larger of a and b"),
    _two("min", _FI2, _SAME2, "the smaller of a and b"),
    _scalar("adds", _FI2, _SUM, "t + s"),
    _scalar("subs", _FI2, _SUM, "t - s"),
    _scalar("muls", _FI2, _PRODUCT, "t * s"),
    _scalar("divs", _F2, _F2, "t / s"),
    row("rsubs", "S scalar, T tensor_i0, O tensor_o", _FI2, _SUM, "L", "s - t"),
    _scalar("maxs", _FI2, _SAME2, "the larger of t and s"),
    _scalar("mins", _FI2, _SAME2, "the smaller of t and s"),
    row(
        "active",
        "T tensor_i, O tensor_o, ActiveType active_type",
        _F1,
        f"{_F1}; [ACTIVE_RELU,ACTIVE_ABSVAL] Q -> Q",
        "L",
        "the function active_type of each element; ELU with factor 1",
    ),
    row("ceil", _UNARY, _F1, _F1, "L", "the smallest whole number that is not below x"),
    row("floor", _UNARY, _F1, _F1, "L", "the largest whole number that is not above x"),
    row(
        "clamp",
        "T tensor_i, S min, S max, O tensor_o",
        "t:F32|I32 t:F32|I32 t:F32|I32 -> t:F32|I32",
        "t:F32|I32|Q t:F32|I32|Q t:F32|I32|Q -> t:F32|I32|Q",
        "L",
        "min(max(x, min), max)",
    ),
    row(
        "cast",
        _UNARY,
        "F32 -> I32|Q8; I32|Q8 -> F32",
        "F32 -> I32|Q; I32|Q -> F32; Q -> Q if differs",
        "BM1682: FLOAT32 to INT32; BM1684: anything but INT32 to FLOAT32",
        "another element type; saturates, reals round to the nearest, halves away from zero",
    ),
    row(
        "mul_shift",
        _SHIFT,
        "",
        "Q Q8 -> Q if 16bit-product-sign",
        "L",
        "saturate(rrs(a * b, shift)), exact in between",
        **_SHIFT_COEFF,
    ),
    row("add_shift", _SHIFT, "", "Q Q -> Q if 16bit-sum-sign", "L", "saturate(rrs(a + b, shift))", **_SHIFT_COEFF),
    row("sub_shift", _SHIFT, "", "Q Q -> Q if signed-result", "L", "saturate(rrs(a - b, shift))", **_SHIFT_COEFF),
    row("muls_shift", _SHIFT_SCALAR, "", "Q Q8 -> Q if 16bit-product-sign", "L", "saturate(rrs(t * s, shift))"),
    row("adds_shift", _SHIFT_SCALAR, "", "Q Q -> Q if 16bit-sum-sign", "L", "saturate(rrs(t + s, shift))"),
    row("subs_shift", _SHIFT_SCALAR, "", "Q Q -> Q if signed-result", "L", "saturate(rrs(t - s, shift))"),
    row(
        "rsubs_shift",
        "S scalar, T tensor_i, uint shift, O tensor_o",
        "",
        "Q Q -> Q if signed-result",
        "L",
        "saturate(rrs(s - t, shift))",
    ),
    row("copy", _UNARY, _F1, _ANY1, "G", "the same elements"),
)

_RELATIONS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
COMPARE = rows(
    "Element-wise Compare Operator",
    *(_two(name, _F2, _SAME_F2, f"1 where a {sign} b, else 0") for name, sign in _RELATIONS.items()),
    *(
        row(
            name,
            "T tensor_i0, S scalar_i1, O tensor_o",
            _F2,
            _SAME_F2,
            "L",
            f"1 where t {_RELATIONS[name[:-1]]} s, else 0",
            printed_name="nes" if name == "ges" else "",
        )
        for name in ("eqs", "nes", "ges", "gts", "les", "lts")
    ),
)

_COUNTED = "T tensor_i, T tensor_num, O tensor_o"
_PLACES = "T tensor_i, S scalar_num, O tensor_o"
_BY_NUM = {"broadcast": "second", "coeff": "tensor_num"}
_SHIFTED, _SHIFTED_S = "I32 I32 -> I32; t:Q16 INT16 -> t:Q16", "t:I32|Q16 I32|Q -> t:I32|Q16"
_SAME_INT = "t:I32|Q t:I32|Q -> t:I32|Q"
BITS = rows(
    "Element-Wise Bit Logic Operator",
    row("arith_lshift", _COUNTED, "", _SHIFTED, "L", "x << num, x >> -num for num < 0; bits are lost", **_BY_NUM),
    row("arith_lshifts", _PLACES, "", _SHIFTED_S, "L", "x << num, x >> -num for num < 0; bits are lost"),
    row("arith_rshift", _COUNTED, "", _SHIFTED, "L", "x >> num rounding down, x << -num for num < 0", **_BY_NUM),
    row("arith_rshifts", _PLACES, "", _SHIFTED_S, "L", "x >> num rounding down, x << -num for num < 0"),
    row(
        "round_rshift",
        _COUNTED,
        "",
        "Q16 INT16 -> Q if same-sign",
        "L",
        "saturate(rrs(x, num)), saturate(x) for num <= 0",
        **_BY_NUM,
    ),
    row(
        "round_rshifts",
        "T tensor_i, S tensor_num, O tensor_o",
        "",
        "Q16 I32|Q -> Q if same-sign",
        "L",
        "saturate(rrs(x, num)), saturate(x) for num <= 0",
    ),
    *(
        row(
            f"bit_{name}{s}",
            "T tensor_i, S scalar_i, O tensor_o" if s else _TWO,
            "",
            _SAME_INT,
            "L",
            f"a {sign} b, bit by bit",
        )
        for name, sign in (("and", "&"), ("or", "|"), ("xor", "^"))
        for s in ("", "s")
    ),
)

TRIANGLE = rows(
    "Triangle Operator",
    row("sin", _UNARY, _F1, _F1, "L", "the sine of x, in radians"),
    row("cos", _UNARY, _F1, _F1, "L", "the cosine of x, in radians"),
)

_STRIDED = {
    "add": ("+", _F2, f"{_F2}; {_MIX}"),
    "sub": ("-", _F2, f"{_F2}; {_MIX}"),
    "mul": ("*", _F2, f"{_F2}; Q8 Q8 -> Q"),
    "div": ("/", _F2, _F2),
    "max": ("max", _F2, _SAME_F2),
    "min": ("min", _F2, _SAME_F2),
}


def _strided(offset: str) -> tuple[Row, ...]:
    more, text = (", ints offset", ", from offset on") if offset else ("", "")
    two = (
        row(
            f"stride_{name}{offset}",
            f"{_TWO}, ints stride{more}",
            bm1682,
            bm1684,
            "L",
            f"a {sign} b of every stride-th element per axis{text}",
            **_EITHER,
        )
        for name, (sign, bm1682, bm1684) in _STRIDED.items()
    )
    copied = row(
        f"stride_cpy{offset}",
        f"{_UNARY}, ints stride{more}",
        _F1,
        "t:F32|Q -> t:F32|Q",
        "L",
        f"every stride-th element per axis{text}",
    )
    return (*two, copied)


STRIDE = rows("Stride Element-Wise Operator", *_strided(""), *_strided("_offset"))

COMPUTE = (*MATRIX, *ELEMENTWISE, *COMPARE, *BITS, *TRIANGLE, *STRIDE)
