"""Models of BMRuntime in memory that the caller has set aside, and how much of it they need."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler import bmodel
from bmcompiler.bmodel import BModel, Buffer
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.errors import RuntimeUseError, UnsupportedError
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.bm168x_memory import DeviceBlock
from bmcompiler.runtime.bmlib.device import Card
from bmcompiler.runtime.bmlib.functions import host_bytes
from bmcompiler.runtime.bmlib.networks import NetworkRuntime
from bmcompiler.runtime.bmlib.types import BMRT, bm_device_mem_t, mem_info_t, memory_t, served

_served = served(BMRT)
_NOWHERE = -1


@_served
def bmrt_get_bmodel_info(bmodel_path: str) -> mem_info_t:
    """(whether it worked, the bytes of device memory that a file's networks need; addresses are -1)."""
    return _needed(bmodel.load(bmodel_path))


@_served
def bmrt_get_bmodel_data_info(bmodel_data: Any, size: int) -> mem_info_t:
    """(whether it worked, the bytes of device memory that the networks of a file in memory need)."""
    return _needed(bmodel.loads(host_bytes(bmodel_data, size).tobytes(), "bmodel_data"))


@_served
def bmrt_load_bmodel_with_mem(p_bmrt: NetworkRuntime, bmodel_path: str, mem_info: mem_info_t) -> bool:
    """Load a file; its coefficients, neuron and io memory are the caller's, that of commands stays untouched."""
    return _load(p_bmrt, bmodel.load(bmodel_path), mem_info)


@_served
def bmrt_load_bmodel_data_with_mem(p_bmrt: NetworkRuntime, bmodel_data: Any, size: int, mem_info: mem_info_t) -> bool:
    """The same, of a file in memory."""
    return _load(p_bmrt, bmodel.loads(host_bytes(bmodel_data, size).tobytes(), "bmodel_data"), mem_info)


@_served
def bmrt_load_bmodel_in_device(p_bmrt: NetworkRuntime, p_bmodel: Any, dev_addr: int, size: int) -> bool:
    """Load a file that lies in device memory, at `dev_addr`, which the program sees at `p_bmodel`."""
    p_bmrt.handle.card.bytes(bm_device_mem_t(dev_addr, size))
    p_bmrt.load(bmodel.loads(host_bytes(p_bmodel, size).tobytes(), "p_bmodel"))
    return True


def _needed(model: BModel) -> mem_info_t:
    if not isinstance(model, Bm168xModel):
        raise UnsupportedError(f"this library runs models for the BM1684 and BM1684X, not for {model.target}")
    stages = [stage for _, stage in model.all_stages()]
    groups = [group for stage in stages for group in stage.groups]
    weights = {id(stage.coefficients): len(stage.coefficients) for stage in stages}
    sizes = (
        sum(len(group.tiu) for group in groups) + sum(len(stage.intermediate) for stage in stages),
        sum(len(group.gdma) for group in groups),
        max(stage.ctx_size for stage in stages),
        sum(weights.values()),
        sum(max(stage.io_size for stage in net.stages) for net in model.nets),
    )
    instructions, variable, neuron, coefficients, io = (memory_t(_NOWHERE, size) for size in sizes)
    return mem_info_t(instructions, variable, neuron, coefficients, io)


def _load(runtime: NetworkRuntime, model: BModel, given: mem_info_t) -> bool:
    rooms = _rooms(runtime.handle.card, _needed(model), given)
    coefficients, activations = rooms.pop("coeff_mem", None), (rooms.get("neuron_mem"), rooms.get("io_mem"))
    if coefficients is not None and isinstance(model, Bm168xModel):
        _move(model, coefficients)

    def allocate(size: int) -> DeviceBlock:
        found = [room for room in activations if room is not None and room.has(size)]
        return min(found, key=_Room.left).take(size)

    runtime.load(model, allocate)
    return True


def _rooms(card: Card, needed: mem_info_t, given: mem_info_t) -> dict[str, _Room]:
    """Areas that the model needs, by their names. Raises RuntimeUseError for one that is too small."""
    rooms = {}
    for what in ("instruction_mem", "variable_instruction_mem", "neuron_mem", "coeff_mem", "io_mem"):
        have, want = getattr(given, what), getattr(needed, what)
        if have.size < want.size:
            raise RuntimeUseError(f"mem_info.{what} has {have.size} bytes, the model needs {want.size}")
        if want.size:
            rooms[what] = _Room(card, what, have)
    return rooms


def _move(model: Bm168xModel, room: _Room) -> None:
    """Put the coefficients into memory of the caller, equal ones once; programs read them there."""
    moved: dict[int, tuple[Buffer, Bytes]] = {}
    for _, stage in model.all_stages():
        source = stage.coefficients
        if id(source) not in moved and len(source):
            moved[id(source)] = source, room.take(len(source)).data
            moved[id(source)][1][...] = np.frombuffer(source, np.uint8)
        if len(source):
            stage.coefficients = moved[id(source)][1].data


class _Room:
    """Memory of the caller that a model's is taken from. Raises RuntimeUseError where it is not allocated."""

    def __init__(self, card: Card, what: str, memory: memory_t) -> None:
        if memory.addr < 0:
            raise RuntimeUseError(f"mem_info.{what} has no address")
        self._address, self._used = memory.addr, 0
        self._data = card.bytes(bm_device_mem_t(memory.addr, memory.size))

    def left(self) -> int:
        """Bytes that are not taken yet."""
        return self._data.size - self._used

    def has(self, size: int) -> bool:
        """Whether so many bytes are left."""
        return size <= self.left()

    def take(self, size: int) -> DeviceBlock:
        """The next bytes, zeroed."""
        begin, self._used = self._used, self._used + size
        data = self._data[begin : self._used]
        data[...] = 0
        return DeviceBlock(self._address + begin, data)
