"""Recorded bundles of language models (bm1684x-llm.md 10), and the two ways in which a host runs their nets."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
from bm1684x_golden import DATA
from numpy.typing import NDArray

from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, read
from bmcompiler.llm import Bundle
from bmcompiler.runtime import Session, bmlib
from bmcompiler.runtime.bmlib.types import BmDataType, bm_device_mem_t, bm_net_info_t, bm_tensor_t

FOLDER = DATA / "bm1684x_bundles"
BUNDLES = ("llama_a_w4f16", "qwen3_s_bf16_chunk", "qwen2_a_w8bf16_sample")
Array = NDArray[Any]
call: Any = bmlib


@cache
def content(name: str) -> bytes:
    return lzma.decompress((FOLDER / f"{name}.bmodel.xz").read_bytes())


@cache
def model(name: str) -> Bm168xModel:
    return read(memoryview(content(name)), name)


@cache
def recorded(name: str) -> dict[str, Array]:
    return dict(np.load(FOLDER / f"{name}.npz"))


@cache
def bundle(name: str) -> Bundle:
    return Bundle.of(model(name))


def product_names() -> list[str]:
    """Of `products`, which are not unpacked for it."""
    with np.load(FOLDER / "products.npz") as found:
        return list(dict.fromkeys(key.replace(".bmodel", "/bmodel").partition("/")[0] for key in found.files))


@cache
def products() -> dict[str, dict[str, Array]]:
    """Models of a single weight-only product by name, each with `bmodel` and the arrays of its runs."""
    found: dict[str, dict[str, Array]] = {}
    for key, value in np.load(FOLDER / "products.npz").items():
        name, _, rest = key.replace(".bmodel", "/bmodel").partition("/")
        found.setdefault(name, {})[rest] = value
    return found


def runs(name: str) -> Iterator[tuple[Bm168xNet, int, dict[str, Array], dict[str, Array]]]:
    """(net, stage, inputs, outputs) of every recorded run of static nets."""
    return recorded_runs(model(name), recorded(name))


def recorded_runs(
    loaded: Bm168xModel, arrays: Mapping[str, Array]
) -> Iterator[tuple[Bm168xNet, int, dict[str, Array], dict[str, Array]]]:
    for net in loaded.nets:
        for index, stage in enumerate(net.stages):
            for case in ("a", "b") if index == 0 else (f"s{index}",):
                found = [
                    {one.name: arrays[f"{case}/{net.name}/{side}/{one.name}"] for one in tensors}
                    for side, tensors in (("in", stage.inputs), ("out", stage.outputs))
                ]
                if not stage.intermediate:
                    yield net, index, found[0], found[1]


class CardNet:
    """A net behind BMRuntime, with what a `Generator` asks of a session; values lie in the net's memory."""

    def __init__(self, card: Card, info: bm_net_info_t) -> None:
        self._card, self._info = card, info
        self._views: dict[str, tuple[Array, bm_device_mem_t]] = {}

    def memory(self, name: str) -> Array:
        memory = self._info.stages[0].input_mems[self._info.input_names.index(name)]
        shape = self._info.stages[0].input_shapes[self._info.input_names.index(name)].dims
        dtype = BmDataType(self._info.input_dtypes[self._info.input_names.index(name)]).numpy
        view = self._card.handle.card.bytes(memory).view(dtype).reshape(shape)
        self._views[name] = view, memory
        return view

    def run(
        self, given: Mapping[str, Array], raw: bool = True, into: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        info, handle = self._info, self._card.handle
        wanted = {name: np.asarray(value).shape for name, value in given.items()}
        stage = next(
            one
            for one in info.stages
            if all(one.input_shapes[info.input_names.index(name)].dims == shape for name, shape in wanted.items())
        )
        tensors = [
            bm_tensor_t(*one) for one in zip(info.input_dtypes, stage.input_shapes, stage.input_mems, strict=True)
        ]
        for name, tensor in zip(info.input_names, tensors):
            if name in given:
                data = _bits(given[name], BmDataType(tensor.dtype))
                assert call.bm_memcpy_s2d(handle, tensor.device_mem, data) == bmlib.BmStatus.SUCCESS
        places = [self._place(name, one, into or {}) for name, one in zip(info.output_names, stage.output_mems)]
        outputs: list[Any] = [bm_tensor_t(*one) for one in zip(info.output_dtypes, stage.output_shapes, places)]
        counts = len(tensors), outputs, len(outputs)
        assert call.bmrt_launch_tensor_ex(self._card.runtime, info.name, tensors, *counts, True, False)
        found = {}
        for name, tensor in zip(info.output_names, outputs):
            array = np.zeros(tensor.shape.dims, BmDataType(tensor.dtype).numpy)
            assert call.bm_memcpy_d2s(handle, array, tensor.device_mem) == bmlib.BmStatus.SUCCESS
            found[name] = array
        return found

    def _place(self, name: str, own: bm_device_mem_t, into: Mapping[str, Array]) -> bm_device_mem_t:
        """Memory for an output: its own, or that of a row of `memory`."""
        if name not in into:
            return own
        view, memory = self._views[name.replace("cache", "").replace("k_", "history_k").replace("v_", "history_v")]
        offset = into[name].ctypes.data - view.ctypes.data
        return bm_device_mem_t(memory.device_addr + offset, own.size)


def _bits(value: Array, dtype: BmDataType) -> Array:
    """Device values of an input; only masks are given as float32."""
    if dtype is BmDataType.BFLOAT16 and value.dtype == np.float32:
        return np.ascontiguousarray(value.view(np.uint32) + np.uint32(0x8000) >> np.uint32(16)).astype(np.uint16)
    return np.ascontiguousarray(value.astype(dtype.numpy))


class Card:
    """A bundle loaded through BMRuntime."""

    def __init__(self, loaded: Bm168xModel) -> None:
        self.model, self.nets = loaded, [net.name for net in loaded.nets]
        self.handle = call.bm_dev_request(6)[1]
        self.runtime = call.bmrt_create(self.handle)
        call.bmrt_set_flags(self.runtime, 1)
        data = b"".join(map(bytes, loaded.parts()))
        assert call.bmrt_load_bmodel_data(self.runtime, data, len(data))

    def net(self, name: str) -> CardNet:
        return CardNet(self, call.bmrt_get_network_info(self.runtime, name))

    def close(self) -> None:
        call.bmrt_destroy(self.runtime)
        call.bm_dev_free(self.handle)


@contextmanager
def opened(way: str, name: str) -> Iterator[Any]:
    """The static part of a bundle, by session or through BMRuntime."""
    if way == "session":
        yield Session(model(name).static_part())
        return
    card = Card(model(name).static_part())
    yield card
    card.close()


WAYS = pytest.mark.parametrize("way", ["session", "bmruntime"])
