"""What groups of layers depend on: two functions of the same structure have the same ones, whatever their weights."""

from __future__ import annotations

from collections.abc import Hashable

from bmcompiler.ir import Function, Value
from bmcompiler.ir.keys import FLOAT_NOTE, GROUP, LAYER_NAME, MODE_NOTE, SLICES, TENSOR_NAME, WEIGHT

_NOTES = (GROUP, SLICES, TENSOR_NAME, LAYER_NAME, FLOAT_NOTE, MODE_NOTE)
"""Of ops, that say what they are called, why they are as they are, or what is only found then."""


def structure_of(function: Function) -> Hashable:
    """Ops with attributes, types and who reads what, in order; not the integers of weights, names and locations.

    Weights are told apart by their keys, which are numbered: ops that share one load it once.
    """
    places: dict[Value, int] = {value: place for place, value in enumerate(function.arguments)}
    keys: dict[str, int] = {}
    rows: list[Hashable] = []
    for op in function.ops:
        attributes = {name: value for name, value in op.attributes.items() if name not in _NOTES}
        if op.name == WEIGHT:
            attributes["key"] = keys.setdefault(attributes["key"], len(keys))
        operands = tuple(places[value] for value in op.operands)
        for value in op.results:
            places[value] = len(places)
        rows.append((op.name, repr(attributes), operands, tuple(value.type for value in op.results)))
    return tuple(value.type for value in function.arguments), tuple(rows)
