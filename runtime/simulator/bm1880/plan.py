"""Decode a command buffer once into a plan of steps, run the plan many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import CPU_NAME_BYTES, FORMATS, CpuOperation, Engine, Task
from bmcompiler.errors import BMError, FileFormatError, SimulatorError
from bmcompiler.instructions.isa import rows_of
from bmcompiler.runtime.cpu_functions import CpuMemory, bind_cpu_function, cpu_function
from bmcompiler.runtime.simulator.bm1880.elementwise import tensor_step
from bmcompiler.runtime.simulator.bm1880.gdma import Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1880.matrix import matrix_fold_step, matrix_mac_step
from bmcompiler.runtime.simulator.bm1880.memory import Memories
from bmcompiler.runtime.simulator.bm1880.operands import Operands
from bmcompiler.runtime.simulator.bm1880.windows import convolution_step, window_step
from bmcompiler.runtime.simulator.plan import Plan, Step, known

_TASKS: dict[int, Callable[[Operands], Step]] = {
    Task.CONV: convolution_step,
    Task.WINDOW: window_step,
    Task.MATRIX_MAC: matrix_mac_step,
    Task.TENSOR: tensor_step,
    Task.MATRIX_MAC_2: matrix_fold_step,
}
_PARAM_SIZE_BYTES = slice(44, 48)
_PARAM_START = 48


class Record(NamedTuple):
    """Where a command is: its number in the buffer, and its engine."""

    number: int
    engine: int

    def error(self, reason: str) -> SimulatorError:
        """An error that names the command."""
        return SimulatorError(f"command {self.number} ({Engine(self.engine).name}): {reason}")


def compile_plan(
    cmdbuf: bytes | bytearray | memoryview, memories: Memories, neuron_base: int = 0, weight_base: int = 0
) -> Plan:
    """Relocate and decode a command buffer (bm1880.md 3) for `memories`.

    Commands run in buffer order, always a legal schedule (bm1880.md 6).

    Args:
        cmdbuf: records as in the model file, not relocated.
        memories: those the commands work on; the neuron and weight areas must be mapped already.
        neuron_base, weight_base: device addresses of the two areas.

    Raises:
        SimulatorError: a malformed record, or a command whose operands leave their memory; names the command.
        RuntimeUseError: a CPU record that calls an unknown host function.
    """
    try:
        index = records(cmdbuf)
    except FileFormatError as error:
        raise SimulatorError(error.reason) from error
    bases = (neuron_base, weight_base)
    fields = {engine: rows_of(FORMATS[engine].decode(index.payloads(engine))) for engine in (Engine.TPU, Engine.GDMA)}
    places = [Record(number, engine) for number, engine in enumerate(index.engine.tolist())]
    steps: list[Step] = []
    for place, (engine, payload, flags) in zip(places, index):
        try:
            if engine == Engine.TPU:
                steps.append(tpu_step(Operands(memories, next(fields[Engine.TPU]))))
            elif engine == Engine.GDMA:
                steps.append(transfer_step(Transfer(memories, next(fields[Engine.GDMA]), flags, bases)))
            else:
                steps.append(_cpu_step(memories, payload, bases))
        except SimulatorError as error:
            raise place.error(error.reason) from error
    return Plan(steps, places)


def tpu_step(ops: Operands) -> Step:
    """Step of one TPU command. Raises SimulatorError for forms whose meaning is unknown and for bad operands."""
    if not ops.fields["cmd_en"]:
        raise SimulatorError("the command is not enabled")
    return known(_TASKS, task := ops.fields["tsk_typ"], f"task {task}")(ops)


def transfer_step(transfer: Transfer) -> Step:
    """Step of one GDMA command. Raises SimulatorError as `tpu_step`."""
    if not transfer.fields["valid"]:
        raise SimulatorError("the command is not valid")
    return gdma_step(transfer)


def _cpu_step(memories: Memories, payload: bytes, bases: tuple[int, int]) -> Step:
    operation = int.from_bytes(payload[:4], "little")
    if operation == CpuOperation.SYNC:
        return _nothing
    if operation != CpuOperation.PLUGIN:
        raise SimulatorError(f"CPU operation {operation} does not exist")
    size = int.from_bytes(payload[_PARAM_SIZE_BYTES], "little")
    if _PARAM_START + size > len(payload):
        raise SimulatorError(f"{size} parameter bytes do not fit a record of {len(payload)} bytes")
    name = payload[CPU_NAME_BYTES].split(b"\0")[0].decode("ascii", "replace")
    function = cpu_function(name)
    memory = CpuMemory(memories.globals.area(bases[0]), memories.globals.area(bases[1]))
    with _naming(name):
        call = bind_cpu_function(function, memory, payload[_PARAM_START : _PARAM_START + size])

    def run() -> None:
        with _naming(name):
            call()

    return run


@contextmanager
def _naming(function: str) -> Iterator[None]:
    """Errors of a host function become errors of its command."""
    try:
        yield
    except BMError as error:
        raise SimulatorError(f"host function '{function}': {error}") from error
    # A host function may be foreign code: it may raise anything, and all of it means the same to the user.
    except Exception as error:
        raise SimulatorError(f"host function '{function}' failed: {type(error).__name__}: {error}") from error


def _nothing() -> None:
    """A CPU sync record orders the engines; buffer order does that already."""
