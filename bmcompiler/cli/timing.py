"""The text of a timing model: totals, bounds, engines, and the layers that take longest."""

from __future__ import annotations

from bmcompiler.analysis.profile import EngineUse, LayerTime, Timing
from bmcompiler.cli.common import Cell, format_table, printable

_TOP = 10
_LAYER_HEADERS = (
    *("layer", "op", "commands", "cycles", "% of total", "x bound", "compute", "transfer", "waits"),
    *("MACs", "% of peak", "weights", "features", "spill"),
)


def timing_text(timing: Timing, top: int = _TOP) -> str:
    """All of it, ending in a newline; at most `top` layers, the slowest first."""
    facts = {
        "cycles": f"{timing.cycles:,} = {timing.seconds * 1e6:,.1f} us at {timing.clock_hz / 1e6:g} MHz",
        "bound": bound_text(timing),
        "MACs": f"{timing.macs:,}, {timing.utilization:.1%} of what the chip could do in that time",
        "bytes": bytes_text(timing),
        "read": f"{timing.weights:,} bytes of weights, {timing.loaded:,} bytes of activations",
        "written": f"{timing.stored:,} bytes of activations",
    }
    if timing.cpu_records:
        plural = "" if timing.cpu_records == 1 else "s"
        facts["host"] = f"{timing.cpu_records} call{plural} of host functions, whose time is not counted"
    width = max(map(len, facts))
    slowest = sorted(timing.layers, key=lambda layer: -layer.cycles)
    parts = [
        "Model of one run on the chip:\n",
        *(f"{name.ljust(width)}  {text}\n" for name, text in facts.items()),
        "\n",
        format_table(_ENGINE_HEADERS, [_engine_row(use, timing.cycles) for use in timing.engines]),
        "\n",
        format_table(_LAYER_HEADERS, [_layer_row(layer, timing.cycles) for layer in slowest[:top]]),
    ]
    if len(slowest) > top:
        rest = sum(layer.cycles for layer in slowest[top:])
        parts.append(f"and {len(slowest) - top} more layers with {rest:,} cycles\n")
    parts.append(f"assumed: {'; '.join(map(printable, timing.assumptions))}\n")
    return "".join(parts)


def bound_text(timing: Timing) -> str:
    """The roofline bound in words, and how far the estimate is from it."""
    if not timing.bound:
        return "none is known"
    computing = timing.compute_bound >= timing.traffic_bound
    which = "arithmetic" if computing else "bus"
    parts = [f"arithmetic at full rate {timing.compute_bound:,.0f}"]
    if timing.bus_bytes_per_cycle:
        parts.append(f"{timing.compulsory:,} compulsory bytes at full bandwidth {timing.traffic_bound:,.0f}")
    return f"{timing.bound:,.0f} cycles ({which}); the estimate is {timing.ratio:.2f}x of it ({', '.join(parts)})"


def bytes_text(timing: Timing) -> str:
    """Bytes that cross the bus, by kind."""
    total = timing.weights + timing.loaded + timing.stored
    text = f"{total:,} = {timing.weights:,} weights + {timing.features:,} features + {timing.spill:,} spill"
    return f"{text}; {total / timing.compulsory:.2f}x of the compulsory ones" if timing.compulsory else text


_ENGINE_HEADERS = ("engine", "commands", "busy", "busy %", "stalled", "waits for")


def _engine_row(use: EngineUse, total: int) -> list[Cell]:
    waits = ", ".join(f"{name} {cycles:,}" for name, cycles in use.waits)
    return [use.name, use.commands, use.busy, _share(use.busy, total), use.stalled, waits]


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _layer_row(layer: LayerTime, total: int) -> list[Cell]:
    share = _share(layer.cycles, total)
    peak = round(100 * layer.utilization, 1)
    work = (layer.compute, layer.transfer, layer.stalled, layer.macs, peak)
    numbers = (round(layer.ratio, 2), *work, layer.weights, layer.features, layer.spill)
    return [layer.name, layer.kind, layer.commands, layer.cycles, share, *(number or None for number in numbers)]
