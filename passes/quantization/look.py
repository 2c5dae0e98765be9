"""What measurements want to see of the float net, noted while calibration runs it: no step runs again for them."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.interpreter import Observer
from bmcompiler.ir import Function, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.passes.quantization.choice.clusters import looked_at
from bmcompiler.passes.quantization.choice.tasks import computed, judged_whole, watched
from bmcompiler.passes.quantization.moments import has_constant_rows

_READ = 1 << 25
"""Values that layers read in all steps together, at most, to be kept: 128 MB."""


class Look:
    """Some steps of samples in the float net, by number: the values that errors are measured in.

    read: what layers read whose weights may be rounded by it, by step; None where that is too much to hold.
    """

    def __init__(self, function: Function, steps: Sequence[int]) -> None:
        self.function, self.steps = function, tuple(steps)
        self.watched = {*watched(function).values(), *computed(function).values()}
        self.whole = judged_whole(function, len(steps))
        self.outputs: dict[int, dict[Value, Array]] = {}
        self._layers = {op.operands[0] for op in function.ops if has_constant_rows(op)}
        affordable = len(self.steps) * sum(value.type.size for value in self._layers) <= _READ
        self.read: dict[int, dict[Value, Array]] | None = {} if affordable else None

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
        read = {} if self.read is None else self.read.setdefault(step, {})

        def observe(value: Value, array: Array) -> None:
            if self.read is not None and value in self._layers:
                read[value] = array
            if value in self.watched:
                found[value] = array if value in self.whole else looked_at(array)

        return observe

    def taken(self) -> list[dict[Value, Array]] | None:
        """What layers read, by step, as far as it was kept; it is not kept any longer."""
        read, self.read = self.read, None
        return None if read is None or len(read) < len(self.steps) else [read[step] for step in self.steps]
