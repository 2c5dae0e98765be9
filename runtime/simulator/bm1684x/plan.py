"""What each BM1684X command does in the simulator."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import System, Task
from bmcompiler.backends.bm1684x.isa import ID_FIELDS
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm168x.commands import CommandSet
from bmcompiler.runtime.simulator.bm1684x import cube, gdma, vector
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Transfer
from bmcompiler.runtime.simulator.bm1684x.memories import Memories
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, StepMaker
from bmcompiler.runtime.simulator.bm1684x.sorting import SortCommand, sort_step
from bmcompiler.runtime.simulator.plan import Step, known

_SILENT = (System.NOP, System.END)


def _system(ops: Operands) -> Step:
    """Commands for the engine itself: the queues alone order commands here."""
    if ops.fields["tsk_eu_typ"] not in _SILENT:
        raise SimulatorError(f"what system command {ops.fields['tsk_eu_typ']} does is not known")
    return lambda: None


_TASKS: dict[int, StepMaker] = {**cube.STEPS, **vector.STEPS, Task.SYSTEM: _system}


def tiu_step(ops: Operands) -> Step:
    """Step of one TIU command. Raises SimulatorError for forms whose meaning is unknown and for bad operands."""
    return known(_TASKS, task := ops.fields["tsk_typ"], f"task {task}")(ops)


COMMANDS: CommandSet[Memories] = CommandSet(
    ID_FIELDS,
    lambda engine, data: split(engine, data).fields(),
    lambda memories, fields, fast: tiu_step(Operands(memories, fields, fast)),
    lambda memories, fields, moved: gdma.gdma_step(Transfer(memories, fields, moved)),
    lambda memories, fields, moved: sort_step(SortCommand(memories, fields, moved)),
)
compile_plan = COMMANDS.compile_plan
