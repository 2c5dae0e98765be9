"""How a message spells an option for who reads it: as a command takes it, or as the argument of a function.

spelled("quantize", "f16", "int8")      # --quantize f16 or int8       quantize="f16" or "int8"
spelled("outputs", ["a", "b"])          # --outputs a,b                outputs=["a", "b"]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

Value = str | float | Sequence[str] | Sequence[Sequence[int]]
_in_shell: ContextVar[bool] = ContextVar("in_shell", default=False)
FLAGS = {
    "journal": "--resume",
    "method": "--calibration-method",
    "network": "--float",
    "table": "--calibration-table",
}
"""Options of the commands that have another name than the argument."""


@contextmanager
def in_shell() -> Iterator[None]:
    """A command runs: messages name options. Everywhere else they name arguments."""
    before = _in_shell.set(True)
    try:
        yield
    finally:
        _in_shell.reset(before)


def flag(name: str) -> str:
    """What a command calls an argument."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def spelled(name: str, *values: Value) -> str:
    """An option by the argument's name, alone or with the values of which one is to be given."""
    if _in_shell.get():
        return f"{flag(name)} {' or '.join(map(_word, values))}".rstrip()
    return f"{name}={' or '.join(map(json.dumps, values))}" if values else name


def _word(value: Value) -> str:
    if isinstance(value, str | int | float):
        return str(value)
    names = [each for each in value if isinstance(each, str)]
    return ",".join(names) if names else f'"{json.dumps(value, separators=(",", ":"))}"'
