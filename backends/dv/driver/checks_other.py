"""What the driver refuses of FC, IPU and MAXIMIZER commands, and of the header of every command (dv.md 1.5, 1.7)."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np

from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.checks import (
    FAILED,
    Refusal,
    Refusals,
    SizeOf,
    check_buffer,
    check_conv,
    check_table,
    failed,
    first,
)
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, FcCommand
from bmcompiler.backends.dv.driver.structs import (
    CMDRAW,
    CONV_V0,
    CONV_V1,
    DEVICE_TYPES,
    IPU_V0,
    LAYOUTS,
    MAXIMIZER_V0,
    PIXEL_BYTES,
    DeviceType,
    ImageFormat,
)
from bmcompiler.backends.dv.formats.packing_sizes import fc_size

_MAX_PIXELS = 1 << 24
_MAX_SIDE = 4095
_STRIDES = range(-32768, 32768)


def check_header(data: bytes) -> Refusal | None:
    """Size, device type and version of a command of any kind. `data` begins with the structure."""
    if len(data) < CMDRAW.itemsize:
        return Refusal(errno.EINVAL, "SIZE", f"a command has at least {CMDRAW.itemsize} bytes, not {len(data)}")
    header = np.frombuffer(data, CMDRAW, 1)[0]
    size, kind, version = (int(header[name]) for name in ("size", "device_type", "version"))
    if size < CMDRAW.itemsize:
        return Refusal(errno.EINVAL, "SIZE", f"header.size {size} is below {CMDRAW.itemsize}")
    if not 0 < kind < DEVICE_TYPES:
        return Refusal(errno.EINVAL, "DEVICE_TYPE", f"header.device_type {kind} is unknown")
    layout = LAYOUTS.get((DeviceType(kind), version))
    if layout is None:
        name = DeviceType(kind).name
        return Refusal(errno.ENOTSUP, "VERSION", f"version {version} of {name} commands is not supported")
    if size != layout.itemsize:
        return failed("SIZE", f"header.size {size} is not the {layout.itemsize} bytes of the structure")
    if len(data) < size:
        return Refusal(errno.EINVAL, "SIZE", f"header.size is {size} but the structure has {len(data)} bytes")
    return None


def check_command(data: bytes, chip: DvChip, size_of: SizeOf) -> Refusal | None:
    """All that `dmp_dv_cmdlist_add_raw` refuses; `data` begins with the structure, `size_of` knows its handles."""
    refusal = check_header(data)
    if refusal:
        return refusal
    header = np.frombuffer(data, CMDRAW, 1)[0]
    data = data[: int(header["size"])]
    kind = DeviceType(int(header["device_type"]))
    if kind == DeviceType.CONV:
        return _check_conv_bytes(data, chip, size_of)
    if kind == DeviceType.FC:
        return check_fc(FcCommand.decode(data), chip, size_of)
    if kind == DeviceType.IPU:
        return first(_ipu(np.frombuffer(data, IPU_V0)[0], size_of))
    return first(_maximizer(np.frombuffer(data, MAXIMIZER_V0)[0], size_of))


def _check_conv_bytes(data: bytes, chip: DvChip, size_of: SizeOf) -> Refusal | None:
    """The size in the inner header of a version 1 command is looked at after the table; its version is not."""
    command = ConvCommand.decode(data)
    if len(data) == CONV_V1.itemsize:
        refusal = check_table(command, size_of)
        if refusal:
            return refusal
        inner = int(np.frombuffer(data, CONV_V1)[0]["conv_cmd"]["header"]["size"])
        if inner != CONV_V0.itemsize:
            return failed("SIZE", f"conv_cmd.header.size {inner} is not {CONV_V0.itemsize}")
    return check_conv(command, chip, size_of)


def check_fc(command: FcCommand, chip: DvChip, size_of: SizeOf) -> Refusal | None:
    """The driver's check of an FC command."""
    return first(_fc(command, chip, size_of))


def _fc(command: FcCommand, chip: DvChip, size_of: SizeOf) -> Refusals:
    for name in ("input", "output", "weight"):
        if not getattr(command, f"{name}_buf").mem:
            yield failed(f"{name.upper()}_NULL", f"{name}_buf.mem is NULL")
    limit, inputs, outputs = chip.max_fc_vector_size, command.input_size, command.output_size
    if not 1 <= inputs <= limit:
        yield failed("FC_IN_SIZE", f"input_size {inputs} is outside 1 to {limit}")
    if not 1 <= outputs <= limit:
        yield failed("FC_OUT_SIZE", f"output_size {outputs} is outside 1 to {limit}")
    yield from check_buffer("input_buf", command.input_buf, 2 * inputs, size_of)
    yield from check_buffer("weight_buf", command.weight_buf, fc_size(inputs, outputs, command.is_quantized), size_of)
    yield from check_buffer("output_buf", command.output_buf, 2 * outputs, size_of)


def _ipu(command: Any, size_of: SizeOf) -> Refusals:
    """Buffer space does not consider the strides."""
    for refusal in _ipu_fields(command):
        yield Refusal(FAILED, "IPU_FIELD", refusal)
    pixels = int(command["rect_width"]) * int(command["rect_height"])
    yield from _image("wr", command, pixels, int(command["fmt_wr"]), size_of)
    if command["use_rd"]:
        yield from _image("rd", command, pixels, int(command["fmt_rd"]), size_of)
    if command["use_tex"]:
        texels = int(command["tex_width"]) * int(command["tex_height"])
        yield from _image("tex", command, texels, int(command["fmt_tex"]), size_of)


def _image(name: str, command: Any, pixels: int, form: int, size_of: SizeOf) -> Refusals:
    need = pixels * PIXEL_BYTES[ImageFormat(form)]
    yield from check_buffer(name, Buf(*command[name].tolist()), need, size_of)


def _ipu_fields(command: Any) -> list[str]:
    """All that is wrong with the fields of an IPU command, in the driver's order."""
    value = {name: command[name].item() for name in IPU_V0.names or () if not command[name].shape and name != "header"}
    mem = {name: int(command[name]["mem"]) for name in ("wr", "tex", "rd")}
    wrong = [
        (not mem["wr"], "wr.mem is NULL"),
        (value["fmt_wr"] not in (0, 1, 2), f"fmt_wr {value['fmt_wr']} is not RGBA8888, RGB888 or RGBFP16"),
        (value["stride_wr"] not in _STRIDES, "stride_wr does not fit 16 bits"),
        (not 0 < value["rect_width"] < _MAX_SIDE, "rect_width is outside 1 to 4094"),
        (not 0 < value["rect_height"] < _MAX_SIDE, "rect_height is outside 1 to 4094"),
        (not (value["use_tex"] or value["use_rd"]), "neither use_tex nor use_rd is set"),
    ]
    if value["use_tex"]:
        channels = {0: 4, 1: 3, 7: 4}.get(value["fmt_tex"], 4)
        swizzle = [value[name] for name in ("ridx", "gidx", "bidx", "aidx")[:channels]]
        wrong += [
            (not mem["tex"], "tex.mem is NULL"),
            (not 1 <= value["tex_width"] <= _MAX_SIDE, "tex_width is outside 1 to 4095"),
            (not 1 <= value["tex_height"] <= _MAX_SIDE, "tex_height is outside 1 to 4095"),
            (value["fmt_tex"] not in (0, 1, 7), f"fmt_tex {value['fmt_tex']} is not RGBA8888, RGB888 or LUT"),
            (sorted(swizzle) != list(range(channels)), f"swizzle {swizzle} does not name each channel once"),
            (value["cnv_type"] not in (0, 1), f"cnv_type {value['cnv_type']} is not 0 or 1"),
        ]
    if value["use_rd"]:
        wrong += [
            (not mem["rd"], "rd.mem is NULL"),
            (value["fmt_rd"] not in (0, 1), f"fmt_rd {value['fmt_rd']} is not RGBA8888 or RGB888"),
            (value["stride_rd"] == 0 or value["stride_rd"] not in _STRIDES, "stride_rd is 0 or does not fit 16 bits"),
        ]
    return [text for holds, text in wrong if holds]


def _maximizer(command: Any, size_of: SizeOf) -> Refusals:
    width, height, classes = (int(command[name]) for name in ("width", "height", "nclass"))
    if not (width and height):
        yield failed("DIM0", "width or height is 0")
    if width * height >= _MAX_PIXELS:
        yield failed("MAX_NPIX", f"{width} x {height} pixels are not below 2^24")
    if classes < 2:
        yield failed("MAX_NCLASS", f"nclass {classes} is below 2")
    pixels = width * height
    yield from check_buffer("input_buf", Buf(*command["input_buf"].tolist()), 2 * pixels * classes, size_of)
    yield from check_buffer("output_buf", Buf(*command["output_buf"].tolist()), pixels, size_of)
