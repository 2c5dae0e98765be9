"""BMRuntime: networks of model files for the BM1684 and BM1684X on a card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from bmcompiler import bmodel
from bmcompiler.bmodel import BModel, TensorInfo
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, Bm168xTensor
from bmcompiler.errors import RuntimeUseError, UnsupportedError
from bmcompiler.runtime.bm168x_device import Bm168xDevice, Bm168xProgram
from bmcompiler.runtime.bm168x_memory import Bm168xMemory, DeviceBlock
from bmcompiler.runtime.bmlib.device import CardHandle
from bmcompiler.runtime.bmlib.functions import host_bytes
from bmcompiler.runtime.bmlib.types import (
    BMRT,
    BmDataType,
    bm_device_mem_t,
    bm_net_info_t,
    bm_shape_t,
    bm_stage_info_t,
    bm_tensor_t,
    item_bytes,
    log,
    served,
)
from bmcompiler.runtime.devices import open_device
from bmcompiler.sizes.choice import Fit, fit, why_not
from bmcompiler.sizes.note import Size, decoded

_served = served(BMRT)


class Network:
    """A network with its programs, one per stage; `sizes`: what its file says of those that vary."""

    def __init__(self, net: Bm168xNet, programs: Sequence[Bm168xProgram], sizes: Sequence[Size] = ()) -> None:
        self.programs, self._sizes = tuple(programs), tuple(sizes)
        first = net.stages[0]
        self.info = bm_net_info_t(
            net.name,
            tuple(one.name for one in first.inputs),
            tuple(_type_of(one) for one in first.inputs),
            tuple(float(np.float32(1) / np.float32(one.scale or 1)) for one in first.inputs),
            tuple(one.name for one in first.outputs),
            tuple(_type_of(one) for one in first.outputs),
            tuple(one.scale or 1.0 for one in first.outputs),
            tuple(_stage_info(*one) for one in zip(net.stages, programs)),
            _most([[_plain_bytes(one) for one in stage.inputs] for stage in net.stages]),
            _most([[_plain_bytes(one) for one in stage.outputs] for stage in net.stages]),
            tuple(one.zero_point for one in first.inputs),
            tuple(one.zero_point for one in first.outputs),
            any(stage.source.get("is_dynamic", 0) for stage in net.stages),
            net.address_mode,
        )

    def fit(self, shapes: Sequence[tuple[int, ...]]) -> tuple[Bm168xProgram, Fit]:
        """The program for inputs of these shapes, and how they are filled up to its. Raises RuntimeUseError."""
        known = [[info.shape for info in program.inputs] for program in self.programs]
        found = fit(known, self._sizes, shapes)
        if found is not None:
            return self.programs[found.program], found
        shown = " or ".join(str([list(shape) for shape in one]) for one in known[:4])
        why = why_not(self._sizes, known, shapes, self.info.input_names)
        raise RuntimeUseError(
            f"network '{self.info.name}' takes shapes {shown}, not {[list(one) for one in shapes]}{why and '; '}{why}"
        )


@BMRT.handle("runtime_t")
class NetworkRuntime:
    """Networks on a card."""

    def __init__(self, handle: CardHandle) -> None:
        self.handle = handle
        self.networks: dict[str, Network] = {}
        self._memories: dict[str, Bm168xMemory] = {}  # by chip
        self._allocated: list[bm_device_mem_t] = []
        self.flags = 0
        self.threads: set[int] = set()
        """Threads that memory was set aside for."""
        self._destroyed = False

    def ended(self) -> str:
        """Why it cannot be used any more."""
        if self._destroyed:
            return "was destroyed"
        return "has a handle that was freed" if self.handle.ended() else ""

    def end(self) -> None:
        """Give back the memory of all networks."""
        self._destroyed = True
        for memory in self._allocated:
            with suppress(RuntimeUseError):  # the caller has freed it
                self.handle.release(memory)

    def _allocate(self, size: int) -> DeviceBlock:
        memory = self.handle.allocate(size)
        self._allocated.append(memory)
        return DeviceBlock(memory.device_addr, self.handle.card.bytes(memory))

    def load(self, model: BModel, allocate: Callable[[int], DeviceBlock] | None = None) -> None:
        """Add the networks of a model, in memory of its own with `allocate`.

        Raises UnsupportedError, RuntimeUseError for a known name, MemoryError.
        """
        device = open_device(model.target, self.handle.index)
        if not isinstance(model, Bm168xModel) or not isinstance(device, Bm168xDevice):
            raise UnsupportedError(f"this library runs models for the BM1684 and BM1684X, not for {model.target}")
        twice = [net.name for net in model.nets if net.name in self.networks]
        if twice:
            raise RuntimeUseError(f"a network '{twice[0]}' is loaded already")
        if allocate is None and model.target not in self._memories:
            self._memories[model.target] = device.memory(self._allocate)
        programs = device.load_into(model, device.memory(allocate) if allocate else self._memories[model.target])
        for net in model.nets:
            own, programs = programs[: len(net.stages)], programs[len(net.stages) :]
            said = next(stage.sizes for stage in model.stages() if stage.net == net.name)
            self.networks[net.name] = Network(net, own, decoded(said))

    def network(self, name: str) -> Network:
        """The network of that name. Raises RuntimeUseError."""
        if name not in self.networks:
            known = ", ".join(f"'{one}'" for one in self.networks) or "none is loaded"
            raise RuntimeUseError(f"there is no network '{name}': {known}")
        return self.networks[name]


@_served
def bmrt_data_type_size(dtype: int) -> int:
    """Bytes of an element."""
    return item_bytes(dtype)


@_served
def bmrt_shape_count(shape: bm_shape_t) -> int:
    """Elements of a shape."""
    return shape.count


@_served
def bmrt_shape_is_same(left: bm_shape_t, right: bm_shape_t) -> bool:
    """Whether both have the same sizes."""
    return left.dims == right.dims


@_served
def bmrt_shape(dims: Sequence[int], num_dims: int) -> bm_shape_t:
    """(None, a shape of the first `num_dims` sizes)."""
    if not 0 <= num_dims <= len(dims):
        raise RuntimeUseError(f"{num_dims} sizes are asked for, there are {len(dims)}")
    shape = bm_shape_t(tuple(dims[:num_dims]))
    _ = shape.count
    return shape


@_served
def bmrt_tensor_bytesize(tensor: bm_tensor_t) -> int:
    """Bytes of its elements."""
    return tensor.size


@_served
def bmrt_tensor_device_size(tensor: bm_tensor_t) -> int:
    """Bytes of its memory."""
    return tensor.device_mem.size


@_served
def bmrt_tensor(p_bmrt: NetworkRuntime, dtype: int, shape: bm_shape_t) -> bm_tensor_t:
    """(whether it worked, a tensor in new memory)."""
    size = item_bytes(dtype) * shape.count
    return bm_tensor_t(dtype, shape, p_bmrt.handle.allocate(size))


@_served
def bmrt_tensor_with_device(device_mem: bm_device_mem_t, dtype: int, shape: bm_shape_t) -> bm_tensor_t:
    """(None, a tensor in that memory)."""
    tensor = bm_tensor_t(dtype, shape, device_mem)
    if tensor.size > device_mem.size:
        raise RuntimeUseError(f"a tensor of {tensor.size} bytes does not fit into {device_mem.size} bytes")
    return tensor


@_served
def bmrt_create(bm_handle: CardHandle) -> NetworkRuntime:
    """A runtime without networks."""
    return NetworkRuntime(bm_handle)


@_served
def bmrt_create_ex(bm_handles: Sequence[CardHandle], num_handles: int) -> NetworkRuntime:
    """The same, of one handle: models that several devices share are not run."""
    if num_handles != 1 or len(bm_handles) < 1:
        raise RuntimeUseError(f"num_handles is {num_handles}, a runtime has one device")
    handle = bm_handles[0]
    if not isinstance(handle, CardHandle) or handle.ended():
        raise RuntimeUseError("bm_handles has no handle that can be used")
    return NetworkRuntime(handle)


@_served
def bmrt_destroy(p_bmrt: NetworkRuntime) -> None:
    """End a runtime and its networks."""
    p_bmrt.end()


@_served
def bmrt_set_flags(p_bmrt: NetworkRuntime, flags: int) -> None:
    """Bits 0 and 1: networks share memory, coefficients are checked. Both hold, the bits 2 to 6 change nothing."""
    if flags >> 7:
        raise RuntimeUseError(f"flags {flags:#x} has bits that are not known")
    p_bmrt.flags = flags


@_served
def bmrt_get_bm_handle(p_bmrt: NetworkRuntime) -> CardHandle:
    """The handle that it was created with."""
    return p_bmrt.handle


@_served
def bmrt_load_bmodel(p_bmrt: NetworkRuntime, bmodel_path: str) -> bool:
    """Load the networks of a file; whether it worked."""
    p_bmrt.load(bmodel.load(bmodel_path))
    return True


@_served
def bmrt_load_bmodel_data(p_bmrt: NetworkRuntime, bmodel_data: Any, size: int) -> bool:
    """Load the networks of a file in memory; whether it worked."""
    p_bmrt.load(bmodel.loads(host_bytes(bmodel_data, size).tobytes(), "bmodel_data"))
    return True


@_served
def bmrt_show_neuron_network(p_bmrt: NetworkRuntime) -> None:
    """Write the names of the networks to the log."""
    for index, name in enumerate(p_bmrt.networks):
        log.info("network %d: %s", index, name)


@_served
def bmrt_get_network_number(p_bmrt: NetworkRuntime) -> int:
    """How many networks are loaded."""
    return len(p_bmrt.networks)


@_served
def bmrt_get_network_index(p_bmrt: NetworkRuntime, net_name: str) -> int:
    """The number of a network."""
    return list(p_bmrt.networks).index(p_bmrt.network(net_name).info.name)


@_served
def bmrt_get_network_name(p_bmrt: NetworkRuntime, index: int) -> str:
    """The name of a network."""
    if not 0 <= index < len(p_bmrt.networks):
        raise RuntimeUseError(f"there is no network {index} of {len(p_bmrt.networks)}")
    return list(p_bmrt.networks)[index]


@_served
def bmrt_get_network_names(p_bmrt: NetworkRuntime) -> list[str]:
    """(None, the names of all networks)."""
    return list(p_bmrt.networks)


@_served
def bmrt_get_network_info(p_bmrt: NetworkRuntime, net_name: str) -> bm_net_info_t:
    """What a network takes and gives."""
    return p_bmrt.network(net_name).info


def _type_of(tensor: Bm168xTensor) -> int:
    return int(BmDataType[tensor.dtype.upper()])


def _plain_bytes(tensor: Bm168xTensor) -> int:
    return item_bytes(_type_of(tensor)) * prod(tensor.shape)


def _most(sizes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(max(one) for one in zip(*sizes))


def _stage_info(stage: Bm168xStage, program: Bm168xProgram) -> bm_stage_info_t:
    """The memories are those that the program works on; only io memory lasts when another network runs."""

    def shapes(tensors: Sequence[Bm168xTensor]) -> tuple[bm_shape_t, ...]:
        return tuple(bm_shape_t(tuple(one.shape)) for one in tensors)

    def memories(tensors: Sequence[Bm168xTensor], infos: Sequence[TensorInfo]) -> tuple[bm_device_mem_t, ...]:
        places = zip(tensors, infos, strict=True)
        return tuple(bm_device_mem_t(program.address(info), _plain_bytes(one)) for one, info in places)

    return bm_stage_info_t(
        shapes(stage.inputs),
        shapes(stage.outputs),
        memories(stage.inputs, program.inputs),
        memories(stage.outputs, program.outputs),
    )
