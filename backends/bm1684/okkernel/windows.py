"""Convolution, depthwise convolution, pooling and products of matrices."""

from __future__ import annotations

from bmcompiler.backends.bm168x.calls import Arguments, Rule
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Eu, StrideCode, Task
from bmcompiler.backends.bm1684.okkernel.elementwise import need_one_lane, sizes, strides
from bmcompiler.backends.bm1684.okkernel.places import Tensor, in_default_layout, lane_of, tensor
from bmcompiler.backends.bm1684.okkernel.recorder import Recorder
from bmcompiler.backends.bm1684.okkernel.rows import Emit, Function, in_group, within
from bmcompiler.backends.bm1684.okkernel.types import Padding, dim2, dim4, fp32_bits
from bmcompiler.errors import UsageError

_NO_PADDING, _ONE = Padding(0, 0, 0, 0), dim2(1, 1)
_EXPLICIT = int(StrideCode.EXPLICIT)


def _result(a: Arguments, channels: int) -> dim4:
    """The shape of what windows give."""
    pads, step, spread = a.padding or _NO_PADDING, a.stride or _ONE, a.get("dilation") or _ONE
    n, _, h, w = a.input_shape
    high = (h + pads.top + pads.bottom - (a.kernel_h - 1) * spread.h - 1) // step.h + 1
    wide = (w + pads.left + pads.right - (a.kernel_w - 1) * spread.w - 1) // step.w + 1
    return dim4(n, channels, high, wide)


def _window(a: Arguments, output: dim4) -> dict[str, int]:
    pads, step, spread = a.padding or _NO_PADDING, a.stride or _ONE, a.get("dilation") or _ONE
    return {
        "opt_relu": 1,
        "opd0_up_pad": pads.top,
        "opd0_dn_pad": pads.bottom,
        "opd0_lf_pad": pads.left,
        "opd0_rt_pad": pads.right,
        "res_op_y_str": step.h,
        "res_op_x_str": step.w,
        "opd1_y_ins0": spread.h - 1,
        "opd1_x_ins0": spread.w - 1,
        "opd0_h": a.input_shape.h,
        "opd0_w": a.input_shape.w,
        "opd1_h": a.kernel_h,
        "opd1_w": a.kernel_w,
        **sizes("res0", output),
    }


def _bias(a: Arguments, channels: int) -> dict[str, int]:
    if not a.using_bias:
        return {}
    place = tensor(a, "bias", dim4(1, channels, 1, 1))
    return {"tsk_opd_num": 3, "opd2_addr": place.window}


def _conv2d(k: Recorder, a: Arguments) -> None:
    shape = _result(a, a.output_c)
    output, source = in_default_layout(a, "output", shape), tensor(a, "input", a.input_shape)
    if source.given is None and source.address % CHIP.alignment:
        raise UsageError(f"input must begin at a multiple of {CHIP.alignment} bytes, got 0x{source.address:x}")
    weight = _weight(a)
    need_one_lane(output, source, weight)
    given = {} if source.given is None else {"short_opd0_str": _EXPLICIT} | strides("opd0", source.given)
    k.tiu(
        tsk_typ=Task.CONV,
        opt_res_add=int(a.result_add),
        opd0_c=a.input_shape.c,
        short_opd1_str=_EXPLICIT,
        res0_addr=output.window,
        opd0_addr=source.window,
        opd1_addr=weight.window,
        **strides("opd1", a.kernel_stride),
        **given,
        **_window(a, shape),
        **_bias(a, a.output_c),
    )


def _weight(a: Arguments) -> Tensor:
    """The kernel, whose strides count pairs of channels of the image. Raises UsageError outside a lane."""
    pairs = dim4(-(-a.input_shape.c // 2), a.output_c, a.kernel_h, a.kernel_w)
    lane, offset = divmod(a.weight_addr, CHIP.lmem_size)
    if offset % 8:
        raise UsageError(f"weight must begin at a multiple of 8 bytes, got 0x{a.weight_addr:x}")
    counts = pairs.n, CHIP.channel_rows(lane, pairs.c), pairs.h, pairs.w
    end = offset + 8 * (1 + sum((count - 1) * step for count, step in zip(counts, a.kernel_stride)))
    if end > CHIP.lmem_size:
        raise UsageError(f"weight ends at byte {end} of its lane, which has {CHIP.lmem_size}")
    return Tensor(a.weight_addr, pairs, a.kernel_stride)


def _images(a: Arguments) -> tuple[Tensor, Tensor]:
    shape = _result(a, a.input_shape.c)
    output, source = in_default_layout(a, "output", shape), in_default_layout(a, "input", a.input_shape)
    need_one_lane(output, source)
    return output, source


def _depthwise(k: Recorder, a: Arguments) -> None:
    output, source = _images(a)
    channels = a.input_shape.c
    rows = CHIP.channel_rows(lane_of(a.weight_addr), channels)
    size = a.kernel_h * a.kernel_w
    compact = dim4(rows * size, size, a.kernel_w, 1)
    weight = tensor(a, "weight", dim4(1, channels, a.kernel_h, a.kernel_w))._replace(given=compact)
    need_one_lane(output, weight)
    k.tiu(
        tsk_typ=Task.POOL_OR_DEPTHWISE,
        tsk_eu_typ=Eu.MAC,
        res0_addr=output.window,
        opd0_addr=source.window,
        opd1_addr=weight.window,
        **_window(a, output.shape),
        **_bias(a, channels),
    )


def _pool(unit: Eu) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        output, source = _images(a)
        factor = fp32_bits(1.0 / (a.kernel_h * a.kernel_w))
        own = {"tsk_opd_num": 1} if unit == Eu.MAX else {"opt_opd1_const": 1, "opd1_addr": factor}
        k.tiu(
            tsk_typ=Task.POOL_OR_DEPTHWISE,
            tsk_eu_typ=unit,
            res0_addr=output.window,
            opd0_addr=source.window,
            **own,
            **_window(a, output.shape),
        )

    return emit


def _matmul(k: Recorder, a: Arguments) -> None:
    left_c, right_c = -(-a.left_cols // a.left_cols_per_channel), -(-a.right_cols // a.right_cols_per_channel)
    result = dim4(a.left_rows, right_c, 1, a.right_cols_per_channel)
    output = in_default_layout(a, "output", result)
    left = in_default_layout(a, "left", dim4(a.left_rows, left_c, 1, a.left_cols_per_channel))
    right = in_default_layout(a, "right", result._replace(n=a.left_cols))
    bias = {}
    if a.using_bias:
        place = in_default_layout(a, "bias", result._replace(n=1))
        bias = {"tsk_opd_num": 3, "opd2_addr": place.window}
    need_one_lane(output, right)
    k.tiu(
        tsk_typ=Task.MATRIX,
        opt_relu=1,
        opt_res_add=int(a.result_add),
        res0_c=right_c,
        res0_w=a.right_cols_per_channel,
        opd0_n=a.left_rows,
        opd0_c=left_c,
        opd0_w=a.left_cols_per_channel,
        opd1_w=a.left_cols - (left_c - 1) * a.left_cols_per_channel,
        res0_addr=output.window,
        opd0_addr=left.window,
        opd1_addr=right.window,
        **bias,
    )


_FITS = Rule("the window must fit into the padded image", lambda a: min(_result(a, 1)) >= 1)
_SHAPES = (within(1, 65535, "kernel_h", "kernel_w"), within(0, 15, "padding"), within(1, 15, "stride"))
_WINDOW = (*_SHAPES, _FITS)
_SPREAD = (*_SHAPES, within(1, 16, "dilation"), _FITS)
_CONV = (
    Rule("kernel_stride must not be NULL", lambda a: a.kernel_stride is not None),
    within(1, 4095, "output_c"),
)
_SIZES = ("left_rows", "left_cols", "right_cols", "left_cols_per_channel", "right_cols_per_channel")
_IMAGES = "local_addr_t output_addr, local_addr_t input_addr, "
_WEIGHT = "local_addr_t weight_addr, local_addr_t bias_addr, "
_KERNEL, _AROUND = "int kernel_h, int kernel_w, ", "const Padding *padding, const dim2 *stride"

ROWS = in_group(
    "Windows and matrices",
    Function(
        f"void okk_bdc_conv2d({_IMAGES}{_WEIGHT}const dim4 *input_shape, int output_c, {_KERNEL}"
        "const dim4 *input_stride, const dim4 *kernel_stride, bool using_bias, bool result_add, "
        f"{_AROUND}, const dim2 *dilation)",
        "convolution; strides of the kernel count pairs of channels",
        _conv2d,
        (*_CONV, *_SPREAD),
    ),
    Function(
        f"void okk_bdc_depthwise2d({_IMAGES}{_WEIGHT}const dim4 *input_shape, {_KERNEL}bool using_bias, "
        f"{_AROUND}, const dim2 *dilation)",
        "each channel by its own window, which is compact",
        _depthwise,
        _SPREAD,
    ),
    *(
        Function(
            f"void okk_bdc_{word}_pool2d({_IMAGES}const dim4 *input_shape, {_KERNEL}{_AROUND})",
            text,
            _pool(unit),
            _WINDOW,
        )
        for word, text, unit in (
            ("avg", "mean of each window, zeros around the image", Eu.MAC),
            ("max", "maximum of each window", Eu.MAX),
        )
    ),
    Function(
        "void okk_bdc_matmul(local_addr_t output_addr, local_addr_t left_addr, local_addr_t right_addr, "
        f"local_addr_t bias_addr, {', '.join(f'int {name}' for name in _SIZES)}, bool using_bias, bool result_add)",
        "left * right + bias, columns split over channels as matrix transfers do",
        _matmul,
        (within(1, 65535, *_SIZES),),
    ),
)
