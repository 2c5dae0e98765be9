"""The columns of the layer table: one list for the page and for the CSV file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from bmcompiler.target import LayerRow


@dataclass(frozen=True)
class Column:
    """A figure of layers.

    Attributes:
        key: its name in the data. heading: on the page. kind: "text", "count", "share" (of 1) or "times".
        meaning: one sentence for readers.
    """

    key: str
    heading: str
    kind: str
    meaning: str


_COLUMNS = (
    Column("layer", "layer", "text", "Source layers of the op."),
    Column("kind", "op", "text", "What is computed."),
    Column("where", "runs on", "text", "The chip or the host CPU; an alias takes no work."),
    Column("group", "group", "count", "Number of the group of layers that are computed together."),
    Column("shape", "shape", "text", "Of the first result."),
    Column(
        "macs",
        "MACs",
        "count",
        "Multiply-accumulates of the layers of the network, the same for every level and precision; commands may "
        "compute more (zeros that fill lanes, rows of two tiles) or fewer (composed layers).",
    ),
    Column(
        "cycles",
        "cycles",
        "count",
        "When the arithmetic engine works for it, or others do while that stands idle; they sum up to the total.",
    ),
    Column(
        "ratio",
        "× bound",
        "times",
        "Time for one of the bound; where there is none, of the bound alone. The time is the cycles, or what the layer "
        "keeps an engine busy, if that is more.",
    ),
    Column(
        "bound",
        "bound",
        "count",
        "Cycles of its arithmetic at full rate, or of its weights and its share of the net's inputs and outputs at "
        "full bandwidth, whichever is more.",
    ),
    Column(
        "bound_alone",
        "bound alone",
        "count",
        "The same with its own inputs and outputs crossing the bus. Fewer cycles show what stays in local memory.",
    ),
    Column("utilization", "utilization", "share", "Of the multipliers while the arithmetic engine works on the layer."),
    Column("stalled", "waits", "count", "Cycles the arithmetic engine stood idle before commands of the layer."),
    Column("compute", "compute", "count", "Busy cycles of the arithmetic engine."),
    Column("transfer", "transfer", "count", "Busy cycles of the other engines."),
    Column("weights", "weights", "count", "Bytes of coefficients that crossed the bus."),
    Column("features", "features", "count", "Bytes of the net's inputs and outputs that crossed the bus."),
    Column("spill", "spill", "count", "Bytes of intermediate values that crossed the bus."),
    Column("loaded", "loaded", "count", "Bytes read from global memory, weights among them."),
    Column("stored", "stored", "count", "Bytes written to global memory."),
    Column("tiles", "tiles", "count", "Pieces that the layer is computed in."),
    Column("commands", "commands", "count", "Commands on the device."),
    Column("inputs", "input bytes", "count", "Size of the activations it reads."),
    Column("outputs", "output bytes", "count", "Size of its results."),
    Column("parameters", "weight bytes", "count", "Size of its weights."),
    Column("reason", "why on the CPU", "text", "Why the chip does not run it."),
)
_KNOWN = {column.key for column in _COLUMNS}


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """The columns that rows have, and those that a chip adds to them and that say something."""
    there = {key for row in rows for key in row}
    own = [field.name for field in fields(LayerRow) if field.name not in _KNOWN]
    more = [
        Column(key, key.replace("_", " "), _kind(rows, key), "") for key in own if any(row.get(key) for row in rows)
    ]
    return [*(column for column in _COLUMNS if column.key in there), *more]


def _kind(rows: Iterable[Mapping[str, Any]], key: str) -> str:
    numbers = all(isinstance(row.get(key), int | float) for row in rows)
    return "count" if numbers else "text"
