"""The text of a timing model: totals, engines, and the layers that take longest."""

from __future__ import annotations

from bmcompiler.cli.common import Cell, format_table, printable
from bmcompiler.profile import LayerTime, Timing

_TOP = 10
_LAYER_HEADERS = (
    *("layer", "op", "commands", "cycles", "% of total", "compute", "transfer"),
    *("MACs", "% of peak", "loaded", "weights", "stored"),
)


def timing_text(timing: Timing, top: int = _TOP) -> str:
    """All of it, ending in a newline; at most `top` layers, the slowest first."""
    facts = {
        "cycles": f"{timing.cycles:,} = {timing.seconds * 1e6:,.1f} us at {timing.clock_hz / 1e6:g} MHz",
        "MACs": f"{timing.macs:,}, {timing.utilization:.1%} of what the chip could do in that time",
        "read": f"{timing.weights:,} bytes of weights, {timing.loaded:,} bytes of activations",
        "written": f"{timing.stored:,} bytes of activations",
    }
    if timing.cpu_records:
        plural = "" if timing.cpu_records == 1 else "s"
        facts["host"] = f"{timing.cpu_records} call{plural} of host functions, whose time is not counted"
    width = max(map(len, facts))
    engines = [
        (use.name, use.commands, use.busy, _share(use.busy, timing.cycles), use.stalled) for use in timing.engines
    ]
    slowest = sorted(timing.layers, key=lambda layer: -layer.cycles)
    parts = [
        "Model of one run on the chip:\n",
        *(f"{name.ljust(width)}  {text}\n" for name, text in facts.items()),
        "\n",
        format_table(("engine", "commands", "busy", "busy %", "stalled"), engines),
        "\n",
        format_table(_LAYER_HEADERS, [_layer_row(layer, timing.cycles) for layer in slowest[:top]]),
    ]
    if len(slowest) > top:
        rest = sum(layer.cycles for layer in slowest[top:])
        parts.append(f"and {len(slowest) - top} more layers with {rest:,} cycles\n")
    parts.append(f"assumed: {'; '.join(map(printable, timing.assumptions))}\n")
    return "".join(parts)


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _layer_row(layer: LayerTime, total: int) -> list[Cell]:
    share = _share(layer.cycles, total)
    peak = round(100 * layer.utilization, 1)
    numbers = (layer.compute, layer.transfer, layer.macs, peak, layer.loaded, layer.weights, layer.stored)
    return [layer.name, layer.kind, layer.commands, layer.cycles, share, *(number or None for number in numbers)]
