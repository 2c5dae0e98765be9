"""The cells of recurrent layers: what a step computes, of products, and functions of each element."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from bmcompiler.backends.lanes.recipes import Recorder, Register, exponential


class Run(ABC):
    """What the steps of a cell are made of: computed, emitted or counted by subclasses.

    Values are opaque; `into` names the place of a result, which no operand has.
    """

    @abstractmethod
    def product(self, block: int) -> Any:
        """A block of gates of the weights times what was fed."""

    @abstractmethod
    def apply(self, recipe: Callable[..., Register], into: str, gates: int, *operands: Any, first: int = 0) -> Any:
        """A recipe on each element of so many gates, to the `first` of a place and those behind; returns the place."""

    @abstractmethod
    def part(self, value: Any, first: int, end: int) -> Any:
        """Gates first..end of a value."""

    @abstractmethod
    def feed(self, value: Any) -> None:
        """Make a value what the next product multiplies, rounded to the type of the weights."""


def _sum(m: Recorder, a: Register, b: Register) -> Register:
    return m.add(a, b)


def _times(m: Recorder, a: Register, b: Register) -> Register:
    return m.mul(a, b)


def _twice_sum(m: Recorder, a: Register, b: Register) -> Register:
    total = m.add(a, b)
    return m.add(total, total)


def _tanh_of(m: Recorder, sigmoid_of_twice: Register) -> Register:
    """tanh(x) = 2 * sigmoid(2 x) - 1: a digit near 0 less than `exponential.tanh`, and what the gates are made of."""
    return m.sub(m.add(sigmoid_of_twice, sigmoid_of_twice), 1.0)


def _tanh(m: Recorder, x: Register) -> Register:
    return _tanh_of(m, exponential.sigmoid(m, m.add(x, x)))


def _kept(m: Recorder, forget: Register, cell: Register, taken: Register, fresh: Register) -> Register:
    return m.add(m.mul(forget, cell), m.mul(taken, _tanh_of(m, fresh)))


def _between(m: Recorder, z: Register, n: Register, h: Register) -> Register:
    return m.add(n, m.mul(z, m.sub(h, n)))


def _reset_after(m: Recorder, x: Register, r: Register, product: Register, bias: Register) -> Register:
    return m.add(x, m.mul(r, m.add(product, bias)))


def _rnn(run: Run, time: int, x: Any, h: Any, extra: Any) -> tuple[Any, Any]:
    summed = run.apply(_sum, "sum", 1, x, run.product(0))
    return run.apply(_tanh, f"h{time % 2}", 1, summed), extra


def _lstm(run: Run, time: int, x: Any, h: Any, cell: Any) -> tuple[Any, Any]:
    product = run.product(0)
    run.apply(_sum, "sum", 3, run.part(x, 0, 3), run.part(product, 0, 3))
    summed = run.apply(_twice_sum, "sum", 1, run.part(x, 3, 4), run.part(product, 3, 4), first=3)
    gates = run.apply(exponential.sigmoid, "gates", 4, summed)
    i, o, forget, fresh = (run.part(gates, number, number + 1) for number in range(4))
    cell = run.apply(_kept, f"c{time % 2}", 1, forget, cell, i, fresh)
    shown = run.apply(_tanh, "fresh", 1, cell)
    return run.apply(_times, f"h{time % 2}", 1, o, shown), cell


def _gru(run: Run, time: int, x: Any, h: Any, extra: Any) -> tuple[Any, Any]:
    summed = run.apply(_sum, "sum", 2, run.part(x, 0, 2), run.product(0))
    gates = run.apply(exponential.sigmoid, "gates", 2, summed)
    z, r = run.part(gates, 0, 1), run.part(gates, 1, 2)
    run.feed(run.apply(_times, "fresh", 1, r, h))
    summed = run.apply(_sum, "sum", 1, run.part(x, 2, 3), run.product(1))
    n = run.apply(_tanh, "fresh", 1, summed)
    return run.apply(_between, f"h{time % 2}", 1, z, n, h), extra


def _gru_reset_after(run: Run, time: int, x: Any, h: Any, bias: Any) -> tuple[Any, Any]:
    product = run.product(0)
    summed = run.apply(_sum, "sum", 2, run.part(x, 0, 2), run.part(product, 0, 2))
    gates = run.apply(exponential.sigmoid, "gates", 2, summed)
    z, r = run.part(gates, 0, 1), run.part(gates, 1, 2)
    summed = run.apply(_reset_after, "sum", 1, run.part(x, 2, 3), r, run.part(product, 2, 3), bias)
    n = run.apply(_tanh, "fresh", 1, summed)
    return run.apply(_between, f"h{time % 2}", 1, z, n, h), bias


STEPS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "rnn": _rnn, "gru": _gru, "gru_reset_after": _gru_reset_after, "lstm": _lstm,
}  # fmt: skip
"""Cell -> what one step of it makes of (run, number of the step, inputs, h, cell or bias): the next h and cell."""
BLOCKS = {"rnn": (1,), "gru": (2, 1), "gru_reset_after": (3,), "lstm": (4,)}
"""Gates that are multiplied at once."""
PLACES = {"sum": 0, "gates": 0, "fresh": 1, "h0": 1, "h1": 1, "c0": 1, "c1": 1}
"""Place of a result -> its gates; 0: all."""
RECIPES: tuple[tuple[Callable[..., Register], int], ...] = (
    (_sum, 2), (_twice_sum, 2), (_times, 2), (_kept, 4), (_between, 3), (_reset_after, 4),
    (exponential.sigmoid, 1), (_tanh, 1),
)  # fmt: skip
