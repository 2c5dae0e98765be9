"""Sequences of a batch that end before the last step, for layers whose steps know nothing of it.

Behind its end the gates of a sequence are told to keep the state: an LSTM forgets nothing and takes nothing in, a GRU
takes over nothing of what is new (but for a rounding at each step, of n + 1 * (h - n)). So steps in either direction
have the state that counts when they come to one that counts, and at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ir.keys import EXACT
from bmcompiler.ops.layers.recurrent import Gru, Lstm, Recurrent
from bmcompiler.passes.support.decompositions.base import Draft

_SURE = 1000.0
"""Added to what goes into a sigmoid it makes it 1, taken from it 0, whatever the inputs say."""
_KEPT: dict[type[Recurrent], tuple[float, ...]] = {Gru: (_SURE, 0, 0), Lstm: (-_SURE, 0, _SURE, 0)}
"""What keeps the state, gate by gate."""
_WHY = "gates that keep a state have to be sure of it"


@dataclass
class EndedSequences:
    """Of a layer with `running`."""

    op: Recurrent
    draft: Draft

    def waiting(self, gates: Value, order: np.ndarray | None) -> Value:
        """Gates (T, N, gates * H), in another order of columns, that keep the state where a sequence has ended."""
        columns = np.repeat(_KEPT[type(self.op)], self.op.recurrence.shape[2])
        kept = self._number(columns if order is None else columns[order])
        return self._exact("add", gates, self._exact("mul", self._ended(), kept))

    def shown(self, outputs: Value) -> Value:
        """Outputs (T, N, H), 0 where a sequence has ended."""
        return self._exact("mul", outputs, self._running())

    def last(self, shown: Value, first: Value | None) -> Value:
        """(N, H): of outputs that are 0 behind each end the last one; `first` of a sequence without any step."""
        steps = shown.shape[0]
        running = self._running()
        ends = running
        if steps > 1:
            later = self._cut(running, 1, steps)
            ends = self._exact("sub", running, self._exact("pad", later, pads=(0, 1, 0, 0, 0, 0)))
        chosen = self._exact("mul", shown, ends)
        found = self._exact("reduce", chosen, method="sum", axes=(0,), keepdims=False)
        if first is None:
            return found
        never = self.draft.reshape(self._cut(self._ended(), 0, 1), (shown.shape[1], 1))
        return self._exact("add", found, self._exact("mul", first, never))

    def _running(self) -> Value:
        """(T, N, 1)."""
        assert self.op.running is not None, "who asks has looked"
        return self.draft.reshape(self.op.running, (*self.op.running.shape, 1))

    def _ended(self) -> Value:
        """(T, N, 1): 1 where a sequence has ended."""
        return self._exact("sub", self._number(np.ones(1)), self._running())

    def _cut(self, x: Value, first: int, end: int) -> Value:
        """Some steps."""
        return self._exact("slice", x, starts=(first, 0, 0), ends=(end, *x.shape[1:]), steps=(1, 1, 1))

    def _number(self, array: np.ndarray) -> Value:
        """A constant along the last axis."""
        return self.draft.weight(array.reshape(1, 1, -1).astype(self.op.input.type.numpy), "number")

    def _exact(self, name: str, *operands: Value, **attributes: Any) -> Value:
        """An op that bytes do not hold."""
        made = self.draft.emit(name, operands, **attributes)
        if made.op is not None:
            made.op.attributes |= {EXACT: _WHY}
        return made
