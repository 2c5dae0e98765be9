"""Compile reports: what the summary says, as JSON for tools and as one self-contained HTML page for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from bmcompiler.driver import Result
from bmcompiler.errors import UsageError
from bmcompiler.files import StrPath, atomic_output
from bmcompiler.profile import Timing, find_analyzer
from bmcompiler.report_page import PAGE_HEAD, PAGE_TAIL

VERSION = 1
"""Raised when a field of the JSON changes its meaning."""


def write_report(result: Result, path: StrPath) -> None:
    """Write the report of a compilation; the ending of `path` (.json or .html) says which.

    Raises:
        UsageError: another ending.
        OSError: the file cannot be written; an existing one stays as it was.
    """
    renderers = {".json": report_json, ".html": report_html}
    render = renderers.get(Path(path).suffix.lower())
    if render is None:
        raise UsageError(f"a report must end in .json or .html, got '{path}'")
    text = render(result)
    with atomic_output(path, text=True) as stream:
        stream.write(text)


def report_data(result: Result) -> dict[str, Any]:
    """The report as plain data.

    `layers` are the rows of the summary in program order; `timing`, when the chip has a timing model, is that of the
    first program, with the cycles of each row's records in `layers[i].cycles`.
    """
    stages = result.model.stages()
    timing = _timing(result)
    layers = [asdict(row) for row in result.rows]
    if timing is not None:
        _add_cycles(layers, timing)
    return {
        "report": VERSION,
        "net": stages[0].net if stages else "",
        "target": result.target,
        "programs": [
            {
                "inputs": [_tensor(info) for info in stage.inputs],
                "outputs": [_tensor(info) for info in stage.outputs],
                "weight_bytes": stage.weight_size,
                "command_bytes": stage.instruction_size,
                "neuron_bytes": stage.neuron_size,
            }
            for stage in stages
        ],
        "totals": {
            **{name: sum(getattr(row, name) for row in result.rows) for name in _SUMMED},
            **{name.replace(" ", "_"): value for name, value in result.totals.items()},
        },
        "layers": layers,
        "timing": None if timing is None else asdict(timing) | {"seconds": timing.seconds},
        "notes": result.notes,
        "compile_seconds": [{"stage": stage, "seconds": seconds} for stage, seconds in result.timing],
    }


_SUMMED = ("macs", "loaded", "weights", "stored", "commands", "tiles")


def _timing(result: Result) -> Timing | None:
    analyze = find_analyzer(result.target)
    return None if analyze is None else analyze(result.model, 0).timing()


def _add_cycles(rows: list[dict[str, Any]], timing: Timing) -> None:
    """Give every row the cycles of its layer; rows of one name and kind share them by their commands."""
    left = {(layer.name, layer.kind): layer.cycles for layer in timing.layers}
    commands: Counter[tuple[str, str]] = Counter()
    for row in rows:
        commands[row["layer"], row["kind"]] += row["commands"]
    for row in rows:
        key = row["layer"], row["kind"]
        row["cycles"] = left.get(key, 0) * row["commands"] // (commands[key] or 1)
        commands[key] -= row["commands"]
        left[key] = left.get(key, 0) - row["cycles"]


def _tensor(info: Any) -> dict[str, Any]:
    facts = {"name": info.name, "shape": list(info.shape), "dtype": info.dtype, "threshold": info.threshold}
    return facts | ({"scale": info.scale, "zero_point": info.zero_point} if info.scale else {})


def report_json(result: Result) -> str:
    """The report as JSON text."""
    return json.dumps(report_data(result), indent=1) + "\n"


def report_html(result: Result) -> str:
    """The report as one page without outside resources; tables sort by a click on a heading."""
    data = report_data(result)
    title = f"{data['net']} for {data['target']}"
    body = [
        f"<h1>{escape(data['net'])} <small>{escape(data['target'])}</small></h1>",
        _tiles(data),
        _programs(data),
        _cpu_section(data),
        "<h2>Layers</h2>",
        _legend(),
        _layer_table(data),
        _engine_section(data),
        _list_section("Notes", data["notes"]),
        _seconds_section(data),
    ]
    return PAGE_HEAD.replace("{title}", escape(title)) + "\n".join(part for part in body if part) + PAGE_TAIL


def _tiles(data: dict[str, Any]) -> str:
    totals, timing = data["totals"], data["timing"]
    on_cpu = sum(layer["where"] == "cpu" for layer in data["layers"])
    facts = [
        ("layers", f"{len(data['layers']):,}", f"{on_cpu} on the host CPU"),
        ("multiply-accumulates", _short(totals["macs"]), f"{totals['macs']:,}"),
        ("bytes loaded", _short(totals["loaded"]), f"{_short(totals['weights'])} of them weights"),
        ("bytes stored", _short(totals["stored"]), f"{totals['stored']:,}"),
        ("commands", f"{totals['commands']:,}", f"in {totals['tiles']:,} tiles"),
    ]
    if timing is not None:
        us = f"{timing['seconds'] * 1e6:,.1f} µs at {timing['clock_hz'] / 1e6:g} MHz, assumed"
        facts.append(("cycles, modelled", _short(timing["cycles"]), us))
        facts.append(("utilization", f"{timing['utilization']:.1%}", "of the chip's multiply-accumulates"))
    cells = "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b><i>{escape(more)}</i></div>"
        for name, value, more in facts
    )
    return f'<section class="tiles">{cells}</section>'


def _short(value: int) -> str:
    """Three digits and a unit: 1,234,567 -> 1.23 M."""
    scaled = float(value)
    for unit in ("", " k", " M", " G"):
        if scaled < 1000 or unit == " G":
            return f"{value}" if not unit else f"{scaled:.3g}{unit}"
        scaled /= 1000
    return str(value)


def _table(headers: list[tuple[str, str]], rows: Sequence[Sequence[tuple[str, object]]], kind: str = "") -> str:
    """A table; headers are (text, css class), cells (html, value to sort by)."""
    head = "".join(f'<th class="{style}" tabindex="0">{escape(text)}</th>' for text, style in headers)
    lines = []
    for row in rows:
        cells = "".join(
            f'<td class="{style}" data-v="{escape(str(value), quote=True)}">{html}</td>'
            for (_, style), (html, value) in zip(headers, row)
        )
        lines.append(f"<tr>{cells}</tr>")
    table = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _text(value: str) -> tuple[str, str]:
    return escape(value), value


def _number(value: int) -> tuple[str, float | str]:
    return (f"{value:,}" if value else "", value)


def _layer_table(data: dict[str, Any]) -> str:
    timed = data["timing"] is not None
    headers = [("#", "n"), ("layer", "t"), ("op", "t"), ("runs on", "t"), ("shape", "t"), ("MACs", "n")]
    headers += [("cycles", "n")] if timed else []
    headers += [("bytes moved", "bar"), ("weights", "n"), ("activations in", "n"), ("stored", "n")]
    headers += [("tiles", "n"), ("commands", "n")]
    largest = max((layer["loaded"] + layer["stored"] for layer in data["layers"]), default=0) or 1
    rows = []
    for number, layer in enumerate(data["layers"]):
        activations = layer["loaded"] - layer["weights"]
        cells = [(str(number), float(number)), _text(layer["layer"]), _text(layer["kind"]), _place(layer)]
        cells += [_text("×".join(map(str, layer["shape"]))), _number(layer["macs"])]
        cells += [_number(layer["cycles"])] if timed else []
        cells += [_bar((layer["weights"], activations, layer["stored"]), largest)]
        cells += [_number(value) for value in (layer["weights"], activations, layer["stored"])]
        cells += [_number(layer["tiles"]), _number(layer["commands"])]
        rows.append(cells)
    return _table(headers, rows, "layers")


def _place(layer: dict[str, Any]) -> tuple[str, str]:
    style = ' class="cpu"' if layer["where"] == "cpu" else ""
    return f"<span{style}>{escape(layer['where'])}</span>", layer["where"]


_PARTS = (("w", "weights"), ("a", "activations in"), ("s", "stored"))


def _bar(values: tuple[int, int, int], largest: int) -> tuple[str, float]:
    spans = "".join(
        f'<i class="{style}" style="width:{100 * value / largest:.2f}%" title="{name}: {value:,} bytes"></i>'
        for (style, name), value in zip(_PARTS, values)
        if value
    )
    return f'<div class="stack">{spans}</div>', float(sum(values))


def _legend() -> str:
    parts = "".join(f'<span><i class="{style}"></i>{name}</span>' for style, name in _PARTS)
    return f'<p class="legend">Bytes between global and local memory: {parts}</p>'


def _cpu_section(data: dict[str, Any]) -> str:
    rows = [
        [_text(layer["layer"]), _text(layer["kind"]), _text(layer["reason"])]
        for layer in data["layers"]
        if layer["where"] == "cpu"
    ]
    if not rows:
        return ""
    return "<h2>On the host CPU</h2>" + _table([("layer", "t"), ("op", "t"), ("why", "t wide")], rows)


def _programs(data: dict[str, Any]) -> str:
    rows = []
    for number, program in enumerate(data["programs"]):
        inputs, outputs = (
            ", ".join(f"{info['name']} {'×'.join(map(str, info['shape']))} {info['dtype']}" for info in program[side])
            for side in ("inputs", "outputs")
        )
        sizes = [_number(program[name]) for name in ("weight_bytes", "command_bytes", "neuron_bytes")]
        rows.append([(str(number), float(number)), _text(inputs), _text(outputs), *sizes])
    headers = [("program", "n"), ("inputs", "t"), ("outputs", "t")]
    headers += [("weight bytes", "n"), ("command bytes", "n"), ("activation bytes", "n")]
    return _table(headers, rows)


def _engine_section(data: dict[str, Any]) -> str:
    timing = data["timing"]
    if timing is None:
        return ""
    total = timing["cycles"] or 1
    rows = [
        [
            _text(use["name"]),
            _number(use["commands"]),
            _number(use["busy"]),
            (f"{100 * use['busy'] / total:.1f} %", use["busy"]),
            _number(use["stalled"]),
        ]
        for use in timing["engines"]
    ]
    headers = [("engine", "t"), ("commands", "n"), ("busy cycles", "n"), ("busy", "n"), ("waiting cycles", "n")]
    assumed = escape("; ".join(timing["assumptions"]))
    return f'<h2>Engines</h2>{_table(headers, rows)}<p class="small">Timing model, assumed: {assumed}.</p>'


def _list_section(title: str, lines: list[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>" if lines else ""


def _seconds_section(data: dict[str, Any]) -> str:
    rows = [[_text(one["stage"]), (f"{one['seconds'] * 1e3:,.1f}", one["seconds"])] for one in data["compile_seconds"]]
    return "<h2>Compilation</h2>" + _table([("stage", "t"), ("ms", "n")], rows)
