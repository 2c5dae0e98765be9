"""The text a compilation ends with: where each layer runs, what it moves, totals, and what to know."""

from __future__ import annotations

from collections.abc import Iterable

from bmcompiler.cli.common import format_table, printable
from bmcompiler.driver import Result
from bmcompiler.target import LayerRow

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


def summary(result: Result) -> str:
    """The whole summary, ending in a newline."""
    lines = [layer_table(result.rows)]
    on_cpu = [row for row in result.rows if row.where == "cpu"]
    total = {
        "layers": f"{len(result.rows)} ({len(on_cpu)} on the host CPU)",
        "MACs": f"{sum(row.macs for row in result.rows):,}",
        "bytes loaded": f"{sum(row.loaded for row in result.rows):,}",
        "bytes stored": f"{sum(row.stored for row in result.rows):,}",
        **{name: _amount(name, value) for name, value in result.totals.items()},
        "compile time": f"{sum(seconds for _, seconds in result.timing):.2f} s",
    }
    width = max(len(name) for name in total)
    lines += [f"{name.ljust(width)}  {value}" for name, value in total.items()]
    if on_cpu:
        lines += ["", "On the host CPU:"]
        lines += [f"  {printable(line)}" for line in _reasons(row for row in on_cpu if row.kind not in _BORDER)]
    warned = set(result.warnings)
    lines += [printable(note) if note in warned else f"note: {printable(note)}" for note in result.notes]
    return "\n".join(lines) + "\n"
