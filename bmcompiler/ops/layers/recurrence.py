"""The steps of a recurrent layer, whose products of the inputs were computed before them."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, TensorOp, attr, operand, optional_operand, tensorop

CELLS = {"rnn": 1, "gru": 3, "gru_reset_after": 3, "lstm": 4}
"""Kind of cell -> its gates: z, r, n of a GRU, and i, o, f, c of an LSTM, as ONNX orders them."""


@tensorop("recurrence")
class Recurrence(TensorOp):
    """All steps of one direction. Results: h of every step (T, N, H), the last h (N, H), of an LSTM the last c (N, H).

    gates (T, N, H * G): the part of the inputs, with biases, the gates of a value next to each other, or, by_gate, the
    values of a gate, as in weight; weight (G * H, H): what the last h is multiplied by; state (N, H); extra: the cell
    (N, H) that an LSTM begins with, or the bias (H) that a GRU with reset_after resets, too. Formulas are those of rnn,
    gru and lstm with their default activations; cell is one of `CELLS`; backwards: from the last step to the first.

    %y, %h, %c = "tensorop.recurrence"(%gates, %r, %h0, %c0) {cell = "lstm"} : (...) ->
                 (tensor<7x2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
    """

    weight_operands = ("weight",)

    gates = operand(3, FLOAT)
    weight = operand(2)
    state = operand(2)
    extra = optional_operand()
    cell = attr(str, "rnn")
    backwards = attr(bool, False)
    by_gate = attr(bool, False)
    one_type = True

    @property
    def hidden(self) -> int:
        """H."""
        return self.weight.shape[1]

    @property
    def count(self) -> int:
        """G."""
        return CELLS[self.cell]

    def infer(self) -> list[TensorType]:
        if self.cell not in CELLS:
            raise self.invalid(f"cell must be one of {', '.join(CELLS)}, got '{self.cell}'")
        steps, images, rows = self.gates.shape
        wanted = {"gates": (steps, images, self.count * self.hidden), "weight": (rows, self.hidden)}
        wanted["state"] = (images, self.hidden)
        if self.cell in ("lstm", "gru_reset_after"):
            wanted["extra"] = (images, self.hidden) if self.cell == "lstm" else (self.hidden,)
        for name in ("gates", "weight", "state", "extra"):
            value = getattr(self, name)
            if (None if value is None else value.shape) != wanted.get(name):
                shape = wanted.get(name)
                raise self.shape_error(
                    f"{name} must have shape {list(shape)}" if shape else f"{self.cell} takes no {name}"
                )
        state = TensorType((images, self.hidden), self.gates.dtype)
        sequence = TensorType((steps, images, self.hidden), self.gates.dtype)
        return [sequence, state, *([state] if self.cell == "lstm" else [])]

    def products(self) -> int:
        steps, images, _ = self.gates.shape
        return steps * images * self.weight.type.size

    def evaluate(self, gates: Array, weight: Array, state: Array, *extra: Array) -> tuple[Array, ...]:
        kind = np.dtype(np.float32) if gates.dtype.itemsize == 2 else gates.dtype
        out = np.empty(self.results[0].shape, gates.dtype)
        h, r, *more = (np.asarray(array, kind) for array in (state, weight, *extra))
        together = gates
        if not self.by_gate:
            together = gates.reshape(*gates.shape[:2], self.hidden, self.count).swapaxes(2, 3).reshape(gates.shape)
        for time in self.order():
            h, *more = self._step(np.asarray(together[time], kind), r, h, *more)
            out[time] = h
        last = (h, *more[:1]) if self.cell == "lstm" else (h,)
        return out, *(array.astype(gates.dtype) for array in last)

    def order(self) -> range:
        """The steps as they follow each other."""
        steps = self.gates.shape[0]
        return range(steps - 1, -1, -1) if self.backwards else range(steps)

    def _step(self, x: Array, r: Array, h: Array, *extra: Array) -> tuple[Array, ...]:
        size = self.hidden
        if self.cell == "rnn":
            return (np.tanh(x + h @ r.T),)
        if self.cell == "lstm":
            i, o, f, g = np.split(x + h @ r.T, 4, axis=1)
            c = _sigmoid(f) * extra[0] + _sigmoid(i) * np.tanh(g)
            return _sigmoid(o) * np.tanh(c), c
        z, gate = np.split(_sigmoid(x[:, : 2 * size] + h @ r[: 2 * size].T), 2, axis=1)
        reset_before = self.cell == "gru"
        hidden = (gate * h) @ r[2 * size :].T if reset_before else gate * (h @ r[2 * size :].T + extra[0])
        n = np.tanh(x[:, 2 * size :] + hidden)
        return (n + z * (h - n), *extra)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)), x.dtype)
