"""The element types that an operator takes on a chip: a little notation, and what it means.

A typing is a list of forms separated by ";". A form names a set for every tensor and scalar in, "->", and every tensor
out: `Q Q -> Q`. Sets are F32, F (it and the 16-bit floats), I32, Q8 (INT8, UINT8), Q16 (INT16, UINT16), Q (both), a
DataType by its name, and `any`; `F32|Q8` joins two. A letter before a set means one type throughout: `t:Q t:Q -> t:Q`.
`?` ends an input that may be missing, `*` a list. `[low]` before a form restricts it to a variant of the operator,
` if NAME` after it adds a condition of `CONDITIONS`. An empty typing means that the chip does not have the operator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

from bmcompiler.frontends.bmlang.types import DataType

Types = Sequence[DataType]
F32, I32 = DataType.FLOAT32, DataType.INT32
Q8 = (DataType.INT8, DataType.UINT8)
Q16 = (DataType.INT16, DataType.UINT16)
ALL = (F32, *Q8, *Q16, I32)
"""The element types that operators compute with on every chip."""
HALVES = (DataType.FLOAT16, DataType.BFLOAT16)
EVERY = (*ALL, *HALVES)
"""The same on a chip with 16-bit floats."""
_SETS: dict[str, tuple[DataType, ...]] = {
    "F32": (F32,),
    "F": (F32, *HALVES),
    "I32": (I32,),
    "Q8": Q8,
    "Q16": Q16,
    "Q": (*Q8, *Q16),
    "any": ALL,
    **{dtype.name: (dtype,) for dtype in DataType},
}


class Condition(NamedTuple):
    """What a form asks of its types as a whole: (types in, types out) -> bool, and the same in words."""

    holds: Callable[[Types, Types], bool]
    text: str


def _unsigned(dtype: DataType) -> bool:
    return not dtype.is_signed


CONDITIONS: dict[str, Condition] = {
    "noS16->U16": Condition(
        lambda ins, outs: outs[0] != DataType.UINT16 or DataType.INT16 not in ins,
        "a UINT16 result takes no INT16 input",
    ),
    "16bit-product-sign": Condition(
        lambda ins, outs: ins[0].bits != 16 or outs[0].is_signed or not any(d.is_signed for d in ins),
        "the result must be signed where the first input has 16 bits and an input is signed",
    ),
    "16bit-sum-sign": Condition(
        lambda ins, outs: (
            any(d.bits != 16 for d in (*ins, *outs)) or outs[0].is_signed or not any(d.is_signed for d in ins)
        ),
        "the result must be signed where everything has 16 bits and an input is signed",
    ),
    "signed-result": Condition(lambda ins, outs: outs[0].is_signed, "the result must be signed"),
    "same-sign": Condition(
        lambda ins, outs: ins[0].is_signed == outs[0].is_signed, "input and result must both be signed or both unsigned"
    ),
    "unsigned-from-unsigned": Condition(
        lambda ins, outs: outs[0].is_signed or all(map(_unsigned, ins)), "an unsigned result takes unsigned inputs only"
    ),
    "differs": Condition(lambda ins, outs: ins[0] != outs[0], "the result must have another type than the input"),
}
RELAXABLE = ("unsigned-from-unsigned",)
"""Conditions that a program may switch off (bmlang.md 6, row 8)."""


class Place(NamedTuple):
    """One place of a form."""

    dtypes: tuple[DataType, ...]
    label: str = ""
    optional: bool = False
    many: bool = False


@dataclass(frozen=True)
class Form:
    """One way to choose the types of an operator."""

    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    variants: tuple[str, ...] = ()
    condition: str = ""

    def accepts(self, ins: Types, outs: Types, relaxed: bool = False) -> bool:
        """Whether these types are what the form says."""
        taken, given = _places_for(self.inputs, len(ins)), _places_for(self.outputs, len(outs))
        if taken is None or given is None:
            return False
        labels: dict[str, DataType] = {}
        for place, dtype in zip((*taken, *given), (*ins, *outs)):
            if dtype not in place.dtypes or (place.label and labels.setdefault(place.label, dtype) != dtype):
                return False
        if not self.condition or (relaxed and self.condition in RELAXABLE):
            return True
        return CONDITIONS[self.condition].holds(ins, outs)

    def places(self, inputs: int, outputs: int) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        """The places of so many inputs and outputs; none where their number does not fit."""
        return _places_for(self.inputs, inputs) or (), _places_for(self.outputs, outputs) or ()

    def results(self, ins: Types, chosen: Sequence[DataType | None], relaxed: bool) -> tuple[DataType, ...] | None:
        """The types of the outputs; where none is `chosen`, that of the first input if it is allowed.

        Else one of the same width with the other sign, else the first that is allowed.
        """
        places = _places_for(self.outputs, len(chosen))
        if places is None:
            return None
        first = ins[0] if ins else F32
        wanted = sorted(EVERY, key=lambda d: (d != first, d.bits != first.bits, EVERY.index(d)))
        choices = [
            [d for d in wanted if d in place.dtypes] if own is None else [own] for place, own in zip(places, chosen)
        ]
        return next((outs for outs in product(*choices) if self.accepts(ins, outs, relaxed)), None)

    def __str__(self) -> str:
        places = (*self.inputs, *self.outputs)
        if len(places) > 2 and len({place[:2] for place in places}) == 1 and places[0].label:
            return f"{_names(places[0])} throughout"
        text = " ".join(map(_place_text, self.inputs)) + " -> " + " ".join(map(_place_text, self.outputs))
        return text + (f" ({CONDITIONS[self.condition].text})" if self.condition else "")


def _places_for(places: tuple[Place, ...], count: int) -> tuple[Place, ...] | None:
    """A place for each of so many tensors, None when their number does not fit."""
    if places and places[-1].many:
        rest = count - len(places) + 1
        return (*places[:-1], *(places[-1],) * rest) if rest > 0 else None
    least = sum(not place.optional for place in places)
    return places[:count] if least <= count <= len(places) else None


_TOKEN = re.compile(r"(?:(\w):)?([\w|]+)([?*]?)$")


def _place(token: str) -> Place:
    match = _TOKEN.match(token)
    assert match is not None, token
    label, names, mark = match.groups()
    dtypes = tuple(dict.fromkeys(dtype for name in names.split("|") for dtype in _SETS[name]))
    return Place(dtypes, label or "", mark == "?", mark == "*")


def _names(place: Place) -> str:
    return "any" if set(ALL) <= set(place.dtypes) and not place.label else "|".join(d.name for d in place.dtypes)


def _place_text(place: Place) -> str:
    label = f"{place.label}:" if place.label and len(place.dtypes) > 1 else ""
    return label + _names(place) + ("?" if place.optional else "*" if place.many else "")


@cache
def forms(typing: str) -> tuple[Form, ...]:
    """The forms of a typing."""
    found = []
    for text in filter(None, (part.strip() for part in typing.split(";"))):
        variants, text = text[1:].split("]") if text.startswith("[") else ("", text)
        text, _, condition = text.partition(" if ")
        ins, outs = text.split("->")
        assert not condition or condition in CONDITIONS, condition
        found.append(
            Form(
                tuple(map(_place, ins.split())),
                tuple(map(_place, outs.split())),
                tuple(filter(None, variants.split(","))),
                condition,
            )
        )
    return tuple(found)


_FLOATS = re.compile(r"(?<![\w:|])F32(?![\w|])")
_AMONG = re.compile(r"\bF32\b")


@cache
def with_halves(typing: str) -> str:
    """A typing for a chip that has 16-bit floats, too: wherever it has FLOAT32, but for biases of integers.

    All floats of a call that stand alone have one type: `F32 F32 -> F32` becomes `f:F f:F -> f:F`.
    """
    parts = [part.strip() for part in typing.split(";")]
    return "; ".join(part if part.startswith("[") else _with_halves(part) for part in parts)


def _with_halves(form: str) -> str:
    text = _AMONG.sub("F", _FLOATS.sub("f:F", form))
    return re.sub(r"\bany\b", "any|F", text)


@cache
def accepted(typing: str, variant: str, ins: tuple[DataType, ...], outs: tuple[DataType, ...], relaxed: bool) -> bool:
    """Whether one of the forms for a variant takes these types."""
    return any(form.accepts(ins, outs, relaxed) for form in of_variant(typing, variant))


@cache
def results(
    typing: str, variant: str, ins: tuple[DataType, ...], chosen: tuple[DataType | None, ...], relaxed: bool
) -> tuple[DataType, ...] | None:
    """Types of the outputs, `chosen` by the caller or by the first form that fits; None where no form does."""
    found = (form.results(ins, chosen, relaxed) for form in of_variant(typing, variant))
    return next((outs for outs in found if outs is not None), None)


@cache
def of_variant(typing: str, variant: str) -> tuple[Form, ...]:
    """The forms for a variant: those that name it, and those that name none."""
    return tuple(form for form in forms(typing) if not form.variants or variant in form.variants)
