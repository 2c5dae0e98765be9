"""What a row of the table of operators says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from bmcompiler.frontends.bmlang import types
from bmcompiler.frontends.bmlang.typings import Form, forms, with_halves

CHIPS = ("BM1682", "BM1684", "BM1684X")
_DEFAULTS: dict[str, Any] = {
    "true": True,
    "false": False,
    "{}": (),
    "PAD_CONSTANT": types.PadType.PAD_CONSTANT,
    "LayerNormParam()": types.LayerNormParam(),
    "MatrixMulParam()": types.MatrixMulParam(),
    "ResizeParam()": types.ResizeParam(),
}
OUTPUTS = ("O", "Os")


class Locality(Enum):
    """Whether an operator may pass data on in local memory (bmlang.md 5)."""

    LOCAL = "local"
    LIMITED = "limited local"
    GLOBAL = "global"


@dataclass(frozen=True)
class Parameter:
    """A parameter: its kind (see `SIGNATURE_KINDS`), its name in the vendor's page, and its default."""

    kind: str
    name: str
    default: Any = None
    required: bool = True

    @property
    def is_output(self) -> bool:
        """Whether it is a tensor that the operator writes."""
        return self.kind in OUTPUTS


SIGNATURE_KINDS = {
    "T": "Tensor",
    "Ts": "list of Tensor",
    "S": "Scalar",
    "O": "Tensor, out",
    "Os": "list of Tensor, out",
    "int": "int",
    "uint": "int >= 0",
    "bool": "bool",
    "ints": "list of int",
}
"""Kinds of parameters; further ones are the enumerations and structs of `types`."""
WANTED = {
    "T": "a Tensor",
    "Ts": "a list of Tensors",
    "S": "a number or a Scalar",
    "O": "a Tensor",
    "Os": "a list of Tensors",
    "int": "a whole number of 32 bits",
    "uint": "a whole number of 32 bits that is not negative",
    "bool": "True or False",
    "ints": "a list of whole numbers of 32 bits",
}
"""The same as messages name them."""


@dataclass(frozen=True)
class Row:
    """One operator.

    Attributes:
        signature: the vendor's parameters in the vendor's order, as "KIND NAME" or "KIND NAME=DEFAULT".
        bm1682, bm1684: which element types the chip takes, see `typings`.
        bm1684x: the same, where it is not what `with_halves` makes of those of the BM1684.
        local: "L", "G", or the condition under which a limited local operator is local (bmlang.md 5).
        broadcast: "" for equal shapes, "both", "second" (the second operand only), "leading" (leading axes of the
            mask), "any" where shapes follow a rule of the operator.
        coeff: parameters that the vendor allows to be constants.
        todo: the vendor marks it as to be done. printed_name: its C++ name on the vendor's page, where that differs.
        host: why the host computes it in a program for the BM1684; empty where the chip does.
        text: what it computes.
    """

    name: str
    family: str
    signature: str
    bm1682: str
    bm1684: str
    local: str
    text: str
    broadcast: str = ""
    coeff: str = ""
    todo: bool = False
    printed_name: str = ""
    host: str = ""
    bm1684x: str = ""

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in the vendor's order."""
        return tuple(_parameter(text.strip()) for text in self.signature.split(","))

    @cached_property
    def last(self) -> tuple[Parameter, ...]:
        """The parameters with the outputs last."""
        return tuple(sorted(self.parameters, key=lambda parameter: parameter.is_output))

    @cached_property
    def outputs(self) -> tuple[Parameter, ...]:
        """The tensors it writes."""
        return tuple(parameter for parameter in self.parameters if parameter.is_output)

    @cached_property
    def typed(self) -> tuple[Parameter, ...]:
        """Its inputs with element types: tensors and scalars."""
        return tuple(p for p in self.parameters if p.kind in ("T", "Ts", "S"))

    def typing(self, chip: str) -> str:
        """Element types on a chip; empty where it does not have the operator."""
        if chip == "BM1684X":
            return self.bm1684x or with_halves(self.bm1684)
        return self.bm1682 if chip == "BM1682" else self.bm1684

    def forms(self, chip: str) -> tuple[Form, ...]:
        """The same, taken apart."""
        return forms(self.typing(chip))

    @property
    def locality(self) -> Locality:
        """Its class; of LIMITED ones `local` is the condition."""
        return {"L": Locality.LOCAL, "G": Locality.GLOBAL}.get(self.local, Locality.LIMITED)


def _parameter(text: str) -> Parameter:
    kind, name = text.split()
    name, given, default = name.partition("=")
    if not given:
        return Parameter(kind, name)
    return Parameter(kind, name, _DEFAULTS[default] if default in _DEFAULTS else int(default), False)
