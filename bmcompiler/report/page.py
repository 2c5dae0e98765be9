"""The report as one self-contained page: summary, pictures, and a table of the layers."""

from __future__ import annotations

from html import escape
from typing import Any

from bmcompiler.report.accuracy import accuracy_section
from bmcompiler.report.columns import Column, columns_of
from bmcompiler.report.graph import graph_section
from bmcompiler.report.groups import group_section
from bmcompiler.report.occupancy import occupancy_section
from bmcompiler.report.roofline import roofline_section
from bmcompiler.report.tables import Cell, Heading, bullets, framed, legend, made, number, short, stack, table, text

Data = dict[str, Any]


def page(data: Data) -> str:
    """The page of `report_data`."""
    title = f"{data['net']} for {data['target']}"
    chip = " ".join(filter(None, (data["target"], data["precision"])))
    body = [
        f"<h1>{escape(data['net'])} <small>{escape(chip)}</small></h1>",
        made(data["compiler"], data["options"]),
        _tiles(data),
        _programs(data),
        _cpu_section(data),
        _proof(data),
        accuracy_section(data),
        _engine_section(data),
        roofline_section(data),
        graph_section(data),
        group_section(data),
        occupancy_section(data),
        "<h2>Layers</h2>",
        _layer_table(data),
        _other_commands(data),
        bullets("Notes", data["notes"]),
        _seconds_section(data),
    ]
    return framed(title, "\n".join(part for part in body if part))


# -- the summary -------------------------------------------------------------------------------------------------------
def _tiles(data: Data) -> str:
    totals, timing = data["totals"], data["timing"]
    on_cpu = sum(layer["where"] == "cpu" for layer in data["layers"])
    facts = [("layers", f"{len(data['layers']):,}", f"{on_cpu} on the host CPU")]
    if timing is not None:
        facts += _time_tiles(timing)
    facts.append(("multiply-accumulates", short(totals["macs"]), _computed(totals["macs"], timing)))
    if timing is None:
        facts.append(("bytes loaded", short(totals["loaded"]), f"{short(totals['weights'])} of them weights"))
        facts.append(("bytes stored", short(totals["stored"]), f"{totals['stored']:,}"))
    facts.append(("commands", f"{totals['commands']:,}", f"in {totals['tiles']:,} tiles"))
    facts += _memory_tiles(totals)
    cells = "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b><i>{escape(more)}</i></div>"
        for name, value, more in facts
    )
    return f'<section class="tiles">{cells}</section>'


def _computed(macs: int, timing: Data | None) -> str:
    """What the layers have, and how much more the commands compute: halos of slices, padded channels and weights."""
    more = timing["computed_macs"] / macs - 1 if timing is not None and macs else 0.0
    return f"{macs:,}, {more:.1%} more in commands" if more >= 0.001 else f"{macs:,}"


def _time_tiles(timing: Data) -> list[tuple[str, str, str]]:
    at = f"{timing['cycles']:,} cycles at {timing['clock_hz'] / 1e6:g} MHz"
    moved = timing["weights"] + timing["loaded"] + timing["stored"]
    parts = f"{short(timing['weights'])} weights, {short(timing['features'])} features, {short(timing['spill'])} spill"
    tiles = [("estimated time", f"{timing['seconds'] * 1e6:,.1f} µs", at)]
    calls = timing["cpu_records"]
    if calls:
        tiles[0] = ("estimated time, chip's part", *tiles[0][1:])
        tiles.append(("host calls", f"{calls:,}", "their time is not counted"))
    if timing["bound"]:
        which = "arithmetic" if timing["compute_bound"] >= timing["traffic_bound"] else "bus"
        name = "of the roofline bound" + (", chip's part" if calls else "")
        tiles.append((name, f"{timing['ratio']:.2f}×", f"{short(timing['bound'])} cycles of {which}"))
    tiles.append(("utilization", f"{timing['utilization']:.1%}", "of the chip's multiply-accumulates"))
    tiles.append(("bytes moved", short(moved), parts))
    if timing["compulsory"]:
        more = f"{short(timing['compulsory'])}: weights, inputs, outputs once"
        tiles.append(("of the compulsory bytes", f"{moved / timing['compulsory']:.2f}×", more))
    return tiles


def _memory_tiles(totals: Data) -> list[tuple[str, str, str]]:
    size, bound = totals.get("neuron_memory"), totals.get("neuron_lower_bound")
    if size is None:
        return []
    more = f"{size / bound:.2f}× of what is alive at once" if bound else "for activations"
    return [("neuron memory", f"{short(size)}B", more)]


def _programs(data: Data) -> str:
    rows = []
    for index, program in enumerate(data["programs"]):
        inputs, outputs = (
            ", ".join(f"{info['name']} {'×'.join(map(str, info['shape']))} {info['dtype']}" for info in program[side])
            for side in ("inputs", "outputs")
        )
        sizes = [number(program[name]) for name in ("weight_bytes", "command_bytes", "neuron_bytes")]
        rows.append([(str(index), index), text(inputs), text(outputs), *sizes])
    counts = ("weight bytes", "command bytes", "activation bytes")
    headings = [
        ("program", "n", ""),
        ("inputs", "t long", ""),
        ("outputs", "t long", ""),
        *((name, "n", "") for name in counts),
    ]
    return table(headings, rows)


def _cpu_section(data: Data) -> str:
    rows = []
    for reason in data["host_reasons"]:
        count = len(reason["layers"])
        names = escape(", ".join(reason["layers"]))
        who = names if count == 1 else f"<details><summary>{count:,} layers</summary>{names}</details>"
        example = f" ({reason['layers'][0]})" if len(set(reason["texts"])) > 1 else ""
        rows.append([(who, count), text(", ".join(reason["ops"])), text(reason["text"] + example)])
    if not rows:
        return ""
    headings = [("layers", "t long", ""), ("ops", "t long", ""), ("why", "t long", "")]
    return "<h2>On the host CPU</h2>" + table(headings, rows)


def _proof(data: Data) -> str:
    """Whether the program was compared with what the network means."""
    found = data["checked"]
    return "" if found is None else f"<h2>Check</h2><p>{escape(found['text'])}</p>"


def _other_commands(data: Data) -> str:
    """Work of no layer, such as copies of outputs."""
    parts = [f"{row['layer']} ({row['kind']}): {row['cycles']:,} cycles" for row in data["other_commands"]]
    return f'<p class="small">Commands of no layer: {escape("; ".join(parts))}.</p>' if parts else ""


# -- tables ------------------------------------------------------------------------------------------------------------
def _layer_table(data: Data) -> str:
    hidden = _hidden(data)
    columns = [column for column in columns_of(data["layers"]) if column.key not in hidden]
    headings: list[Heading] = [("#", "n", "Order in the program.")]
    for column in columns:
        if column.key == "weights":
            headings.append(("bytes moved", "bar", "Bytes between global and local memory, by kind."))
        headings.append(
            (column.heading, _STYLES.get(column.key, "t" if column.kind == "text" else "n"), column.meaning)
        )
    parts = _BYTES if data["timing"] is not None else _BYTES_UNTIMED
    largest = max((sum(_bytes(layer, key) for _, _, key in parts) for layer in data["layers"]), default=0) or 1
    rows = []
    for index, layer in enumerate(data["layers"]):
        cells: list[Cell] = [(str(index), index)]
        for column in columns:
            if column.key == "weights":
                cells.append(stack([(style, name, _bytes(layer, key)) for style, name, key in parts], largest))
            cells.append(_cell(column, layer))
        rows.append(cells)
    marks = legend("Bytes between global and local memory:", [(style, name) for style, name, _ in parts])
    return marks + table(headings, rows, "layers")


_STYLES = {"layer": "t long", "note": "t long"}
_HIDDEN = {"reason", "inputs", "outputs", "parameters", "compute", "transfer", "loaded", "bound_alone"}

_BYTES = (("w", "weights", "weights"), ("f", "features", "features"), ("s", "spill", "spill"))
_BYTES_UNTIMED = (("w", "weights", "weights"), ("f", "activations in", "activations"), ("s", "stored", "stored"))


def _hidden(data: Data) -> set[str]:
    """What the bars have, and where the layers run, where that is one place."""
    hidden = _HIDDEN | {"stored"} if data["timing"] is not None else set(_HIDDEN)
    return hidden | {"where"} if len({layer["where"] for layer in data["layers"]}) == 1 else hidden


def _bytes(layer: Data, key: str) -> int:
    value: int = layer["loaded"] - layer["weights"] if key == "activations" else layer[key]
    return value


def _cell(column: Column, layer: Data) -> Cell:
    value = layer.get(column.key)
    if column.key == "where":
        style = ' class="cpu"' if value == "cpu" else ""
        return f"<span{style}>{escape(str(value))}</span>", value
    if column.kind == "text":
        return text("×".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
    if column.key == "group":
        return ("" if value is None else str(value)), (-1 if value is None else value)
    if column.kind == "share":
        return (f"{100 * value:.1f} %" if value else ""), value
    if column.kind == "times":
        return (f"{value:.2f}" if value else ""), value
    return number(None if value is None else round(value))


def _engine_section(data: Data) -> str:
    timing = data["timing"]
    if timing is None:
        return ""
    total = timing["cycles"] or 1
    rows = [
        [
            text(use["name"]),
            number(use["commands"]),
            number(use["busy"]),
            (f"{100 * use['busy'] / total:.1f} %", use["busy"]),
            number(use["stalled"]),
            text(", ".join(f"{name} {cycles:,}" for name, cycles in use["waits"].items())),
        ]
        for use in timing["engines"]
    ]
    names = (("engine", "t"), ("commands", "n"), ("busy cycles", "n"), ("busy", "n"), ("waiting cycles", "n"))
    headings = [(*name, "") for name in (*names, ("waits for", "t"))]
    assumed = escape("; ".join(timing["assumptions"]))
    return f'<h2>Engines</h2>{table(headings, rows)}<p class="small">Timing model, assumed: {assumed}.</p>'


def _seconds_section(data: Data) -> str:
    rows = [[text(one["stage"]), (f"{one['seconds'] * 1e3:,.1f}", one["seconds"])] for one in data["compile_seconds"]]
    return "<h2>Compilation</h2>" + table([("stage", "t", ""), ("ms", "n", "")], rows)
