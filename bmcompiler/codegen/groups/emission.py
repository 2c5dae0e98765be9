"""The commands of a residency plan: loads ahead, computation, stores behind the loads of the next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bmcompiler.codegen.groups.regions import LocalCopier
from bmcompiler.codegen.groups.steps import (
    Binding,
    Copy,
    Step,
    copies_by_step,
    loads_by_issue,
    portions_by_step,
    reads_any,
)
from bmcompiler.codegen.schedule import Moved

Part = Callable[[Step, Moved], None]


def emit_steps(
    build: Any, steps: Sequence[Step], copier: LocalCopier | None, alone: Part, part: Callable[[int, Part], None]
) -> None:
    """Emit all steps of a plan.

    Args:
        alone: emits an op that does not take part.
        part: called with (number of a step, what emits commands of it), so that commands can be counted.
    """
    waiting: list[tuple[int, Binding]] = []

    def store_waiting() -> None:
        for number, binding in waiting:
            part(number, lambda step, moved, binding=binding: _store(build, binding, moved))  # type: ignore[misc]
        waiting.clear()

    loads, early, ahead = loads_by_issue(steps), portions_by_step(steps), copies_by_step(steps)
    for index, step in enumerate(steps):
        due, stores = loads[index], [binding for _, binding in waiting]
        if step.work is None or any(reads_any(steps[number], binding, stores) for number, binding in due):
            store_waiting()
        if step.work is None:
            part(index, alone)
        for number, binding in due:
            part(number, lambda step, moved, binding=binding: _load(build, binding, moved))  # type: ignore[misc]
        store_waiting()
        for number, portion in early[index]:
            part(number, lambda step, moved, portion=portion: _portion(build, step, portion))  # type: ignore[misc]
        for number, copy in ahead[index]:
            part(number, lambda step, moved, copy=copy: _copy(build, [copy], copier))  # type: ignore[misc]
        if step.work is not None:
            part(index, lambda step, moved: _compute(build, step, copier, moved))
            waiting += [
                (index, binding) for binding in step.outputs if binding.moves and binding.live_range.last > index
            ]
            for binding in step.outputs:
                if binding.moves and binding.live_range.last == index:
                    part(index, lambda step, moved, binding=binding: _store(build, binding, moved))  # type: ignore[misc]
    store_waiting()


def _load(build: Any, binding: Binding, moved: Moved) -> None:
    binding.buffer.transfer(build, binding.address)
    moved.loaded += binding.buffer.nbytes
    moved.weights += binding.buffer.nbytes if binding.buffer.coefficient else 0


def _store(build: Any, binding: Binding, moved: Moved) -> None:
    binding.buffer.transfer(build, binding.address)
    moved.stored += binding.buffer.nbytes


def _compute(build: Any, step: Step, copier: LocalCopier | None, moved: Moved) -> None:
    assert step.work is not None, "steps without work compute nothing"
    _copy(build, step.own_copies, copier)
    inputs, outputs = ([binding.address for binding in bindings] for bindings in (step.inputs, step.outputs))
    if step.early:
        for number in range(len(step.work.portions)):
            if number not in step.early:
                _portion(build, step, number)
    else:
        step.work.compute(build, inputs, outputs, [live_range.address for live_range in step.scratch])
    _copy(build, step.after, copier)
    moved.stream(step.work.stream)
    moved.tiles += 1


def _portion(build: Any, step: Step, number: int) -> None:
    step.portion(number).emit(build, step.inputs[number].address, step.outputs[0].address)


def _copy(build: Any, copies: Sequence[Copy], copier: LocalCopier | None) -> None:
    for copy in copies:
        assert copier is not None, "copies are planned where the chip has a copier"
        copier.emit(build, copy.strided, copy.source.address, copy.target.address)
