"""What a scheme can do with layers, and what its choice may cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bmcompiler.ir import Operation
from bmcompiler.passes.quantization.base import Conversions
from bmcompiler.passes.quantization.choice.cost import cycles
from bmcompiler.target import Target

ERROR, WORTH = 0.02, 1.25
"""Relative error of a cluster that is aimed at unless told otherwise, while it costs at most WORTH times the
cycles of the cheapest assignment."""
COARSE, DEAR = 0.1, 1.5
"""Relative error of a cluster that is worth DEAR times the cycles of the cheapest, if that gets rid of it."""


@dataclass(frozen=True)
class Ways:
    """What a scheme can do with a layer.

    conversions: of the scheme. modes: the forms of an integer layer, the first one where nothing can be measured.
    more: forms besides that are taken where a table asks for them. finer: the forms of integer
    layers in place of `modes`, where the choice among these loses decisions or leaves too much in float.
    float_cycles: of an op that stays in float. steep: whether exp and the like are better in float. on_host: whether
    float runs on the host, whose time programs do not tell: it is for what integers ruin, unless more is asked for.
    timed: whether programs tell what all options of layers cost, and float is one where it is cheaper. share: part of
    the cycles of the float program that accuracy may cost at the most, where the cheapest assignment needs less.
    """

    conversions: Conversions
    modes: Sequence[str]
    float_cycles: Callable[[Operation, Target | None], int] = cycles
    steep: bool = True
    on_host: bool = False
    timed: bool = False
    share: float = 1.0
    more: Sequence[str] = ()
    finer: Sequence[str] = ()
