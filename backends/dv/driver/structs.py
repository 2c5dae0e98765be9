"""Raw command structures of the DV driver interface as numpy layouts (dv.md 1).

Offsets, sizes and padding are those of the C structures on a 64-bit host; `numpy.ctypeslib.as_ctypes_type(CONV_V0)`
gives the ctypes form. The 8-byte `mem` field of a buffer holds the integer `handle` of device memory, 0 for NULL.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np


class DeviceType(IntEnum):
    """`device_type` of a command; one command list holds commands of one type."""

    CONV = 1
    FC = 2
    IPU = 3
    MAXIMIZER = 4


DEVICE_TYPES = 5
"""DMP_DV_DEV_COUNT of the current headers (the wiki's list ends at 3)."""

MAX_RUNS = 32

MAX_INPUT_WIDTH, MAX_INPUT_HEIGHT, MAX_INPUT_CHANNELS = 2047, 1024, 32768
"""Limits of the vendor's converter; the driver does not check them (dv.md 4.1)."""


class ConvEnable(IntFlag):
    """Bits of `conv_enable`: 1 = convolution, 3 = depthwise, 5 = transposed, 7 = transposed depthwise."""

    CONV = 1
    DEPTHWISE = 2
    DECONV = 4


class Pool(IntEnum):
    """`pool_enable`."""

    NONE = 0
    MAX = 1
    AVERAGE = 2
    UPSAMPLE = 4


class Activation(IntEnum):
    """`actfunc` of a CONV run."""

    NONE = 0
    TANH = 1
    LEAKY_RELU = 2
    SIGMOID = 3
    PRELU = 4
    ELU = 5
    RELU6 = 6


class FcActivation(IntEnum):
    """`actfunc` of an FC command."""

    NONE = 0
    RELU = 1
    TANH = 2
    LEAKY_RELU = 3
    SIGMOID = 4
    PRELU = 5


class OutputMode(IntEnum):
    """`output_mode` of a CONV command."""

    CONCAT = 0
    ADD = 1


class WeightFormat(IntEnum):
    """`weight_fmt` of a CONV run; format 0 has no packer of its own and is taken as fp16."""

    FLOAT16 = 1
    QUANTIZED = 3


class FcFormat(IntEnum):
    """`weight_fmt` of an FC command."""

    FLOAT16 = 0
    QUANTIZED = 1


class ImageFormat(IntEnum):
    """Pixel formats of the IPU."""

    RGBA8888 = 0
    RGB888 = 1
    RGBFP16 = 2
    LUT = 7


PIXEL_BYTES = {ImageFormat.RGBA8888: 4, ImageFormat.RGB888: 3, ImageFormat.RGBFP16: 6, ImageFormat.LUT: 1}

LRN = 0x503
"""The one LRN setting with a known meaning: enable, power function, squares scaled by 2^-5 (dv.md 1.3)."""

HALF_ONE = 0x3C00
"""1.0 as a 16-bit pattern."""

INFO = np.dtype([("size", "<u4"), ("version", "<u4")])
INFO_V0 = np.dtype(
    [
        ("header", INFO),
        ("ub_size", "<i4"),
        ("max_kernel_size", "<i4"),
        ("conv_freq", "<i4"),
        ("fc_freq", "<i4"),
        ("max_fc_vector_size", "<i4"),
        ("rsvd", "<i4"),
    ]
)

BUF = np.dtype([("mem", "<u8"), ("offs", "<u8")])
CMDRAW = np.dtype([("size", "<u4"), ("device_type", "u1"), ("version", "u1"), ("rsvd", "u1", 2)])

CONV_RUN = np.dtype(
    [
        ("weight_buf", BUF),
        ("conv_pad", "<u4"),
        ("pool_pad", "<u4"),
        ("m", "<u2"),
        ("conv_enable", "<u2"),
        ("p", "<u2"),
        ("pz", "<u2"),
        ("conv_stride", "<u2"),
        ("conv_dilation", "<u2"),
        ("weight_fmt", "<u2"),
        ("pool_enable", "<u2"),
        ("pool_avg_param", "<u2"),
        ("pool_size", "<u2"),
        ("pool_stride", "<u2"),
        ("actfunc", "<u2"),
        ("actfunc_param", "<u2"),
        ("rectifi_en", "<u2"),
        ("lrn", "<u2"),
        ("rsvd", "<u2"),
    ]
)

CONV_V0 = np.dtype(
    [
        ("header", CMDRAW),
        ("input_buf", BUF),
        ("output_buf", BUF),
        ("eltwise_buf", BUF),
        ("topo", "<u4"),
        ("w", "<u2"),
        ("h", "<u2"),
        ("z", "<u2"),
        ("c", "<u2"),
        ("input_circular_offset", "<u2"),
        ("output_mode", "<u2"),
        ("run", CONV_RUN, MAX_RUNS),
    ]
)

CONV_V1 = np.dtype(
    [
        ("header", CMDRAW),
        ("u8tofp16_table", BUF),
        ("to_bgr", "<u2"),
        ("rsvd", "<u2", 3),
        ("conv_cmd", CONV_V0),
    ]
)

U8_TABLE_BYTES = 6 * 256
"""Three channels of 256 fp16 values."""

FC_V0 = np.dtype(
    [
        ("header", CMDRAW),
        ("weight_buf", BUF),
        ("input_buf", BUF),
        ("output_buf", BUF),
        ("input_size", "<u2"),
        ("output_size", "<u2"),
        ("weight_fmt", "<u2"),
        ("actfunc", "<u2"),
        ("actfunc_param", "<u2"),
        ("rsvd", "<u2", 3),
    ]
)

IPU_V0 = np.dtype(
    [
        ("header", CMDRAW),
        ("tex", BUF),
        ("rd", BUF),
        ("wr", BUF),
        ("fmt_tex", "u1"),
        ("fmt_rd", "u1"),
        ("fmt_wr", "u1"),
        ("rsvd1", "u1"),
        ("tex_width", "<u2"),
        ("tex_height", "<u2"),
        ("rect_width", "<u2"),
        ("rect_height", "<u2"),
        ("stride_rd", "<i4"),
        ("stride_wr", "<i4"),
        ("lut", "<u4", 32),
        ("ncolor_lut", "u1"),
        ("alpha", "u1"),
        ("transpose", "u1"),
        ("use_const_alpha", "u1"),
        ("use_tex", "u1"),
        ("use_rd", "u1"),
        ("blf", "u1"),
        ("ridx", "i1"),
        ("gidx", "i1"),
        ("bidx", "i1"),
        ("aidx", "i1"),
        ("cnv_type", "u1"),
        ("cnv_param", "u1", 3),
        ("rsvd2", "u1", 5),
    ]
)

MAXIMIZER_V0 = np.dtype(
    [
        ("header", CMDRAW),
        ("input_buf", BUF),
        ("output_buf", BUF),
        ("width", "<u2"),
        ("height", "<u2"),
        ("nclass", "u1"),
        ("rsvd", "u1", 3),
    ]
)

LAYOUTS = {
    (DeviceType.CONV, 0): CONV_V0,
    (DeviceType.CONV, 1): CONV_V1,
    (DeviceType.FC, 0): FC_V0,
    (DeviceType.IPU, 0): IPU_V0,
    (DeviceType.MAXIMIZER, 0): MAXIMIZER_V0,
}
"""Structure of every (device type, version) that the driver knows."""
