"""Networks on cores and of threads, and what BMRuntime says of memory and stages; there is one core.

Launches follow from the plain ones by rule:
1. NAME_multi_cores: a list of cores and its length stand behind: core 0, or with `core_num` 0 whichever there is
2. NAME_multi_thread: the same, and a thread's number behind `output_num`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import unwrap
from typing import Any

from bmcompiler.capi.api import Prototype
from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime.bmlib import launches
from bmcompiler.runtime.bmlib.formed import of_table
from bmcompiler.runtime.bmlib.kernels import only_core
from bmcompiler.runtime.bmlib.networks import NetworkRuntime
from bmcompiler.runtime.bmlib.types import (
    BMRT,
    bm_device_mem_t,
    bm_net_info_t,
    bm_shape_t,
    bm_tensor_t,
    item_bytes,
    log,
    mem_info_t,
    served,
)

_served = served(BMRT)


@_served
def bmrt_pre_alloc_neuron_multi_cores(
    p_bmrt: NetworkRuntime, net_name: str, stage_idx: int, core_list: Sequence[int] | None, core_num: int
) -> bool:
    """True: a network has its memory when it is loaded."""
    stages = len(p_bmrt.network(net_name).programs)
    if not 0 <= stage_idx < stages:
        raise RuntimeUseError(f"stage_idx is {stage_idx}, network '{net_name}' has {stages} stages")
    _on_cores(core_list, core_num)
    return True


@_served
def bmrt_pre_alloc_mem(p_bmrt: NetworkRuntime, net_name: str) -> bool:
    """True: a network has its memory when it is loaded."""
    p_bmrt.network(net_name)
    return True


@_served
def bmrt_free_pre_alloc_mem(p_bmrt: NetworkRuntime, net_name: str) -> bool:
    """True: a network's memory is given back with its runtime."""
    p_bmrt.network(net_name)
    return True


@_served
def bmrt_pre_alloc_mem_multi_thread(p_bmrt: NetworkRuntime, thread_idx: int, mem_info: mem_info_t) -> bool:
    """A thread may launch networks. They run one at a time, in their own memory; the thread's stays untouched."""
    for memory in (mem_info.neuron_mem, mem_info.io_mem):
        if memory.size:
            p_bmrt.handle.card.bytes(bm_device_mem_t(memory.addr, memory.size))
    p_bmrt.threads.add(thread_idx)
    return True


@_served
def bmrt_get_neuron_number(p_bmrt: NetworkRuntime, net_name: str) -> int:
    """How many pieces of neuron memory a network has: 1."""
    p_bmrt.network(net_name)
    return 1


@_served
def bmrt_get_neuron_memory(
    p_bmrt: NetworkRuntime, net_name: str, mem_index: int, core_list: Sequence[int] | None, core_num: int
) -> bm_device_mem_t:
    """The neuron memory of a network, which others of its runtime use as well."""
    if mem_index != 0:
        raise RuntimeUseError(f"mem_index is {mem_index}, there is one memory, 0")
    _on_cores(core_list, core_num)
    block = p_bmrt.network(net_name).programs[0].neuron
    return bm_device_mem_t(block.address, block.data.size)


@_served
def bmrt_get_stage_size(p_bmrt: NetworkRuntime, net_name: str) -> int:
    """How many stages a network has."""
    return len(p_bmrt.network(net_name).programs)


@_served
def bmrt_get_stage_index(p_bmrt: NetworkRuntime, net_name: str, input_tensor: list[bm_tensor_t]) -> int:
    """The stage that takes inputs of these shapes; an array of all inputs."""
    network = p_bmrt.network(net_name)
    program, _ = network.fit([one.shape.dims for one in input_tensor])
    return network.programs.index(program)


@_served
def bmrt_tensor_ex(p_bmrt: NetworkRuntime, devid: int, dtype: int, shape: bm_shape_t) -> bm_tensor_t:
    """(whether it worked, a tensor in new memory of device 0 of a runtime, which has one)."""
    if devid != 0:
        raise RuntimeUseError(f"devid is {devid}, a runtime has one device, 0")
    return bm_tensor_t(dtype, shape, p_bmrt.handle.allocate(item_bytes(dtype) * shape.count))


@_served
def bmrt_get_flags(p_bmrt: NetworkRuntime) -> int:
    """What `bmrt_set_flags` was given last."""
    return p_bmrt.flags


@_served
def bmrt_destroy_without_coeff(p_bmrt: NetworkRuntime) -> None:
    """End a runtime and its networks; coefficients lie in no device memory that could be kept."""
    p_bmrt.end()


@_served
def bmrt_trace(p_bmrt: NetworkRuntime) -> None:
    """Write what is loaded to the log."""
    for network in p_bmrt.networks.values():
        _describe(network.info)


@_served
def bmrt_print_network_info(net_info: bm_net_info_t) -> None:
    """Write what a network takes and gives to the log; in C the pointer is one that `bmrt_get_network_info` gave."""
    _describe(net_info)


def _describe(info: bm_net_info_t) -> None:
    for number, stage in enumerate(info.stages):
        for names, shapes in ((info.input_names, stage.input_shapes), (info.output_names, stage.output_shapes)):
            told = ", ".join(f"{name} {list(shape.dims)}" for name, shape in zip(names, shapes))
            log.info("network %s, stage %d: %s", info.name, number, told)


def _launch_of(prototype: Prototype, act: Callable[..., Any]) -> Callable[..., Any]:
    names = [one.name for one in prototype.parameters]

    def call(*values: Any) -> Any:
        *given, cores, count = values
        if "thread_idx" in names:
            _of_thread(given[0], given.pop(names.index("thread_idx")))
        _on_cores(cores, count)
        return act(*given)

    return call


def _made() -> dict[str, Callable[..., Any]]:
    found = {}
    for base, act in (("tensor", launches.bmrt_launch_tensor_ex), ("data", launches.bmrt_launch_data)):
        for ending, where in (("cores", "on cores"), ("thread", "on cores, of a thread that memory was set aside for")):
            prototype = BMRT.functions[f"bmrt_launch_{base}_multi_{ending}"]
            about = f"`{act.__name__}` {where}: core 0, or with `core_num` 0 whichever there is."
            found[prototype.name] = of_table(BMRT, prototype, _launch_of(prototype, unwrap(act)), about)
    return found


def _on_cores(numbers: Sequence[int] | None, count: int) -> None:
    if not 0 <= count <= 1 or (count and not numbers):
        raise RuntimeUseError(f"core_num is {count}{'' if numbers else ' without a list'}, a BM1684X has one core")
    for number in (numbers or ())[:count]:
        only_core(number)


def _of_thread(runtime: NetworkRuntime, index: int) -> None:
    if index not in runtime.threads:
        raise RuntimeUseError(f"thread_idx: no memory is set aside for thread {index}")


globals().update(_made())
