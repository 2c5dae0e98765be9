"""Decode the command groups of a program once into a plan of steps, run the plan many times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bmcompiler.backends.bm1684.builder import CommandGroup
from bmcompiler.backends.bm1684.isa import FORMATS, ID_FIELDS, Engine, Task
from bmcompiler.errors import EncodingError, SimulatorError
from bmcompiler.runtime.simulator.bm1684.elementwise import tensor_step
from bmcompiler.runtime.simulator.bm1684.functions import compare_step, linear_step, lut_step, scalar_step, sfu_step
from bmcompiler.runtime.simulator.bm1684.gdma import Relocation, Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1684.matrix import matrix_step, vector_step
from bmcompiler.runtime.simulator.bm1684.memory import Machine
from bmcompiler.runtime.simulator.bm1684.operands import Operands
from bmcompiler.runtime.simulator.bm1684.windows import convolution_step, window_step
from bmcompiler.runtime.simulator.machine import Fields
from bmcompiler.runtime.simulator.plan import Plan, Step, bound

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
    moved = relocation or Relocation()
    decoded = ({engine: _decode(engine, data) for engine, data in zip(Engine, group)} for group in groups)
    return bound(decoded, ID_FIELDS, lambda engine, fields: _step(machine, engine, fields, moved, fast))


def _decode(engine: Engine, data: bytes) -> list[Fields]:
    try:
        columns = FORMATS[engine].decode(np.frombuffer(data, np.uint8))
    except EncodingError as error:
        raise SimulatorError(error.reason) from error
    rows = zip(*(column.tolist() for column in columns.values()))
    return [dict(zip(columns, row)) for row in rows]


def _step(machine: Machine, engine: Engine, fields: Fields, relocation: Relocation, fast: bool) -> Step:
    if engine is Engine.GDMA:
        return gdma_step(Transfer(machine, fields, relocation))
    return tiu_step(Operands(machine, fields, fast))


def tiu_step(ops: Operands) -> Step:
    """Step of one TIU command. Raises SimulatorError for forms whose meaning is unknown and for bad operands."""
    if not ops.fields["cmd_en"]:
        raise SimulatorError("the command is not enabled")
    maker = _TASKS.get(ops.fields["tsk_typ"])
    if maker is None:
        raise SimulatorError(f"what task {ops.fields['tsk_typ']} does is not known")
    return maker(ops)
