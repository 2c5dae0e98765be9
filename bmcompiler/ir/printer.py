"""MLIR generic text. `parser.parse_module(print_module(m))` gives the same text again."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from bmcompiler.ir.core import Block, Function, Location, Module, Operation, Value
from bmcompiler.ir.keys import DIALECT, FUNCTION, MODULE, is_return
from bmcompiler.ir.types import DTYPES, TensorType

_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


def format_float(value: float) -> str:
    """A float literal that reads back to the same 64 bits."""
    if not math.isfinite(value):
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X} : f64"
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + exponent + power


def format_string(text: str) -> str:
    r"""Quoted; backslash, quote and everything that does not print as \XX per UTF-8 byte.

    Undecodable bytes of a source file (surrogate escapes) stand for themselves. Raises TypeError for other surrogates.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    try:
        body = "".join(c if c.isprintable() and c not in '"\\' else _escaped(c) for c in text)
    except UnicodeEncodeError as error:
        raise TypeError(f"text with the lone surrogate {text[error.start]!a} has no UTF-8 form") from None
    return f'"{body}"'


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def format_attribute(value: Any) -> str:
    """One attribute value. Raises TypeError for a Python type that has no text form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, str):
        return format_string(value)
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(format_attribute(v) for v in value) + "]"
    if isinstance(value, Mapping):
        return format_dictionary(value)
    if isinstance(value, TensorType):
        return format_type(value)
    raise TypeError(f"attributes cannot hold {type(value).__name__}")


def format_dictionary(attributes: Mapping[str, Any]) -> str:
    """Attributes in braces, sorted by name, names quoted where MLIR asks for it."""

    def key(name: str) -> str:
        return name if _BARE_NAME.fullmatch(name) else format_string(name)

    return "{" + ", ".join(f"{key(k)} = {format_attribute(attributes[k])}" for k in sorted(attributes)) + "}"


def format_type(type: TensorType) -> str:
    """`tensor<1x8xi8, {scale = 0.5}>`, or `{axis = 1, scale = [0.5, ...]}`; a zero point of 0 is left out."""
    body = "".join(f"{d}x" for d in type.shape) + DTYPES[type.dtype][0]
    if type.quant is not None:
        quant = type.quant
        encoding: dict[str, Any] = {"scale": quant.scales or float(quant.scale)}
        if quant.scales:
            encoding["axis"] = quant.axis
        if quant.zero_point:
            encoding["zero_point"] = quant.zero_point
        body += ", " + format_dictionary(encoding)
    return f"tensor<{body}>"


def format_types(types: Iterable[TensorType], always_parens: bool = True) -> str:
    """A list of types in parentheses; without `always_parens` one type stands alone."""
    texts = [format_type(t) for t in types]
    return texts[0] if len(texts) == 1 and not always_parens else f"({', '.join(texts)})"


def format_location(location: Location) -> str:
    """` loc("conv1")`, or ` loc(fused["conv1", "relu1"])`; nothing for an op without source layers."""
    if not location:
        return ""
    names = ", ".join(format_string(name) for name in location)
    return f" loc({names})" if len(location) == 1 else f" loc(fused[{names}])"


class _Printer:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.lines: list[str] = []

    def name(self, value: Value) -> str:
        if value not in self.names:
            self.names[value] = f"%{len(self.names)}"
        return self.names[value]

    def operation(self, op: Operation, indent: str) -> None:
        results = ", ".join(self.name(v) for v in op.results)
        head = f"{indent}{results} = " if results else indent
        name = format_string(op.name)
        operands = ", ".join(self.name(v) for v in op.operands)
        attributes = f" {format_dictionary(op.attributes)}" if op.attributes else ""
        signature = (
            f"{format_types(v.type for v in op.operands)} -> "
            f"{format_types((v.type for v in op.results), always_parens=len(op.results) != 1)}"
        )
        tail = f"{attributes} : {signature}{format_location(op.location)}"
        if not op.regions:
            self.lines.append(f"{head}{name}({operands}){tail}")
            return
        self.lines.append(f"{head}{name}({operands}) ({{")
        for index, block in enumerate(op.regions):
            if index:
                self.lines.append(f"{indent}}}, {{")
            self.block(block, indent)
        self.lines.append(f"{indent}}}){tail}")

    def block(self, block: Block, indent: str) -> None:
        if block.arguments:
            arguments = ", ".join(f"{self.name(v)}: {format_type(v.type)}" for v in block.arguments)
            self.lines.append(f"{indent}^bb0({arguments}):")
        for op in block.ops:
            self.operation(op, indent + "  ")

    def function(self, function: Function, indent: str) -> None:
        returned = function.ops[-1].operands if function.ops and is_return(function.ops[-1]) else []
        signature = (
            f"{format_types(v.type for v in function.arguments)} -> "
            f"{format_types((v.type for v in returned), always_parens=len(returned) != 1)}"
        )
        properties = f"<{{function_type = {signature}, sym_name = {format_string(function.name)}}}>"
        attributes = {
            **{DIALECT + k: v for k, v in function.attributes.items()},
            DIALECT + "input_names": tuple(function.input_names),
            DIALECT + "output_names": tuple(function.output_names),
        }
        self.lines.append(f'{indent}"{FUNCTION}"() {properties} ({{')
        self.block(function.body, indent)
        self.lines.append(f"{indent}}}) {format_dictionary(attributes)} : () -> ()")


def print_module(module: Module) -> str:
    """The whole module as MLIR generic text, ending in a newline. Weights appear by key and digest only."""
    printer = _Printer()
    printer.lines.append(f'"{MODULE}"() ({{')
    for function in module.functions:
        printer.names.clear()
        printer.function(function, "  ")
    attributes = format_dictionary({DIALECT + k: v for k, v in module.attributes.items()})
    printer.lines.append(f"}}) {attributes} : () -> ()" if module.attributes else "}) : () -> ()")
    return "\n".join(printer.lines) + "\n"
