"""Choosing the mode of every layer: fewest cycles for an output error close to the least."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, cast

from bmcompiler.ir import Function, Operation
from bmcompiler.numeric.quant_modes import MODES
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.modes import Products
from bmcompiler.passes.quantization.base import is_constant
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.scale.cost import cycles, macs
from bmcompiler.passes.quantization.scale.measure import Errors, Reference
from bmcompiler.target import Target

Lower = Callable[[Mapping[Operation, str], Mapping[Operation, str]], tuple[Building[Any], set[Operation]]]
"""(mode by op, reason by op that stays in float) -> the integer net and the ops that became integers."""
FLOAT_ABOVE = 0.1
"""Relative output error from which the last layers are tried in float."""
FLOAT_SHARE = 0.25
"""Share of all products that those layers may have."""
_TRIALS = 5
"""Measurements of step 3 after the first, at most."""


@dataclass
class Choice:
    """What was decided and measured.

    modes: by layer. in_float: reason by op. errors: of the chosen mode, relative. why: that mode. notes: sentences for
    the summary.
    """

    modes: dict[Operation, str] = field(default_factory=dict)
    in_float: dict[Operation, str] = field(default_factory=dict)
    errors: dict[Operation, float] = field(default_factory=dict)
    why: dict[Operation, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Chooser:
    """Numbers behind a choice.

    1. Each layer is computed in every mode that the target takes, on what it reads in the float net, some channels of
       it: its error, with that of rounding its operand. Errors of layers add up as independent noise.
    2. The net with the most exact mode everywhere is measured: its output error is the reference.
    3. The modes with the fewest cycles are measured. Where their output error is more than `budget` above the
       reference, the layers that gain most accuracy per cycle take their most exact mode: as few as bring the measured
       error within the budget, found by bisection from the number that the errors of the layers let expect.
    4. Where the outputs are more than FLOAT_ABOVE away from the float net, the last layers stay in float, as few as
       bring them below, if those have at most FLOAT_SHARE of all products.
    """

    def __init__(
        self, function: Function, reference: Reference, lower: Lower, target: Target | None, budget: float
    ) -> None:
        self.function, self.reference, self.lower = function, reference, lower
        self.target, self.budget = target, budget
        self.errors: Errors = {}
        self.costs: dict[Operation, dict[str, int]] = {}

    def choose(self, fixed: Mapping[Operation, str], in_float: Mapping[Operation, str]) -> Choice:
        """Modes for all layers. `fixed`: modes that stay; `in_float`: what stays in float anyway, with the reason."""
        self._measure(fixed, in_float)
        best = {op: min(by, key=by.__getitem__) for op, by in self.errors.items()}
        least = self._output_error({**best, **fixed}, in_float)
        modes, found = self._cheapest(best, least, fixed, in_float)
        choice = Choice({**modes, **fixed})
        for op, mode in modes.items():
            choice.errors[op] = sqrt(self.errors[op][mode])
            fewest = self.costs[op][mode] == min(self.costs[op].values())
            choice.why[op] = "fewest cycles" if fewest else "fewer cycles would exceed the error budget"
        self._tail(choice, found, in_float)
        counts = {mode: list(choice.modes.values()).count(mode) for mode in MODES}
        text = ", ".join(f"{count} {mode}" for mode, count in counts.items() if count)
        choice.notes.insert(
            0,
            f"quantization modes: {text or 'none'}; outputs are {found:.2%} from float on the calibration data, "
            f"{least:.2%} with the most exact modes",
        )
        return choice

    def _measure(self, fixed: Mapping[Operation, str], in_float: Mapping[Operation, str]) -> None:
        """Step 1."""
        built: dict[Operation, dict[str, tuple[Building[Any], TensorOp]]] = {}
        for mode in MODES:
            low, accepted = self.lower({op: mode for op in self.function.ops}, in_float)
            for op in accepted:
                new = low.ints[op.results[0]].op
                has_modes = isinstance(op, Products) and is_constant(op.operands[1])
                if has_modes and op not in fixed and new is not None and new.attributes.get("mode") == mode:
                    built.setdefault(op, {})[mode] = (low, cast(TensorOp, new))
                    self.costs.setdefault(op, {})[mode] = cycles(new, self.target)
        self.errors = self.reference.layer_errors(built)

    def _output_error(self, modes: Mapping[Operation, str], in_float: Mapping[Operation, str]) -> float:
        return self.reference.output_error(self.lower(modes, in_float)[0])

    def _cheapest(
        self,
        best: Mapping[Operation, str],
        least: float,
        fixed: Mapping[Operation, str],
        in_float: Mapping[Operation, str],
    ) -> tuple[dict[Operation, str], float]:
        """Step 3: modes and their measured output error."""
        cheap = {op: min(by, key=lambda m: (by[m], self.errors[op][m])) for op, by in self.costs.items()}
        ranking = self._ranking(cheap, best)

        def trial(count: int) -> tuple[dict[Operation, str], float]:
            modes = {**cheap, **{op: best[op] for op in ranking[:count]}}
            return modes, self._output_error({**modes, **fixed}, in_float)

        modes, error = trial(0)
        if error <= least + self.budget or not ranking:
            return modes, error
        chosen = dict(best), least
        too_few, enough = 0, len(ranking)
        count = self._expected(cheap, best, ranking, (error, least))
        for _ in range(_TRIALS):
            if enough - too_few < 2:
                break
            count = min(max(count, too_few + 1), enough - 1)
            modes, error = trial(count)
            if error <= least + self.budget:
                chosen, enough = (modes, error), count
            else:
                too_few = count
            count = (too_few + enough) // 2
        return chosen

    def _ranking(self, cheap: Mapping[Operation, str], best: Mapping[Operation, str]) -> list[Operation]:
        """Layers that gain by their most exact mode, those first that gain most for a cycle."""
        gains: list[tuple[float, Operation]] = []
        for op, mode in cheap.items():
            gain = self.errors[op][mode] - self.errors[op][best[op]]
            price = self.costs[op][best[op]] - self.costs[op][mode]
            if gain > 0:
                gains.append((gain / max(price, 1), op))
        return [op for _, op in sorted(gains, key=lambda pair: -pair[0])]

    def _expected(
        self,
        cheap: Mapping[Operation, str],
        best: Mapping[Operation, str],
        ranking: list[Operation],
        errors: tuple[float, float],
    ) -> int:
        """How many layers of the ranking bring the output error below the budget, if squares of errors add up.

        Args:
            errors: measured with the cheapest modes, and with the most exact ones.
        """
        most, least = (error**2 for error in errors)
        gains = [self.errors[op][cheap[op]] - self.errors[op][best[op]] for op in ranking]
        needed = (most - (errors[1] + self.budget) ** 2) / (most - least) * sum(gains)
        total, count = 0.0, 0
        while count < len(gains) and total < needed:
            total += gains[count]
            count += 1
        return count

    def _tail(self, choice: Choice, found: float, in_float: Mapping[Operation, str]) -> None:
        """Step 4, by bisection over how many of the last layers stay in float."""
        if found <= FLOAT_ABOVE:
            return
        ops = [op for op in self.function.ops[:-1] if op.operands]
        total, tail = sum(map(macs, ops)), 0
        starts = []
        for index in range(len(ops) - 1, -1, -1):
            tail += macs(ops[index])
            if tail > FLOAT_SHARE * total:
                break
            if ops[index] in choice.modes:
                starts.append(index)

        def trial(count: int) -> tuple[dict[Operation, str], float]:
            reason = f"the outputs would be {found:.1%} from float"
            kept = {op: reason for op in ops[starts[count - 1] :] if op not in in_float}
            return kept, self._output_error(choice.modes, {**in_float, **kept})

        chosen = trial(len(starts)) if starts else ({}, found)
        if chosen[1] > FLOAT_ABOVE:
            choice.notes.append(
                f"the outputs are {found:.1%} from float in int8, and the last layers in float do not bring "
                f"them below {FLOAT_ABOVE:.0%}; another calibration method or --quantize f32 may serve better"
            )
            return
        low, high = 1, len(starts)
        while low < high:
            middle = (low + high) // 2
            attempt = trial(middle)
            if attempt[1] <= FLOAT_ABOVE:
                high, chosen = middle, attempt
            else:
                low = middle + 1
        kept, error = chosen
        choice.in_float.update(kept)
        for op in kept:
            choice.modes.pop(op, None)
        choice.notes.append(
            f"the last {len(kept)} ops stay in float: with them in int8 the outputs are {found:.1%} from float, "
            f"without {error:.1%}"
        )
