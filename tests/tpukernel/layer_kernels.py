"""Kernels that tests make layers of networks of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmcompiler.tpukernel import DT_FP32, FUNCTIONS, LayerCall, dim4, kernel, register_layer, scalar_t

initialize, load, store = (FUNCTIONS[f"tpu_{name}"] for name in ("initialize", "gdma_cpy_S2L", "gdma_cpy_L2S"))
scale, add = (FUNCTIONS[f"tpu_bdc_fp_{name}"] for name in ("mul_C", "add"))
begin, end = (FUNCTIONS[f"tpu_{name}"] for name in ("parallel_start", "parallel_end"))
SHAPE = (2, 8, 13, 17)
_ROW = 64 * 16


def weighted_sum(inputs: list[np.ndarray], i32: tuple[int, ...], f32: tuple[float, ...]) -> np.ndarray:
    """a + factor * b."""
    a, b = inputs
    return a + np.float32(f32[0]) * b


@kernel
def weighted(call: LayerCall) -> None:
    """a + factor * b, piece by piece: while one is computed, the next is loaded; ids begin again between its halves."""
    (a, b), (y,) = call.inputs, call.outputs
    size = int(np.prod(y.shape))
    pieces = [(at, min(_ROW, size - at)) for at in range(0, size, _ROW)]
    places = [[call.memory.alloc((1, 1, 1, _ROW), DT_FP32, bank=True) for _ in range(3)] for _ in range(2)]

    def fetch(number: int) -> None:
        at, count = pieces[number]
        for place, source in zip(places[number % 2], (a, b)):
            load(place, source.address + 4 * at, dim4(1, 1, 1, count), None, None, DT_FP32)

    initialize()
    fetch(0)
    for number, (at, count) in enumerate(pieces):
        x, other, made = places[number % 2]
        shape = dim4(1, 1, 1, count)
        begin()
        if number + 1 < len(pieces):
            fetch(number + 1)
        scale(other, other, scalar_t(f32=call.f32_params[0]), shape, None, None, DT_FP32)
        add(made, x, other, shape, None, None, None, DT_FP32)
        end()
        store(y.address + 4 * at, made, shape, None, None, DT_FP32)
        if number == len(pieces) // 2:
            initialize()


@kernel
def racing(call: LayerCall) -> None:
    """It stores what is not computed yet."""
    (a, _), (y,) = call.inputs, call.outputs
    shape = dim4(1, 1, 1, 16)
    load(0, a.address, shape, None, None, DT_FP32)
    begin()
    scale(0, 0, scalar_t(f32=2.0), shape, None, None, DT_FP32)
    store(y.address, 0, shape, None, None, DT_FP32)
    end()


@kernel
def too_large(call: LayerCall) -> None:
    """It wants more than a lane has."""
    call.memory.alloc((1, 1, 1, 1 << 16), DT_FP32)


def registered(name: str = "Weighted", function: Callable[..., object] = weighted, **more: object) -> None:
    """`weighted`, or another kernel, as a layer."""
    register_layer(name, reference=weighted_sum, **more)(function)  # type: ignore[arg-type]
