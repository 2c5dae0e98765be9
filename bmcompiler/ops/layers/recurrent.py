"""Recurrent layers over whole sequences, as ONNX defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from bmcompiler.ir import TensorType, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, Floats, Operand, Strs, TensorOp, attr, operand, optional_operand, tensorop

# name -> function of (x, alpha, beta), with the defaults of alpha and beta
ACTIVATIONS: dict[str, tuple[Callable[[Array, Any, Any], Array], float, float]] = {
    "relu": (lambda x, a, b: np.maximum(x, 0), 0.0, 0.0),
    "tanh": (lambda x, a, b: np.tanh(x), 0.0, 0.0),
    "sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), 0.0, 0.0),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leaky_relu": (lambda x, a, b: np.where(x >= 0, x, a * x), 0.01, 0.0),
    "thresholded_relu": (lambda x, a, b: np.where(x >= a, x, 0), 1.0, 0.0),
    "scaled_tanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hard_sigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), 1.0, 0.0),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), 0.0, 0.0),
    "softplus": (lambda x, a, b: np.logaddexp(x, 0), 0.0, 0.0),
}
_HALF = 0.5
"""What tells 1 from 0."""
_OF_CELL = 2
"""The activation of an LSTM that is of no gate: ONNX Runtime does not limit what goes into it."""
DIRECTIONS = ("forward", "reverse", "bidirectional")


class Recurrent(TensorOp):
    """What RNN, GRU and LSTM share: shapes, directions, lengths of sequences, and the loop over time.

    input (T, N, I), weight (D, gates * H, I), recurrence (D, gates * H, H), bias (D, 2 * gates * H: input part, then
    recurrent part), initial state (D, N, H). D is 2 for "bidirectional", else 1. running (T, N), where it is given: 1
    for the steps of each sequence, 0 behind its end, where outputs are 0 and no state changes.
    """

    weight_operands = ("weight", "recurrence", "bias")

    input = operand(3, FLOAT)
    weight = operand(3)
    recurrence = operand(3)
    bias = operand(2)
    state = operand(3)
    direction = attr(str, "forward")
    activations = attr(Strs, ())
    alphas = attr(Floats, ())
    betas = attr(Floats, ())
    clip = attr(float, 0.0)
    one_type = True
    gates: ClassVar[int]
    functions: ClassVar[tuple[str, ...]]
    """Default activations of one direction."""
    states: ClassVar[int] = 1
    running: ClassVar[Operand[Value | None]]

    def infer(self) -> list[TensorType]:
        steps, images, features = self.input.shape
        directions, rows, hidden = self.recurrence.shape
        shape = (directions, self.gates * hidden)
        self.need_shape("recurrence", self.recurrence, (*shape, hidden))
        self.need_shape("weight", self.weight, (*shape, features))
        self.need_shape("bias", self.bias, (directions, 2 * rows))
        if self.direction not in DIRECTIONS or directions != 1 + (self.direction == DIRECTIONS[2]):
            raise self.shape_error(f"direction '{self.direction}' does not fit {directions} sets of weights")
        for name in ("state", "cell")[: self.states]:
            self.need_shape(name, getattr(self, name), (directions, images, hidden))
        if self.running is not None:
            self.need_shape("running", self.running, (steps, images))
        state = TensorType((directions, images, hidden), self.input.dtype)
        return [TensorType((steps, directions, images, hidden), self.input.dtype), *[state] * self.states]

    def products(self) -> int:
        steps, images, _ = self.input.shape
        return steps * images * (self.weight.type.size + self.recurrence.type.size)

    def need_shape(self, name: str, value: Value, shape: tuple[int, ...]) -> None:
        """Raise ShapeError for an operand of another shape."""
        if value.shape != shape:
            raise self.shape_error(f"{name} must have shape {list(shape)}, got {list(value.shape)}")

    def check(self) -> None:
        count = len(self.functions) * self.recurrence.shape[0]
        names = self.activations or self.functions * self.recurrence.shape[0]
        if len(names) != count or any(name not in ACTIVATIONS for name in names):
            raise self.invalid(f"activations must be {count} of {', '.join(ACTIVATIONS)}; got {', '.join(names)}")
        for given in (self.alphas, self.betas):
            if given and len(given) != count:
                raise self.invalid(f"alphas and betas need one entry per activation: {count}, got {len(given)}")

    def activation(self, direction: int) -> list[Callable[[Array], Array]]:
        """The activation functions of one direction, those of gates on pre-activations that `clip` limits."""
        first = direction * len(self.functions)
        found = []
        for i, default in enumerate(self.functions):
            name = self.activations[first + i] if self.activations else default
            function, alpha, beta = ACTIVATIONS[name]
            alpha = self.alphas[first + i] if self.alphas else alpha
            beta = self.betas[first + i] if self.betas else beta
            found.append(self._limited(function, alpha, beta, self.clip if i < _OF_CELL else 0.0))
        return found

    def _limited(
        self, function: Callable[[Array, Any, Any], Array], alpha: float, beta: float, limit: float
    ) -> Callable[[Array], Array]:
        def apply(x: np.ndarray) -> np.ndarray:
            kind = x.dtype.type
            return function(np.clip(x, -limit, limit) if limit else x, kind(alpha), kind(beta)).astype(x.dtype)

        return apply

    def evaluate(self, x: Array, weight: Array, recurrence: Array, bias: Array, *states: Array) -> tuple[Array, ...]:
        steps, images, _ = x.shape
        directions, _, hidden = recurrence.shape
        kind = np.dtype(np.float32) if x.dtype == np.float16 else x.dtype
        out = np.zeros((steps, directions, images, hidden), kind)
        extras, initial = states[self.states :], states[: self.states]
        final = [np.array(state, kind) for state in initial]
        running = np.ones((steps, images), bool)
        if self.running is not None:
            extras, running = extras[:-1], extras[-1] > _HALF
        for d in range(directions):
            backwards = self.direction == "reverse" or d == 1
            gates = np.matmul(x.astype(kind), weight[d].T.astype(kind)) + bias[d, : weight.shape[1]]
            step = self.stepper(d, recurrence[d].astype(kind), bias[d, weight.shape[1] :], [e[d] for e in extras])
            now = [state[d] for state in final]
            for t in reversed(range(steps)) if backwards else range(steps):
                active = running[t][:, None]
                now = [np.where(active, new, old) for new, old in zip(step(gates[t], *now), now)]
                out[t, d] = np.where(active, now[0], 0)
            for state, value in zip(final, now):
                state[d] = value
        return tuple(array.astype(x.dtype, copy=False) for array in (out, *final))

    def stepper(
        self, direction: int, recurrence: np.ndarray, bias: np.ndarray, extras: list[Array]
    ) -> Callable[..., tuple[Array, ...]]:
        """One step: (input part of the gates, states...) -> states."""
        raise TypeError(f"{type(self).__name__} defines no step")


@tensorop("rnn")
class Rnn(Recurrent):
    """Elman recurrence: h[t] = f(x[t] W' + h[t-1] R' + Wb + Rb). Results: every h (T, D, N, H), the last h (D, N, H).

    %y, %h = "tensorop.rnn"(%x, %w, %r, %b, %h0) {activations = ["relu"], clip = 6.0} : (...) ->
             (tensor<7x1x2x8xf32>, tensor<1x2x8xf32>)

    input (T, N, I), weight (D, H, I), recurrence (D, H, H), bias (D, 2 H), state (D, N, H). direction is "forward",
    "reverse" or "bidirectional" (D = 2); running (T, N): see `Recurrent`; clip limits what goes into activations of
    gates, 0 for no limit; activations, alphas, betas: per direction, see `ACTIVATIONS`.
    """

    running = optional_operand(2)
    gates = 1
    functions = ("tanh",)

    def stepper(
        self, direction: int, recurrence: np.ndarray, bias: np.ndarray, extras: list[Array]
    ) -> Callable[..., tuple[Array, ...]]:
        (f,) = self.activation(direction)
        return lambda x, h: (f(x + h @ recurrence.T + bias),)


@tensorop("gru")
class Gru(Recurrent):
    """Gated recurrence; gates in the order z, r, n. Results: every h (T, D, N, H), the last h (D, N, H).

    z = f(xz + h Rz' + Rbz), r = f(xr + h Rr' + Rbr), n = g(xn + (r * h) Rn' + Rbn), or with linear_before_reset
    n = g(xn + r * (h Rn' + Rbn)); h = (1 - z) * n + z * h, where xz, xr, xn are parts of x[t] W' + Wb.

    %y, %h = "tensorop.gru"(%x, %w, %r, %b, %h0) {linear_before_reset = true} : (...) ->
             (tensor<7x1x2x8xf32>, tensor<1x2x8xf32>)

    weight (D, 3 H, I), recurrence (D, 3 H, H), bias (D, 6 H); the rest as in rnn.
    """

    running = optional_operand(2)
    linear_before_reset = attr(bool, False)
    gates = 3
    functions = ("sigmoid", "tanh")

    def stepper(
        self, direction: int, recurrence: np.ndarray, bias: np.ndarray, extras: list[Array]
    ) -> Callable[..., tuple[Array, ...]]:
        f, g = self.activation(direction)
        size = recurrence.shape[1]
        gates, fresh = recurrence[: 2 * size].T, recurrence[2 * size :].T
        gate_bias, fresh_bias = bias[: 2 * size], bias[2 * size :]

        def step(x: np.ndarray, h: np.ndarray) -> tuple[Array, ...]:
            z, r = np.split(f(x[:, : 2 * size] + h @ gates + gate_bias), 2, axis=1)
            hidden = r * (h @ fresh + fresh_bias) if self.linear_before_reset else (r * h) @ fresh + fresh_bias
            return ((1 - z) * g(x[:, 2 * size :] + hidden) + z * h,)

        return step


@tensorop("lstm")
class Lstm(Recurrent):
    """Long short-term memory; gates in the order i, o, f, c. Results: every h (T, D, N, H), the last h, the last c.

    i = f(xi + h Ri' + Pi * c), f = f(xf + h Rf' + Pf * c), c' = f * c + i * g(xc + h Rc'), o = f(xo + h Ro' + Po * c'),
    h' = o * k(c'); with input_forget f = 1 - i.

    %y, %h, %c = "tensorop.lstm"(%x, %w, %r, %b, %h0, %c0) {direction = "reverse"} : (...) ->
                 (tensor<7x1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>)

    weight (D, 4 H, I), recurrence (D, 4 H, H), bias (D, 8 H), state and cell (D, N, H), peephole (D, 3 H: Pi, Po, Pf);
    the rest as in rnn; before a running there must be a peephole, which may be 0.
    """

    cell = operand(3)
    peephole = optional_operand(2)
    running = optional_operand(2)
    input_forget = attr(bool, False)
    gates = 4
    functions = ("sigmoid", "tanh", "tanh")
    states = 2

    def infer(self) -> list[TensorType]:
        if self.peephole is not None:
            directions, _, hidden = self.recurrence.shape
            self.need_shape("peephole", self.peephole, (directions, 3 * hidden))
        return super().infer()

    def stepper(
        self, direction: int, recurrence: np.ndarray, bias: np.ndarray, extras: list[Array]
    ) -> Callable[..., tuple[Array, ...]]:
        f, g, k = self.activation(direction)
        size = recurrence.shape[1]
        hole = extras[0] if extras else np.zeros(3 * size, recurrence.dtype)
        hole_i, hole_o, hole_f = np.split(hole, 3)

        def step(x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[Array, ...]:
            i, o, forget, fresh = np.split(x + h @ recurrence.T + bias, 4, axis=1)
            i = f(i + hole_i * c)
            forget = 1 - i if self.input_forget else f(forget + hole_f * c)
            cell = forget * c + i * g(fresh)
            return f(o + hole_o * cell) * k(cell), cell

        return step
