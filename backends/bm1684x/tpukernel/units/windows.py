"""Convolutions, depthwise ones and pooling (bm1684x-cube.md 5, 6)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Conv, Layout, Pord, Rounding, Task
from bmcompiler.backends.bm1684x.isa import CONV, PORD
from bmcompiler.backends.bm1684x.tpukernel.local import compact, lane_of
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, floats, integers, same_lane, within
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim2
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
    sizes,
)

FP32, INT8, INT16, INT32 = data_type_t.DT_FP32, data_type_t.DT_INT8, data_type_t.DT_INT16, data_type_t.DT_INT32
_ONE, _NONE = dim2(1, 1), dim2(0, 0)


# -- geometry ----------------------------------------------------------------------------------------------------------
def _inserted(a: Arguments) -> dim2:
    """Zeros between rows and columns."""
    return a.get("insert") or a.get("ins") or _NONE


def _result(a: Arguments) -> dim2:
    """Height and width of the result; not positive where no window fits."""
    top, bottom, left, right = a.padding
    pads, steps, zeros = (top + bottom, left + right), a.get("stride") or _ONE, _inserted(a)
    whole = [(size - 1) * (zero + 1) + 1 + pad for size, zero, pad in zip(a.input_shape[2:], zeros, pads)]
    spans = [(taps - 1) * step + 1 for taps, step in zip(a.kernel, a.dilation)]
    return dim2(*((size - span) // step + 1 for size, span, step in zip(whole, spans, steps)))


_OUT_H: Value = lambda a: _result(a).h  # noqa: E731
_OUT_W: Value = lambda a: _result(a).w  # noqa: E731
_WINDOW: Values = {
    **{"res0_n": "input_shape.n", "res0_h": _OUT_H, "res0_w": _OUT_W, "opd1_h": "kernel.h", "opd1_w": "kernel.w"},
    **sizes("opd0", "input_shape", "hw"),
    **{"opd0_up_pad": "padding.top", "opd0_dn_pad": "padding.bottom"},
    **{"opd0_lf_pad": "padding.left", "opd0_rt_pad": "padding.right"},
    **{"res_op_y_str": lambda a: (a.get("stride") or _ONE).h, "res_op_x_str": lambda a: (a.get("stride") or _ONE).w},
    **{"opd1_y_ins0": lambda a: a.dilation.h - 1, "opd1_x_ins0": lambda a: a.dilation.w - 1},
    **{"opd0_y_ins0": lambda a: _inserted(a).h, "opd0_x_ins0": lambda a: _inserted(a).w},
    **addresses(res0="output", opd0="input"),
}
_INPUT = ("input_shape.n", "input_shape.c", "input_shape.h", "input_shape.w")
_SLIDES = "kernel padding stride dilation"


def _inserts(most: int) -> Rule:
    text = f"inserted rows and columns must be 0 to {most}"
    return Rule(text, lambda a: all(0 <= zeros <= most for zeros in _inserted(a)))


def _in_range(numbers: tuple[int, ...], low: int) -> bool:
    return all(low <= number <= 15 for number in numbers)


_GEOMETRY = (
    Rule("padding must be in [0, 15]", lambda a: _in_range(a.padding, 0)),
    Rule("stride must be in [1, 15]", lambda a: _in_range(a.get("stride") or _ONE, 1)),
    Rule("dilation must be in [1, 15]", lambda a: _in_range(a.dilation, 1)),
    Rule("kernel must be at least 1 x 1", lambda a: min(a.kernel) >= 1),
    Rule("a window must fit into the image with its padding", lambda a: min(_result(a)) >= 1),
)


# -- convolutions ------------------------------------------------------------------------------------------------------
def _together(a: Arguments) -> int:
    """Input channels that lie side by side in the weights of a result's channel."""
    return {1: 64, 2: 32, 4: 1}[ITEM_BYTES[a.input_dtype.precision]]


def _taps(a: Arguments) -> int:
    """Elements of the weights of one channel of the result."""
    return -(-a.input_shape.c // _together(a)) * a.kernel.h * a.kernel.w * _together(a)


def _weights(dtype: str) -> Tensor:
    return Tensor("weight", (1, "output_c", 1, _taps), dtype, compact)


def _stride(axis: str) -> Value:
    """What the image has several of only: the library leaves the others 0."""

    def value(a: Arguments) -> int:
        rows = CHIP.channel_rows(lane_of(a.input_addr), a.input_shape.c)
        needless = (axis == "n" and a.input_shape.n == 1) or (axis == "c" and rows == 1)
        return 0 if a.input_stride is None or needless else int(getattr(a.input_stride, axis))

    return value


_DENSE: Values = {
    **_WINDOW,
    **{"res0_c": "output_c", "opd0_c": "input_shape.c"},
    **{f"opd0_{axis}_str": _stride(axis) for axis in "nchw"},
    **{"opd0_str": lambda a: Layout.ALIGNED if a.input_stride is None else Layout.FREE},
}
_OUTPUT = Tensor("output", ("input_shape.n", "output_c", _OUT_H, _OUT_W), "output_dtype")
_IMAGE = Tensor("input", _INPUT, "input_dtype")
_FLOAT_BIAS = Tensor("bias", (1, "output_c", 1, 1), FP32, compact, "has_bias")
_DENSE_RULES = (
    _inserts(14),
    at_least(1, "output_c"),
    Rule(
        "input must begin in lane 0, unless it is DT_FP32",
        lambda a: a.input_dtype == FP32 or lane_of(a.input_addr) == 0,
    ),
)
_FLOAT_SUMS: Values = {
    **_DENSE,
    **precisions(res0="output_dtype", opd0="input_dtype"),
    **optional("opd2", "bias", "has_bias"),
    **{"opd3_const": 1, "res_add": "result_add"},
}
_FLOAT_RULES = (
    floats("input_dtype"),
    Rule("output_dtype must be DT_FP32 or input_dtype", lambda a: a.output_dtype in (FP32, a.input_dtype)),
    Rule("what is added to must be DT_FP32", lambda a: not a.result_add or a.output_dtype == FP32),
)
_TURNED: Values = {"kernel_rotate": 1}
_WEIGHTS = addresses(opd1="weight")
_FIXED = constants(opd1="C")
_SUMS = "sums of input * weight over windows and channels"


def _lanes(words: str, *images: str) -> Rule:
    """Weights, and vectors of a value per channel, lie where the result begins; so do `images`."""
    names = [word[1:] for word in words.split() if word in ("&weight", "&bias", "&kzp", "&output")]
    return same_lane(*names, *images)


def _float(name: str, operands: str, slides: str, more: Values, *tensors: Tensor) -> Function:
    words = (
        f"&output {operands} input_shape input_stride output_c {slides} output_dtype input_dtype has_bias result_add"
    )
    command = Form(CONV, Task.CONV, Conv.NORMAL, {**_FLOAT_SUMS, **more}, (_OUTPUT, _IMAGE, _FLOAT_BIAS, *tensors))
    formula = _SUMS.replace("weight", "weight" if tensors else "C") + " (+ bias) (+ output)"
    return form(name, words, formula, command, *_FLOAT_RULES, _lanes(words), *_DENSE_RULES, *_GEOMETRY)


_ZEROS = "kernel insert padding dilation"
_IN_WEIGHT = "&input &weight"
_KINDS = integers("output_dtype", "input_dtype", "weight_dtype")
_BYTES = Rule(
    "input_dtype and weight_dtype must be DT_INT8 or DT_UINT8",
    lambda a: a.input_dtype.size == a.weight_dtype.size == 1,
)
_ASYMMETRIC: Values = {
    **_DENSE,
    **precisions(res0="output_dtype", opd0="input_dtype"),
    **signs(opd0="input_dtype", opd1="weight_dtype", opd2="kzp_dtype"),
    "res_add": "result_add",
}
_ZERO_POINT = Tensor("kzp", (1, "output_c", 1, 1), "kzp_dtype", compact)
_ASYMMETRIC_RULES = (
    Rule(
        "output_dtype must be an integer of 16 or 32 bits", lambda a: a.output_dtype.is_int and a.output_dtype.size >= 2
    ),
    Rule("kzp_dtype must be DT_INT8 or DT_UINT8", lambda a: a.kzp_dtype.size == 1),
    Rule("what is added to must have 32 bits", lambda a: not a.result_add or a.output_dtype.size == 4),
)


def _pads(name: str, channels: str) -> Tensor:
    return Tensor(name, (1, channels, 1, 2), "input_dtype", compact)


_WORDS_OF_CHANNELS = {
    "&kzp &pad": Rule("output_dtype must be signed", lambda a: a.output_dtype.signed),
    "&kzp &pad_insert": Rule("output_dtype must be unsigned", lambda a: not a.output_dtype.signed),
}
"""What the library asks of those with values per channel, by their operands."""


def _asymmetric(name: str, operands: str, slides: str, more: Values, *tensors: Tensor) -> Function:
    types = "output_dtype input_dtype weight_dtype kzp_dtype result_add"
    words = f"&output {operands} input_shape input_stride output_c {slides} {types}"
    command = Form(CONV, Task.CONV, Conv.NORMAL, {**_ASYMMETRIC, **more}, (_OUTPUT, _IMAGE, *tensors))
    formula = "sums of input * (weight - kzp) over windows and channels (+ output)"
    sign = [rule for end, rule in _WORDS_OF_CHANNELS.items() if operands.endswith(end)]
    rules = (_KINDS, _BYTES, *_ASYMMETRIC_RULES, *sign, _lanes(words), *_DENSE_RULES, *_GEOMETRY)
    return form(name, words, formula, command, *rules)


_OF_ALL: Values = {**constants(opd2="kzp_val", opd3="pad_val")}
_OF_CHANNELS: Values = {**addresses(opd2="kzp", opd3="pad")}
_SYMMETRIC: Values = {
    **_DENSE,
    **precisions(res0="output_dtype", opd0="input_dtype"),
    **signs(opd0="input_dtype", opd1="weight_dtype", opd2="bias_dtype"),
    **optional("opd2", "bias", "has_bias"),
    **constants(opd3="rshift"),
    **_WEIGHTS,
}
_QUANTIZED = "output_dtype input_dtype weight_dtype bias_dtype rshift has_bias result_relu"
_SIGNS = sign_of_sums(lambda a: (a.input_dtype, a.weight_dtype))
_SHORT_BIAS = Rule("bias_dtype must be DT_INT16 or DT_UINT16", lambda a: a.bias_dtype.size == 2 and a.bias_dtype.is_int)


def _symmetric(name: str, slides: str, more: Values) -> Function:
    words = f"&output {_IN_WEIGHT} &bias input_shape input_stride output_c {slides} {_QUANTIZED}"
    bias = Tensor("bias", (1, "output_c", 1, 1), "bias_dtype", compact, "has_bias")
    unit = lambda a: Conv.REQUANT_RELU if a.result_relu else Conv.REQUANT  # noqa: E731
    command = Form(CONV, Task.CONV, unit, {**_SYMMETRIC, **more}, (_OUTPUT, _IMAGE, bias, _weights("weight_dtype")))
    formula = f"({_SUMS} (+ bias)) >> rshift, saturated"
    rules = (_KINDS, _BYTES, _SHORT_BIAS, _SIGNS, within("rshift", 0, 31), _lanes(words), *_DENSE_RULES, *_GEOMETRY)
    return form(name, words, formula, command, *rules)


CONVOLUTIONS = in_group(
    "Convolutions",
    _float("fp_conv2d", f"{_IN_WEIGHT} &bias", _SLIDES, _WEIGHTS, _weights("input_dtype")),
    _float("fp_conv2d_for_deconv2d", f"{_IN_WEIGHT} &bias", _ZEROS, {**_WEIGHTS, **_TURNED}, _weights("input_dtype")),
    _float("fp_conv2d_kernel_const", "&input &bias C", _SLIDES, _FIXED),
    _asymmetric(
        "int8_asym_quant_conv2d", f"{_IN_WEIGHT} kzp_val pad_val", _SLIDES, {**_OF_ALL, **_WEIGHTS},
        _weights("weight_dtype"),
    ),
    _asymmetric(
        "int8_asym_pc_quant_conv2d", f"{_IN_WEIGHT} &kzp &pad", _SLIDES, {**_OF_CHANNELS, **_WEIGHTS},
        _weights("weight_dtype"), _ZERO_POINT, _pads("pad", "input_shape.c"),
    ),
    _asymmetric("int8_asym_quant_conv2d_kernel_const", "&input C kzp_val pad_val", _SLIDES, {**_OF_ALL, **_FIXED}),
    _asymmetric(
        "int8_asym_quant_conv2d_for_deconv2d", f"{_IN_WEIGHT} kzp_val pad_val insert_val", _ZEROS,
        {**_OF_ALL, **_WEIGHTS, **_TURNED, "res1_addr": "insert_val"}, _weights("weight_dtype"),
    ),
    _asymmetric(
        "int8_asym_pc_quant_conv2d_for_deconv2d", f"{_IN_WEIGHT} &kzp &pad_insert", _ZEROS,
        {**addresses(opd2="kzp", opd3="pad_insert"), **_WEIGHTS, **_TURNED},
        _weights("weight_dtype"), _ZERO_POINT, _pads("pad_insert", "input_shape.c"),
    ),
    _symmetric("int8_sym_quant_conv2d", _SLIDES, {}),
    _symmetric("int8_sym_quant_conv2d_for_deconv2d", _ZEROS, _TURNED),
    source=Known.DRAWN,
)  # fmt: skip


# -- depthwise ---------------------------------------------------------------------------------------------------------
_EACH: Values = {**_WINDOW, "res0_c": "input_shape.c", "opd3_const": 1}
_EACH_OUTPUT = ("input_shape.n", "input_shape.c", _OUT_H, _OUT_W)


def _channels(of: str | data_type_t, to: str | data_type_t) -> tuple[Tensor, Tensor]:
    return Tensor("output", _EACH_OUTPUT, to), Tensor("input", _INPUT, of)


def _kernel(dtype: str) -> Tensor:
    return Tensor("weight", (1, "input_shape.c", "kernel.h", "kernel.w"), dtype, compact)


def _float_depthwise(name: str, slides: str, types: str, more: Values) -> Function:
    words = f"&output {_IN_WEIGHT} &bias input_shape {slides} {types} has_bias"
    of, to = ("dtype", "dtype") if types == "dtype" else ("input_dtype", "output_dtype")
    one_type = Rule(f"{of} and {to} must be one type", lambda a: getattr(a, of) == getattr(a, to))
    fields = {**_EACH, **_WEIGHTS, **precisions(res0=to, opd0=of), **optional("opd2", "bias", "has_bias"), **more}
    bias = Tensor("bias", (1, "input_shape.c", 1, 1), of, compact, "has_bias")
    rules = (floats(of), one_type, _inserts(7), _lanes(words, "input"), *_GEOMETRY)
    command = Form(PORD, Task.POOL_OR_DEPTHWISE, Pord.DEPTHWISE, fields, (*_channels(of, to), _kernel(of), bias))
    return form(name, words, "sums of input * weight over windows (+ bias)", command, *rules)


_REQUANTIZED: Values = {
    **_EACH,
    **precisions(res0="output_dtype", opd0="input_dtype"),
    **signs(opd0="input_dtype", opd1="weight_dtype"),
    **optional("opd2", "bias", "has_bias"),
    **{"opd2_sign": lambda a: a.has_bias and a.bias_dtype.signed},
    **{"res1_addr": lambda a: a.rshift << 8, "opd2_n_str": "rounding_mode"},
}
_RELU_BYTES = Rule(
    "output_dtype must have 8 bits with result_relu", lambda a: not a.result_relu or a.output_dtype.size == 1
)
_WORD_BIAS = Rule("bias_dtype must be DT_INT32 or DT_UINT32", lambda a: a.bias_dtype.size == 4 and a.bias_dtype.is_int)


def _byte_depthwise(name: str, operands: str, slides: str, more: Values, *tensors: Tensor) -> Function:
    words = f"&output {operands} input_shape {slides} {_QUANTIZED} rounding_mode"
    bias = Tensor("bias", (1, "input_shape.c", 1, 1), "bias_dtype", compact, "has_bias")
    unit = lambda a: Pord.DEPTHWISE_RELU if a.result_relu else Pord.DEPTHWISE  # noqa: E731
    places = (*_channels("input_dtype", "output_dtype"), bias, *tensors)
    rules = (
        _KINDS,
        _BYTES,
        _WORD_BIAS,
        _SIGNS,
        _RELU_BYTES,
        _inserts(7),
        within("rshift", 0, 31),
        _lanes(words, "input"),
        *_GEOMETRY,
    )
    formula = "(sums of input * weight over windows (+ bias)) >> rshift, saturated"
    command = Form(PORD, Task.POOL_OR_DEPTHWISE, unit, {**_REQUANTIZED, **more}, places)
    return form(name, words, formula, command, *rules)


_OF_BYTES, _PAD_EACH = _kernel("weight_dtype"), _pads("pad", "input_shape.c")
_PADDED, _PADDED_EACH = constants(opd3="pad_val"), {**addresses(opd3="pad"), "opd3_const": 0}
_INSERT_LAST = "kernel padding insert dilation"
DEPTHWISE = in_group(
    "Depthwise convolutions",
    _float_depthwise("fp_depthwise2d", _SLIDES, "dtype", {}),
    _float_depthwise(
        "fp_depthwise_for_deconv2d", "kernel insert padding dilation", "output_dtype input_dtype bool:kernel_is_const",
        {**_TURNED, "opd0_sign": 1, "opd1_sign": 1, "opd1_const": "kernel_is_const", "opd2_n_str": 1,
         "opd2_sign": "has_bias"},
    ),
    _float_depthwise("fp_ins_depthwise", "kernel padding stride ins dilation", "dtype", {}),
    _byte_depthwise(
        "int8_depthwise2d", f"{_IN_WEIGHT} &bias pad_val", _SLIDES, {**_WEIGHTS, **_PADDED}, _OF_BYTES
    ),
    _byte_depthwise("int8_depthwise2d_kernel_const", "&input &bias C pad_val", _SLIDES, {**_FIXED, **_PADDED}),
    _byte_depthwise(
        "int8_pc_pad_depthwise2d", f"{_IN_WEIGHT} &bias &pad", _SLIDES, {**_WEIGHTS, **_PADDED_EACH},
        _OF_BYTES, _PAD_EACH,
    ),
    _byte_depthwise(
        "int8_pc_pad_depthwise_for_deconv2d", f"{_IN_WEIGHT} &bias &pad", _INSERT_LAST,
        {**_WEIGHTS, **_PADDED_EACH, **_TURNED}, _OF_BYTES, _PAD_EACH,
    ),
    _byte_depthwise(
        "int8_depthwise_for_deconv2d", f"{_IN_WEIGHT} &bias pad_val", _INSERT_LAST,
        {**_WEIGHTS, **_PADDED, **_TURNED}, _OF_BYTES,
    ),
    source=Known.DRAWN,
)  # fmt: skip


# -- pooling -----------------------------------------------------------------------------------------------------------
_IMAGES = "&output &input input_shape"
_TYPED = {"dtype": ("dtype", "dtype"), "output_dtype input_dtype": ("output_dtype", "input_dtype")}


def _pool(
    name: str, slides: str, types: str, last: str, unit: Pord, formula: str, more: Values, *rules: Rule
) -> Function:
    to, of = _TYPED[types]
    fields = {**_EACH, **precisions(res0=to, opd0=of), **more}
    command = Form(PORD, Task.POOL_OR_DEPTHWISE, unit, fields, _channels(of, to))
    rules = (*rules, same_lane("output", "input"), _inserts(7), *_GEOMETRY)
    return form(name, f"{_IMAGES} {slides} {types} {last}", formula, command, *rules)


_BOTH = "output_dtype input_dtype"
_SUM: Values = {**constants(opd1="scale"), "opd2_n_str": Rounding.HALF_UP}
_BYTE_SUM: Values = {**_SUM, **signs(opd0="input_dtype"), "opd2_addr": "rshift"}
_OF_ONE_BYTE = Rule("input_dtype must be DT_INT8 or DT_UINT8", lambda a: a.input_dtype.size == 1)
_ALIKE = Rule(
    "input_dtype and output_dtype must both be signed, or both unsigned",
    lambda a: a.input_dtype.signed == a.output_dtype.signed,
)
_MEANS = "sum of scale * input over the window"
_BYTE_MEANS = "(scale * sum of the window) >> rshift, saturated"
_MAXIMA = "maximum of the window, pad_val around the image"
_BYTE_RULES = (integers("output_dtype", "input_dtype"), _OF_ONE_BYTE, _ALIKE, within("rshift", 0, 31))
_BYTE_TYPE = Rule("dtype must be DT_INT8 or DT_UINT8", lambda a: a.dtype.size == 1 and a.dtype.is_int)
_AVERAGE, _MAX = Pord.AVERAGE, Pord.MAX
_AFTER, _BEFORE = f"{_SLIDES} ins", "kernel padding stride ins dilation"
_BYTE_FACTOR = "unsigned_char:scale rshift"
POOLING = in_group(
    "Pooling",
    _pool("fp_avg_pool2d", _SLIDES, "dtype", "scalar_t:scale", _AVERAGE, _MEANS, _SUM, floats("dtype")),
    _pool("fp_max_pool2d", _SLIDES, "dtype", "pad_val", _MAX, _MAXIMA, {"opd3_addr": "pad_val"}, floats("dtype")),
    _pool("int8_avg_pool2d", _SLIDES, _BOTH, _BYTE_FACTOR, _AVERAGE, _BYTE_MEANS, _BYTE_SUM, *_BYTE_RULES),
)
DRAWN_POOLING = in_group(
    "Pooling",
    _pool("fp_ins_avg_pool2d", _AFTER, "dtype", "scalar_t:scale", _AVERAGE, _MEANS, _SUM, floats("dtype")),
    _pool("int8_ins_avg_pool2d", _BEFORE, _BOTH, _BYTE_FACTOR, _AVERAGE, _BYTE_MEANS, _BYTE_SUM, *_BYTE_RULES),
    _pool(
        "int8_max_pool2d", _SLIDES, "dtype", "pad_val", _MAX, _MAXIMA,
        {"opd3_addr": "pad_val", **signs(opd0="dtype")}, _BYTE_TYPE,
    ),
    source=Known.DRAWN,
)  # fmt: skip
ROWS = (*CONVOLUTIONS, *DEPTHWISE, *POOLING, *DRAWN_POOLING)
