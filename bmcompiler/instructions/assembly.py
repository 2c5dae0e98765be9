"""Commands as text and back, from instruction tables: `mnemonic id=OWN wait=OTHER field=value ...`.

A mnemonic stands for the values of a few fields; every other field is printed when it differs from its reset value.
The index before a command (`12:`) and everything after `#` say nothing when text is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

from bmcompiler.errors import BMError, EncodingError, FileFormatError
from bmcompiler.instructions.isa import Columns, Fields, Format


@dataclass(frozen=True)
class Syntax:
    """How the commands of one engine are written.

    Attributes:
        layout: their bits.
        keys: fields whose values tell the mnemonic.
        kinds: mnemonic -> the fields it implies, all keys among them.
        raw: mnemonic of commands that no row of `kinds` describes; it implies nothing.
        own, wait: fields that are printed as `id` and `wait`; "" = the engine has none.
        joined: printed name -> (low field, high field, bits of the low one) of quantities in two fields.
        always: printed names that are shown whatever their value.
        order: sort key of printed names; by default they stand as in `layout`.
    """

    layout: Format
    keys: tuple[str, ...]
    kinds: Mapping[str, Mapping[str, int]]
    raw: str
    own: str = ""
    wait: str = ""
    joined: Mapping[str, tuple[str, str, int]] = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    order: Callable[[str], Any] | None = None

    @classmethod
    def of_operations(cls, layout: Format, operations: type[IntEnum], engine: int) -> Syntax:
        """For formats with the fields `engine`, `op`, `id` and `wait`: the mnemonics are FORMAT.OPERATION."""
        kinds = {f"{layout.name}.{op.name.lower()}": {"engine": engine, "op": op} for op in operations}
        return cls(layout, ("engine", "op"), kinds, f"{layout.name}.raw", "id", "wait")

    @cached_property
    def _by_key(self) -> dict[tuple[int, ...], str]:
        return {tuple(int(implied[key]) for key in self.keys): name for name, implied in self.kinds.items()}

    @cached_property
    def _names(self) -> list[str]:
        whole = {half: name for name, (low, high, _) in self.joined.items() for half in (low, high)}
        names = dict.fromkeys(whole.get(one.name, one.name) for one in self.layout.fields)
        shown = [name for name in names if name not in (self.own, self.wait)]
        return shown if self.order is None else sorted(shown, key=self.order)

    @cached_property
    def _reset(self) -> Fields:
        return self._as_printed({one.name: one.default for one in self.layout.fields})

    # -- to text -------------------------------------------------------------------------------------------------------
    def kind(self, fields: Mapping[str, int]) -> str:
        """The mnemonic of a decoded command."""
        return self._by_key.get(tuple(fields[key] for key in self.keys), self.raw)

    def mnemonics(self, columns: Columns) -> list[str]:
        """The mnemonics of many."""
        return [self._by_key.get(key, self.raw) for key in zip(*(columns[key].tolist() for key in self.keys))]

    def head(self, fields: Mapping[str, int]) -> list[str]:
        """Mnemonic and ids."""
        ids = [("id", self.own), ("wait", self.wait)]
        return [f"{self.kind(fields):16}", *(f"{word}={fields[name]}" for word, name in ids if name)]

    def body(self, fields: Mapping[str, int]) -> list[str]:
        """What the mnemonic does not say."""
        known = self._reset | dict(self.kinds.get(self.kind(fields), {}))
        values = self._as_printed(fields)
        shown = (name for name in self._names if values[name] != known[name] or name in self.always)
        return [f"{name}=0x{values[name]:x}" if name.endswith("_addr") else f"{name}={values[name]}" for name in shown]

    def line(self, fields: Mapping[str, int]) -> str:
        """A decoded command, without its number."""
        return " ".join([*self.head(fields), *self.body(fields)])

    def _as_printed(self, fields: Mapping[str, int]) -> Fields:
        out = dict(fields)
        for name, (low, high, bits) in self.joined.items():
            out[name] = out.pop(low) | out.pop(high) << bits
        return out

    # -- from text -----------------------------------------------------------------------------------------------------
    def fields(self, kind: str, given: Mapping[str, int]) -> Fields:
        """The fields that a line sets, by their names in `layout`."""
        out = dict(self.kinds.get(kind, {}))
        alias = {"id": self.own or "id", "wait": self.wait or "wait"}
        for name, value in given.items():
            if name in self.joined:
                low, high, bits = self.joined[name]
                out |= {low: value & ((1 << bits) - 1), high: value >> bits}
            else:
                out[alias.get(name, name)] = value
        return out


def find_syntax(syntaxes: Iterable[Syntax], mnemonic: str) -> Syntax:
    """The one that has a mnemonic. Raises FileFormatError when none has."""
    for syntax in syntaxes:
        if mnemonic in syntax.kinds or mnemonic == syntax.raw:
            return syntax
    raise FileFormatError(f"'{mnemonic}' is not a mnemonic of this chip")


def assembled(syntaxes: Iterable[Syntax], text: str) -> Iterator[bytes]:
    """The commands of a text that consists of nothing else.

    Raises:
        FileFormatError: a line that cannot be read; names the line.
        EncodingError: a value that does not fit its field; names the line.
    """
    known = tuple(syntaxes)
    for number, words in source_lines(text):
        with at_line(number):
            yield packed(find_syntax(known, words[0]), words)


def packed(syntax: Syntax, words: Sequence[str]) -> bytes:
    """A command as a line's words have it. Raises FileFormatError, EncodingError."""
    numbers, _ = assignments(words[1:])
    return syntax.layout.pack(syntax.fields(words[0], numbers))


def source_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, words) of every line that says something."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if words and words[0].endswith(":"):
            words = words[1:]
        if words:
            yield number, words


@contextmanager
def at_line(number: int) -> Iterator[None]:
    """Errors of what is done inside name the line."""
    try:
        yield
    except EncodingError as error:
        raise EncodingError(f"line {number}: {error.reason}") from error
    except BMError as error:
        raise FileFormatError(f"line {number}: {error.reason}") from error


def assignments(
    words: Iterable[str], readers: Mapping[str, Callable[[str], bytes]] | None = None
) -> tuple[Fields, dict[str, bytes]]:
    """Numbers, and the values of the names in `readers`, of words `name=value`.

    Raises FileFormatError for anything else and for names given twice; readers raise ValueError.
    """
    numbers: Fields = {}
    others: dict[str, bytes] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in numbers or name in others:
            raise FileFormatError(f"'{word}' is not a field=value, or repeats one")
        try:
            if readers and name in readers:
                others[name] = readers[name](value)
            else:
                numbers[name] = int(value, 0)
        except ValueError as error:
            raise FileFormatError(f"the value of '{word}' cannot be read") from error
    return numbers, others
