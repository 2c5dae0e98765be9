"""A DV700 model on the driver interface: memories, command lists, host subnets, conversion at the borders."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.dv.arithmetic.stages import to_half
from bmcompiler.backends.dv.driver.stage_commands import subnet_commands
from bmcompiler.backends.dv.driver.structs import CMDRAW, LAYOUTS, DeviceType
from bmcompiler.backends.dv.formats.layout import nchw_to_whc8, whc8_to_nchw
from bmcompiler.bmodel import BModel
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xStage, Bm168xTensor, CpuSubnet, TpuSubnet, tensor_info
from bmcompiler.codegen.cpu_segment import bind_segment
from bmcompiler.errors import FileFormatError, RuntimeUseError, SimulatorError, UnsupportedError
from bmcompiler.numeric.arrays import Array, Bytes
from bmcompiler.runtime.devices import Device, LoadedProgram
from bmcompiler.runtime.dmp_dv.cmdlist import (
    DvCmdlist,
    dmp_dv_cmdlist_add_raw,
    dmp_dv_cmdlist_commit,
    dmp_dv_cmdlist_create,
    dmp_dv_cmdlist_exec,
    dmp_dv_cmdlist_release,
    dmp_dv_cmdlist_wait,
)
from bmcompiler.runtime.dmp_dv.context import DvContext, dmp_dv_context_create, dmp_dv_context_release
from bmcompiler.runtime.dmp_dv.memory import DvMem, dmp_dv_mem_alloc, dmp_dv_mem_map, dmp_dv_mem_release
from bmcompiler.runtime.dmp_dv.messages import dmp_dv_get_last_error_message
from bmcompiler.runtime.simulated import SharedChip, SimulatedProgram
from bmcompiler.runtime.simulator.plan import Step

HOST_ELEMENT = 4
"""Bytes that host memory and f32 tensors at borders are counted in."""


class DvDevice(Device):
    """Runs models of the chip on the simulated driver."""

    def load(self, model: BModel) -> list[LoadedProgram]:
        if not isinstance(model, Bm168xModel) or model.target != "dv700":
            raise UnsupportedError(f"a dv700 device cannot run models for {model.target}")
        chip = SharedChip(None)
        return [DvProgram(stage, chip) for _, stage in model.all_stages()]


class DvProgram(SimulatedProgram[None]):
    """A stage. Its activation memory is host memory; device memory belongs to a context of its own."""

    def __init__(self, stage: Bm168xStage, chip: SharedChip[None]) -> None:
        inputs, outputs = (
            [replace(tensor_info(one, stage), offset=one.cpu_address * np.dtype(one.dtype).itemsize) for one in tensors]
            for tensors in (stage.inputs, stage.outputs)
        )
        size = HOST_ELEMENT * stage.cpu_mem_size
        for info in (*inputs, *outputs):
            info.check(f"tensor {info.name!r}", size, None)
        super().__init__(chip, inputs, outputs, size, stage.coefficients)
        self._stage = stage

    def prepare(self, neuron: Bytes) -> Sequence[Step]:
        board = _Board(self._stage)
        weakref.finalize(self, board.close)
        steps: list[Step] = []
        for subnet in self._stage.subnets:
            if isinstance(subnet, CpuSubnet):
                steps.append(bind_segment(bytes(subnet.parameters), neuron, self.coefficients))
            else:
                steps += board.steps(subnet, neuron)
        return steps


class _Board:
    """Context, coefficients, feature maps and command lists of a stage."""

    def __init__(self, stage: Bm168xStage) -> None:
        self._context = dmp_dv_context_create()
        self._lists: list[DvCmdlist] = []
        self._memories = [_memory(self._context, size) for size in (len(stage.coefficients), stage.ctx_size)]
        coefficients, self._maps = (_mapped(memory) for memory in self._memories)
        coefficients[: len(stage.coefficients)] = np.frombuffer(stage.coefficients, np.uint8)

    def close(self) -> None:
        """Give everything back."""
        for cmdlist in self._lists:
            dmp_dv_cmdlist_release(cmdlist)
        for memory in self._memories:
            dmp_dv_mem_release(memory)
        dmp_dv_context_release(self._context)

    def steps(self, subnet: TpuSubnet, host: Bytes) -> list[Step]:
        """Conversion of inputs, command lists of one device type each, conversion of outputs."""
        ways = [(one, True) for one in subnet.inputs], [(one, False) for one in subnet.outputs]
        before, after = ([self._conversion(one, host, inwards) for one, inwards in way] for way in ways)
        lists: list[tuple[int, list[bytes]]] = []
        for command in subnet_commands(subnet):
            kind = int(np.frombuffer(command, CMDRAW, 1)[0]["device_type"])
            if not lists or lists[-1][0] != kind:
                lists.append((kind, []))
            lists[-1][1].append(self._relocated(command))
        return [*before, *(self._committed(commands) for _, commands in lists), *after]

    def _conversion(self, tensor: Bm168xTensor, host: Bytes, inwards: bool) -> Step:
        """A float32 NCHW tensor of host memory to or from its WHC8 maps."""
        if tensor.dtype != "float32" or not tensor.shape:
            raise FileFormatError(f"tensor {tensor.name!r} at the border of a subnet is not float32")
        count = prod(tensor.shape)
        n, *dims = tensor.shape
        shape = (n, *dims) if len(dims) == 3 else (n, count // max(1, n), 1, 1)
        values = _part(host, tensor.cpu_address * HOST_ELEMENT, count, np.float32, tensor.name).reshape(shape)
        maps = _part(self._maps, tensor.address, count, np.float16, tensor.name).reshape(n, -1)

        def to_device() -> None:
            maps[...] = nchw_to_whc8(to_half(values))

        def to_host() -> None:
            values[...] = whc8_to_nchw(maps, *shape[1:])

        return to_device if inwards else to_host

    def _relocated(self, command: bytes) -> bytes:
        """The command with the handles of our memories; memory 1 is the coefficients, 2 the maps, 0 nothing."""
        header = np.frombuffer(command, CMDRAW, 1)[0]
        layout = LAYOUTS[DeviceType(int(header["device_type"])), int(header["version"])]
        record = np.frombuffer(command, layout).copy()
        handles = np.array([0, *(memory.value for memory in self._memories)], np.uint64)
        for numbers in _handle_fields(record):
            if (numbers > len(self._memories)).any():
                raise FileFormatError(f"a command uses memory {int(numbers.max())}; a model has 1 and 2")
            numbers[...] = handles[numbers.astype(np.intp)]
        return record.tobytes()

    def _committed(self, commands: Sequence[bytes]) -> Step:
        cmdlist = dmp_dv_cmdlist_create(self._context)
        if cmdlist is None:
            raise RuntimeUseError(_last_error())
        self._lists.append(cmdlist)
        for command in commands:
            if dmp_dv_cmdlist_add_raw(cmdlist, command):
                raise SimulatorError(f"the driver refuses a command: {_last_error()}")
        if dmp_dv_cmdlist_commit(cmdlist):
            raise SimulatorError(f"the driver refuses a command list: {_last_error()}")
        return partial(_execute, cmdlist)


def _execute(cmdlist: DvCmdlist) -> None:
    if dmp_dv_cmdlist_wait(cmdlist, dmp_dv_cmdlist_exec(cmdlist)):
        raise SimulatorError(f"a command list failed: {_last_error()}")


def _handle_fields(record: Array) -> list[Array]:
    """Views of the `mem` fields of a command and of what is inside it."""
    found: list[Array] = []
    for name in record.dtype.names or ():
        if name == "mem":
            found.append(record[name])
        elif record.dtype[name].base.names:
            found += _handle_fields(record[name])
    return found


def _memory(context: DvContext, size: int) -> DvMem:
    memory = dmp_dv_mem_alloc(context, max(1, size))
    if memory is None:
        raise RuntimeUseError(_last_error())
    return memory


def _mapped(memory: DvMem) -> Bytes:
    data = dmp_dv_mem_map(memory)
    if data is None:
        raise RuntimeUseError(_last_error())
    return data


def _last_error() -> str:
    return dmp_dv_get_last_error_message() or "the driver gives no reason"


def _part(memory: Bytes, start: int, count: int, dtype: Any, name: str) -> Array:
    end = start + count * np.dtype(dtype).itemsize
    if end > memory.size:
        raise FileFormatError(f"tensor {name!r} lies at bytes {start} to {end} of a memory of {memory.size}")
    return memory[start:end].view(dtype)
