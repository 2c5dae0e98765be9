"""Reader of the MLIR generic text that `printer` writes (and of what mlir-opt makes of it in generic form).

One method reads each construct. Every error is a FileFormatError that names file, line and column.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from bmcompiler.errors import BMError, FileFormatError
from bmcompiler.ir.core import Block, Function, Location, Module, Operation, Value
from bmcompiler.ir.keys import DIALECT, FUNCTION, MODULE, RETURN, is_return
from bmcompiler.ir.tokens import Token, error_at, tokenize
from bmcompiler.ir.types import FROM_MLIR, Quant, TensorType

_T = TypeVar("_T")
_MAX_NESTING = 64
_DIMENSIONS = re.compile(r"((?:[0-9]+x)*)([a-z]+[0-9]+)")
_ESCAPE = re.compile(rb"\\([0-9a-fA-F]{2}|[\"\\nt])")
_NAMED_ESCAPES = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"t": b"\t"}

OperationFactory = Callable[
    [str, list[Value], list[TensorType], dict[str, Any], list[Block], Location],
    Operation,
]


def plain_operation(
    name: str,
    operands: list[Value],
    types: list[TensorType],
    attributes: dict[str, Any],
    regions: list[Block],
    location: Location,
) -> Operation:
    """The default factory: knows no op by name. `bmcompiler.ops.parse_module` uses the registered classes instead."""
    return Operation(name, operands, types, attributes, regions, location)


class _Parser:
    def __init__(self, text: str, file: object, make: OperationFactory) -> None:
        self.text, self.file, self.make = text, file, make
        self.kinds, self.texts, self.starts = tokenize(text, file)
        self.at = 0
        self.types_by_text: dict[str, TensorType] = {}
        self.values: dict[str, Value] = {}
        self.depth = 0

    # -- tokens -----------------------------------------------------------------------------------------------------
    def fail(self, reason: str, position: int | None = None) -> NoReturn:
        raise error_at(self.text, self.file, self.starts[self.at] if position is None else position, reason)

    def peek(self) -> Token:
        at = self.at
        return Token(self.kinds[at], self.texts[at], self.starts[at])

    def take(self, kind: str, what: str) -> str:
        at = self.at
        if self.kinds[at] != kind:
            self.fail(f"expected {what}, found {self.texts[at]!r}")
        self.at = at + 1
        return self.texts[at]

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.texts[self.at]!r}")

    def accept(self, text: str) -> bool:
        if self.texts[self.at] == text:  # never a string: its quotes are part of the text
            self.at += 1
            return True
        return False

    def listed(self, read: Callable[[], _T], close: str) -> list[_T]:
        items: list[_T] = []
        if self.accept(close):
            return items
        items.append(read())
        while self.accept(","):
            items.append(read())
        self.expect(close)
        return items

    def nested(self, read: Callable[[], _T]) -> _T:
        self.depth += 1
        if self.depth > _MAX_NESTING:
            self.fail(f"nested more than {_MAX_NESTING} deep")
        result = read()
        self.depth -= 1
        return result

    def made(self, make: Callable[[], _T], position: int) -> _T:
        """What `make` returns; its ValueError, as a type or an op that cannot be, becomes an error of the text."""
        try:
            return make()
        except ValueError as error:
            self.fail(str(error), position)
        except BMError as error:
            raise error.located(file=self.file) from None

    # -- attributes and types -----------------------------------------------------------------------------------------
    def string(self) -> str:
        quoted = self.take("string", "a string")
        body = self.made(lambda: quoted[1:-1].encode("utf-8", "surrogateescape"), self.starts[self.at - 1])

        def unescape(match: re.Match[bytes]) -> bytes:
            return _NAMED_ESCAPES.get(match[1]) or bytes([int(match[1], 16)])

        return _ESCAPE.sub(unescape, body).decode("utf-8", "surrogateescape")

    def attribute(self) -> Any:
        return self.nested(self._attribute)

    def _attribute(self) -> Any:
        token = self.peek()
        if token.kind in ("int", "hex", "float"):
            return self.number()
        if token.kind == "string":
            return self.string()
        if token.text in ("true", "false"):
            self.at += 1
            return token.text == "true"
        if self.accept("["):
            return tuple(self.listed(self.attribute, "]"))
        if token.text == "{":
            return self.dictionary()
        if token.kind in ("type", "tensor"):
            return self.tensor_type()
        self.fail(f"expected an attribute value, found {token.text!r}")

    def number(self) -> int | float:
        token = self.peek()
        self.at += 1
        suffix = self.take("name", "a number type") if self.accept(":") else ""
        if token.kind == "hex" and suffix in ("f64", "f32"):
            pack, unpack, width = ("<Q", "<d", 64) if suffix == "f64" else ("<I", "<f", 32)
            bits = int(token.text, 16)
            if bits >> width:
                self.fail(f"{token.text} does not fit {suffix}", token.position)
            return float(struct.unpack(unpack, struct.pack(pack, bits))[0])
        if token.kind == "float" or suffix in ("f64", "f32"):
            return float(token.text)
        if len(token.text) > 40:
            self.fail("integer of more than 40 digits", token.position)
        return int(token.text, 0) if token.kind == "hex" else int(token.text)

    def dictionary(self) -> dict[str, Any]:
        self.expect("{")
        return dict(self.listed(self.entry, "}"))

    def entry(self) -> tuple[str, Any]:
        key = self.string() if self.kinds[self.at] == "string" else self.take("name", "an attribute name")
        return key, self.attribute() if self.accept("=") else True

    def tensor_type(self) -> TensorType:
        token = self.peek()
        self.at += 1
        if token.kind == "type":
            type = self.types_by_text.get(token.text)
            if type is None:
                type = self.types_by_text[token.text] = self.plain_type(token)
            return type
        if token.kind != "tensor":
            self.fail(f"expected a tensor type, found {token.text!r}", token.position)
        plain = self.plain_type(token)
        self.expect(",")
        quant = self.quant()
        self.expect(">")
        return self.made(lambda: plain.with_dtype(plain.dtype, quant), token.position)

    def plain_type(self, token: Token) -> TensorType:
        match = _DIMENSIONS.match(token.text, len("tensor<"))
        assert match is not None, "the tokenizer matched the same expression"
        dtype = FROM_MLIR.get(match[2])
        if dtype is None:
            self.fail(f"unknown element type {match[2]!r}", token.position)
        if len(match[1]) > 400:
            self.fail("shape is too long", token.position)
        shape = tuple(int(d) for d in match[1].split("x") if d)
        return self.made(lambda: TensorType(shape, dtype), token.position)

    def quant(self) -> Quant:
        start = self.starts[self.at]
        fields = self.nested(self.dictionary)
        scale, zero_point, axis = fields.get("scale"), fields.get("zero_point", 0), fields.get("axis", 0)
        listed = isinstance(scale, tuple) and all(isinstance(each, float) for each in scale)
        if (
            set(fields) - {"scale", "zero_point", "axis"}
            or not (listed if "axis" in fields else isinstance(scale, float))
            or any(type(number) is not int for number in (zero_point, axis))
        ):
            self.fail(
                "a tensor encoding has the form {scale = FLOAT, zero_point = INT} "
                "or {axis = INT, scale = [FLOAT, ...], zero_point = INT}",
                start,
            )
        if "axis" not in fields:
            return self.made(lambda: Quant(cast(float, scale), zero_point), start)
        return self.made(lambda: Quant.along(axis, cast("tuple[float, ...]", scale), zero_point), start)

    def types(self) -> list[TensorType]:
        return self.listed(self.tensor_type, ")") if self.accept("(") else [self.tensor_type()]

    def signature(self) -> tuple[list[TensorType], list[TensorType]]:
        self.expect("(")
        inputs = self.listed(self.tensor_type, ")")
        self.take("arrow", "'->'")
        return inputs, self.types()

    def location(self) -> Location:
        if not self.accept("loc"):
            return ()
        self.expect("(")
        if self.accept("fused"):
            self.expect("[")
            names = tuple(self.listed(self.string, "]"))
        else:
            names = () if self.accept("unknown") else (self.string(),)
        self.expect(")")
        return names

    # -- operations ---------------------------------------------------------------------------------------------------
    def value(self) -> Value:
        position = self.starts[self.at]
        name = self.take("value", "a value")
        if name not in self.values:
            self.fail(f"{name} is used before it is defined", position)
        return self.values[name]

    def define(self, names: list[str], values: list[Value], position: int) -> None:
        if len(names) != len(values):
            self.fail(f"{len(names)} names for {len(values)} results", position)
        for name, value in zip(names, values):
            if name in self.values:
                self.fail(f"{name} is defined twice", position)
            self.values[name] = value

    def operation(self) -> Operation:
        return self.nested(self._operation)

    def _operation(self) -> Operation:
        start = self.starts[self.at]
        names = []
        if self.kinds[self.at] == "value":
            names.append(self.take("value", "a value"))
            while self.accept(","):
                names.append(self.take("value", "a value"))
            self.expect("=")
        name = self.string()
        self.expect("(")
        operands = self.listed(self.value, ")")
        regions = self.listed(self.region, ")") if self.accept("(") else []
        attributes = self.dictionary() if self.texts[self.at] == "{" else {}
        self.expect(":")
        inputs, outputs = self.signature()
        if inputs != [v.type for v in operands]:
            self.fail(f"{name}: the operand types of the signature differ from the operands", start)
        location = self.location()
        op = self.made(lambda: self.make(name, operands, outputs, attributes, regions, location), start)
        self.define(names, op.results, start)
        return op

    def region(self) -> Block:
        self.expect("{")
        block = Block()
        outer = dict(self.values)
        if self.kinds[self.at] == "label":
            self.at += 1
            if self.accept("("):
                self.listed(lambda: self.argument(block), ")")
            self.expect(":")
        while not self.accept("}"):
            block.append(self.operation())
        self.values = outer
        return block

    def argument(self, block: Block) -> None:
        position = self.starts[self.at]
        name = self.take("value", "a block argument")
        self.expect(":")
        self.define([name], [block.add_argument(self.tensor_type())], position)

    def function(self) -> Function:
        start = self.starts[self.at]
        if self.string() != FUNCTION:
            self.fail("a module holds func.func operations only", start)
        self.expect("(")
        self.expect(")")
        properties = self.function_properties()
        self.expect("(")
        self.values = {}
        body = self.region()
        self.expect(")")
        attributes = self.strip_dialect(self.dictionary()) if self.texts[self.at] == "{" else {}
        self.expect(":")
        self.signature()
        self.location()
        return self.build_function(properties, body, attributes, start)

    def function_properties(self) -> dict[str, Any]:
        properties: dict[str, Any] = {}

        def entry() -> None:
            key = self.take("name", "a property name")
            self.expect("=")
            properties[key] = self.signature() if key == "function_type" else self.attribute()

        self.expect("<")
        self.expect("{")
        self.listed(entry, "}")
        self.expect(">")
        return properties

    def build_function(self, properties: dict[str, Any], body: Block, attributes: dict[str, Any], at: int) -> Function:
        name, kind = properties.get("sym_name"), properties.get("function_type")
        if not isinstance(name, str) or not isinstance(kind, tuple) or len(kind) != 2:
            self.fail(f"{FUNCTION} needs sym_name and function_type", at)
        function = Function(name)
        function.body, body.owner = body, function
        returned = body.ops[-1].operands if body.ops and is_return(body.ops[-1]) else []
        if [v.type for v in body.arguments] != kind[0] or [v.type for v in returned] != kind[1]:
            self.fail(f"function_type of {name} differs from its arguments or its {RETURN}", at)
        for field, count in (("input_names", len(kind[0])), ("output_names", len(kind[1]))):
            names = attributes.pop(field, ())
            if not isinstance(names, tuple) or len(names) != count or not all(isinstance(n, str) for n in names):
                self.fail(f"{name}: {DIALECT}{field} must be {count} strings", at)
            setattr(function, field, list(names))
        function.attributes = attributes
        return function

    def strip_dialect(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return {key.removeprefix(DIALECT): value for key, value in attributes.items()}

    def module(self) -> Module:
        start = self.starts[self.at]
        if self.kinds[self.at] != "string" or self.string() != MODULE:
            self.fail(f'the text must start with "{MODULE}"', start)
        self.expect("(")
        self.expect(")")
        self.expect("(")
        self.expect("{")
        module = Module()
        while not self.accept("}"):
            module.functions = (*module.functions, self.function())
        self.expect(")")
        if self.texts[self.at] == "{":
            module.attributes = self.strip_dialect(self.dictionary())
        self.expect(":")
        self.signature()
        self.location()
        if self.kinds[self.at] != "end":
            self.fail("text after the end of the module")
        return module


def parse_module(text: str, file: object = None, make: OperationFactory = plain_operation) -> Module:
    """Read a module. Raises FileFormatError (line, column) on anything that is not its text form.

    Weights are not read here: the module's `weights` is empty until the caller attaches the side file.
    """
    try:
        return _Parser(text, file, make).module()
    except RecursionError as error:
        raise FileFormatError("nested too deep", file=file) from error
