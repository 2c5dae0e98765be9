"""Requantization, gathers and masks by index, values per channel, outer operations of vectors."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Gather, Layout, Lin, Precision, Requant, Task
from bmcompiler.backends.bm1684x.isa import LIN, RQ, SG
from bmcompiler.backends.bm1684x.tpukernel.local import compact, disjoint
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, computed, floats, lane_zero, same_lane
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, fp32_bits
from bmcompiler.backends.bm1684x.tpukernel.units.form import (
    Form,
    Tensor,
    Values,
    addresses,
    constants,
    form,
    precisions,
    signs,
    sizes,
)

FP32, FP16, BF16 = data_type_t.DT_FP32, data_type_t.DT_FP16, data_type_t.DT_BFP16
INT32, UINT16 = data_type_t.DT_INT32, data_type_t.DT_UINT16
_SHAPE = ("shape.n", "shape.c", "shape.h", "shape.w")
_MOVE = {**sizes("res0"), **addresses(res0="dst", opd0="src")}

# -- requantization ----------------------------------------------------------------------------------------------------
_TO_BYTES = Rule("dst_dtype must have 8 or 16 bits", lambda a: a.dst_dtype.is_int and a.dst_dtype.size <= 2)
_FROM_WORDS = Rule(
    "src_dtype must be an integer of 16 or 32 bits", lambda a: a.src_dtype.is_int and a.src_dtype.size in (2, 4)
)
_FROM_BYTES = Rule(
    "src_dtype must be an integer of 8 or 16 bits", lambda a: a.src_dtype.is_int and a.src_dtype.size in (1, 2)
)
_ROUNDS_FLOATS = Rule(
    "rounding modes 5 and 6 are none of a conversion",
    lambda a: all((a.get(name) or 0) <= 4 for name in ("dst_rounding_mode", "src_rounding_mode", "rounding_mode")),
)
_TO_WORDS = Rule(
    "dst_dtype must be DT_INT32, DT_INT16 or DT_UINT16",
    lambda a: a.dst_dtype in (INT32, data_type_t.DT_INT16, UINT16),
)


def _quantizing(name: str, words: str, unit: Requant, formula: str, fields: Values, *rules: Rule) -> Function:
    to = "dst_dtype" if "dst_dtype" in words else FP32
    result = (
        {"res0_prec": Precision.FP32, "opd2_sign": 1}
        if to == FP32
        else {**precisions(res0="dst_dtype"), **signs(opd2="dst_dtype")}
    )
    tensors = [Tensor("dst", _SHAPE, to), Tensor("src", _SHAPE, "src_dtype")]
    if "&quant" in words:
        tensors.append(Tensor("quant", (1, "shape.c", 1, 3), INT32))
        fields = {**fields, **addresses(opd1="quant")}
    found = {**_MOVE, **precisions(opd0="src_dtype"), "opd2_n_str": "rounding_mode"}
    found["opd0_sign"] = lambda a: a.src_dtype.signed or a.src_dtype.size == 4  # words are always signed
    command = Form(RQ, Task.REQUANT, unit, {**found, **result, **fields}, tuple(tensors))
    return form(name, words, formula, command, same_lane("dst", "src"), *rules)


_ROUNDINGS: Values = {"opd2_n_str": lambda a: a.dst_rounding_mode << 3 | a.src_rounding_mode}
_BY = "shape dst_dtype src_dtype"
REQUANT = in_group(
    "Requantization",
    _quantizing(
        "int_requant", "&dst &src shape multiplier shift scalar_t:offset dst_dtype src_dtype rounding_mode",
        Requant.RQ1, "(src * multiplier) shifted + offset, saturated",
        {"opd1_const": 1, "opd1_addr": lambda a: a.multiplier & 0xFFFF_FFFF,
         "opd2_addr": lambda a: a.shift & 0xFF | (a.offset & 0xFFFF) << 16}, _TO_BYTES, _FROM_WORDS,
    ),
    _quantizing(
        "int_pc_requant", "&dst &src &quant shape dst_dtype src_dtype rounding_mode", Requant.RQ1,
        "the same by channel: multiplier, shift and offset are words of quant", {}, _TO_BYTES, _FROM_WORDS,
    ),
    _quantizing(
        "fp32_requant",
        "&dst &src shape float:scale float:offset dst_dtype src_dtype dst_rounding_mode src_rounding_mode", Requant.RQ0,
        "src * scale + offset in floats, as an integer, saturated",
        {**_ROUNDINGS, "opd1_const": 1, "opd1_addr": lambda a: fp32_bits(a.scale),
         "opd2_addr": lambda a: fp32_bits(a.offset)}, _TO_BYTES, _FROM_WORDS, _ROUNDS_FLOATS,
    ),
    _quantizing(
        "fp32_pc_requant", "&dst &src &quant shape dst_dtype src_dtype dst_rounding_mode src_rounding_mode",
        Requant.RQ0, "the same by channel: scale and offset are words of quant", _ROUNDINGS,
        _TO_BYTES, _FROM_WORDS, _ROUNDS_FLOATS,
    ),
    _quantizing(
        "int_dequant", "&dst &src shape scalar_t:offset multiplier shift dst_dtype src_dtype rounding_mode",
        Requant.DQ1, "((src - offset) * multiplier) shifted, saturated",
        {"opd1_const": 1, "opd1_addr": lambda a: a.offset & 0xFFFF | (a.shift & 0xFFFF) << 16,
         "opd2_addr": lambda a: a.multiplier & 0xFFFF_FFFF}, _TO_WORDS, _FROM_BYTES,
    ),
    _quantizing(
        "int_pc_dequant", "&dst &src &quant shape dst_dtype src_dtype rounding_mode", Requant.DQ1,
        "the same by channel: offset, multiplier and shift are words of quant", {}, _TO_WORDS, _FROM_BYTES,
    ),
    _quantizing(
        "fp32_dequant", "&dst &src shape scalar_t:offset float:scale src_dtype rounding_mode", Requant.DQ0,
        "(src - offset) * scale in DT_FP32",
        {"opd1_const": 1, "opd1_addr": lambda a: a.offset & 0xFFFF, "opd2_addr": lambda a: fp32_bits(a.scale)},
        _FROM_BYTES, _ROUNDS_FLOATS,
    ),
    _quantizing(
        "fp32_pc_dequant", "&dst &src &quant shape src_dtype rounding_mode", Requant.DQ0,
        "the same by channel: offset and scale are words of quant", {}, _FROM_BYTES,
        _ROUNDS_FLOATS,
    ),
    source=Known.DRAWN,
)  # fmt: skip

# -- by index ----------------------------------------------------------------------------------------------------------
_INDICES = Rule("index_dtype must be DT_UINT8 or DT_UINT16", lambda a: a.index_dtype in (UINT16, data_type_t.DT_UINT8))
_FLAT = Rule("h must be 1", lambda a: a.shape.h == 1)
_ELSE: Values = {"opd3_const": 1, "opd2_const": "fill_const", "opd2_addr": lambda a: a.C if a.fill_const else 0}


def _row(a: Arguments) -> Layout:
    return Layout.TABLE if a.is_param_repeated else Layout.ALIGNED


def _param_lanes(a: Arguments) -> int:
    return 64 if a.is_param_repeated else a.shape.c


def _list(name: str, unit: Gather, words: str, formula: str, fields: Values, *tensors: Tensor) -> Function:
    """With one list of indices for all channels, one index in each lane (w_) or pairs of them (hw_)."""
    found = {**addresses(res0="output", opd0="param", opd1="index"), **precisions(res0="dtype", opd0="dtype")}
    command = Form(SG, Task.GATHER, unit, {**sizes("res0"), **found, "opd1_w": 1, **fields}, tensors)
    rules = [computed("dtype"), same_lane("output", "param"), lane_zero("index")]
    rules += [at_least(1, word) for word in words.split() if word.startswith("param_")]
    rules += [_INDICES, _FLAT] if "index_dtype" in words else []
    return form(name, words, formula, command, *rules)


_OUT = Tensor("output", _SHAPE, "dtype")
_W_PARAM = Tensor("param", ("shape.n", "shape.c", 1, "param_w"), "dtype")
_HW_PARAM = Tensor("param", ("shape.n", "shape.c", "param_h", "param_w"), "dtype")
_FEW: Values = {"opd0_h": 1, "opd0_w": "param_w", **precisions(opd1="index_dtype")}
_PAIRS: Values = {"opd1_prec": Precision.INT16}
_AREA = lambda a: a.shape.h * a.shape.w  # noqa: E731
_PARAM_AREA = lambda a: a.param_h * a.param_w  # noqa: E731
_PLANE: Values = {**_PAIRS, "res0_h": 1, "res0_w": _AREA, "opd1_c": _AREA, "opd0_h": "param_h", "opd0_w": "param_w"}
_BY_INDEX = "&output &param &index"


def _lanes(
    name: str, units: tuple[Gather, Gather], words: str, formula: str, fields: Values, *tensors: Tensor
) -> Function:
    """With indices of each channel in its lane; the first of `units` where no bank has two of the tensors."""
    unit = lambda a: units[0] if disjoint(one.placed(a) for one in tensors) else units[1]  # noqa: E731
    found = {**sizes("res0"), "opd0_str": _row, "opd0_h": 1, "opd1_c": "shape.c"}
    found |= {**addresses(res0="output", opd0="param"), **precisions(res0="dtype", opd0="dtype")}
    command = Form(SG, Task.GATHER, unit, {**found, **fields}, tensors)
    rules = [computed("dtype"), same_lane(*(one.name for one in tensors)), _FLAT]
    rules += [at_least(1, "param_w")] if "param_w" in words else []
    rules += [_INDICES] if "index_dtype" in words else []
    rules += [_MASKS] if "mask_dtype" in words else []
    return form(name, words, formula, command, *rules)


_LANE_PARAM = Tensor("param", (1, _param_lanes, 1, "param_w"), "dtype")
_MASKS = Rule(
    "mask_dtype must be DT_UINT8, DT_UINT16 or DT_UINT32",
    lambda a: a.mask_dtype.is_int and a.mask_dtype.computes and not a.mask_dtype.signed,
)
_GATHER: Values = {
    "opd0_w": "param_w",
    "opd1_w": "shape.w",
    **precisions(opd1="index_dtype"),
    **addresses(opd1="index"),
}
_LANE_INDEX = Tensor("index", _SHAPE, "index_dtype")
_TYPES = "dtype index_dtype"
_BY_LANE, _BY_MASK = (Gather.LANE, Gather.LANE_FAST), (Gather.MASK, Gather.MASK_FAST)
_TO_LANE = (Gather.SCATTER_LANE, Gather.SCATTER_LANE_FAST)
BY_INDEX = in_group(
    "By index, exponents",
    _list(
        "w_gather", Gather.LIST, f"{_BY_INDEX} shape param_w {_TYPES}", "param(n, c, 0, index(0, w, 0, 0))",
        {**_FEW, "opd1_c": "shape.w"}, _OUT, _W_PARAM, Tensor("index", (1, "shape.w", 1, 1), "index_dtype", compact),
    ),
    _list(
        "w_gather_exception", Gather.LIST, f"{_BY_INDEX} C shape param_w {_TYPES} fill_const",
        "param(n, c, 0, index(0, w, 0, 0)); for the index 255 or 65535 C or, without fill_const, what was there",
        {**_FEW, **_ELSE, "opd1_c": "shape.w"}, _OUT, _W_PARAM,
        Tensor("index", (1, "shape.w", 1, 1), "index_dtype", compact),
    ),
    _list(
        "w_scatter", Gather.SCATTER_LIST, f"{_BY_INDEX} shape param_w {_TYPES}",
        "output(n, c, 0, index(0, i, 0, 0)) = param(n, c, 0, i)", {**_FEW, "opd1_c": "param_w"}, _OUT, _W_PARAM,
        Tensor("index", (1, "param_w", 1, 1), "index_dtype", compact),
    ),
    _list(
        "hw_gather", Gather.LIST_2D, f"{_BY_INDEX} shape param_h param_w dtype",
        "param(n, c, y, x), (x, y) = index(0, h * W + w, 0, :)", _PLANE, _OUT, _HW_PARAM,
        Tensor("index", (1, _AREA, 1, 2), UINT16, compact),
    ),
    _list(
        "hw_gather_exception", Gather.LIST_2D, f"{_BY_INDEX} C shape param_h param_w dtype fill_const",
        "param(n, c, y, x); for the index (65535, 65535) C or, without fill_const, what was there",
        {**_PLANE, **_ELSE}, _OUT, _HW_PARAM, Tensor("index", (1, _AREA, 1, 2), UINT16, compact),
    ),
    _list(
        "hw_scatter", Gather.SCATTER_LIST_2D, f"{_BY_INDEX} shape param_h param_w dtype",
        "output(n, c, y, x) = param(n, c, h, w), (x, y) = index(0, h * W + w, 0, :)",
        {**_PAIRS, "opd0_h": 1, "opd0_w": _PARAM_AREA, "opd1_c": _PARAM_AREA}, _OUT, _HW_PARAM,
        Tensor("index", (1, _PARAM_AREA, 1, 2), UINT16, compact),
    ),
    _lanes(
        "batch_bcast_w_gather", _BY_LANE, f"{_BY_INDEX} shape param_w {_TYPES} is_param_repeated",
        "param(0, c, 0, index(n, c, 0, w))", _GATHER, _OUT, _LANE_PARAM, _LANE_INDEX,
    ),
    _lanes(
        "batch_bcast_w_gather_exception", _BY_LANE,
        f"{_BY_INDEX} C shape param_w {_TYPES} is_param_repeated fill_const",
        "param(0, c, 0, index(n, c, 0, w)); for the index 255 or 65535 C or, without fill_const, what was there",
        {**_GATHER, **_ELSE}, _OUT, _LANE_PARAM, _LANE_INDEX,
    ),
    _lanes(
        "batch_bcast_w_mask_select", _BY_MASK,
        "&output &count &param &mask shape dtype mask_dtype is_param_repeated",
        "the elements of param(0, c, 0, :) where mask(n, c, 0, :) is not 0, in order; count(n, c, 0, 0): how many",
        {"opd0_w": "shape.w", "opd1_w": "shape.w", **precisions(opd1="mask_dtype"),
         **addresses(opd1="mask", res1="count")},
        _OUT, Tensor("count", ("shape.n", "shape.c", 1, 1), UINT16),
        Tensor("param", (1, _param_lanes, 1, "shape.w"), "dtype"), Tensor("mask", _SHAPE, "mask_dtype"),
    ),
    source=Known.DRAWN,
)  # fmt: skip

SCATTER = in_group(
    "By index, exponents",
    _lanes(
        "batch_bcast_w_scatter", _TO_LANE, f"{_BY_INDEX} shape param_w {_TYPES} is_param_repeated",
        "output(n, c, 0, index(n, c, 0, i)) = param(0, c, 0, i), i < param_w", {**_GATHER, "opd1_w": "param_w"},
        _OUT, _LANE_PARAM, Tensor("index", ("shape.n", "shape.c", 1, "param_w"), "index_dtype"),
    ),
)  # fmt: skip

# -- values per channel ------------------------------------------------------------------------------------------------
_ONES = {FP32: 0x3F80_0000, FP16: 0x3C00, BF16: 0x3F80}


def _one(a: Arguments) -> int:
    return _ONES[a.dtype]


def _linear(name: str, unit: Lin, operands: str, formula: str, fields: Values) -> Function:
    """Values are compact vectors (&x) of one value per channel, or constants."""
    vectors = [word[1:] for word in operands.split() if word.startswith("&")]
    tensors = [Tensor(each, _SHAPE, "dtype") for each in ("dst", "src")]
    tensors += [Tensor(each, (1, "shape.c", 1, 1), "dtype", compact) for each in vectors]
    command = Form(LIN, Task.LINEAR, unit, {**_MOVE, **precisions(res0="dtype"), **fields}, tuple(tensors))
    rules = (floats("dtype"), same_lane("dst", "src", *vectors))
    return form(name, f"&dst &src {operands} shape dtype", formula, command, *rules)


_OF_CHANNEL = "(0, c, 0, 0)"
LINEAR = in_group(
    "With a value per channel",
    _linear("fp_scale_bias", Lin.MAC, "&scale &bias", f"src * scale{_OF_CHANNEL} + bias{_OF_CHANNEL}",
            addresses(opd1="scale", opd2="bias")),
    _linear("fp_scale", Lin.MAC, "&scale", f"src * scale{_OF_CHANNEL}", {**addresses(opd1="scale"), "opd2_const": 1}),
    _linear("fp_scale_bias_C", Lin.MAC, "scalar_t:scale scalar_t:bias", "src * scale + bias",
            constants(opd1="scale", opd2="bias")),
    _linear("fp_bias", Lin.MAC, "&bias", f"src + bias{_OF_CHANNEL}",
            {**constants(opd1=_one), **addresses(opd2="bias")}),
    _linear("fp_add_bias_sqr", Lin.SQUARE_SUM, "&bias", f"(src + bias{_OF_CHANNEL})^2", addresses(opd1="bias")),
    _linear("fp_sub_bias_sqr", Lin.SQUARE_DIFFERENCE, "&bias", f"(src - bias{_OF_CHANNEL})^2",
            addresses(opd1="bias")),
    _linear("fp_add_C_sqr", Lin.SQUARE_SUM, "C", "(src + C)^2", constants(opd1="C")),
    _linear("fp_sub_C_sqr", Lin.SQUARE_DIFFERENCE, "C", "(src - C)^2", constants(opd1="C")),
    source=Known.DRAWN,
)  # fmt: skip
ROWS = (*REQUANT, *SCATTER, *BY_INDEX, *LINEAR)
