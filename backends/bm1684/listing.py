"""Models as text."""

from __future__ import annotations

from bmcompiler.backends.bm1684.asm import line_of
from bmcompiler.backends.bm1684.isa import COMMAND_BYTES, FORMATS, ID_FIELDS, Engine
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.bmodel.bm168x_listing import StreamText, model_listing
from bmcompiler.errors import FileFormatError
from bmcompiler.instructions.order import queue_of


def listing(model: Bm168xModel, net: int | None = None) -> str:
    """All programs of a model, or program number `net` alone; see `model_listing`."""
    return model_listing(model, _text, net)


def _text(engine: Engine, data: bytes) -> StreamText:
    if len(data) % COMMAND_BYTES:
        raise FileFormatError(f"{len(data)} bytes are not whole {engine.name} commands of {COMMAND_BYTES} bytes")
    commands = [FORMATS[engine].unpack(data[at : at + COMMAND_BYTES]) for at in range(0, len(data), COMMAND_BYTES)]
    lines = (line_of(engine, fields) for fields in commands)
    return StreamText(list(zip(queue_of(ID_FIELDS[engine], commands), lines)))
