"""What each BM1684 command does in the simulator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmcompiler.backends.bm1684.isa import FORMATS, ID_FIELDS, Task
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import rows_of
from bmcompiler.runtime.simulator.bm168x.commands import CommandSet
from bmcompiler.runtime.simulator.bm1684.elementwise import tensor_step
from bmcompiler.runtime.simulator.bm1684.functions import compare_step, linear_step, lut_step, scalar_step, sfu_step
from bmcompiler.runtime.simulator.bm1684.gdma import Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1684.matrix import matrix_step, vector_step
from bmcompiler.runtime.simulator.bm1684.memory import Memories
from bmcompiler.runtime.simulator.bm1684.operands import Operands
from bmcompiler.runtime.simulator.bm1684.windows import convolution_step, window_step
from bmcompiler.runtime.simulator.plan import Step, known

_TASKS: dict[int, Callable[[Operands], Step]] = {
    Task.CONV: convolution_step,
    Task.POOL_OR_DEPTHWISE: window_step,
    Task.MATRIX: matrix_step,
    Task.TENSOR: tensor_step,
    Task.LUT: lut_step,
    Task.SCALAR: scalar_step,
    Task.SFU: sfu_step,
    Task.LINEAR: linear_step,
    Task.COMPARE: compare_step,
    Task.VECTOR_CORRELATION: vector_step,
}


def tiu_step(ops: Operands) -> Step:
    """Step of one TIU command. Raises SimulatorError for forms whose meaning is unknown and for bad operands."""
    if not ops.fields["cmd_en"]:
        raise SimulatorError("the command is not enabled")
    return known(_TASKS, task := ops.fields["tsk_typ"], f"task {task}")(ops)


COMMANDS: CommandSet[Memories] = CommandSet(
    ID_FIELDS,
    lambda engine, data: [*rows_of(FORMATS[engine].decode(np.frombuffer(data, np.uint8)))],
    lambda memories, fields, fast: tiu_step(Operands(memories, fields, fast)),
    lambda memories, fields, moved: gdma_step(Transfer(memories, fields, moved)),
)
compile_plan = COMMANDS.compile_plan
