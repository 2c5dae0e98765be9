"""Products of matrices (bm1684x-cube.md 7, 8): floats and bytes by rows in lanes, others in sections of columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Matrix, Precision, Task
from bmcompiler.backends.bm1684x.isa import MM, MM2
from bmcompiler.backends.bm1684x.tpukernel.local import compact, elements_at_once
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, integers, lane_zero, within
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, fp32_bits
from bmcompiler.backends.bm1684x.tpukernel.units.form import (
    Form,
    Tensor,
    Value,
    Values,
    addresses,
    constants,
    form,
    optional,
    precisions,
    sign_of_sums,
    signs,
)

FP32, INT8, INT16, INT32 = data_type_t.DT_FP32, data_type_t.DT_INT8, data_type_t.DT_INT16, data_type_t.DT_INT32


# -- rows in lanes -----------------------------------------------------------------------------------------------------
class _Way(NamedTuple):
    """One of the three forms: rows and columns of result, left and right, as they are stored."""

    suffix: str
    unit: Matrix
    result: tuple[str, str]
    right: tuple[str, str]
    sizes: str
    adds: bool
    formula: str


_LEFT = ("left_rows", "left_cols")
_COLUMNS, _ROWS = "left_rows left_cols right_cols", "left_rows left_cols right_rows"
_WAYS = (
    _Way("", Matrix.NN, ("left_rows", "right_cols"), ("left_cols", "right_cols"), _COLUMNS, True, "left @ right"),
    _Way("_R_trans", Matrix.NT, ("left_rows", "right_rows"), ("right_rows", "left_cols"), _ROWS, False,
         "left @ transposed(right)"),
    _Way("_all_trans", Matrix.TT, ("right_rows", "left_cols"), ("right_rows", "left_rows"), _ROWS, True,
         "transposed(transposed(left) @ transposed(right))"),
)  # fmt: skip


class _Family(NamedTuple):
    """Products of one kind of element.

    Attributes:
        name: of the plain function. zero: the parameter of the zero point of `right`, a scalar_t or an address.
        result: the parameter of the type of the result, or the type itself.
        types: parameters of the types of left and right. one: they have one type, whose name joins theirs.
    """

    name: str
    zero: str
    result: str | data_type_t
    formula: str


_FAMILIES = (
    _Family("fp_mm", "", "output_dtype", "{}"),
    _Family("int8_zp_mm", "zp_val", INT32, "{}, of right less zp_val"),
    _Family("int8_pc_zp_mm", "&zp", INT32, "{}, of right less a zero point for each column of the result"),
)
_CONSTANT_SIDE = {"": "", "L_const": "left", "R_const": "right"}


def _types(family: _Family, fixed: str) -> tuple[str, str]:
    """The parameters of the types of left and right, of which one may be a constant."""
    left, right = ("C" if side == fixed else side for side in ("left", "right"))
    if not family.zero:
        joined = "right_C_dtype" if fixed == "left" else f"{left}_{right}_dtype"
        return joined, joined
    return f"{left}_dtype", f"{right}_zp_dtype"


def _by_rows() -> Iterator[Function]:
    for family, (kind, fixed), way in product(_FAMILIES, _CONSTANT_SIDE.items(), _WAYS):
        if (fixed, way.unit) == ("right", Matrix.NT):
            continue  # of a constant no rows are transposed
        name = "_".join(filter(None, (family.name, kind, way.suffix[1:])))
        yield _product(name, family, fixed, way)


def _product(name: str, family: _Family, fixed: str, way: _Way) -> Function:
    left, right = _types(family, fixed)
    words = ["&output", *(f"&{side}" for side in ("left", "right") if side != fixed)]
    scalars = ["C"] if fixed else []
    words += [family.zero, *scalars] if family.zero == "&zp" else [*scalars, family.zero]
    words += [way.sizes, *([] if isinstance(family.result, data_type_t) else ["output_dtype"])]
    words += list(dict.fromkeys((left, right))) + ["result_add"] * way.adds
    command = Form(MM2, Task.MATRIX, way.unit, _fields(family, fixed, way), _tensors(family, fixed, way))
    rules = [_HALVES, _WIDE_OR_SAME] if not family.zero else [_bytes(left, right)]
    rules.append(lane_zero(*(word[1:] for word in words if word.startswith("&"))))
    if way.adds:
        rules += [_ADDS] if not family.zero else []
    formula = family.formula.format(way.formula) + (" (+ output)" if way.adds else "")
    return form(name, " ".join(filter(None, words)), formula, command, at_least(1, *way.sizes.split()), *rules)


def _fields(family: _Family, fixed: str, way: _Way) -> Values:
    left, right = _types(family, fixed)
    found: dict[str, Value] = dict(zip(("res0_c", "res0_w", "opd1_c", "opd1_w"), (*way.result, *way.right)))
    found.update({**addresses(res0="output"), **precisions(opd0=left)})
    for operand, side in (("opd0", "left"), ("opd1", "right")):
        found.update(constants(**{operand: "C"}) if side == fixed else addresses(**{operand: side}))
    if family.zero:
        found.update({**signs(opd0=left, opd1=right), "res0_prec": Precision.INT32})
        found.update(constants(opd2="zp_val") if family.zero == "zp_val" else addresses(opd2="zp"))
    else:
        found.update(precisions(res0="output_dtype"))
    return {**found, **({"res_add": "result_add"} if way.adds else {})}


def _tensors(family: _Family, fixed: str, way: _Way) -> tuple[Tensor, ...]:
    left, right = _types(family, fixed)
    found = [Tensor("output", (1, way.result[0], 1, way.result[1]), family.result)]
    stored = {"left": (_LEFT, left), "right": (way.right, right)}
    found += [Tensor(side, (1, one[0][0], 1, one[0][1]), one[1]) for side, one in stored.items() if side != fixed]
    if family.zero == "&zp" and way.unit is Matrix.TT:
        found.append(Tensor("zp", (1, way.result[0], 1, 1), right, compact))
    elif family.zero == "&zp":
        found.append(Tensor("zp", (1, CHIP.lanes, 1, way.result[1]), right))
    return tuple(found)


_HALF_TYPES = (data_type_t.DT_FP16, data_type_t.DT_BFP16)


def _operands(a: Arguments) -> data_type_t:
    return next(found for name in ("left_right", "right_C", "left_C") if (found := a.get(f"{name}_dtype")) is not None)


_HALVES = Rule(
    "left and right must be DT_FP16 or DT_BFP16; tpu_bdc_fp32_mm multiplies DT_FP32",
    lambda a: _operands(a) in _HALF_TYPES,
)
_WIDE_OR_SAME = Rule(
    "output_dtype must be DT_FP32, or the type of left and right",
    lambda a: a.output_dtype in (FP32, _operands(a)),
)
_ADDS = Rule("what is added to must be DT_FP32", lambda a: not a.result_add or a.output_dtype == FP32)


def _bytes(*names: str) -> Rule:
    text = f"{' and '.join(names)} must be DT_INT8 or DT_UINT8"
    return Rule(text, lambda a: all(getattr(a, name).size == 1 and getattr(a, name).is_int for name in names))


# -- sections of columns -----------------------------------------------------------------------------------------------
def _width(a: Arguments) -> int:
    """Columns of left in a section; a constant has as many as a lane works on at once."""
    found: int | None = a.get("left_cols_per_channel")
    if found is not None:
        return found
    constant: data_type_t | None = a.get("C_dtype")
    return elements_at_once(FP32 if constant is None else constant)


def _parts(a: Arguments) -> int:
    return -(-a.left_cols // _width(a))


def _sections(a: Arguments) -> int:
    return -(-a.right_cols // a.right_cols_per_channel)


_SECTIONS: Values = {
    "res0_c": _sections,
    "res0_w": "right_cols_per_channel",
    "opd0_n": "left_rows",
    "opd0_c": _parts,
    "opd0_w": _width,
    "opd1_w": lambda a: a.left_cols - (_parts(a) - 1) * _width(a),
    **addresses(res0="output", opd1="right"),
}
_SIDES = {"": "&left", "_L_trans": "&left", "_L_const": ""}


def _sectioned(name: str, more: str, formula: str, fields: Values, tensors: tuple[Tensor, ...], *rules: Rule,
               unit: object = Matrix.NORMAL, extra: str = "", scalar: str = "C") -> Iterator[Function]:  # fmt: skip
    """The three functions of a name: plain, with left transposed, and with a constant for left."""
    for suffix, side in _SIDES.items():
        constant = suffix == "_L_const"
        inner, outer = ("left_rows", "left_cols") if suffix == "_L_trans" else ("left_cols", "left_rows")
        words = f"&output {side} &right {extra} {scalar if constant else ''} left_rows left_cols right_cols "
        words += f"{'' if constant else 'left_cols_per_channel'} right_cols_per_channel "
        words += more.replace("left_dtype", "C_dtype") if constant else more
        found = dict(fields)
        of_left = "C_dtype" if constant else "left_dtype"
        found = {key: of(value, of_left) for key, value in found.items()}
        bits = (lambda a: fp32_bits(a.C)) if scalar != "C" else "C"
        found |= constants(opd0=bits) if constant else addresses(opd0="left")
        found |= {"left_tran": suffix == "_L_trans"}
        width = ("right_cols_per_channel",)
        places = [Tensor("right", (inner, _sections, 1, *width), "right_dtype" if "right_dtype" in more else FP32)]
        places += [] if constant else [Tensor("left", ("left_rows", _parts, 1, _width), _left_type(more))]
        places += [one._replace(shape=(outer if one.name == "output" else 1, _sections, 1, *width)) for one in tensors]
        whole = at_least(1, *(word for word in words.split() if "_cols" in word or "_rows" in word))
        command = Form(MM, Task.MATRIX, unit, {**_SECTIONS, **found}, tuple(places))  # type: ignore[arg-type]
        text = formula.replace("left", "transposed(left)") if suffix == "_L_trans" else formula
        yield form(f"{name}{suffix}", words, text.replace("left", "C") if constant else text, command, whole, *rules)


def of(value: Value, left: str) -> Value:
    """A field's value in which `left_dtype` is the type of the left operand."""
    return value.replace("left_dtype", left) if isinstance(value, str) else value


def _left_type(more: str) -> str | data_type_t:
    return "left_dtype" if "left_dtype" in more else FP32


def _left(a: Arguments) -> data_type_t:
    found: data_type_t = a.get("left_dtype") if a.get("left_dtype") is not None else a.C_dtype
    return found


_SAME_WIDTH = Rule(
    "left and right must have one width", lambda a: _left(a).size == a.right_dtype.size and _left(a).is_int
)
_NARROW = Rule(
    "output_dtype must be an integer of 8 or 16 bits, bias_dtype one of 16",
    lambda a: a.output_dtype.is_int and a.output_dtype.size <= 2 and a.bias_dtype.is_int and a.bias_dtype.size == 2,
)
_ALL_BYTES = Rule(
    "left and right must be DT_INT8 or DT_UINT8",
    lambda a: _left(a).is_int and a.right_dtype.is_int and _left(a).size == a.right_dtype.size == 1,
)
_SIGN_OF_SUMS = sign_of_sums(lambda a: (_left(a), a.right_dtype))
_TYPES_OF_INTEGERS = {**precisions(opd0="left_dtype"), **signs(opd0="left_dtype", opd1="right_dtype")}
_INTEGER: Values = {**_TYPES_OF_INTEGERS, "opd2_sign": 1, "res0_prec": Precision.INT32, "opd2_n_str": "rounding_mode"}
_REQUANT = "output_dtype left_dtype right_dtype bias_dtype lshift rshift has_bias result_add result_relu"
_OUT, _OUT32 = Tensor("output", (1, 1, 1, 1), "output_dtype"), Tensor("output", (1, 1, 1, 1), INT32)


def _by_sections() -> Iterator[Function]:
    yield from _sectioned(
        "fp32_mm", "has_bias result_add", "left @ right (+ bias) (+ output)",
        {**optional("opd2", "bias", "has_bias"), **precisions(), "res0_prec": Precision.FP32,
         "opd0_prec": Precision.FP32, "res_add": "result_add"},
        (Tensor("output", (1, 1, 1, 1), FP32), Tensor("bias", (1, 1, 1, 1), FP32, when="has_bias")),
        extra="&bias", scalar="float:C",
    )  # fmt: skip
    yield from _sectioned(
        "int_mm", "left_dtype right_dtype shift rounding_mode", "(left @ right) shifted",
        {**_INTEGER, "opd2_const": 1, "opd2_addr": lambda a: a.shift & 0xFF}, (_OUT32,),
        integers("right_dtype"), _SAME_WIDTH,
    )  # fmt: skip
    yield from _sectioned(
        "int_pcs_mm", "left_dtype right_dtype rounding_mode", "(left @ right) shifted by column",
        {**_INTEGER, **addresses(opd2="shift")}, (_OUT32, Tensor("shift", (1, 1, 1, 1), INT8)),
        integers("right_dtype"), _SAME_WIDTH, extra="&shift",
    )  # fmt: skip
    yield from _sectioned(
        "int8_mm", _REQUANT, "(left @ right (+ bias) (+ output << lshift)) >> rshift, saturated",
        {**optional("opd2", "bias", "has_bias"), **_TYPES_OF_INTEGERS,
         "opd2_sign": lambda a: a.has_bias and a.bias_dtype.signed,
         **precisions(res0="output_dtype"), "res_add": "result_add",
         "opd3_addr": lambda a: a.rshift << 8 | a.lshift},
        (_OUT, Tensor("bias", (1, 1, 1, 1), INT16, when="has_bias")),
        _NARROW, _ALL_BYTES, _SIGN_OF_SUMS, within("rshift", 0, 31), within("lshift", 0, 31),
        unit=lambda a: Matrix.REQUANT_RELU if a.result_relu else Matrix.REQUANT, extra="&bias",
    )  # fmt: skip


ROWS = in_group("Products of matrices", *_by_rows(), *_by_sections(), source=Known.DRAWN)
