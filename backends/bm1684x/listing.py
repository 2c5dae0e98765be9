"""Models as text."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.asm import line_of, padding_line
from bmcompiler.backends.bm1684x.isa import ID_FIELDS
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.bmodel.bm168x_listing import StreamText, model_listing
from bmcompiler.instructions.order import Engine, queue_of


def listing(model: Bm168xModel, net: int | None = None) -> str:
    """All programs of a model, or program number `net` alone; see `model_listing`."""
    return model_listing(model, _text, net)


def _text(engine: Engine, data: bytes) -> StreamText:
    stream = split(engine, data)
    commands = stream.fields()
    lines = (line_of(engine, layout, fields) for layout, fields in zip(stream.formats, commands))
    return StreamText(list(zip(queue_of(ID_FIELDS[engine], commands), lines)), padding_line(engine, stream.padding))
