"""How many commands the streams of BM168x chips hold: the container counts them.

The BM1684 has commands of 128 bytes (bm1684.md 3). Those of the BM1684X have lengths by class and form; a stream ends
with a system command, which counts, and zero bytes behind it, which do not (bm1684x.md 2.1).
"""

from __future__ import annotations

from bmcompiler.instructions.order import Engine

COMMAND_BYTES = 128
_SHORT_STEP = 16  # the BM1684X's shortest command
_LONG = {Engine.TIU: 128, Engine.GDMA: 96}
_SHORT = {
    Engine.TIU: {0: 64, 1: 64, 2: 48, 3: 64, 4: 32, 5: 32, 6: 48, 7: 16, 9: 32, 10: 32, 13: 48, 14: 48},
    Engine.GDMA: {1: 64, 2: 64, 3: 48, 5: 48, 6: 16},
}
_MATRIX, _FIRST_ROWS_UNIT, _ROWS_BYTES = 2, 4, 32  # matrix products with a row per lane are shorter
_LINEAR, _SYSTEM, _GDMA_SYSTEM = 7, 15, 6
_END_UNIT = 31

STREAM_STEP = {"BM1684": COMMAND_BYTES, "BM1684X": _SHORT_STEP}
"""Bytes that the length of a stream is a multiple of, by the chip's name in a file."""
MOST_COMMANDS = {"BM1684": 0xFFFF, "BM1684X": 0xF_FFFF}
"""By the width of ids."""


def count(chip: str, engine: Engine, stream: bytes) -> int:
    """Commands of a stream; of a malformed one, those before the first that does not exist or is cut off."""
    return len(stream) // COMMAND_BYTES if chip == "BM1684" else _walked(engine, stream)[0]


def ends(chip: str, engine: Engine, stream: bytes) -> bool:
    """Whether a stream ends as the chip's runtime needs it: without an end mark it waits until its time is out."""
    return chip == "BM1684" or _walked(engine, stream)[1]


def _walked(engine: Engine, stream: bytes) -> tuple[int, bool]:
    """(commands, whether the last one is an end mark)."""
    found = at = 0
    last = False
    while at + _SHORT_STEP <= len(stream) and not last:
        size, last = _command(engine, int.from_bytes(stream[at : at + 8], "little"))
        at += size
        if not size:
            return found, False
        found += at <= len(stream)
    return found, last and at <= len(stream)


def _command(engine: Engine, head: int) -> tuple[int, bool]:
    """(length, 0 for a command that does not exist; whether it ends the stream) by the first 8 bytes."""
    if engine is Engine.GDMA:
        kind, short = head >> 32 & 15, head >> 3 & 1
        return _SHORT[engine].get(kind, 0) if short else _LONG[engine], bool(short) and kind == _GDMA_SYSTEM
    task, unit, short = head >> 41 & 15, head >> 45 & 31, head & 1
    if task in (_LINEAR, _SYSTEM):
        return _SHORT_STEP, task == _SYSTEM and unit == _END_UNIT
    if task not in _SHORT[engine]:
        return 0, True
    if task == _MATRIX and short and unit >= _FIRST_ROWS_UNIT:
        return _ROWS_BYTES, False
    return _SHORT[engine][task] if short else _LONG[engine], False
