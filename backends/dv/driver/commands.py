"""CONV and FC commands with their packed fields taken apart, and back to bytes.

Decoding keeps what a command does: `ConvCommand.decode(command.encode()) == command`. Two spellings of one
meaning become one (kernel height 0 = square, dilation 0 = 1); reserved fields and unused runs are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.dv.driver.structs import (
    CONV_V0,
    CONV_V1,
    FC_V0,
    MAX_RUNS,
    Activation,
    ConvEnable,
    DeviceType,
    FcActivation,
    OutputMode,
    Pool,
    WeightFormat,
)
from bmcompiler.errors import EncodingError


class Buf(NamedTuple):
    """Device memory handle (0 = NULL) and offset in bytes."""

    mem: int = 0
    offs: int = 0


class Pads(NamedTuple):
    """Rows and columns of padding."""

    left: int = 0
    right: int = 0
    top: int = 0
    bottom: int = 0


class Pair(NamedTuple):
    """A value per axis."""

    x: int
    y: int


NULL = Buf()
NO_PADS = Pads()
ONE = Pair(1, 1)


def _bytes(word: int) -> Pair:
    return Pair(word & 0xFF, word >> 8 & 0xFF)


def _word(pair: Pair) -> int:
    return pair.x | pair.y << 8


def _pads(word: int) -> Pads:
    """Left and top have 7 bits (dv.md 1.3); the driver reads pool pads in the same way."""
    return Pads(word & 0x7F, word >> 8 & 0xFF, word >> 16 & 0x7F, word >> 24 & 0xFF)


def _pad_word(pads: Pads) -> int:
    return pads.left | pads.right << 8 | pads.top << 16 | pads.bottom << 24


@dataclass(frozen=True)
class Run:
    """One run; the defaults are a run that does nothing, with the fields the kernel wants even then (dv.md 1.3).

    `kernel.y` 0 in the bytes means a square kernel and is read as such. `dilation` 0 means 1 and is read as such.
    """

    m: int
    weight_buf: Buf = NULL
    conv_pad: Pads = NO_PADS
    pool_pad: Pads = NO_PADS
    conv_enable: int = 0
    kernel: Pair = ONE
    pz: int = 1
    conv_stride: Pair = ONE
    dilation: Pair = ONE
    weight_fmt: int = WeightFormat.FLOAT16
    pool_enable: int = Pool.NONE
    pool_avg_param: int = 0
    pool_size: Pair = ONE
    pool_stride: Pair = ONE
    actfunc: int = Activation.NONE
    actfunc_param: int = 0
    rectifi_en: int = 0
    lrn: int = 0

    @property
    def has_conv(self) -> bool:
        """Whether the run multiplies by weights."""
        return self.conv_enable != 0

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has a kernel of its own."""
        return bool(self.conv_enable & ConvEnable.DEPTHWISE)

    @property
    def is_deconv(self) -> bool:
        """Whether the convolution is transposed."""
        return bool(self.conv_enable & ConvEnable.DECONV)

    @property
    def has_lrn(self) -> bool:
        """Whether the run ends with a normalisation across channels."""
        return bool(self.lrn & 1)

    @property
    def is_dilated(self) -> bool:
        """Whether the taps of the kernel have gaps on an axis."""
        return max(self.dilation) > 1

    @property
    def is_quantized(self) -> bool:
        """Whether weights are bytes that pick entries of a table of 256 fp16 numbers."""
        return bool(self.weight_fmt & 2)

    @property
    def has_prelu_stream(self) -> bool:
        """The weights carry a slope per output channel."""
        return self.has_conv and self.actfunc == Activation.PRELU

    @staticmethod
    def of_record(record: Any) -> Run:
        """From a record of `structs.CONV_RUN`, the values of which are plain numbers (`.tolist()`)."""
        (weights, conv_pad, pool_pad, m, enable, p, pz, stride, dilation, fmt, pool, param, size, pool_stride) = record[
            :14
        ]
        kernel, steps = _bytes(p), _bytes(dilation)
        return Run(
            m=m,
            weight_buf=Buf(*weights),
            conv_pad=_pads(conv_pad),
            pool_pad=_pads(pool_pad),
            conv_enable=enable,
            kernel=Pair(kernel.x, kernel.y or kernel.x),
            pz=pz,
            conv_stride=_bytes(stride),
            dilation=Pair(steps.x or 1, steps.y or 1),
            weight_fmt=fmt,
            pool_enable=pool,
            pool_avg_param=param,
            pool_size=_bytes(size),
            pool_stride=_bytes(pool_stride),
            actfunc=record[14],
            actfunc_param=record[15],
            rectifi_en=record[16],
            lrn=record[17],
        )

    def record(self) -> tuple[Any, ...]:
        """Field values in the order of `structs.CONV_RUN`. Raises EncodingError where a value does not fit."""
        for name, pads in (("conv_pad", self.conv_pad), ("pool_pad", self.pool_pad)):
            if max(pads.left, pads.top) > 0x7F or max(pads) > 0xFF or min(pads) < 0:
                raise EncodingError(f"{name} {tuple(pads)} is above 127 (left, top) or 255 (right, bottom)")
        for name in ("kernel", "conv_stride", "dilation", "pool_size", "pool_stride"):
            pair: Pair = getattr(self, name)
            if not (0 <= pair.x <= 0xFF and 0 <= pair.y <= 0xFF):
                raise EncodingError(f"{name} {tuple(pair)} does not fit 8 bits")
        return (
            tuple(self.weight_buf),
            _pad_word(self.conv_pad),
            _pad_word(self.pool_pad),
            self.m,
            self.conv_enable,
            _word(self.kernel),
            self.pz,
            _word(self.conv_stride),
            _word(self.dilation),
            self.weight_fmt,
            self.pool_enable,
            self.pool_avg_param,
            _word(self.pool_size),
            _word(self.pool_stride),
            self.actfunc,
            self.actfunc_param,
            self.rectifi_en,
            self.lrn,
            0,
        )


_CONV_NUMBERS = ("w", "h", "z", "c", "input_circular_offset", "output_mode")
_CONV_BUFFERS = ("input_buf", "output_buf", "eltwise_buf")
_FC_NUMBERS = ("input_size", "output_size", "weight_fmt", "actfunc", "actfunc_param")
_FC_BUFFERS = ("weight_buf", "input_buf", "output_buf")


@dataclass(frozen=True)
class ConvCommand:
    """A CONV command: the used runs only, one per bit up to the highest set bit of `topo` (dv.md 1.6)."""

    w: int
    h: int
    c: int
    runs: tuple[Run, ...]
    topo: int = 1
    z: int = 1
    input_buf: Buf = NULL
    output_buf: Buf = NULL
    eltwise_buf: Buf = NULL
    input_circular_offset: int = 0
    output_mode: int = OutputMode.CONCAT
    u8_table: Buf = NULL
    to_bgr: int = 0

    @property
    def is_multi_run(self) -> bool:
        """The driver calls a command multi-run when its topo is not 1."""
        return self.topo != 1

    @property
    def samples(self) -> int:
        """Consecutive inputs that the command is run on (dv.md 1.6)."""
        return max(1, self.input_circular_offset)

    def writes_external(self, index: int) -> bool:
        """Run `index` writes external memory, not the unified buffer."""
        return bool(self.topo >> index & 1)

    def reads_command_input(self, index: int) -> bool:
        """Run `index` reads the command's input: the first, and each one after a run that writes external memory."""
        return index == 0 or self.writes_external(index - 1)

    @staticmethod
    def decode(data: bytes) -> ConvCommand:
        """From a version 0 or version 1 structure of full size. Raises EncodingError for other sizes."""
        table, to_bgr = Buf(), 0
        if len(data) == CONV_V1.itemsize:
            outer = np.frombuffer(data, CONV_V1)[0]
            table, to_bgr = Buf(*outer["u8tofp16_table"].tolist()), int(outer["to_bgr"])
            data = data[CONV_V1.fields["conv_cmd"][1] :] if CONV_V1.fields else data
        if len(data) != CONV_V0.itemsize:
            raise EncodingError(f"a CONV command has {CONV_V0.itemsize} or {CONV_V1.itemsize} bytes, not {len(data)}")
        command: Any = np.frombuffer(data, CONV_V0)[0]
        topo = int(command["topo"])
        numbers: dict[str, Any] = {name: int(command[name]) for name in _CONV_NUMBERS}
        buffers: dict[str, Any] = {name: Buf(*command[name].tolist()) for name in _CONV_BUFFERS}
        return ConvCommand(
            **numbers,
            **buffers,
            topo=topo,
            runs=tuple(Run.of_record(record) for record in command["run"][: topo.bit_length()].tolist()),
            u8_table=table,
            to_bgr=to_bgr,
        )

    def encode(self) -> bytes:
        """The structure, version 1 where a conversion table is given, else version 0.

        Raises EncodingError when a value does not fit its field or the runs do not fit `topo`.
        """
        if not 1 <= len(self.runs) <= MAX_RUNS or self.topo.bit_length() != len(self.runs):
            raise EncodingError(f"topo 0x{self.topo:x} is not for {len(self.runs)} runs")
        command = np.zeros(1, CONV_V0)
        command["header"] = (CONV_V0.itemsize, DeviceType.CONV, 0, (0, 0))
        command["topo"] = self.topo
        for name in _CONV_NUMBERS:
            command[name] = _fitting(name, getattr(self, name))
        for name in _CONV_BUFFERS:
            command[name] = tuple(getattr(self, name))
        for index, run in enumerate(self.runs):
            _fitting("m", run.m)
            command["run"][0, index] = run.record()
        if not self.u8_table.mem:
            return command.tobytes()
        outer = np.zeros(1, CONV_V1)
        outer["header"] = (CONV_V1.itemsize, DeviceType.CONV, 1, (0, 0))
        outer["u8tofp16_table"], outer["to_bgr"] = tuple(self.u8_table), self.to_bgr
        outer["conv_cmd"] = command
        return outer.tobytes()


def _fitting(name: str, value: int) -> int:
    if not 0 <= value <= 0xFFFF:
        raise EncodingError(f"{name} {value} does not fit 16 bits")
    return value


@dataclass(frozen=True)
class FcCommand:
    """An FC command."""

    input_size: int
    output_size: int
    weight_buf: Buf = NULL
    input_buf: Buf = NULL
    output_buf: Buf = NULL
    weight_fmt: int = 0
    actfunc: int = FcActivation.NONE
    actfunc_param: int = 0

    @property
    def is_quantized(self) -> bool:
        """Whether weights are bytes that pick entries of a table of 256 fp16 numbers."""
        return self.weight_fmt == 1

    @staticmethod
    def decode(data: bytes) -> FcCommand:
        """From a version 0 structure. Raises EncodingError for another size."""
        if len(data) != FC_V0.itemsize:
            raise EncodingError(f"an FC command has {FC_V0.itemsize} bytes, not {len(data)}")
        command = np.frombuffer(data, FC_V0)[0]
        numbers: dict[str, Any] = {name: int(command[name]) for name in _FC_NUMBERS}
        buffers: dict[str, Any] = {name: Buf(*command[name].tolist()) for name in _FC_BUFFERS}
        return FcCommand(**numbers, **buffers)

    def encode(self) -> bytes:
        """The version 0 structure. Raises EncodingError when a value does not fit its field."""
        command = np.zeros(1, FC_V0)
        command["header"] = (FC_V0.itemsize, DeviceType.FC, 0, (0, 0))
        for name in _FC_NUMBERS:
            command[name] = _fitting(name, getattr(self, name))
        for name in _FC_BUFFERS:
            command[name] = tuple(getattr(self, name))
        return command.tobytes()
