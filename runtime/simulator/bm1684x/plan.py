"""Decode the command groups of a program once into a plan of steps, run the plan many times."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.backends.bm1684x.codes import System, Task
from bmcompiler.backends.bm1684x.isa import ID_FIELDS
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import EncodingError, SimulatorError
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.bm1684x import cube, gdma, vector
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Relocation, Transfer
from bmcompiler.runtime.simulator.bm1684x.machine import Machine
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, StepMaker
from bmcompiler.runtime.simulator.machine import Fields
from bmcompiler.runtime.simulator.plan import Plan, Step, bound

_SILENT = (System.NOP, System.END)


def _system(ops: Operands) -> Step:
    """Commands for the engine itself: the queues alone order commands here."""
    if ops.fields["tsk_eu_typ"] not in _SILENT:
        raise SimulatorError(f"what system command {ops.fields['tsk_eu_typ']} does is not known")
    return lambda: None


_TASKS: dict[int, StepMaker] = {**cube.STEPS, **vector.STEPS, Task.SYSTEM: _system}


def compile_plan(
    groups: Sequence[CommandGroup], machine: Machine, relocation: Relocation | None = None, *, fast: bool = False
) -> Plan:
    """Relocate and decode a static program for `machine`.

    Args:
        groups: command groups in program order; ids count from 1 in each.
        machine: memories the commands work on; the global memory of the program must be mapped already.
        relocation: how compiled global addresses become real ones; by default they are real.
        fast: float sums of convolutions and matrix products in any order: close to the chip's results, not equal.

    Raises:
        SimulatorError: malformed commands, operands that leave their memory, waits that never end; names the command.
    """
    decoded = ({engine: _decode(engine, data) for engine, data in zip(Engine, group)} for group in groups)
    moved = relocation or Relocation()

    def step(engine: Engine, fields: Fields) -> Step:
        if engine is Engine.GDMA:
            return gdma.gdma_step(Transfer(machine, fields, moved))
        return tiu_step(Operands(machine, fields, fast))

    return bound(decoded, ID_FIELDS, step)


def _decode(engine: Engine, data: bytes) -> list[Fields]:
    try:
        return split(engine, data).fields()
    except EncodingError as error:
        raise SimulatorError(error.reason) from error


def tiu_step(ops: Operands) -> Step:
    """Step of one TIU command. Raises SimulatorError for forms whose meaning is unknown and for bad operands."""
    maker = _TASKS.get(ops.fields["tsk_typ"])
    if maker is None:
        raise SimulatorError(f"what task {ops.fields['tsk_typ']} does is not known")
    return maker(ops)
