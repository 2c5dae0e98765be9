"""Launches of networks: on tensors in device memory, and on memory of the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bmcompiler.errors import RuntimeUseError
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.bm168x_device import Bm168xProgram
from bmcompiler.runtime.bmlib.functions import host_bytes
from bmcompiler.runtime.bmlib.networks import NetworkRuntime
from bmcompiler.runtime.bmlib.types import (
    BMRT,
    BmDataType,
    bm_device_mem_t,
    bm_net_info_t,
    bm_shape_t,
    bm_tensor_t,
    item_bytes,
    served,
)
from bmcompiler.sizes.choice import Fit

_served = served(BMRT)


@_served
def bmrt_launch_data(
    p_bmrt: NetworkRuntime,
    net_name: str,
    input_datas: Sequence[Any],
    input_shapes: Sequence[bm_shape_t],
    input_num: int,
    output_datas: list[Any],
    output_shapes: list[Any],
    output_num: int,
    user_mem: bool,
) -> bool:
    """Run a network on buffers; `output_shapes` are set, and `output_datas`, or their bytes with `user_mem`."""
    network = p_bmrt.network(net_name)
    info = network.info
    rooms = min(len(output_datas), len(output_shapes))
    _counts(info, (input_num, min(len(input_datas), len(input_shapes))), (output_num, rooms))
    program, fitted = network.fit([one.dims for one in input_shapes[:input_num]])
    arrays: list[Array] = []
    for data, shape, dtype in zip(input_datas, input_shapes, info.input_dtypes):
        part = host_bytes(data, item_bytes(dtype) * shape.count)
        arrays.append(part.view(BmDataType(dtype).numpy).reshape(shape.dims))
    sizes = _output_bytes(program, fitted)
    targets = [host_bytes(output_datas[k], size, written=True) for k, size in enumerate(sizes) if user_mem]
    for index, result in enumerate(_run(program, fitted, arrays)):
        dense = np.ascontiguousarray(result)
        if user_mem:
            targets[index][: dense.nbytes] = dense.reshape(-1).view(np.uint8)
        else:
            output_datas[index] = dense
        output_shapes[index] = bm_shape_t(tuple(dense.shape))
    return True


@_served
def bmrt_launch_tensor(
    p_bmrt: NetworkRuntime,
    net_name: str,
    input_tensors: Sequence[bm_tensor_t],
    input_num: int,
    output_tensors: list[bm_tensor_t | None],
    output_num: int,
) -> bool:
    """Run a network; `output_tensors` are replaced by tensors in new memory, which the caller frees."""
    return _launch(p_bmrt, net_name, input_tensors, input_num, output_tensors, output_num, False)


@_served
def bmrt_launch_tensor_ex(
    p_bmrt: NetworkRuntime,
    net_name: str,
    input_tensors: Sequence[bm_tensor_t],
    input_num: int,
    output_tensors: list[bm_tensor_t | None],
    output_num: int,
    user_mem: bool,
    user_stmode: bool,
) -> bool:
    """The same; with `user_mem` results go to the memory of `output_tensors`. The store mode is always 1N."""
    return _launch(p_bmrt, net_name, input_tensors, input_num, output_tensors, output_num, bool(user_mem), user_stmode)


def _launch(
    runtime: NetworkRuntime,
    name: str,
    inputs: Sequence[bm_tensor_t],
    input_num: int,
    outputs: list[bm_tensor_t | None],
    output_num: int,
    user_mem: bool,
    user_mode: bool = False,
) -> bool:
    network = runtime.network(name)
    info = network.info
    _counts(info, (input_num, len(inputs)), (output_num, len(outputs)))
    program, fitted = network.fit([one.shape.dims for one in inputs[:input_num]])
    card = runtime.handle.card
    arrays: list[Array] = []
    for index, (tensor, dtype) in enumerate(zip(inputs, info.input_dtypes)):
        _check(f"input {index}", tensor, dtype)
        data = card.bytes(tensor.device_mem, 0, tensor.size)
        arrays.append(data.view(BmDataType(dtype).numpy).reshape(tensor.shape.dims))
    memories = [_memory_of(outputs[index], index, user_mode) for index in range(output_num)] if user_mem else []
    for index, (memory, size) in enumerate(zip(memories, _output_bytes(program, fitted))):
        if memory.size < size:
            raise RuntimeUseError(f"output {index} has {size} bytes, its memory {memory.size}")
        card.bytes(memory, 0, size)
    with card.timed("run"):
        results = _run(program, fitted, arrays)
    for index, (result, dtype) in enumerate(zip(results, info.output_dtypes)):
        memory = memories[index] if user_mem else runtime.handle.allocate(result.nbytes)
        card.bytes(memory, 0, result.nbytes)[...] = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
        outputs[index] = bm_tensor_t(dtype, bm_shape_t(tuple(result.shape)), memory)
    return True


def _run(program: Bm168xProgram, fitted: Fit, arrays: Sequence[Array]) -> list[Array]:
    """Results for inputs as they were given: filled up to the program, and cut."""
    filled = [fitted.filled(index, array, program.inputs[index].zero_point) for index, array in enumerate(arrays)]
    return [fitted.cut(index, result) for index, result in enumerate(program.run(filled))]


def _output_bytes(program: Bm168xProgram, fitted: Fit) -> list[int]:
    shapes = [fitted.output_shape(index, info.shape) for index, info in enumerate(program.outputs)]
    return [replace(info, shape=shape).size for info, shape in zip(program.outputs, shapes)]


def _counts(info: bm_net_info_t, inputs: tuple[int, int], outputs: tuple[int, int]) -> None:
    for what, wanted, (given, length) in (
        ("inputs", info.input_names, inputs),
        ("outputs", info.output_names, outputs),
    ):
        if len(wanted) != given or length < given:
            raise RuntimeUseError(f"network '{info.name}' has {len(wanted)} {what}, {given} were given")


def _check(what: str, tensor: bm_tensor_t, dtype: int) -> None:
    if tensor.dtype != dtype:
        raise RuntimeUseError(f"{what} has data type {tensor.dtype}, the network takes {dtype}")
    if tensor.st_mode:
        raise RuntimeUseError(f"{what} has store mode {tensor.st_mode}; only 0, plain rows, is taken")


def _memory_of(tensor: bm_tensor_t | None, index: int, user_mode: bool) -> bm_device_mem_t:
    if not isinstance(tensor, bm_tensor_t):
        raise RuntimeUseError(f"output {index} is no tensor")
    if user_mode and tensor.st_mode:
        raise RuntimeUseError(f"output {index} has store mode {tensor.st_mode}; only 0, plain rows, is given")
    return tensor.device_mem
