"""The text a compilation ends with: one screen on where layers run, time, bytes, accuracy and what to know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from bmcompiler.accuracy.check import Accuracy
from bmcompiler.analysis.estimate import estimate
from bmcompiler.analysis.profile import Timing
from bmcompiler.errors import SimulatorError
from bmcompiler.report.cliffs import find_cliffs
from bmcompiler.report.data import timed_rows
from bmcompiler.report.reasons import BORDER, Reason, crossing, host_reasons, without_numbers
from bmcompiler.report.tables import short
from bmcompiler.result import Result
from bmcompiler.target import LayerRow, find_target
from bmcompiler.text import at_least, at_most, format_table, percent, printable, shortened, terminal_width, wrapped

_INDENT = " " * 10
_REASONS, _SLOWEST, _OUTPUTS, _NOTES, _SLOW = 3, 5, 2, 2, 3
"""How many of each are shown; `layer_tables` has all."""
_HEADERS = ("layer", "op", "runs on", "shape", "MACs", "loaded", "weights", "stored", "tiles", "commands")
_BOUND = " lower bound"
_WARNING = "warning: "


def summary(result: Result, profile: Any = None, *, width: int | None = None, more: str = "--layers") -> str:
    """The summary, ending in a newline.

    Args:
        profile: parameters for the timing model (`estimate`).
        width: columns of a line at most, None for those of the terminal. Words that are longer stay whole.
        more: how the reader gets at what is left out.
    """
    width = terminal_width() if width is None else width
    timing, failed = _estimated(result, profile)
    parts = [
        _title(result),
        *_layers(result, width, more),
        *_entry("time", failed if timing is None else _time(timing), width),
        *_entry("bytes", _traffic(result.rows) if timing is None else _moved(timing), width),
        *_entry("memory", _memory(result.totals), width),
        *([] if timing is None else _slowest(result, timing, width)),
        *([] if result.accuracy is None else _accuracy(result.accuracy, width)),
        *_entry("checked", "" if result.checked is None else str(result.checked), width),
        *_said(result, width, more),
        *([] if timing is None else _cliffs(result, timing, width)),
    ]
    return "\n".join(printable(line) for line in parts) + "\n"


def layer_tables(result: Result) -> str:
    """All layers, those on the host CPU with their reasons, those that were found inexact, and all notes, whole."""
    parts = [format_table(_HEADERS, [_cells(row) for row in result.rows]), _totals(result)]
    reasons = host_reasons(result.rows)
    if reasons:
        rows = [(layer, text) for reason in reasons for layer, text in zip(reason.layers, reason.texts)]
        parts.append(format_table(("on the host CPU", "why"), rows))
    if result.accuracy is not None:
        parts.append(_accuracy_tables(result.accuracy))
    if result.notes:
        parts.append("".join(f"{printable(note)}\n" for note in result.notes))
    return "\n".join(parts)


# -- lines of the summary ----------------------------------------------------------------------------------------------
def _entry(name: str, text: str, width: int) -> list[str]:
    return wrapped(f"{name:<10}{text}", width, _INDENT) if text else []


def _title(result: Result) -> str:
    stages = result.model.stages()
    net = stages[0].net if stages else ""
    more = f", {len(stages)} programs" if len(stages) > 1 else ""
    precision = f" in {result.precision}" if result.precision else ""
    macs = sum(row.macs for row in result.rows)
    return f"{net} for {result.target}{precision}{more}, {short(macs)} MACs"


def _layers(result: Result, width: int, more: str) -> list[str]:
    on_cpu = [row for row in result.rows if row.where == "cpu"]
    if not on_cpu:
        return _entry("layers", f"{len(result.rows)}, none on the host CPU", width)
    converting = sum(row.kind in BORDER for row in on_cpu)
    which = f" ({converting} of them conversions)" if converting else ""
    reasons = host_reasons(on_cpu)
    lines = _entry("layers", f"{len(result.rows)}, {len(on_cpu)} of them on the host CPU{which}", width)
    shown = reasons if len(reasons) <= _REASONS else reasons[: _REASONS - 1]
    lines += [_cut(_INDENT + _reason(reason), width) for reason in shown]
    if len(shown) < len(reasons):
        rest = sum(len(reason.layers) for reason in reasons[len(shown) :])
        lines.append(f"{_INDENT}{_count(rest, 'layer')} for {len(reasons) - len(shown)} more reasons ({more})")
    moved = crossing(result.module, find_target(result.target))
    if any(moved):
        lines.append(f"{_INDENT}{_count(moved.there, 'byte')} go to the host in a run, {moved.back:,} come back")
    return lines


def _reason(reason: Reason) -> str:
    if len(reason.layers) == 1:
        return f"{reason.layers[0]} ({', '.join(reason.ops)}): {reason.text}"
    example = f", as {reason.layers[0]}" if len(set(reason.texts)) > 1 else ""
    return f"{len(reason.layers):,} layers{example}: {reason.text}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _estimated(result: Result, profile: Any) -> tuple[Timing | None, str]:
    """What the timing model says, or why it says nothing; neither for targets without one."""
    try:
        return estimate(result, profile), ""
    except SimulatorError as error:
        return None, f"not estimated: {error}"


def _time(timing: Timing) -> str:
    """The estimate, its distance from the roofline bound, and what is not in it."""
    text = f"{timing.seconds * 1e6:,.1f} us at {timing.clock_hz / 1e6:g} MHz (estimate)"
    if not timing.cpu_records:
        return text + (f", {timing.ratio:.2f}x of the roofline bound" if timing.bound else "")
    bound = f", {timing.ratio:.2f}x of its roofline bound" if timing.bound else ""
    return f"{text} for the chip's part{bound}, plus {_count(timing.cpu_records, 'host call')}, not counted"


def _moved(timing: Timing) -> str:
    total = timing.weights + timing.loaded + timing.stored
    least = f", {total / timing.compulsory:.2f}x of the least" if timing.compulsory else ""
    parts = ((timing.weights, "weights"), (timing.features, "features"), (timing.spill, "spill"))
    return f"{_bytes(total)} moved{least}: " + ", ".join(f"{_bytes(value)} {name}" for value, name in parts)


def _traffic(rows: Iterable[LayerRow]) -> str:
    loaded, stored = (sum(values) for values in zip(*((row.loaded, row.stored) for row in rows), (0, 0)))
    return f"{_bytes(loaded)} loaded, {_bytes(stored)} stored"


def _memory(totals: Mapping[str, int]) -> str:
    """Bytes of each kind; a lower bound stands beside what it bounds."""
    parts = []
    for name, value in totals.items():
        if name.endswith(" memory"):
            bound = totals.get(f"{name.split()[0]}{_BOUND}")
            more = f" ({value / bound:.2f}x of the lower bound)" if bound else ""
            parts.append(f"{_bytes(value)} {name.removesuffix(' memory')}{more}")
    return ", ".join(parts)


def _bytes(value: int) -> str:
    return f"{short(value)}{'' if value >= 1000 else ' '}B"


def _slowest(result: Result, timing: Timing, width: int) -> list[str]:
    """The layers that take most of the estimated time."""
    rows, others = timed_rows(result, timing)
    ratios = {(row["layer"], row["kind"]): row["ratio"] for row in (*rows, *others)}
    layers = sorted((layer for layer in timing.layers if layer.cycles), key=lambda layer: -layer.cycles)[:_SLOWEST]
    if not layers:
        return []
    total = timing.cycles
    figures = [
        (
            shortened(layer.kind, 16),
            f"{layer.cycles / timing.clock_hz * 1e6:,.1f}",
            f"{layer.cycles / total:.1%}",
            _times(layer.ratio or ratios.get((layer.name, layer.kind), 0.0)),
        )
        for layer in layers
    ]
    heads = ("op", "us", "of all", "x bound")
    widths = [max(len(cell) for cell in column) for column in zip(heads, *figures)]
    room = max(width - sum(widths) - 2 * len(widths), 20)
    names = [shortened(printable(layer.name), room) for layer in layers]
    first = max(len(name) for name in ("slowest layers", *names))
    lines = []
    for name, (kind, *numbers) in zip(("slowest layers", *names), (heads, *figures)):
        cells = [name.ljust(first), kind.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:]))]
        lines.append("  ".join(cells).rstrip())
    return lines


def _times(ratio: float) -> str:
    """Blank where there is no bound: a host function takes no time in the model."""
    return f"{ratio:.2f}" if ratio else ""


def _accuracy(found: Accuracy, width: int) -> list[str]:
    """Error of the worst outputs."""
    outputs = sorted(found.outputs, key=lambda output: -output.error)
    parts = [
        f"{output.name} {percent(output.error)} from float "
        f"(worst channel {output.channel}: {percent(output.channel_error)})"
        for output in outputs[:_OUTPUTS]
    ]
    if len(outputs) > _OUTPUTS:
        parts.append(f"{len(outputs) - _OUTPUTS} more are better")
    others = "" if found.at_most is None else f"; others at most {at_most(found.at_most)}"
    return _entry("accuracy", ", ".join([*parts, found.on]) + others, width) + _decisions(found, width)


def _decisions(found: Accuracy, width: int) -> list[str]:
    """Decisions kept of those outputs that lose most."""
    kept = sorted(found.decisions, key=lambda each: each.kept / max(each.of, 1))[:_OUTPUTS]
    told = [
        f"{each} of {each.name}" + (f" (at least {at_least(each.least)} of others)" if each.least else "")
        for each in kept
        if each.of
    ]
    return _entry("decisions", f"kept {', '.join(told)}", width) if told else []


def _said(result: Result, width: int, more: str) -> list[str]:
    """Warnings whole, of those that differ only in names and numbers the first; notes as far as a line goes.

    The first note is whole: it says what calibration made of the samples.
    """
    lines = []
    for text, others in _alike(result.warnings):
        lines += wrapped(text + (f" (and {others} more like it)" if others else ""), width)
    warned = set(result.warnings)
    notes = [note for note in result.notes if note not in warned]
    shown = notes if len(notes) <= _NOTES else notes[: _NOTES - 1]
    if shown:
        lines += wrapped(f"note: {shown[0]}", width)
    lines += [_cut(f"note: {note}", width) for note in shown[1:]]
    if len(shown) < len(notes):
        lines.append(f"and {len(notes) - len(shown)} more notes ({more})")
    return lines


def _cliffs(result: Result, timing: Timing, width: int) -> list[str]:
    """Warnings of the slowest layers that take many times their bound."""
    layers, others = timed_rows(result, timing)
    found = find_cliffs([*layers, *others], timing)
    lines = [line for cliff in found[:_SLOW] for line in wrapped(f"{_WARNING}{printable(str(cliff))}", width)]
    return lines + ([f"and {len(found) - _SLOW} more such layers"] if len(found) > _SLOW else [])


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _alike(texts: Iterable[str]) -> list[tuple[str, int]]:
    """The first of those that differ only in names and numbers, and how many more there are of its kind."""
    counts: dict[str, tuple[str, int]] = {}
    for text in texts:
        kind = without_numbers(re.sub(r"'[^']*'", "''", text))
        first, more = counts.get(kind, (text, -1))
        counts[kind] = first, more + 1
    return list(counts.values())


# -- tables ------------------------------------------------------------------------------------------------------------
def _totals(result: Result) -> str:
    rows = [(name, value) for name, value in result.totals.items()]
    rows += [
        ("bytes loaded", sum(row.loaded for row in result.rows)),
        ("bytes stored", sum(row.stored for row in result.rows)),
    ]
    text = format_table(("total", ""), rows)
    if result.groups is None:
        return text
    several = [group for group in result.groups if len(group.layers) > 1]
    sliced = sum(prod(group.slices) > 1 for group in several)
    return (
        f"{text}{_count(len(result.groups), 'group')}, {len(several)} of several layers, {sliced} of these in slices\n"
    )


def _cells(row: LayerRow) -> list[str | int | None]:
    shape = "x".join(map(str, row.shape))
    if row.where == "cpu":
        return [row.layer, row.kind, "cpu", shape, None, None, None, None, None, None]
    numbers = (row.macs, row.loaded, row.weights, row.stored, row.tiles, row.commands)
    return [row.layer, row.kind, row.where, shape, *(value or None for value in numbers)]


def _accuracy_tables(found: Accuracy) -> str:
    """Error of each output, and the layers that add most of it."""
    outputs = [
        (output.name, percent(output.error), f"{output.channel}: {percent(output.channel_error)}")
        for output in found.outputs
    ]
    layers = []
    for each in found.worst:
        codes = "float" if each.used_codes is None else f"{each.used_codes:.0%}"
        layers.append((each.layer, each.op, f"{each.sqnr:.1f}", codes, each.cause))
    kept = [
        (each.name, f"{each.kept / max(each.of, 1):.1%}", each.of, each.what, at_least(each.least))
        for each in found.decisions
    ]
    decided = format_table(("output", "decisions kept", "of", "", "of others at least"), kept) + "\n" if kept else ""
    others = "" if found.at_most is None else f", others at most {at_most(found.at_most)}"
    return (
        f"{found.on}{others}\n"
        + format_table(("output", "difference from float", "worst channel"), outputs)
        + "\n"
        + decided
        + format_table(("least exact layers", "op", "dB", "codes", "likely cause"), layers)
    )
