"""Raw command structures of the DV driver interface, of structs.h, as numpy layouts (dv.md 1).

Offsets, sizes and padding are those of the C structures on a 64-bit host; `numpy.ctypeslib.as_ctypes_type(CONV_V0)`
gives the ctypes form. The 8-byte `mem` field of a buffer holds the integer `handle` of device memory, 0 for NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any

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
MOST_SAMPLES = 0x7FFF
"""Of one command: the top bit of the field means something else (dv.md 1.6)."""


class ConvEnable(IntFlag):
    """Bits of `conv_enable`: 1 = convolution, 3 = depthwise, 5 = transposed, 7 = transposed depthwise."""

    CONV = 1
    DEPTHWISE = 2
    DECONV = 4


class Pool(IntEnum):
    """Values of the field `pool_enable`."""

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

U8_TABLE_BYTES = 6 * 256
"""Three channels of 256 fp16 values."""

_NUMBERS = {
    f"{sign}int{bits}_t": f"<{kind}{bits // 8}" for sign, kind in (("u", "u"), ("", "i")) for bits in (8, 16, 32)
}
BUF = np.dtype([("mem", "<u8"), ("offs", "<u8")])

TEXT = Path(__file__).with_name("structs.h").read_text(encoding="utf-8")
"""The structures in C."""


def _layouts() -> Iterator[tuple[str, np.dtype[Any]]]:
    known: dict[str, Any] = {**_NUMBERS, "dmp_dv_buf": BUF}
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", TEXT, re.S):
        fields = re.findall(r"(?:struct )?(\w+) (\w+)(?:\[(\d+)\])?;", body)
        known[name] = np.dtype(
            [(field, known[kind], *([int(count)] if count else [])) for kind, field, count in fields]
        )
        yield name.removeprefix("dmp_dv_"), known[name]


_FOUND = dict(_layouts())
INFO, INFO_V0, CMDRAW = _FOUND["info"], _FOUND["info_v0"], _FOUND["cmdraw"]
CONV_RUN, CONV_V0, CONV_V1 = (_FOUND[f"cmdraw_conv_{one}"] for one in ("v0_run", "v0", "v1"))
FC_V0, IPU_V0, MAXIMIZER_V0 = (_FOUND[f"cmdraw_{one}_v0"] for one in ("fc", "ipu", "maximizer"))

LAYOUTS = {
    (DeviceType.CONV, 0): CONV_V0,
    (DeviceType.CONV, 1): CONV_V1,
    (DeviceType.FC, 0): FC_V0,
    (DeviceType.IPU, 0): IPU_V0,
    (DeviceType.MAXIMIZER, 0): MAXIMIZER_V0,
}
"""Structure of every (device type, version) that the driver knows."""
