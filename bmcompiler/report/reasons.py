"""Why layers run on the host CPU, reason by reason, and what crosses the bus for them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.partition import partition
from bmcompiler.ir import Module, Operation
from bmcompiler.target import LayerRow, Target

BORDER = ("quantize", "dequantize")
"""Conversions at the border of a CPU subnet: they are there because of the layers beside them."""


@dataclass(frozen=True)
class Reason:
    """A reason, the layers that it holds for (each once, in program order) and their ops.

    Attributes:
        text: as it is for the first layer. texts: for each of the layers; they may differ in numbers.
    """

    text: str
    layers: tuple[str, ...]
    texts: tuple[str, ...]
    ops: tuple[str, ...]


def host_reasons(rows: Iterable[LayerRow]) -> list[Reason]:
    """The reasons of a compilation, those of most layers first; conversions at borders have none of their own."""
    found: dict[str, dict[str, LayerRow]] = {}
    ops: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.where == "cpu" and row.kind not in BORDER:
            kind = without_numbers(row.reason)
            found.setdefault(kind, {}).setdefault(row.layer, row)
            ops.setdefault(kind, {})[row.kind] = None
    reasons = [
        Reason(
            next(iter(layers.values())).reason,
            tuple(layers),
            tuple(r.reason for r in layers.values()),
            tuple(ops[kind]),
        )
        for kind, layers in found.items()
    ]
    return sorted(reasons, key=lambda reason: -len(reason.layers))


def without_numbers(text: str) -> str:
    """What sentences have in common that differ in their figures."""
    return re.sub(r"-?\d[\d.,]*", "#", text)


class Crossing(NamedTuple):
    """Bytes that cross the bus in a run for layers on the host CPU, beside the net's inputs and outputs.

    Attributes:
        there: of results of the chip that host layers read. back: of results of host layers that the chip reads.
    """

    there: int
    back: int


def crossing(module: Module, target: Target) -> Crossing:
    """Of a module as its program was made of; what several layers read crosses once."""
    segments = [segment for function in module.functions for segment in partition(function, target)]
    chips, hosts = ({op for s in segments if s.device == device for op in s.ops} for device in (True, False))
    return Crossing(_read(hosts, chips), _read(chips, hosts))


def _read(readers: set[Operation], makers: set[Operation]) -> int:
    """Bytes of what ops of one side read of the other's results."""
    values = {root_of(value) for op in readers for value in op.operands}
    return sum(value.type.nbytes for value in values if value.op in makers)
