"""What measurements want to see of the float net, noted while calibration runs it: no step runs again for them."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.interpreter import Observer
from bmcompiler.ir import Function, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.passes.quantization.choice.clusters import looked_at
from bmcompiler.passes.quantization.choice.tasks import computed, judged_whole, watched


class Look:
    """Some steps of samples in the float net, by number: the values that errors are measured in."""

    def __init__(self, function: Function, steps: Sequence[int]) -> None:
        self.function, self.steps = function, tuple(steps)
        self.watched = {*watched(function).values(), *computed(function).values()}
        self.whole = judged_whole(function, len(steps))
        self.outputs: dict[int, dict[Value, Array]] = {}

    @property
    def complete(self) -> bool:
        """Whether all steps were seen."""
        return len(self.outputs) == len(self.steps)

    def observer(self, step: int) -> Observer | None:
        """Who watches a step of the net; None for others than `steps`."""
        if step not in self.steps:
            return None
        found: dict[Value, Array] = {}
        self.outputs[step] = found

        def observe(value: Value, array: Array) -> None:
            if value in self.watched:
                found[value] = array if value in self.whole else looked_at(array)

        return observe
