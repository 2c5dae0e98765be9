"""Decode the command groups of a program once into a plan of steps, run the plan many times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.bm1684.builder import CommandGroup
from bmcompiler.backends.bm1684.isa import FORMATS, OWN_ID, WAIT_ID, Engine, Task
from bmcompiler.blas import one_blas_thread
from bmcompiler.errors import EncodingError, SimulatorError
from bmcompiler.runtime.simulator.bm1684.elementwise import tensor_step
from bmcompiler.runtime.simulator.bm1684.functions import compare_step, linear_step, lut_step, scalar_step, sfu_step
from bmcompiler.runtime.simulator.bm1684.gdma import Relocation, Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1684.matrix import matrix_step, vector_step
from bmcompiler.runtime.simulator.bm1684.memory import Machine
from bmcompiler.runtime.simulator.bm1684.operands import Fields, Operands, Step
from bmcompiler.runtime.simulator.bm1684.windows import convolution_step, window_step

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


class _Place(NamedTuple):
    """Which command a step came from."""

    group: int
    engine: Engine
    number: int

    def error(self, reason: str) -> SimulatorError:
        return SimulatorError(f"group {self.group}, {self.engine.name} command {self.number}: {reason}")


class Plan:
    """An executable program, bound to the memories of one machine."""

    def __init__(self, steps: list[Step], places: list[_Place]) -> None:
        self._steps, self._places = steps, places

    def __len__(self) -> int:
        return len(self._steps)

    def run(self) -> None:
        """Execute all commands in an order that the waits allow.

        Raises:
            SimulatorError: data that a command cannot work on; names the command.
        """
        done = 0
        try:
            with one_blas_thread, np.errstate(all="ignore"):
                for step in self._steps:
                    step()
                    done += 1
        except SimulatorError as error:
            raise self._places[done].error(error.reason) from error


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
    steps: list[Step] = []
    places: list[_Place] = []
    for number, group in enumerate(groups):
        fields = {engine: _decode(engine, data) for engine, data in zip((Engine.TIU, Engine.GDMA), group)}
        for engine, index in execution_order(fields, number):
            place = _Place(number, engine, index)
            try:
                steps.append(_step(machine, engine, fields[engine][index], relocation or Relocation(), fast))
            except SimulatorError as error:
                raise place.error(error.reason) from error
            places.append(place)
    return Plan(steps, places)


def _decode(engine: Engine, data: bytes) -> list[Fields]:
    try:
        columns = FORMATS[engine].decode(np.frombuffer(data, np.uint8))
    except EncodingError as error:
        raise SimulatorError(error.reason) from error
    rows = zip(*(column.tolist() for column in columns.values()))
    return [dict(zip(columns, row)) for row in rows]


def execution_order(fields: dict[Engine, list[Fields]], group: int = 0) -> list[tuple[Engine, int]]:
    """(engine, index) of all commands of a group in an order both queues and all waits allow (bm1684.md 3.1).

    Each engine runs as far as it can before the other one continues.
    Raises SimulatorError when both wait for an id that never comes.
    """
    order: list[tuple[Engine, int]] = []
    position = {engine: 0 for engine in Engine}
    finished = {engine: 0 for engine in Engine}
    while True:
        before = len(order)
        for engine, other in ((Engine.GDMA, Engine.TIU), (Engine.TIU, Engine.GDMA)):
            queue = fields[engine]
            while position[engine] < len(queue):
                command = queue[position[engine]]
                if command[WAIT_ID[engine]] > finished[other]:
                    break
                order.append((engine, position[engine]))
                finished[engine] = command[OWN_ID[engine]]
                position[engine] += 1
        waiting = [engine for engine in Engine if position[engine] < len(fields[engine])]
        if not waiting:
            return order
        if len(order) == before:
            engine = waiting[0]
            wanted = fields[engine][position[engine]][WAIT_ID[engine]]
            place = _Place(group, engine, position[engine])
            raise place.error(f"it waits for id {wanted} of the other engine, which never completes")


def _step(machine: Machine, engine: Engine, fields: Fields, relocation: Relocation, fast: bool) -> Step:
    if engine is Engine.GDMA:
        if not fields["pio_gdma_enable"]:
            raise SimulatorError("the command is not enabled")
        return gdma_step(Transfer(machine, fields, relocation))
    if not fields["cmd_en"]:
        raise SimulatorError("the command is not enabled")
    maker = _TASKS.get(fields["tsk_typ"])
    if maker is None:
        raise SimulatorError(f"what task {fields['tsk_typ']} does is not known")
    return maker(Operands(machine, fields, fast))
