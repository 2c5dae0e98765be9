"""The text a compilation ends with: where each layer runs, what it moves, totals, and what to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from bmcompiler.accuracy.check import Accuracy
from bmcompiler.analysis.estimate import estimate
from bmcompiler.cli.common import format_table, printable
from bmcompiler.cli.timing import bytes_text
from bmcompiler.driver import Result
from bmcompiler.errors import SimulatorError
from bmcompiler.target import GroupInfo, LayerRow

_HEADERS = ("layer", "op", "runs on", "shape", "MACs", "loaded", "weights", "stored", "tiles", "commands")

_BORDER = ("quantize", "dequantize")
"""Conversions at the border of a CPU subnet: they are there because of the layers beside them."""


def layer_table(rows: Iterable[LayerRow]) -> str:
    """One line per op; bytes moved between global and local memory."""
    return format_table(_HEADERS, [_cells(row) for row in rows])


def _cells(row: LayerRow) -> list[str | int | None]:
    shape = "x".join(map(str, row.shape))
    if row.where == "cpu":
        return [row.layer, row.kind, "cpu", shape, None, None, None, None, None, None]
    numbers = (row.macs, row.loaded, row.weights, row.stored, row.tiles, row.commands)
    return [row.layer, row.kind, row.where, shape, *(value or None for value in numbers)]


def _reasons(rows: Iterable[LayerRow]) -> list[str]:
    """One line per layer and reason, with the ops it is the reason for."""
    kinds: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        kinds.setdefault((row.layer, row.reason), {})[row.kind] = None
    return [f"{layer} ({', '.join(names)}): {reason}" for (layer, reason), names in kinds.items()]


def _amount(name: str, value: int) -> str:
    return f"{value:,}" if name.endswith("commands") else f"{value:,} bytes"


def _memory(totals: Mapping[str, int]) -> dict[str, str]:
    """Totals in words; a lower bound stands beside what it bounds."""
    lines = {}
    for name, value in totals.items():
        if name.endswith(_BOUND):
            continue
        lines[name] = _amount(name, value)
        bound = totals.get(f"{name.split()[0]}{_BOUND}")
        if bound and name.endswith(" memory"):
            lines[name] += f", {value / bound:.2f}x of the lower bound {bound:,}"
    return lines


_BOUND = " lower bound"


def _time(result: Result, profile: Any) -> dict[str, str]:
    """What the timing model says; nothing for targets without one."""
    try:
        timing = estimate(result, profile)
    except SimulatorError as error:
        return {"time": f"not estimated: {printable(str(error))}"}
    if timing is None:
        return {}
    cycles = f"{timing.seconds * 1e6:,.1f} us, {timing.cycles:,} cycles at {timing.clock_hz / 1e6:g} MHz"
    ratio = f", {timing.ratio:.2f}x of the roofline bound" if timing.bound else ""
    return {"bytes moved": bytes_text(timing), "time": f"{cycles}{ratio} (estimate)"}


def _groups(groups: Sequence[GroupInfo] | None) -> dict[str, str]:
    if groups is None:
        return {}
    several = [group for group in groups if len(group.layers) > 1]
    sliced = sum(prod(group.slices) > 1 for group in several)
    layers = sum(len(group.layers) for group in several)
    return {"groups": f"{len(groups)}; {len(several)} of several layers ({layers} layers), {sliced} of these in slices"}


def _accuracy(found: Accuracy) -> list[str]:
    """Error of each output, and the layers that add most of it."""
    samples = f"{found.samples} sample{'s' if found.samples > 1 else ''}"
    outputs = [
        (printable(output.name), f"{output.error:.3%}", f"{output.channel}: {output.channel_error:.3%}")
        for output in found.outputs
    ]
    layers = []
    for each in found.worst:
        codes = "float" if each.used_codes is None else f"{each.used_codes:.0%}"
        layers.append((printable(each.layer), each.op, f"{each.sqnr:.1f}", codes, each.cause))
    return [
        "",
        f"Difference from float on {samples} of the calibration data:",
        format_table(("output", "error", "worst channel"), outputs).rstrip("\n"),
        "",
        format_table(("least exact layers", "op", "dB", "codes", "likely cause"), layers).rstrip("\n"),
    ]


def summary(result: Result, profile: Any = None) -> str:
    """The whole summary, ending in a newline; `profile` holds parameters for the timing model (`estimate`)."""
    lines = [layer_table(result.rows)]
    on_cpu = [row for row in result.rows if row.where == "cpu"]
    total = {
        "layers": f"{len(result.rows)} ({len(on_cpu)} on the host CPU)",
        "MACs": f"{sum(row.macs for row in result.rows):,}",
        "bytes loaded": f"{sum(row.loaded for row in result.rows):,}",
        "bytes stored": f"{sum(row.stored for row in result.rows):,}",
        **_memory(result.totals),
        **_groups(result.groups),
        **_time(result, profile),
        "compile time": f"{sum(seconds for _, seconds in result.timing):.2f} s",
    }
    width = max(len(name) for name in total)
    lines += [f"{name.ljust(width)}  {value}" for name, value in total.items()]
    if on_cpu:
        lines += ["", "On the host CPU:"]
        lines += [f"  {printable(line)}" for line in _reasons(row for row in on_cpu if row.kind not in _BORDER)]
    if result.accuracy is not None:
        lines += _accuracy(result.accuracy)
    warned = set(result.warnings)
    lines += [printable(note) if note in warned else f"note: {printable(note)}" for note in result.notes]
    return "\n".join(lines) + "\n"
