"""Between lanes, from static memory, by index, and pooling (tpukernel-api.md 7, 8)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x import static_tables
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Gather, Lin, Pord, Rounding, Trans
from bmcompiler.backends.bm1684x.instructions import arithmetic, special
from bmcompiler.backends.bm1684x.instructions.operands import Operand, constant
from bmcompiler.backends.bm1684x.instructions.special import Window
from bmcompiler.backends.bm1684x.tpukernel.local import aligned, compact, lane_of, line_aligned, place, tensor
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import (
    at_least,
    computed,
    different,
    floats,
    integers,
    lane_zero,
    same_lane,
    within,
)
from bmcompiler.backends.bm1684x.tpukernel.seed import load
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4
from bmcompiler.errors import UsageError

_MOVE = "local_addr_t dst_addr, local_addr_t src_addr, const dim4 *shape, data_type_t dtype"
_STEPS, _PADS = (1, 15), (0, 15)
FP32, FP16, BF16 = data_type_t.DT_FP32, data_type_t.DT_FP16, data_type_t.DT_BFP16


# -- lanes -------------------------------------------------------------------------------------------------------------
def _broadcast(k: Recorder, a: Arguments) -> None:
    one = a.shape._replace(c=1)
    result, source = tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype, one)
    inner = (1, a.shape.w)
    k.add(special.move(Trans.LANE_BROADCAST, a.shape, result.place, source.place, a.dtype.precision, inner))


def _lane_copy(k: Recorder, a: Arguments) -> None:
    result, source = tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype)
    inner = (a.shape.c, a.shape.w)
    k.add(special.move(Trans.LANE_COPY, a.shape, result.place, source.place, a.dtype.precision, inner))


def _transpose(operation: Trans) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        transposed = dim4(a.shape.n, a.shape.w, a.shape.h, a.shape.c)
        place("dst", a.dst_addr, a.shape, a.dtype, layout=line_aligned if operation is Trans.CW else aligned)
        place("src", a.src_addr, transposed, a.dtype)
        inner = (transposed.c, transposed.w)
        k.add(special.move(operation, a.shape, a.dst_addr, a.src_addr, a.dtype.precision, inner))

    return emit


def _check_static(a: Arguments) -> None:
    """The elements are whole and lie in static memory."""
    if a.static_addr % a.dtype.size or a.static_addr + a.len * a.dtype.size > CHIP.static_size:
        size = f"{a.len} elements of {a.dtype.size} bytes"
        raise UsageError(f"{size} at 0x{a.static_addr:x} do not lie in static memory, or are not aligned")


def _from_static(k: Recorder, a: Arguments) -> None:
    _check_static(a)
    place("dst", a.dst_addr, dim4(1, a.npu_num, 1, a.len), a.dtype)
    k.add(special.static_broadcast(a.dst_addr, a.static_addr, a.npu_num, a.len, a.dtype.precision))


def _distribute_static(k: Recorder, a: Arguments) -> None:
    _check_static(a)
    place("dst", a.dst_addr, dim4(1, a.len, 1, 1), a.dtype, layout=compact)
    k.add(special.static_distribute(a.dst_addr, a.static_addr, a.len, a.dtype.precision))


_TABLES = {
    "exp": {FP32: (static_tables.EXP, 10), FP16: (static_tables.EXP_FP16, 7), BF16: (static_tables.EXP_BF16, 7)},
    "log": {FP32: (static_tables.LOG, 16), FP16: (static_tables.LOG_FP16, 8), BF16: (static_tables.LOG_BF16, 8)},
    "sin": {FP32: (static_tables.SIN, 32), FP16: (static_tables.SIN_FP16, 16), BF16: (static_tables.SIN_BF16, 16)},
    "cos": {FP32: (static_tables.COS, 32), FP16: (static_tables.COS_FP16, 16), BF16: (static_tables.COS_BF16, 16)},
    "erf": {FP32: (static_tables.ERF, 10)},
    "tan": {FP32: (static_tables.TAN, 32)},
    "arcsin": {FP32: (static_tables.ARCSIN, 32)},
    "arctan": {FP32: (static_tables.ARCTAN, 32)},
}


def _loader(name: str) -> Function:
    tables = _TABLES[name]
    types = " or ".join(dtype.name for dtype in tables)

    def emit(k: Recorder, a: Arguments) -> None:
        table, words = tables[a.dtype]
        place("coeff", a.coeff_addr, dim4(1, CHIP.lanes, 1, words), a.dtype)
        load(k, a.coeff_addr, table, words)

    known = Rule(f"dtype must be {types}", lambda a: a.dtype in tables)
    prototype = f"void tpu_bdc_load_fp_{name}_coeff(local_addr_t coeff_addr, data_type_t dtype)"
    return Function(prototype, f"coefficients of {name}", emit, (known, lane_zero("coeff")))


# -- by index ----------------------------------------------------------------------------------------------------------
def _scatter(k: Recorder, a: Arguments) -> None:
    n, c, _, _ = a.shape
    row = dim4(1, CHIP.lanes if a.is_param_repeated else c, 1, a.param_w)
    place("param", a.param_addr, row, a.dtype)
    place("index", a.index_addr, dim4(n, c, 1, a.param_w), a.index_dtype)
    source = (a.param_addr, a.param_w, a.is_param_repeated)
    index = (a.index_addr, a.param_w, a.index_dtype.precision)
    result = tensor(a, "output", a.dtype)
    k.add(special.by_index(Gather.SCATTER_LANE_FAST, a.shape, result.place, source, index, a.dtype.precision))


# -- exponents, per-channel factors ------------------------------------------------------------------------------------
def _exponent(k: Recorder, a: Arguments) -> None:
    result, source = tensor(a, "dst", a.dst_dtype), tensor(a, "src", a.src_dtype)
    k.add(special.exponent(a.shape, result.place, source.place, source.precision, result.precision))


def _linear(operation: Lin, *names: str) -> Emit:
    """B and C by the names of their parameters; what has none is 1 in a bias."""

    def vector(a: Arguments, name: str) -> Operand:
        if name == "one":
            ones = {FP32: 0x3F80_0000, FP16: 0x3C00, BF16: 0x3F80}
            return constant(ones[a.dtype], a.dtype.precision)
        place(name, getattr(a, f"{name}_addr"), dim4(1, a.shape.c, 1, 1), a.dtype, layout=compact)
        return Operand(getattr(a, f"{name}_addr"), a.dtype.precision)

    def emit(k: Recorder, a: Arguments) -> None:
        vectors = [vector(a, name) for name in names]
        k.add(arithmetic.linear(operation, a.shape, tensor(a, "dst", a.dtype), tensor(a, "src", a.dtype), *vectors))

    return emit


# -- pooling -----------------------------------------------------------------------------------------------------------
_POOL = (
    "local_addr_t output_addr, local_addr_t input_addr, const dim4 *input_shape, const dim2 *kernel, "
    "const padding_t *padding, const dim2 *stride, const dim2 *dilation, "
)


def _window(a: Arguments) -> Window:
    return Window(a.kernel, a.stride, a.dilation, a.padding)


def _pool(k: Recorder, a: Arguments, operation: Pord, to: data_type_t, of: data_type_t, **more: int) -> None:
    window, image = _window(a), a.input_shape
    place("input", a.input_addr, image, of)
    place("output", a.output_addr, dim4(image.n, image.c, *window.result((image.h, image.w))), to)
    precisions = {"res0_prec": to.precision, "opd0_prec": of.precision}
    k.add(special.pool(operation, image, window, a.output_addr, a.input_addr, **precisions, **more))


def _average(k: Recorder, a: Arguments) -> None:
    factor = {"opd1_const": 1, "opd1_addr": a.scale, "opd2_n_str": Rounding.HALF_UP}
    _pool(k, a, Pord.AVERAGE, a.dtype, a.dtype, **factor)


def _average_of_bytes(k: Recorder, a: Arguments) -> None:
    factor = {"opd1_const": 1, "opd1_addr": a.scale, "opd2_n_str": Rounding.HALF_UP, "opd2_addr": a.rshift}
    _pool(k, a, Pord.AVERAGE, a.output_dtype, a.input_dtype, opd0_sign=a.input_dtype.signed, **factor)


def _in_range(numbers: tuple[int, ...], limits: tuple[int, int]) -> bool:
    return all(limits[0] <= number <= limits[1] for number in numbers)


_WINDOWS = (
    same_lane("output", "input"),
    Rule("padding must be in [0, 15]", lambda a: _in_range(a.padding, _PADS)),
    Rule("stride must be in [1, 15]", lambda a: _in_range(a.stride, _STEPS)),
    Rule("dilation must be in [1, 15]", lambda a: _in_range(a.dilation, _STEPS)),
    Rule("kernel must be at least 1 x 1", lambda a: min(a.kernel) >= 1),
    Rule(
        "a window must fit into the image with its padding",
        lambda a: min(_window(a).result((a.input_shape.h, a.input_shape.w))) >= 1,
    ),
)
_BYTES = Rule("input_dtype must be DT_INT8 or DT_UINT8", lambda a: a.input_dtype.size == 1)
_ALIKE = Rule(
    "input_dtype and output_dtype must both be signed, or both unsigned",
    lambda a: a.input_dtype.signed == a.output_dtype.signed,
)
_FROM_STATIC = "local_addr_t dst_addr, static_addr_t static_addr, "
_LANES_LEFT = Rule(
    "c must be at most the number of lanes from that of dst on", lambda a: a.shape.c <= CHIP.lanes - lane_of(a.dst_addr)
)
_NPUS_LEFT = Rule(
    "npu_num must be at most the number of lanes from that of dst on",
    lambda a: a.npu_num <= CHIP.lanes - lane_of(a.dst_addr),
)
_INDICES = Rule(
    "index_dtype must be DT_UINT8 or DT_UINT16",
    lambda a: a.index_dtype in (data_type_t.DT_UINT8, data_type_t.DT_UINT16),
)
_PER_CHANNEL = "const dim4 *shape, data_type_t dtype"
_PAIR = "local_addr_t dst_addr, local_addr_t src_addr, "
_EXPONENTS = Rule(
    "dst_dtype must be src_dtype, or the signed integer of its width",
    lambda a: a.dst_dtype in (a.src_dtype, data_type_t.DT_INT32 if a.src_dtype == FP32 else data_type_t.DT_INT16),
)

LANES = in_group(
    "Between lanes, and from static memory",
    Function(f"void tpu_bdc_npu_bcast({_MOVE})", "src(n, 0, h, w)", _broadcast, (computed("dtype"), _LANES_LEFT)),
    Function(
        f"void tpu_bdc_cw_trans({_MOVE})",
        "src(n, w, h, c); dst has its rows aligned",
        _transpose(Trans.CW),
        (computed("dtype"), lane_zero("src"), different("dst", "src")),
    ),
    Function(
        f"void tpu_bdc_wc_trans({_MOVE})",
        "src(n, w, h, c)",
        _transpose(Trans.WC),
        (computed("dtype"), lane_zero("dst"), different("dst", "src")),
    ),
    _loader("exp"),
)
LOADERS = in_group(
    "Between lanes, and from static memory",
    *(_loader(name) for name in _TABLES if name != "exp"),
    source=Known.DESCRIBED,
)
DERIVED_LANES = in_group(
    "Between lanes, and from static memory",
    Function(f"void tpu_bdc_cpy_cross_npu({_MOVE})", "src", _lane_copy, (computed("dtype"),)),
    Function(
        f"void tpu_bdc_npu_bcast_from_static({_FROM_STATIC}int npu_num, int len, data_type_t dtype)",
        "dst(0, c, 0, w) = static(w)",
        _from_static,
        (computed("dtype"), at_least(1, "npu_num", "len"), _NPUS_LEFT),
    ),
    Function(
        f"void tpu_bdc_npu_distribute_from_static({_FROM_STATIC}int len, data_type_t dtype)",
        "dst(0, c, 0, 0) = static(c), compact",
        _distribute_static,
        (computed("dtype"), within("len", 1, CHIP.lanes)),
    ),
    source=Known.DERIVED,
)
OTHERS = in_group(
    "By index, exponents",
    Function(
        "void tpu_bdc_batch_bcast_w_scatter(local_addr_t output_addr, local_addr_t param_addr, "
        "local_addr_t index_addr, const dim4 *shape, int param_w, data_type_t dtype, "
        "data_type_t index_dtype, bool is_param_repeated)",
        "output(n, c, 0, index(n, c, 0, i)) = param(0, c, 0, i), i < param_w",
        _scatter,
        (
            computed("dtype"),
            _INDICES,
            at_least(1, "param_w"),
            Rule("h must be 1", lambda a: a.shape.h == 1),
            same_lane("output", "param", "index"),
        ),
    ),
    Function(
        f"void tpu_bdc_fp_exponent_part({_PAIR}const dim4 *shape, data_type_t dst_dtype, data_type_t src_dtype)",
        "the exponent of src, rounded up above a mantissa of 4/3",
        _exponent,
        (floats("src_dtype"), _EXPONENTS, same_lane("dst", "src")),
    ),
)
LINEAR = in_group(
    "With a value per channel",
    Function(
        f"void tpu_bdc_fp_scale_bias({_PAIR}local_addr_t scale_addr, local_addr_t bias_addr, {_PER_CHANNEL})",
        "src * scale(0, c, 0, 0) + bias(0, c, 0, 0)",
        _linear(Lin.MAC, "scale", "bias"),
        (floats("dtype"), same_lane("dst", "src", "scale", "bias")),
    ),
    Function(
        f"void tpu_bdc_fp_bias({_PAIR}local_addr_t bias_addr, {_PER_CHANNEL})",
        "src + bias(0, c, 0, 0)",
        _linear(Lin.MAC, "one", "bias"),
        (floats("dtype"), same_lane("dst", "src", "bias")),
    ),
    Function(
        f"void tpu_bdc_fp_add_bias_sqr({_PAIR}local_addr_t bias_addr, {_PER_CHANNEL})",
        "(src + bias(0, c, 0, 0))^2",
        _linear(Lin.SQUARE_SUM, "bias"),
        (floats("dtype"), same_lane("dst", "src", "bias")),
    ),
    Function(
        f"void tpu_bdc_fp_sub_bias_sqr({_PAIR}local_addr_t bias_addr, {_PER_CHANNEL})",
        "(src - bias(0, c, 0, 0))^2",
        _linear(Lin.SQUARE_DIFFERENCE, "bias"),
        (floats("dtype"), same_lane("dst", "src", "bias")),
    ),
    source=Known.DERIVED,
)
POOLING = in_group(
    "Pooling",
    Function(
        f"void tpu_bdc_fp_avg_pool2d({_POOL}data_type_t dtype, scalar_t scale)",
        "sum of scale * input over the window",
        _average,
        (floats("dtype"), *_WINDOWS),
    ),
    Function(
        f"void tpu_bdc_fp_max_pool2d({_POOL}data_type_t dtype, scalar_t pad_val)",
        "maximum of the window, pad_val around the image",
        lambda k, a: _pool(k, a, Pord.MAX, a.dtype, a.dtype, opd3_addr=a.pad_val),
        (floats("dtype"), *_WINDOWS),
    ),
    Function(
        f"void tpu_bdc_int8_avg_pool2d({_POOL}data_type_t output_dtype, data_type_t input_dtype, unsigned char scale, "
        "unsigned char rshift)",
        "(scale * sum of the window) >> rshift, saturated",
        _average_of_bytes,
        (integers("output_dtype", "input_dtype"), _BYTES, _ALIKE, within("rshift", 0, 31), *_WINDOWS),
    ),
)
ROWS = (*LANES, *LOADERS, *DERIVED_LANES, *OTHERS, *LINEAR, *POOLING)
