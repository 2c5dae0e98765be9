"""Decode a command buffer once into a plan of steps, run the plan many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bmcompiler.backends.bm1880.cmdbuf import Records, records
from bmcompiler.backends.bm1880.isa import CPU_NAME_BYTES, FORMATS, CpuOperation, Engine, Task
from bmcompiler.errors import BMError, FileFormatError, SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric.blas import one_blas_thread
from bmcompiler.runtime.cpu_functions import CpuMemory, bind_cpu_function, cpu_function
from bmcompiler.runtime.simulator.bm1880.elementwise import tensor_step
from bmcompiler.runtime.simulator.bm1880.gdma import Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1880.matrix import matrix_fold_step, matrix_mac_step
from bmcompiler.runtime.simulator.bm1880.memory import Memories
from bmcompiler.runtime.simulator.bm1880.operands import Operands
from bmcompiler.runtime.simulator.bm1880.windows import convolution_step, window_step
from bmcompiler.runtime.simulator.plan import Step

_TASKS: dict[int, Callable[[Operands], Step]] = {
    Task.CONV: convolution_step,
    Task.WINDOW: window_step,
    Task.MATRIX_MAC: matrix_mac_step,
    Task.TENSOR: tensor_step,
    Task.MATRIX_MAC_2: matrix_fold_step,
}
_PARAM_SIZE_BYTES = slice(44, 48)
_PARAM_START = 48


class Plan:
    """An executable command buffer, bound to the memories of one chip.

    Plans of different chips may run on different threads at the same time.
    """

    def __init__(self, steps: list[Step], engines: list[int]) -> None:
        self._steps, self._engines = steps, engines

    def __len__(self) -> int:
        return len(self._steps)

    def run(self) -> None:
        """Execute all commands in buffer order, always a legal schedule (bm1880.md 6).

        Raises:
            SimulatorError: data that a command cannot work on, or a host function that fails; names the command.
        """
        done = 0
        try:
            with one_blas_thread:
                for step in self._steps:
                    step()
                    done += 1
        except SimulatorError as error:
            raise _at(done, self._engines[done], error.reason) from error


def compile_plan(
    cmdbuf: bytes | bytearray | memoryview, memories: Memories, neuron_base: int = 0, weight_base: int = 0
) -> Plan:
    """Relocate and decode a command buffer (bm1880.md 3) for `memories`.

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
    engines = index.engine.tolist()
    fields = _decode(index)
    steps: list[Step] = []
    for position, (engine, payload, flags) in enumerate(index):
        try:
            if engine == Engine.TPU:
                steps.append(_tpu_step(memories, fields[position]))
            elif engine == Engine.GDMA:
                steps.append(_gdma_step(Transfer(memories, fields[position], flags, bases)))
            else:
                steps.append(_cpu_step(memories, payload, bases))
        except SimulatorError as error:
            raise _at(position, engine, error.reason) from error
    return Plan(steps, engines)


def _at(index: int, engine: int, reason: str) -> SimulatorError:
    return SimulatorError(f"command {index} ({Engine(engine).name}): {reason}")


def _decode(index: Records) -> dict[int, Fields]:
    """Fields of all TPU and GDMA records, decoded in bulk."""
    fields: dict[int, Fields] = {}
    for engine in (Engine.TPU, Engine.GDMA):
        columns = FORMATS[engine].decode(index.payloads(engine))
        rows = zip(*(column.tolist() for column in columns.values()))
        for position, row in zip(index.of(engine).tolist(), rows):
            fields[position] = dict(zip(columns, row))
    return fields


def _tpu_step(memories: Memories, fields: Fields) -> Step:
    if not fields["cmd_en"]:
        raise SimulatorError("the command is not enabled")
    maker = _TASKS.get(fields["tsk_typ"])
    if maker is None:
        raise SimulatorError(f"task type {fields['tsk_typ']} does not exist")
    return maker(Operands(memories, fields))


def _gdma_step(transfer: Transfer) -> Step:
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
