"""The commands of a residency plan: loads ahead, computation, stores behind the loads of the next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bmcompiler.codegen.groups.regions import Mover
from bmcompiler.codegen.groups.steps import Copy, Slot, Step, loads_by_issue
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.schedule import Moved

Part = Callable[[Step, Moved], None]


def emit_steps(
    build: Any, steps: Sequence[Step], mover: Mover | None, alone: Part, part: Callable[[int, Part], None]
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

    loads = loads_by_issue(steps)
    for index, step in enumerate(steps):
        due = loads[index]
        if step.work is None or any(_reads(steps[number], slot, waiting) for number, slot in due):
            store_waiting()
        if step.work is None:
            part(index, alone)
        for number, slot in due:
            part(number, lambda step, moved, slot=slot: _load(build, slot, moved))  # type: ignore[misc]
        store_waiting()
        if step.work is not None:
            part(index, lambda step, moved: _compute(build, step, mover, moved))
            waiting += [(index, slot) for slot in step.outputs if slot.moves and slot.stay.last > index]
            for slot in step.outputs:
                if slot.moves and slot.stay.last == index:
                    part(index, lambda step, moved, slot=slot: _store(build, slot, moved))  # type: ignore[misc]
    store_waiting()


def _reads(step: Step, slot: Slot, waiting: Sequence[tuple[int, Slot]]) -> bool:
    """Whether a load needs what is not stored yet."""
    held = slot.buffer.holds
    values = [root_of(value) for value in step.op.operands] if held is None else [held.value]
    stored = {other.buffer.holds.value for _, other in waiting if other.buffer.holds is not None}
    return not slot.buffer.coefficient and bool(stored.intersection(values))


def _load(build: Any, slot: Slot, moved: Moved) -> None:
    slot.buffer.transfer(build, slot.address)
    moved.loaded += slot.buffer.nbytes
    moved.weights += slot.buffer.nbytes if slot.buffer.coefficient else 0


def _store(build: Any, slot: Slot, moved: Moved) -> None:
    slot.buffer.transfer(build, slot.address)
    moved.stored += slot.buffer.nbytes


def _compute(build: Any, step: Step, mover: Mover | None, moved: Moved) -> None:
    assert step.work is not None
    _copy(build, step.before, mover)
    inputs, outputs = ([slot.address for slot in slots] for slots in (step.inputs, step.outputs))
    step.work.compute(build, inputs, outputs, [stay.address for stay in step.scratch])
    _copy(build, step.after, mover)
    moved.tiles += 1


def _copy(build: Any, copies: Sequence[Copy], mover: Mover | None) -> None:
    for copy in copies:
        assert mover is not None
        mover.emit(build, copy.move, copy.source.address, copy.target.address)
