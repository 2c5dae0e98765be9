"""Models as text: a line per command and per run, layer names and host subnets as comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from bmcompiler.backends.dv.commands import Buf, ConvCommand, FcCommand
from bmcompiler.backends.dv.stage_commands import subnet_commands
from bmcompiler.backends.dv.structs import CMDRAW, DeviceType
from bmcompiler.bmodel.bm1684 import Bm1684Model, Bm1684Stage, CpuSubnet
from bmcompiler.bmodel.layers import decode_layers, titled
from bmcompiler.errors import EncodingError, FileFormatError


def listing(model: Bm1684Model, net: int | None = None) -> str:
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
        records = list(_records(stage))
        lines += titled(records, decode_layers(bytes(stage.layers).decode(errors="replace"), len(records)))
    return "".join(lines)


def _records(stage: Bm1684Stage) -> Iterator[str]:
    for subnet in stage.subnets:
        if isinstance(subnet, CpuSubnet):
            yield f"# host subnet, {len(subnet.parameters)} bytes\n"
            continue
        for command in subnet_commands(subnet):
            yield _text(command)


def _text(data: bytes) -> str:
    kind = DeviceType(int(np.frombuffer(data, CMDRAW, 1)[0]["device_type"]))
    try:
        if kind == DeviceType.FC:
            return f"FC {_said(FcCommand.decode(data))}\n"
        if kind != DeviceType.CONV:
            return f"{kind.name} {len(data)} bytes\n"
        command = ConvCommand.decode(data)
    except EncodingError as error:
        raise FileFormatError(error.reason) from error
    runs = "".join(f"    run {number}: {_said(run)}\n" for number, run in enumerate(command.runs))
    return f"CONV {_said(command)}\n{runs}"


def _said(what: Any) -> str:
    """Fields that differ from what they are when nothing is said."""
    pairs = ((field, getattr(what, field.name)) for field in fields(what) if field.name != "runs")
    return ", ".join(
        f"{field.name} {_value(v)}" for field, v in pairs if field.default is MISSING or v != field.default
    )


def _value(value: Any) -> str:
    if isinstance(value, Buf):
        return f"{value.mem}:0x{value.offs:x}"
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
