"""Tokens of MLIR text, cut by one regular expression, and errors that say where in the text they are."""

from __future__ import annotations

import re
from typing import NamedTuple

from bmcompiler.errors import FileFormatError

_SHAPE = r"(?:[0-9]+x)*[a-z]+[0-9]+"
_TOKENS = re.compile(
    rf"""(?:\s|//[^\n]*)*
    (?: (?P<type>tensor<{_SHAPE}>)
      | (?P<tensor>tensor<{_SHAPE}(?=\s*,))
      | (?P<value>%[A-Za-z0-9_$.-]+)
      | (?P<punct>[(){{}}\[\]<>=,:])
      | (?P<string>"(?:[^"\\\n]|\\[0-9a-fA-F]{{2}}|\\["\\nt])*")
      | (?P<name>[A-Za-z_][A-Za-z0-9_$.]*)
      | (?P<float>-?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?)
      | (?P<hex>0x[0-9a-fA-F]+)
      | (?P<int>-?[0-9]+)
      | (?P<arrow>->)
      | (?P<label>\^[A-Za-z0-9_$.-]+)
      | (?P<end>\Z)
      | (?P<bad>.)
    )""",
    re.VERBOSE | re.DOTALL,
)  # some alternative always matches, so that no text makes the expression backtrack


class Token(NamedTuple):
    """A piece of MLIR text: its kind (a group of the expression above), and where it begins."""

    kind: str
    text: str
    position: int


def error_at(text: str, file: object, position: int, reason: str) -> FileFormatError:
    """The error to raise for a character of `text`, with line and column counted from 1."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return FileFormatError(f"line {line}, column {column}: {reason}", file=file)


def tokenize(text: str, file: object) -> tuple[list[str], list[str], list[int]]:
    """Kind, text and start of each token, the last one of kind "end". Raises FileFormatError at other characters.

    Three lists instead of one of tokens: strings and numbers are no work for the garbage collector.
    """
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    for match in _TOKENS.finditer(text):
        kind = match.lastgroup or ""
        kinds.append(kind)
        texts.append(match[kind])
        starts.append(match.start(kind))
        if kind == "bad":
            raise error_at(text, file, starts[-1], f"unexpected character {texts[-1]!r}")
    return kinds, texts, starts
