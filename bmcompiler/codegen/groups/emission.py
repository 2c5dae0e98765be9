"""The commands of a residency plan: loads ahead, computation, stores behind the loads of the next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bmcompiler.codegen.groups.regions import LocalCopier
from bmcompiler.codegen.groups.steps import Copy, Slot, Step, loads_by_issue, portions_by_step, reads_any
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
    waiting: list[tuple[int, Slot]] = []

    def store_waiting() -> None:
        for number, slot in waiting:
            part(number, lambda step, moved, slot=slot: _store(build, slot, moved))  # type: ignore[misc]
        waiting.clear()

    loads, early = loads_by_issue(steps), portions_by_step(steps)
    for index, step in enumerate(steps):
        due, stores = loads[index], [slot for _, slot in waiting]
        if step.work is None or any(reads_any(steps[number], slot, stores) for number, slot in due):
            store_waiting()
        if step.work is None:
            part(index, alone)
        for number, slot in due:
            part(number, lambda step, moved, slot=slot: _load(build, slot, moved))  # type: ignore[misc]
        store_waiting()
        for number, portion in early[index]:
            part(number, lambda step, moved, portion=portion: _portion(build, step, portion))  # type: ignore[misc]
        if step.work is not None:
            part(index, lambda step, moved: _compute(build, step, copier, moved))
            waiting += [(index, slot) for slot in step.outputs if slot.moves and slot.live_range.last > index]
            for slot in step.outputs:
                if slot.moves and slot.live_range.last == index:
                    part(index, lambda step, moved, slot=slot: _store(build, slot, moved))  # type: ignore[misc]
    store_waiting()


def _load(build: Any, slot: Slot, moved: Moved) -> None:
    slot.buffer.transfer(build, slot.address)
    moved.loaded += slot.buffer.nbytes
    moved.weights += slot.buffer.nbytes if slot.buffer.coefficient else 0


def _store(build: Any, slot: Slot, moved: Moved) -> None:
    slot.buffer.transfer(build, slot.address)
    moved.stored += slot.buffer.nbytes


def _compute(build: Any, step: Step, copier: LocalCopier | None, moved: Moved) -> None:
    assert step.work is not None, "steps without work compute nothing"
    _copy(build, step.before, copier)
    inputs, outputs = ([slot.address for slot in slots] for slots in (step.inputs, step.outputs))
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
