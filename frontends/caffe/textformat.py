"""Reader of protobuf text (prototxt) that keeps what our schema does not know.

Community branches add fields and custom layers add whole messages; those are kept per layer as plain trees (`extra`),
so a plugin's converter can read them and others are told which settings were left unread. Every error names the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from bmcompiler.errors import FileFormatError
from bmcompiler.frontends.caffe import caffe_pb2

_MAX_NESTING = 32
_TOKENS = re.compile(
    r"""(?P<space>(?:\s|\#[^\n]*)+)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<number>-?\s?(?:0[xX][0-9a-fA-F]+
                         |(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fF]?
                         |inf(?:inity)?\b|nan\b))
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<punct>[{}<>\[\]:,;])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_NAMED_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_BOOLS = {"true": True, "t": True, "True": True, "1": True, "false": False, "f": False, "False": False, "0": False}
_CLOSING = {"{": "}", "<": ">"}
_INTEGERS = frozenset(
    {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32,
     FieldDescriptor.CPPTYPE_UINT64}
)  # fmt: skip
_FLOATS = frozenset({FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE})
_LAYER_MESSAGES = frozenset({"LayerParameter", "V1LayerParameter"})

Spec: TypeAlias = Any
"""A field descriptor; its class and attributes differ between protobuf releases."""
Tree = dict[str, list[Any]]
"""A message our schema does not know: field name -> its values in file order (str, int, float, bool or Tree)."""


class Token(NamedTuple):
    """A piece of prototxt: its kind, and where it begins."""

    kind: str
    text: str
    position: int


@dataclass
class LayerNotes:
    """What the text says about one layer beyond its message: its line, and the fields unknown to the schema.

    A field inside a known message is listed under its dotted path: {"pooling_param.foo": [1]}.
    """

    line: int
    extra: Tree = field(default_factory=dict)


@dataclass
class NetText:
    """A parsed prototxt. `notes` has one entry per layer in file order; `extra` holds unknown fields of the net."""

    net: caffe_pb2.NetParameter
    notes: list[LayerNotes]
    extra: Tree


def parse_net(text: str, file: object) -> NetText:
    """Read a NetParameter. Raises FileFormatError with file and line for anything malformed."""
    reader = _Reader(text, file)
    extra: Tree = {}
    net = caffe_pb2.NetParameter()
    reader.message(net, "", extra, "", 0)
    return NetText(net, reader.notes, extra)


class _Reader:
    def __init__(self, text: str, file: object) -> None:
        self.text, self.file = text, file
        self.notes: list[LayerNotes] = []
        self.tokens = self._tokenize()
        self.at = 0

    # -- tokens -----------------------------------------------------------------------------------------------------
    def _tokenize(self) -> list[Token]:
        tokens, position = [], 0
        while position < len(self.text):
            match = _TOKENS.match(self.text, position)
            if match is None:
                self.fail(f"unexpected character {self.text[position]!r}", position)
            if match.lastgroup != "space":
                tokens.append(Token(match.lastgroup or "", match.group(), position))
            position = match.end()
        tokens.append(Token("end", "", len(self.text)))
        return tokens

    def line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def fail(self, reason: str, position: int | None = None) -> NoReturn:
        if position is None:
            position = self.tokens[self.at].position
        raise FileFormatError(f"line {self.line(position)}: {reason}", file=self.file)

    def peek(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token

    def accept(self, *texts: str) -> str:
        token = self.peek()
        if token.kind == "punct" and token.text in texts:
            self.at += 1
            return token.text
        return ""

    def shown(self) -> str:
        token = self.peek()
        return "the end of the file" if token.kind == "end" else repr(token.text[:40])

    # -- known messages -----------------------------------------------------------------------------------------------
    def message(self, message: Message, close: str, extra: Tree, path: str, depth: int) -> None:
        """Fields up to `close` ("" = end of file) into `message`; unknown ones into `extra` under `path`."""
        if depth > _MAX_NESTING:
            self.fail(f"messages are nested more than {_MAX_NESTING} deep")
        opened = self.peek().position
        fields = message.DESCRIPTOR.fields_by_name
        while not (close and self.accept(close)):
            token = self.peek()
            if token.kind == "end":
                if close:
                    self.fail(f"the '{_opening(close)}' opened in line {self.line(opened)} is never closed")
                return
            if token.kind != "name":
                self.fail(f"expected a field name, found {self.shown()}")
            self.at += 1
            known = fields.get(token.text)
            if known is None:
                extra.setdefault(path + token.text, []).extend(self.unknown(depth + 1))
            elif known.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
                self.submessages(message, known, extra, path, depth)
            else:
                self.scalars(message, known, token)
            self.accept(",", ";")

    def submessages(self, parent: Message, spec: Spec, extra: Tree, path: str, depth: int) -> None:
        self.accept(":")
        listed = bool(self.accept("["))
        while not (listed and self.accept("]")):
            start = self.peek().position
            opening = self.accept("{", "<")
            if not opening:
                self.fail(f"field '{spec.name}' takes a message in braces, found {self.shown()}")
            if _repeated(spec):
                child = getattr(parent, spec.name).add()
            else:
                child = getattr(parent, spec.name)
                child.SetInParent()
            inner, inner_path = extra, f"{path}{spec.name}."
            if spec.message_type.name in _LAYER_MESSAGES:
                self.notes.append(LayerNotes(self.line(start)))
                inner, inner_path = self.notes[-1].extra, ""
            self.message(child, _CLOSING[opening], inner, inner_path, depth + 1)
            if not listed:
                return
            self.accept(",")

    def scalars(self, message: Message, spec: Spec, name: Token) -> None:
        if not self.accept(":"):
            self.fail(f"expected ':' after '{spec.name}', found {self.shown()}")
        if not _repeated(spec):
            if message.HasField(spec.name):
                self.fail(f"'{spec.name}' is given twice", name.position)
            self.store(spec, self.scalar(spec), lambda v: setattr(message, spec.name, v))
            return
        append = getattr(message, spec.name).append
        if not self.accept("["):
            self.store(spec, self.scalar(spec), append)
            return
        while not self.accept("]"):
            self.store(spec, self.scalar(spec), append)
            self.accept(",")

    def store(self, spec: Spec, value: Any, put: Any) -> None:
        try:
            put(value)
        except (ValueError, TypeError, OverflowError):
            self.fail(f"{value!r} is out of range for '{spec.name}'", self.tokens[self.at - 1].position)

    def scalar(self, spec: Spec) -> Any:
        token = self.peek()
        kind = spec.cpp_type
        if kind == FieldDescriptor.CPPTYPE_STRING:
            text = self.string(f"'{spec.name}' takes a quoted string")
            return text.encode("latin-1", "replace") if spec.type == FieldDescriptor.TYPE_BYTES else text
        if kind == FieldDescriptor.CPPTYPE_BOOL and token.text in _BOOLS:
            return _BOOLS[self.take().text]
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            return self.enum(spec)
        if token.kind == "number" and (kind in _INTEGERS or kind in _FLOATS):
            number = _number(self.take().text)
            if kind in _FLOATS:
                return float(number)
            if isinstance(number, int):
                return number
            self.at -= 1
        what = (
            "true or false" if kind == FieldDescriptor.CPPTYPE_BOOL else "a number" if kind in _FLOATS else "an integer"
        )
        self.fail(f"'{spec.name}' takes {what}, found {self.shown()}")

    def enum(self, spec: Spec) -> int:
        token = self.peek()
        values = spec.enum_type.values_by_name
        if token.text in values:
            return int(values[self.take().text].number)
        if token.kind == "number" and _number(token.text) in spec.enum_type.values_by_number:
            return int(_number(self.take().text))
        self.fail(f"'{spec.name}' takes one of {', '.join(values)}; found {self.shown()}")

    def string(self, otherwise: str) -> str:
        if self.peek().kind != "string":
            self.fail(f"{otherwise}, found {self.shown()}")
        parts = []
        while self.peek().kind == "string":
            parts.append(_ESCAPE.sub(_unescape, self.take().text[1:-1]))
        return "".join(parts)

    # -- unknown fields -----------------------------------------------------------------------------------------------
    def unknown(self, depth: int) -> list[Any]:
        """Value or values of a field that the schema does not know."""
        colon = self.accept(":")
        if not self.accept("["):
            return [self.any_value(depth, bool(colon))]
        values = []
        while not self.accept("]"):
            values.append(self.any_value(depth, True))
            self.accept(",")
        return values

    def any_value(self, depth: int, colon: bool) -> Any:
        if depth > _MAX_NESTING:
            self.fail(f"messages are nested more than {_MAX_NESTING} deep")
        opening = self.accept("{", "<")
        if opening:
            return self.tree(_CLOSING[opening], depth)
        if not colon:
            self.fail(f"expected ':' or '{{', found {self.shown()}")
        token = self.peek()
        if token.kind == "string":
            return self.string("")
        if token.kind not in ("number", "name"):
            self.fail(f"expected a value, found {self.shown()}")
        self.at += 1
        if token.kind == "number":
            return _number(token.text)
        return _BOOLS[token.text] if token.text in ("true", "false") else token.text

    def tree(self, close: str, depth: int) -> Tree:
        fields: Tree = {}
        while not self.accept(close):
            token = self.take()
            if token.kind != "name":
                self.at -= token.kind != "end"
                self.fail(f"expected a field name or '{close}', found {self.shown()}")
            fields.setdefault(token.text, []).extend(self.unknown(depth + 1))
            self.accept(",", ";")
        return fields


def _opening(close: str) -> str:
    return "{" if close == "}" else "<"


def _repeated(spec: Spec) -> bool:
    # protobuf 7 has no `label` any more, protobuf 4 and 5 have no `is_repeated`
    known = getattr(spec, "is_repeated", None)
    return bool(known) if known is not None else spec.label == FieldDescriptor.LABEL_REPEATED


def _number(text: str) -> int | float:
    digits = text.replace(" ", "").replace("\n", "").replace("\t", "")
    magnitude = digits.lstrip("-")
    sign = -1 if digits.startswith("-") else 1
    if magnitude[:2] in ("0x", "0X"):
        return sign * int(magnitude, 16)
    if magnitude.isdigit():
        octal = len(magnitude) > 1 and magnitude[0] == "0" and not set(magnitude) - set("01234567")
        return sign * int(magnitude, 8 if octal else 10) if len(magnitude) < 100 else sign * float("inf")
    if magnitude[0] in "in":
        return sign * float(magnitude)
    return sign * float(magnitude.rstrip("fF"))


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2]:
        return chr(int(match[2], 8) & 0xFF)
    return _NAMED_ESCAPES.get(match[3], match[3])
