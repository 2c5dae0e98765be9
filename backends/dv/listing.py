"""Models as text: a line per command and per run, layer names and host subnets as comments.

A run is told as what it does, in the order in which it is done, and where its result goes:

    run 1: conv 3x3, stride 2x2, max pool 2x2, relu, weights 1:0x40; run 0 -> output 28 x 28 x 64
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bmcompiler.backends.dv.arithmetic.stages import half
from bmcompiler.backends.dv.breaks import breaks
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.commands import NO_PADS, ONE, Buf, ConvCommand, FcCommand, Pads, Pair, Run
from bmcompiler.backends.dv.driver.geometry import Link, chain, strides_are_zero
from bmcompiler.backends.dv.driver.stage_commands import subnet_commands
from bmcompiler.backends.dv.driver.structs import (
    CMDRAW,
    HALF_ONE,
    Activation,
    DeviceType,
    FcActivation,
    OutputMode,
    Pool,
)
from bmcompiler.backends.dv.driver.unified_buffer import chain_need
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xStage, CpuSubnet
from bmcompiler.bmodel.layers import decode_layers, titled
from bmcompiler.errors import EncodingError, FileFormatError

_CONVS = {1: "conv", 3: "depthwise conv", 5: "deconv", 7: "depthwise deconv"}
_POOLS: dict[int, str] = {Pool.MAX: "max pool", Pool.AVERAGE: "average pool"}


def listing(model: Bm168xModel, net: int | None = None) -> str:
    """All programs of a model, or program number `net` alone.

    Raises:
        UsageError: there is no such program.
        FileFormatError: commands or a list of layers that cannot be decoded.
    """
    chosen = model if net is None else model.select(net)
    lines: list[str] = []
    for number, (owner, stage) in enumerate(chosen.all_stages()):
        # repr: names come from model files and may hold line breaks or terminal controls
        lines += [f"# program {number}: net {owner.name!r}, {len(stage.coefficients)} bytes of coefficients\n"]
        records = list(records_of(stage))
        lines += titled(records, decode_layers(bytes(stage.layers).decode(errors="replace"), len(records)))
    return "".join(lines)


def overview(model: Bm168xModel) -> list[str]:
    """A line per program: its commands and runs, and what the unified buffer is used for.

    Raises FileFormatError for commands that cannot be decoded.
    """
    lines = []
    for number, (_, stage) in enumerate(model.all_stages()):
        subnets = [subnet for subnet in stage.subnets if not isinstance(subnet, CpuSubnet)]
        commands = [_decoded(data) for subnet in subnets for data in subnet_commands(subnet)]
        convs = [command for command in commands if isinstance(command, ConvCommand)]
        kept = sum(not each.writes_external(index) for each in convs for index in range(len(each.runs)))
        adds = sum(command.output_mode == OutputMode.ADD for command in convs)
        pooled = sum(run.has_conv and run.pool_enable == Pool.MAX for each in convs for run in each.runs)
        facts = [
            f"{len(commands)} commands, {len(convs)} of them CONV with {sum(len(each.runs) for each in convs)} runs",
            f"{kept} results stay in the unified buffer",
            f"{adds} additions and {pooled} poolings are part of a run",
        ]
        lines.append(f"program {number}: {'; '.join(facts)}")
    return lines


def records_of(stage: Bm168xStage) -> Iterator[str]:
    """The text of each record: a run, a command without runs, a call of the host."""
    for subnet in stage.subnets:
        if isinstance(subnet, CpuSubnet):
            yield f"# host subnet, {len(subnet.parameters)} bytes\n"
            continue
        data = list(subnet_commands(subnet))
        commands = [_decoded(each) for each in data]
        for each, command, why in zip(data, commands, breaks(commands)):
            if isinstance(command, ConvCommand):
                yield from _conv(command, why)
            elif isinstance(command, FcCommand):
                yield _fc(command)
            else:
                yield f"{_kind(each).name} {len(each)} bytes\n"


def _kind(data: bytes) -> DeviceType:
    return DeviceType(int(np.frombuffer(data, CMDRAW, 1)[0]["device_type"]))


def _decoded(data: bytes) -> ConvCommand | FcCommand | None:
    kind = _kind(data)
    try:
        if kind == DeviceType.CONV:
            return ConvCommand.decode(data)
        return FcCommand.decode(data) if kind == DeviceType.FC else None
    except EncodingError as error:
        raise FileFormatError(error.reason) from error


def _fc(command: FcCommand) -> str:
    codes = FcActivation(command.actfunc).name.lower() if command.actfunc in tuple(FcActivation) else command.actfunc
    act = f", {codes}" if command.actfunc else ""
    form = ", 8-bit weights" if command.is_quantized else ""
    ends = f"weights {_buf(command.weight_buf)}; {_buf(command.input_buf)} -> {_buf(command.output_buf)}"
    return f"FC {command.input_size} -> {command.output_size}{act}{form}; {ends}\n"


def _conv(command: ConvCommand, why: str) -> Iterator[str]:
    """A text per run, the command itself before the first one; `why` the result does not stay on the chip."""
    facts = [f"CONV {command.w} x {command.h} x {command.c}", f"in {_buf(command.input_buf)}"]
    facts.append(f"out {_buf(command.output_buf)}")
    facts += [f"add {_buf(command.eltwise_buf)}"] if command.output_mode == OutputMode.ADD else []
    facts += [f"depth {command.z}"] if command.z != 1 else []
    facts += [f"{command.samples} samples"] if command.samples > 1 else []
    facts += [f"8-bit input by table {_buf(command.u8_table)}, bgr {command.to_bgr}"] if command.u8_table.mem else []
    sound = not any(strides_are_zero(run, True) for run in command.runs)
    if command.is_multi_run and sound:
        facts.append(f"unified buffer {chain_need(command):,} of {CHIP.ub_size:,} bytes")
    links: Sequence[Link | None] = chain(command) if sound else [None] * len(command.runs)
    head = f"{', '.join(facts)}\n"
    for index, (run, link) in enumerate(zip(command.runs, links)):
        source = "input" if command.reads_command_input(index) else f"run {index - 1}"
        target = "output" if command.writes_external(index) else "unified buffer"
        size = "" if link is None else f" {link.out.w} x {link.out.h} x {link.out.c}"
        add = command.output_mode == OutputMode.ADD and command.writes_external(index)
        stages = ", ".join(_stages(run, add))
        note = f"  # {why}" if why and index + 1 == len(command.runs) else ""
        yield f"{head}    run {index}: {stages}; {source} -> {target}{size}{note}\n"
        head = ""


def _stages(run: Run, add: bool) -> Iterator[str]:
    """What a run does, in order, then its weights."""
    if run.has_conv:
        yield f"{_CONVS.get(run.conv_enable, f'conv_enable {run.conv_enable}')} {_pair(run.kernel)}"
        yield from _moves(run.conv_stride, run.conv_pad)
        if run.is_dilated:
            yield f"dilation {_pair(run.dilation)}"
    if run.has_lrn:
        yield f"lrn 0x{run.lrn:x}"
    if run.pool_enable == Pool.UPSAMPLE:
        yield "upsample 2x2"
    elif run.pool_enable == Pool.AVERAGE:
        yield from _window(run)
    if add:
        yield "add"
    if run.pool_enable not in (Pool.NONE, Pool.UPSAMPLE, Pool.AVERAGE):
        yield from _window(run)
    if run.actfunc:
        yield _activation(run)
    if run.rectifi_en:
        yield "absolute value"
    if run.has_conv:
        form = "8-bit weights" if run.is_quantized else "weights"
        yield f"{form} {_buf(run.weight_buf)}"


def _window(run: Run) -> Iterator[str]:
    yield f"{_POOLS.get(run.pool_enable, f'pool_enable {run.pool_enable}')} {_pair(run.pool_size)}"
    yield from _moves(run.pool_stride, run.pool_pad)
    if run.pool_enable == Pool.AVERAGE:
        yield f"times {float(half(run.pool_avg_param)):g}"


def _moves(stride: Pair, pads: Pads) -> Iterator[str]:
    if stride != ONE:
        yield f"stride {_pair(stride)}"
    if pads != NO_PADS:
        yield f"pads left {pads.left} right {pads.right} top {pads.top} bottom {pads.bottom}"


def _activation(run: Run) -> str:
    if run.actfunc == Activation.LEAKY_RELU:
        if run.actfunc_param == HALF_ONE:
            return "pass on"
        return f"leaky relu {float(half(run.actfunc_param)):g}" if run.actfunc_param & 0x7FFF else "relu"
    known = run.actfunc in tuple(Activation)
    return Activation(run.actfunc).name.lower() if known else f"actfunc {run.actfunc}"


def _pair(pair: Pair) -> str:
    return f"{pair.x}x{pair.y}"


def _buf(buf: Buf) -> str:
    return f"{buf.mem}:0x{buf.offs:x}"
