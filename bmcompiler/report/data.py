"""What a report says, as plain data: the rows of the summary joined with the timing model's figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from bmcompiler.analysis.estimate import estimate
from bmcompiler.analysis.profile import LayerTime, Timing
from bmcompiler.errors import SimulatorError
from bmcompiler.ir import Module
from bmcompiler.ir.keys import is_weight
from bmcompiler.report.cliffs import find_cliffs
from bmcompiler.report.reasons import host_reasons
from bmcompiler.result import Result
from bmcompiler.target import GroupInfo, LayerRow
from bmcompiler.version import version

VERSION = 4
"""Raised when a field of the JSON changes its meaning."""

_SUMMED = ("macs", "loaded", "weights", "stored", "commands", "tiles")
_SHARED = ("cycles", "compute", "transfer", "stalled", "features", "spill", "compulsory")
"""Figures of the timing model that rows of one name and kind share by their commands."""

Row = dict[str, Any]


def report_data(result: Result, profile: Any = None) -> dict[str, Any]:
    """The report as plain data.

    `layers` are the rows of the summary in program order; `timing`, when the chip has a timing model, is that of the
    first program, and each row has its share of the figures of `LayerTime`; `other_commands` are like layers, for
    commands that belong to none. `groups` are those of `Compiled`, and each row has the number of its group.
    `graph` has the ops of the first program as they were compiled, each with the numbers of those it reads.
    `options` are those given, in words. `host_reasons` say why layers run on the host CPU, `cliffs` which layers take
    many times their bound (`Cliff`).
    """
    stages = result.model.stages()
    notes = list(result.notes)
    try:
        timing = estimate(result, profile)
    except SimulatorError as error:
        timing = None
        notes.append(f"no estimate of the time: {error}")
    layers, others = timed_rows(result, timing)
    if result.groups is not None:
        _add_groups(layers, result.groups)
    return {
        "report": VERSION,
        "net": stages[0].net if stages else "",
        "target": result.target,
        "precision": result.precision,
        "compiler": f"bmcompiler {version()}",
        "options": {name: words for name, words in result.options.items() if name != "target"},
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
        "accuracy": None if result.accuracy is None else asdict(result.accuracy),
        "checked": None if result.checked is None else asdict(result.checked) | {"text": str(result.checked)},
        "totals": {
            **{name: sum(getattr(row, name) for row in result.rows) for name in _SUMMED},
            **{name.replace(" ", "_"): value for name, value in result.totals.items()},
        },
        "layers": layers,
        "other_commands": others,
        "host_reasons": [asdict(reason) for reason in host_reasons(result.rows)],
        "groups": None if result.groups is None else [asdict(group) for group in result.groups],
        "graph": _graph(result.module),
        "timing": None if timing is None else _timing(timing),
        "cliffs": [] if timing is None else [asdict(cliff) for cliff in find_cliffs([*layers, *others], timing)],
        "notes": notes,
        "compile_seconds": [{"stage": stage, "seconds": seconds} for stage, seconds in result.timing],
    }


def _graph(module: Module) -> list[Row]:
    """The ops of a module in program order, weights left out, with the numbers of those they read."""
    ops = [op for main in module.functions[:1] for op in main.ops if not all(map(is_weight, op.results))]
    numbers = {value: number for number, op in enumerate(ops) for value in op.results}
    return [
        {
            "layer": op.label,
            "kind": op.title,
            "shape": list(op.results[0].shape),
            "reads": sorted({numbers[value] for value in op.operands if value in numbers}),
        }
        for op in ops
    ]


def timed_rows(result: Result, timing: Timing | None) -> tuple[list[Row], list[Row]]:
    """The rows of the summary with their figures of the timing model, and rows of commands that belong to none."""
    layers = [asdict(row) for row in result.rows]
    return layers, [] if timing is None else _add_times(layers, timing, result.target)


def _timing(timing: Timing) -> Row:
    """Its fields and what follows from them; layers likewise."""
    facts = asdict(timing)
    for name in ("seconds", "spill", "traffic_bound", "bound", "ratio"):
        facts[name] = getattr(timing, name)
    facts["engines"] = [asdict(use) | {"waits": dict(use.waits)} for use in timing.engines]
    facts["layers"] = [
        asdict(layer) | {name: getattr(layer, name) for name in ("spill", "bound", "ratio")} for layer in timing.layers
    ]
    return facts


def _add_times(rows: list[Row], timing: Timing, target: str) -> list[Row]:
    """Give every row its part of its layer's figures; rows of one name and kind share them by their commands.

    Returns rows of their own for commands of no layer, such as copies of outputs.
    """
    members = _rows_of_layers(rows, timing)
    others = []
    for layer in timing.layers:
        if not members[layer.name, layer.kind]:
            others.append(
                asdict(
                    LayerRow(
                        layer.name,
                        layer.kind,
                        target,
                        (),
                        loaded=layer.loaded,
                        stored=layer.stored,
                        weights=layer.weights,
                        commands=layer.commands,
                        macs=layer.macs,
                    )
                )
            )
            members[layer.name, layer.kind].append(others[-1])
    for row in (*rows, *others):
        row.update(dict.fromkeys(_SHARED, 0), utilization=0.0, bound=0.0, bound_alone=0.0, ratio=0.0)
        row["compute_bound"] = 0.0
    for layer in timing.layers:
        same = members[layer.name, layer.kind]
        # Layers may be parts of commands of others: then their rows have none.
        counted = any(row["commands"] for row in same)
        parts = [row["commands"] if counted else 1 for row in same]
        for name in _SHARED:
            _share(same, parts, name, getattr(layer, name))
        for row, part in zip(same, parts):
            _add_bounds(row, layer, part / sum(parts), timing)
    return [row for row in others if row["cycles"] or row["loaded"] or row["stored"]]


def _rows_of_layers(rows: list[Row], timing: Timing) -> dict[tuple[str, str], list[Row]]:
    """The rows of each timed layer; what a host subnet computes has one name and kind for all of its layers."""
    members: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        members[row["layer"], row["kind"]].append(row)
    for layer in timing.layers:
        if (layer.name, layer.kind) not in members:
            names, kinds = layer.name.split(", "), layer.kind.split(", ")
            same = [row for row in rows if row["layer"] in names and row["kind"] in kinds and row["where"] == "cpu"]
            members[layer.name, layer.kind] = same
    return members


def _share(rows: list[Row], parts: list[int], name: str, total: int) -> None:
    """Whole numbers in the proportion of `parts` that add up to `total`."""
    left, rest = total, sum(parts)
    for row, part in zip(rows, parts):
        row[name] = left * part // rest if rest else 0
        left, rest = left - row[name], rest - part


def _add_bounds(row: Row, layer: LayerTime, part: float, timing: Timing) -> None:
    """Bounds of a row, a `part` of a layer: in this program, and with its weights, inputs and outputs on the bus."""
    row["utilization"], row["bound"], row["ratio"] = layer.utilization, layer.bound * part, layer.ratio
    nbytes = row["parameters"] + row["inputs"] + row["outputs"]
    alone = nbytes / timing.bus_bytes_per_cycle if timing.bus_bytes_per_cycle else 0.0
    row["compute_bound"] = layer.compute_bound * part
    row["bound_alone"] = max(row["compute_bound"], alone)


def _add_groups(rows: Iterable[Row], groups: Iterable[GroupInfo]) -> None:
    """Give every row the number of its group: the first of its name that has not been given to a row before."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for group in groups:
        for name in group.layers:
            numbers[name].append(group.number)
    for row in rows:
        mine = numbers[row["layer"]] if row["where"] != "cpu" else []
        row["group"] = mine.pop(0) if len(mine) > 1 else (mine[0] if mine else None)


def _tensor(info: Any) -> Row:
    facts = {"name": info.name, "shape": list(info.shape), "dtype": info.dtype, "threshold": info.threshold}
    return facts | ({"scale": info.scale, "zero_point": info.zero_point} if info.scale else {})
