"""Recurrent layers step by step: the products of all inputs at once, then what depends on the step before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.layers.recurrence import Recurrence
from bmcompiler.ops.layers.recurrent import ACTIVATIONS, Gru, Lstm, Recurrent, Rnn
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.support.decompositions.ended_sequences import EndedSequences

_MOST = 1024
"""Steps of one layer; beyond that the program grows out of proportion."""
_NUMBERS = {
    "leaky_relu": ("slope",), "thresholded_relu": ("alpha",), "hard_sigmoid": ("alpha", "beta"), "elu": ("alpha",),
}  # fmt: skip
"""What ops call alpha and beta of the activations that are ops."""

_Made = TypeVar("_Made")
Step = Callable[["Direction", Value, Sequence["Value | None"]], list[Value]]
"""(direction, input part of the gates (N, gates * H), states (N, H); None: zeros) -> the next states."""


@legalizes(Rnn, Gru, Lstm)
def inputs_before_steps(op: Recurrent, draft: Draft) -> tuple[Value, ...] | None:
    """A recurrent layer: one product for the inputs of all steps, then an op for the steps of each direction."""
    return _at_once(op, draft, by_gate=True)


@legalizes(Rnn, Gru, Lstm)
def inputs_value_by_value(op: Recurrent, draft: Draft) -> tuple[Value, ...] | None:
    """The same, the gates of a value next to each other in what the product gives."""
    return _at_once(op, draft, by_gate=False)


def _at_once(op: Recurrent, draft: Draft, by_gate: bool) -> tuple[Value, ...] | None:
    plain = not any((op.activations, op.clip)) and 0 not in op.input.shape
    constant = all(draft.constant(value) is not None for value in (op.weight, op.recurrence, op.bias))
    ways = [Direction(op, draft, number) for number in range(op.recurrence.shape[0])]
    if not plain or not constant or (isinstance(op, Lstm) and (ways[0].holes is not None or op.input_forget)):
        return None
    if not all(way.can_wait() for way in ways):
        return None
    made = [way.at_once(by_gate) for way in ways]
    sequences, *states = [[way[i] for way in made] for i in range(len(op.results))]
    outputs = [draft.reshape(each, (each.shape[0], 1, *each.shape[1:])) for each in sequences]
    rows = outputs[0] if len(outputs) == 1 else draft.emit("concat", outputs, axis=1)
    return (rows, *(_joined(draft, each) for each in states))


@legalizes(Recurrence)
def in_parts(op: Recurrence, draft: Draft) -> tuple[Value, ...] | None:
    """Steps that do not fit local memory at once: those of one half, and then of the other."""
    steps = op.gates.shape[0]
    if steps < 2:
        return None
    middle, outputs, states = steps // 2, {}, [op.state, op.extra]
    kept = {"cell": op.cell, "backwards": op.backwards, "by_gate": op.by_gate}
    for part in ((middle, steps), (0, middle)) if op.backwards else ((0, middle), (middle, steps)):
        starts, ends = (part[0], 0, 0), (part[1], *op.gates.shape[1:])
        gates = draft.emit("slice", [op.gates], starts=starts, ends=ends, steps=(1, 1, 1))
        operands = [gates, op.weight, *states]
        outputs[part], *last = draft.several("recurrence", operands, **kept)
        states = [last[0], last[1] if op.cell == "lstm" else op.extra]
    rows = draft.emit("concat", [outputs[part] for part in sorted(outputs)], axis=0)
    return (rows, *(state for state in states[: len(op.results) - 1] if state is not None))


@legalizes(Rnn, Gru, Lstm, bytes_do=False)
def step_by_step(op: Recurrent, draft: Draft) -> tuple[Value, ...] | None:
    """A recurrent layer: a product for the inputs of all steps, then each step's of the state, and its gates."""
    return _one_by_one(op, draft)


@legalizes(Rnn, Gru, Lstm, coarse=True)
def step_by_step_in_bytes(op: Recurrent, draft: Draft) -> tuple[Value, ...] | None:
    """The same in bytes, whose roundings add up from step to step."""
    return _one_by_one(op, draft)


def _one_by_one(op: Recurrent, draft: Draft) -> tuple[Value, ...] | None:
    steps = op.input.shape[0]
    if not 1 <= steps <= _MOST or 0 in op.input.shape:
        return None
    ways = [Direction(op, draft, number) for number in range(op.recurrence.shape[0])]
    ran = [way.run(_STEPS[type(op)]) for way in ways]
    outputs = [_joined(draft, list(each)) for each in zip(*(outputs for outputs, _ in ran))]
    states = [_joined(draft, list(each)) for each in zip(*(states for _, states in ran))]
    rows = draft.emit("concat", outputs, axis=0) if len(outputs) > 1 else outputs[0]
    return (
        draft.reshape(rows, op.results[0].shape),
        *(draft.reshape(s, r.shape) for s, r in zip(states, op.results[1:])),
    )


def _joined(draft: Draft, ways: list[Value]) -> Value:
    """(directions, ...) of a value of each direction."""
    one = [draft.reshape(value, (1, *value.shape)) for value in ways]
    return one[0] if len(one) == 1 else draft.emit("concat", one, axis=0)


@dataclass
class Direction:
    """One direction of a layer: its weights, and its way through the steps."""

    op: Recurrent
    draft: Draft
    number: int
    known: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def hidden(self) -> int:
        """H."""
        return self.op.recurrence.shape[2]

    def run(self, step: Step) -> tuple[list[Value], list[Value]]:
        """([N, H] of each step in the order of time, last states [N, H])."""
        op = self.op
        steps = op.input.shape[0]
        states: Sequence[Value | None] = [self._initial(value) for value in op.operands[4 : 4 + op.states]]
        outputs: dict[int, Value] = {}
        inputs = self._inputs()
        for time in reversed(range(steps)) if self.backwards else range(steps):
            fresh = step(self, inputs[time], states)
            states, outputs[time] = self._until_they_end(time, fresh, states)
        return [outputs[time] for time in range(steps)], [state for state in states if state is not None]

    def at_once(self, by_gate: bool) -> list[Value]:
        """The results of one op for all steps."""
        op = self.op
        steps, images, _ = op.input.shape
        cell = _CELLS[type(op)]
        rows = op.weight.shape[1]
        order = None if by_gate else np.arange(rows).reshape(-1, self.hidden).T.ravel()
        gates = self.draft.reshape(self._made(order), (steps, images, rows))
        ended = None if op.running is None else EndedSequences(op, self.draft)
        if ended is not None:
            gates = ended.waiting(gates, order)
        operands = [gates, self._part(op.recurrence), self._part(op.state)]
        if isinstance(op, Lstm):
            operands.append(self._part(op.cell))
        if self.apart:
            cell += "_reset_after"
            operands.append(self.reset_bias())
        outputs, last, *cells = self.draft.several(
            "recurrence", operands, cell=cell, backwards=self.backwards, by_gate=by_gate
        )
        if ended is not None:
            outputs = ended.shown(outputs)
            if isinstance(op, Lstm) and not self.backwards:
                last = ended.last(outputs, None if self._initial(op.state) is None else operands[2])
        return [outputs, last, *cells]

    @property
    def backwards(self) -> bool:
        """Whether it begins with the last step."""
        return self.op.direction == "reverse" or self.number == 1

    def _until_they_end(
        self, time: int, fresh: list[Value], states: Sequence[Value | None]
    ) -> tuple[list[Value], Value]:
        """States that keep what they were where a sequence has ended, and the output, which is 0 there."""
        op, draft = self.op, self.draft
        if op.running is None:
            return fresh, fresh[0]
        array = draft.constant(op.running)
        if array is not None:
            if array[time].all():
                return fresh, fresh[0]
            active = draft.weight(np.repeat(array[time][:, None] > 0, self.hidden, 1), "active")
        else:
            active = self._once("active", self._active)[time]
        zeros = draft.weight(np.zeros(fresh[0].shape, fresh[0].type.numpy), "zeros")
        kept = [zeros if old is None else old for old in states]
        lasting = [draft.emit("where", [active, new, old]) for new, old in zip(fresh, kept)]
        return lasting, draft.emit("where", [active, fresh[0], zeros])

    def _active(self) -> Sequence[Value]:
        """Of all steps whether each sequence runs (N, 1)."""
        steps, images, _ = self.op.input.shape
        assert self.op.running is not None, "who asks has looked"
        rows = self.draft.reshape(self.op.running, (steps * images, 1))
        half = self.draft.weight(np.full((1, 1), 0.5, rows.type.numpy), "half")
        return self._split(self.draft.emit("compare", [rows, half], method="greater"))

    def can_wait(self) -> bool:
        """Whether gates can keep its states where a sequence has ended, or none ends before the last step.

        An LSTM can keep its cell, but not an output before the first step that counts, unless both are 0.
        """
        op = self.op
        if op.running is None or isinstance(op, Gru):
            return True
        fresh = isinstance(op, Lstm) and self._initial(op.state) is None and self._initial(op.cell) is None
        return isinstance(op, Lstm) and (fresh or not self.backwards)

    def _initial(self, value: Value) -> Value | None:
        array = self.draft.constant(value)
        return None if array is not None and not array.any() else self._part(value)

    def _part(self, value: Value, start: int = 0, end: int | None = None) -> Value:
        """This direction of an operand (directions, ...), rows from start to end."""
        rows = value.shape[1] if end is None else end
        array = self.draft.constant(value)
        if array is not None:
            return self.draft.weight(np.ascontiguousarray(array[self.number, start:rows]), "part")
        starts = (self.number, start, *(0,) * (value.type.rank - 2))
        ends = (self.number + 1, rows, *value.shape[2:])
        cut = self.draft.emit("slice", [value], starts=starts, ends=ends, steps=(1,) * value.type.rank)
        return self.draft.reshape(cut, cut.shape[1:])

    def _inputs(self) -> Sequence[Value]:
        """The input part of the gates of each step (N, gates * H), with the biases that may be added here."""
        return self._split(self._made())

    def _split(self, rows: Value) -> Sequence[Value]:
        """Rows (T * N, ...) of each step."""
        steps, images, _ = self.op.input.shape
        if steps == 1:
            return [rows]
        return self.draft.several("split", [rows], axis=0, sizes=(images,) * steps)

    def _made(self, order: np.ndarray | None = None) -> Value:
        """That of all steps (T * N, gates * H), columns of constants in another order."""
        steps, images, features = self.op.input.shape
        rows = self.draft.reshape(self.op.input, (steps * images, features))
        weight, bias = self._part(self.op.weight), self._bias()
        if order is not None:
            weight, bias = self._ordered(weight, order), self._ordered(bias, order)
        return self.draft.emit("matmul", [rows, weight, bias], transpose_right=True)

    def _ordered(self, value: Value, order: np.ndarray) -> Value:
        array = self.draft.constant(value)
        assert array is not None, "`inputs_before_steps` looked"
        return self.draft.weight(array[order], "ordered")

    def _bias(self) -> Value:
        """Of input and recurrent part (gates * H); the latter without that which a reset gate multiplies."""
        op, draft = self.op, self.draft
        count = op.weight.shape[1]
        array = draft.constant(op.bias)
        if array is None:
            one, two = self._part(op.bias, 0, count), self._part(op.bias, count)
            if self.apart:
                kept = draft.weight(np.repeat(np.array([1, 1, 0], one.type.numpy), self.hidden), "kept")
                two = draft.emit("mul", [two, kept])
            return draft.emit("add", [one, two])
        inputs, recurrent = array[self.number, :count], array[self.number, count:].copy()
        if self.apart:
            recurrent[2 * self.hidden :] = 0
        return draft.weight(inputs + recurrent, "bias")

    def reset_bias(self) -> Value:
        """The recurrent bias (H) of a gate that the reset gate multiplies."""
        return self._once("reset", lambda: self._part(self.op.bias, 5 * self.hidden))

    @property
    def holes(self) -> Value | None:
        """The weights of peepholes of an LSTM that has some that are not 0."""
        found = self.op.peephole if isinstance(self.op, Lstm) else None
        array = self.draft.constant(found)
        return None if array is not None and not array.any() else found

    def peeped(self, gate: Value, cell: Value | None, hole: int) -> Value:
        """A gate (N, H) and the peephole's share of the cell."""
        whole, size = self.holes, self.hidden
        if cell is None or whole is None:
            return gate
        factors = self._once(("hole", hole), lambda: self._part(whole, hole * size, (hole + 1) * size))
        return self.draft.emit("add", [gate, self.draft.emit("mul", [cell, factors])])

    @property
    def apart(self) -> bool:
        """Whether the reset gate multiplies a bias, too."""
        return isinstance(self.op, Gru) and self.op.linear_before_reset

    def recurrent(self, state: Value, first: int, end: int, bias: Value | None = None) -> Value:
        """The state (N, H) times the recurrent weights of gates first..end."""
        whole, size = self.op.recurrence, self.hidden
        right = self._once((first, end), lambda: self._part(whole, first * size, end * size))
        return self.draft.emit("matmul", [state, right, *([] if bias is None else [bias])], transpose_right=True)

    def _once(self, what: Hashable, make: Callable[[], _Made]) -> _Made:
        """A value that all steps share."""
        if what not in self.known:
            self.known[what] = make()
        return self.known[what]

    def activate(self, index: int, x: Value) -> Value:
        """The activation function at this place of the direction; `clip` limits what goes into those of gates."""
        op, draft = self.op, self.draft
        place = self.number * len(op.functions) + index
        name = op.activations[place] if op.activations else op.functions[index]
        given = (op.alphas, op.betas)
        numbers = [each[place] if each else default for each, default in zip(given, ACTIVATIONS[name][1:])]
        if op.clip and index < 2:
            x = draft.emit("clip", [x], min=-op.clip, max=op.clip)
        if name == "affine":
            return self.affine(x, *numbers)
        if name == "scaled_tanh":
            return self.affine(draft.emit("tanh", [self.affine(x, numbers[1])]), numbers[0])
        return draft.emit(name, [x], **dict(zip(_NUMBERS.get(name, ()), numbers)))

    def affine(self, x: Value, factor: float, offset: float = 0.0) -> Value:
        """factor * x + offset."""
        for kind, number in (("mul", factor), ("add", offset)):
            if number != (kind == "mul"):
                x = self.draft.emit(kind, [x, self.draft.weight(np.full(1, number, x.type.numpy), "number")])
        return x

    def gates(self, x: Value, *sizes: int) -> tuple[Value, ...]:
        """Parts of the gates (N, gates * H), of so many gates each."""
        return self.draft.several("split", [x], axis=1, sizes=tuple(size * self.hidden for size in sizes))

    def add(self, x: Value, state: Value | None, first: int, end: int) -> Value:
        """`x` and what the state gives to these gates."""
        return x if state is None else self.draft.emit("add", [x, self.recurrent(state, first, end)])


def _rnn(way: Direction, x: Value, states: Sequence[Value | None]) -> list[Value]:
    return [way.activate(0, way.add(x, states[0], 0, 1))]


def _gru(way: Direction, x: Value, states: Sequence[Value | None]) -> list[Value]:
    """h = n + z * (h - n), which is (1 - z) * n + z * h."""
    (state,), draft = states, way.draft
    of_gates, of_fresh = way.gates(x, 2, 1)
    z, r = way.gates(way.activate(0, way.add(of_gates, state, 0, 2)), 1, 1)
    if way.apart:
        bias = way.reset_bias()
        hidden = bias if state is None else way.recurrent(state, 2, 3, bias)
        fresh = draft.emit("add", [of_fresh, draft.emit("mul", [r, hidden])])
    else:
        fresh = way.add(of_fresh, None if state is None else draft.emit("mul", [r, state]), 2, 3)
    n = way.activate(1, fresh)
    kept = draft.emit("mul", [z, n if state is None else draft.emit("sub", [state, n])])
    return [draft.emit("sub", [n, kept]) if state is None else draft.emit("add", [n, kept])]


def _lstm(way: Direction, x: Value, states: Sequence[Value | None]) -> list[Value]:
    (state, cell), draft, op = states, way.draft, way.op
    assert isinstance(op, Lstm), "`_STEPS` has it for these"
    gates = way.add(x, state, 0, 4)
    if way.holes is None:
        together, fresh = way.gates(gates, 3, 1)
        i, o, forget = way.gates(way.activate(0, together), 1, 1, 1)
    else:
        i, o, forget, fresh = way.gates(gates, 1, 1, 1, 1)
        i, forget = (way.activate(0, way.peeped(gate, cell, hole)) for gate, hole in ((i, 0), (forget, 2)))
    taken = draft.emit("mul", [i, way.activate(1, fresh)])
    if cell is not None:
        forget = way.affine(i, -1.0, 1.0) if op.input_forget else forget
        taken = draft.emit("add", [draft.emit("mul", [forget, cell]), taken])
    if way.holes is not None:
        o = way.activate(0, way.peeped(o, taken, 1))
    return [draft.emit("mul", [o, way.activate(2, taken)]), taken]


_CELLS: dict[type[Recurrent], str] = {Rnn: "rnn", Gru: "gru", Lstm: "lstm"}
_STEPS: dict[type[Recurrent], Step] = {Rnn: _rnn, Gru: _gru, Lstm: _lstm}
