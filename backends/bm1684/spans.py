"""Which layer a command of a stage belongs to: the model's note counts the TIU commands first, then those of GDMA."""

from __future__ import annotations

from bmcompiler.backends.bm1684.isa import COMMAND_BYTES, Engine
from bmcompiler.bmodel.bm1684 import Bm1684Stage
from bmcompiler.bmodel.layers import LayerSpan, decode_layers
from bmcompiler.errors import FileFormatError

Spans = dict[Engine, list[LayerSpan]]


def command_counts(stage: Bm1684Stage) -> dict[Engine, int]:
    """Commands of each engine in all subnets."""
    return {engine: sum(len(group[engine]) // COMMAND_BYTES for group in stage.groups) for engine in Engine}


def spans_of(stage: Bm1684Stage) -> Spans:
    """The layers of each engine's commands, which count from 0; models of other compilers have none.

    Raises:
        FileFormatError: a note that does not fit the commands.
    """
    counts = command_counts(stage)
    start = counts[Engine.TIU]
    try:
        text = bytes(stage.layers).decode()
    except UnicodeDecodeError as error:
        raise FileFormatError("the list of layers in the model is not text") from error
    found: Spans = {engine: [] for engine in Engine}
    for span in decode_layers(text, sum(counts.values())):
        if span.first >= start:
            found[Engine.GDMA].append(LayerSpan(span.name, span.kind, span.first - start, span.count))
        elif span.first + span.count <= start:
            found[Engine.TIU].append(span)
        else:
            raise FileFormatError(f"layer '{span.name}' is said to own commands across the end of the TIU's {start}")
    return found
