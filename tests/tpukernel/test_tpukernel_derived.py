"""Functions without a recorded call: what they compute, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.tpukernel.rows import Known
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import (
    DT_BFP16,
    DT_FP16,
    DT_FP32,
    DT_INT8,
    DT_INT16,
    DT_INT32,
    DT_UINT8,
    FUNCTIONS,
    TABLE,
    dim4,
    kernel,
    recording,
    scalar_t,
)

Array = NDArray[Any]
SHAPE = dim4(2, 70, 3, 5)
TYPES = {np.float32: DT_FP32, np.int32: DT_INT32, np.int16: DT_INT16, np.float16: DT_FP16}
_PLACES = [0x0, 0x4000, 0x8000, 0xC000]


@pytest.fixture(scope="module")
def device() -> KernelDevice:
    return KernelDevice(1 << 20)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def on_chip(device: KernelDevice, body: Callable[..., None], result: tuple[dim4, Any], *sources: Array) -> Array:
    """What `body(dst, src0, ...)` leaves at local address dst, with sources loaded to the others."""
    device.free_all()
    shape, dtype = result
    addresses = [device.upload(source) for source in sources]
    out = device.malloc(1 << 16)

    @kernel
    def run() -> None:
        FUNCTIONS["tpu_initialize"]()
        for place, address, source in zip(_PLACES[1:], addresses, sources):
            FUNCTIONS["tpu_gdma_cpy_S2L"](place, address, source.shape, None, None, TYPES[source.dtype.type])
        body(_PLACES[0], *_PLACES[1 : 1 + len(sources)])
        FUNCTIONS["tpu_gdma_cpy_L2S"](out, _PLACES[0], shape, None, None, TYPES[dtype])

    device.launch(run())
    return device.download(out, shape, dtype)


def numbers(rng: np.random.Generator, dtype: type, shape: tuple[int, ...] = SHAPE) -> Array:
    return (rng.normal(size=shape) * (1 if dtype in (np.float32, np.float16) else 1e4)).astype(dtype)


TWO: dict[str, tuple[type, Callable[[Array, Array], Array]]] = {
    "xor": (np.int32, np.bitwise_xor),
    "fp_diff_abs": (np.float32, lambda a, b: abs(a - b)),
}


@pytest.mark.parametrize("name", TWO)
def test_of_two_tensors(device: KernelDevice, rng: np.random.Generator, name: str) -> None:
    dtype, meaning = TWO[name]
    a, b = numbers(rng, dtype), numbers(rng, dtype)

    def body(dst: int, x: int, y: int) -> None:
        FUNCTIONS[f"tpu_bdc_{name}"](dst, x, y, SHAPE, None, None, None, TYPES[dtype])

    np.testing.assert_array_equal(on_chip(device, body, (SHAPE, dtype), a, b), meaning(a, b))


@pytest.mark.parametrize(("name", "meaning"), [("or_C", np.bitwise_or), ("xor_C", np.bitwise_xor)])
def test_with_a_constant(device: KernelDevice, rng: np.random.Generator, name: str, meaning: Any) -> None:
    a = numbers(rng, np.int32)

    def body(dst: int, x: int) -> None:
        FUNCTIONS[f"tpu_bdc_{name}"](dst, x, 0x0F0F, SHAPE, None, None, DT_INT32)

    np.testing.assert_array_equal(on_chip(device, body, (SHAPE, np.int32), a), meaning(a, 0x0F0F))


@pytest.mark.parametrize(("name", "meaning"), [("int_add", np.add), ("int_sub", np.subtract)])
def test_of_integers(device: KernelDevice, rng: np.random.Generator, name: str, meaning: Any) -> None:
    a, b = numbers(rng, np.int16), numbers(rng, np.int16)

    def body(dst: int, x: int, y: int) -> None:
        types = (DT_INT32, DT_INT16, DT_INT16)
        FUNCTIONS[f"tpu_bdc_{name}"](dst, x, y, SHAPE, None, None, None, *types, 3, 0, 1)

    wanted = meaning(a.astype(np.int32), b.astype(np.int32)) << 3
    np.testing.assert_array_equal(on_chip(device, body, (SHAPE, np.int32), a, b), wanted)


PER_CHANNEL: dict[str, Callable[[Array, Array], Array]] = {
    "bias": lambda x, b: x + b,
    "add_bias_sqr": lambda x, b: (x + b) * (x + b),
    "sub_bias_sqr": lambda x, b: (x - b) * (x - b),
    "scale_bias": lambda x, b: x * b + b,
}


@pytest.mark.parametrize("name", PER_CHANNEL)
def test_with_a_value_per_channel(device: KernelDevice, rng: np.random.Generator, name: str) -> None:
    x, b = numbers(rng, np.float32), numbers(rng, np.float32, (1, SHAPE.c, 1, 1))
    vector = dim4(1, SHAPE.c, 1, 1)

    def body(dst: int, src: int, bias: int) -> None:
        compact = FUNCTIONS["tpu_compact_stride"](0, vector)
        FUNCTIONS["tpu_bdc_cpy"](_PLACES[3], bias, vector, compact, None, DT_FP32)
        vectors = [_PLACES[3]] * (2 if name == "scale_bias" else 1)
        FUNCTIONS[f"tpu_bdc_fp_{name}"](dst, src, *vectors, SHAPE, DT_FP32)

    np.testing.assert_array_equal(on_chip(device, body, (SHAPE, np.float32), x, b), PER_CHANNEL[name](x, b))


def test_between_lanes(device: KernelDevice, rng: np.random.Generator) -> None:
    x = numbers(rng, np.float32)

    def body(dst: int, src: int) -> None:
        FUNCTIONS["tpu_bdc_cpy_cross_npu"](5 << 18, src, SHAPE, DT_FP32)
        FUNCTIONS["tpu_bdc_cpy_cross_npu"](dst, 5 << 18, SHAPE, DT_FP32)

    np.testing.assert_array_equal(on_chip(device, body, (SHAPE, np.float32), x), x)


def test_from_static_memory(device: KernelDevice) -> None:
    shape, serial = dim4(1, 64, 1, 20), 0x5C0

    def rows(dst: int) -> None:
        FUNCTIONS["tpu_bdc_npu_bcast_from_static"](dst, serial, 64, 20, DT_INT32)

    def lanes(dst: int) -> None:
        FUNCTIONS["tpu_bdc_npu_distribute_from_static"](dst, serial, 64, DT_INT32)

    found = on_chip(device, rows, (shape, np.int32))
    assert (found == np.arange(20)).all()
    found = on_chip(device, lanes, (dim4(1, 64, 1, 1), np.int32))
    np.testing.assert_array_equal(found.ravel(), np.arange(64))


# -- transfers: every way between local memory and outside ------------------------------------------------------------
WAYS = ("S2S", "S2L", "L2S", "L2L")


def transferred(
    device: KernelDevice, name: str, way: str, shape: dim4, x: Array, *rest: Any, index: Array | None = None
) -> Array:
    """The result of a transfer whose ends are brought from and to global memory by plain copies."""
    device.free_all()
    source, out = device.upload(x), device.malloc(1 << 16)
    of, to = (source if way[0] == "S" else 0x4000), (out if way[2] == "S" else 0x0)
    device.upload(np.zeros(1 << 15, np.uint8), out)

    @kernel
    def run() -> None:
        if way[0] == "L":
            FUNCTIONS["tpu_gdma_cpy_S2L"](of, source, x.shape, None, None, DT_FP32)
        if way[2] == "L":
            FUNCTIONS["tpu_gdma_set_C_local"](to, 0, shape, None, DT_FP32)
        indices = () if index is None else (device.upload(index), False)
        FUNCTIONS[f"{name}_{way}"](to, of, *indices, *rest, DT_FP32)
        if way[2] == "L":
            FUNCTIONS["tpu_gdma_cpy_L2S"](out, to, shape, None, None, DT_FP32)

    device.launch(run())
    return device.download(out, shape)


@pytest.mark.parametrize("way", WAYS)
def test_transfers_mean_the_same_every_way(device: KernelDevice, rng: np.random.Generator, way: str) -> None:
    x = numbers(rng, np.float32)
    n, c, h, w = SHAPE
    none = (None, None)

    def run(name: str, shape: dim4, *rest: Any, **index: Array) -> Array:
        return transferred(device, name, way, shape, x, *rest, **index)

    np.testing.assert_array_equal(run("tpu_gdma_cpy", SHAPE, SHAPE, *none), x)
    turned = dim4(n, w, h, c)
    np.testing.assert_array_equal(run("tpu_gdma_cpy_cw_trans", turned, turned, *none), x.transpose(0, 3, 2, 1))
    turned = dim4(c, n, h, w)
    if f"tpu_gdma_cpy_nc_trans_{way}" in FUNCTIONS:
        np.testing.assert_array_equal(run("tpu_gdma_cpy_nc_trans", turned, turned, *none), x.transpose(1, 0, 2, 3))
    flat = dim4(1, n * c, 1, h * w)
    np.testing.assert_array_equal(run("tpu_gdma_general_cpy", flat, flat, SHAPE, *none), x.reshape(flat))


def dense(kind: str, shape: tuple[int, ...]) -> dim4:
    """The strides of a tensor of 32-bit elements without any stated: aligned in local memory ("L"), else compact."""
    _, c, h, w = shape
    plane = -(-h * w // 16) * 16 if kind == "L" else h * w
    return dim4((-(-c // 64) if kind == "L" else c) * plane, plane, w, 1)


@pytest.mark.parametrize("stated", [None, 0, 1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_rows_by_index_mean_the_same_every_way(
    device: KernelDevice, rng: np.random.Generator, way: str, stated: int | None
) -> None:
    """`stated`: which of result, rows and indices has its own strides stated."""
    c, count, width, rows = 7, 4, 5, 9

    def strides(result: dim4, given: tuple[int, ...], indices: tuple[int, ...]) -> list[dim4 | None]:
        each = [dense(way[2], result), dense(way[0], given), dense("S", indices)]
        return [made if at == stated else None for at, made in enumerate(each)]

    param = numbers(rng, np.float32, (1, c, rows, width))
    index = rng.integers(0, rows + 3, (1, c, count, 1), np.uint32)
    if way != "L2S" or "tpu_gdma_h_gather_L2S" in FUNCTIONS:
        shape = dim4(1, c, count, width)
        steps = strides(shape, param.shape, index.shape)
        found = transferred(
            device, "tpu_gdma_h_gather", way, shape, param, 0x3F80_0000, shape, rows, *steps, index=index
        )
        wanted = np.ones(shape, np.float32)
        for channel, k in zip(*np.nonzero(index[0, :, :, 0] < rows)):
            wanted[0, channel, k] = param[0, channel, index[0, channel, k, 0]]
        np.testing.assert_array_equal(found, wanted)
    shape = dim4(1, c, rows + 3, width)
    index = np.stack([rng.permutation(rows + 3)[:rows] for _ in range(c)]).astype(np.uint32).reshape(1, c, rows, 1)
    steps = strides(shape, param.shape, index.shape)
    found = transferred(device, "tpu_gdma_h_scatter", way, shape, param, shape, rows, *steps, index=index)
    wanted = np.zeros(shape, np.float32)
    np.put_along_axis(wanted, np.broadcast_to(index.astype(np.int64), param.shape), param, 2)
    np.testing.assert_array_equal(found, wanted)


# -- 16-bit functions --------------------------------------------------------------------------------------------------
HALF: dict[str, tuple[Callable[[Array], Array], float, float, float]] = {
    "exp": (np.exp, -5, 5, 4e-3),
    "log": (np.log, 0.2, 50, 6e-3),
    "sin": (np.sin, -3, 3, 6e-3),
    "cos": (np.cos, -3, 3, 6e-3),
}


@pytest.mark.parametrize("name", HALF)
def test_functions_of_halves_are_close(device: KernelDevice, rng: np.random.Generator, name: str) -> None:
    meaning, low, high, tolerance = HALF[name]
    x = rng.uniform(low, high, SHAPE).astype(np.float16)

    def body(dst: int, src: int) -> None:
        FUNCTIONS[f"tpu_bdc_load_fp_{name}_coeff"](_PLACES[3], DT_FP16)
        works = (_PLACES[2], 0x10000) if name == "exp" else (_PLACES[2],)
        FUNCTIONS[f"tpu_bdc_fp_{name}"](dst, src, *works, _PLACES[3], SHAPE, DT_FP16)

    found = on_chip(device, body, (SHAPE, np.float16), x).astype(np.float64)
    wanted = meaning(x.astype(np.float64))
    assert np.max(abs(found - wanted) / np.maximum(abs(wanted), 1)) < tolerance


def test_loaders_by_type_fill_every_lane(device: KernelDevice) -> None:
    for name in ("exp", "log", "sin", "cos", "erf", "tan", "arcsin", "arctan"):
        types = (DT_FP32, DT_FP16, DT_BFP16) if name in ("exp", "log", "sin", "cos") else (DT_FP32,)
        for dtype in types:
            with recording() as recorder:
                FUNCTIONS[f"tpu_bdc_load_fp_{name}_coeff"](0, dtype)
            assert len(recorder.commands) == 1


@pytest.mark.parametrize(("count", "commands"), [(1, 1), (65_535, 1), (70_001, 2), (3 * 65_535 + 2, 2)])
def test_a_number_of_elements_is_filled(device: KernelDevice, count: int, commands: int) -> None:
    for dtype, kind in ((DT_FP16, np.uint16), (DT_FP32, np.uint32), (DT_INT8, np.uint8)):
        size = np.dtype(kind).itemsize
        target = device.upload(np.zeros(count + 1, kind))
        program = kernel(partial(FUNCTIONS["tpu_gdma_system_set"], target, scalar_t(0x12345678), count, dtype))()
        assert len(program) == commands
        device.launch(program)
        wanted = np.full(count + 1, 0x12345678 & ((1 << 8 * size) - 1), kind)
        wanted[count] = 0
        np.testing.assert_array_equal(device.download(target, (count + 1,), kind), wanted)
        device.free_all()


def test_which_functions_have_no_recording() -> None:
    """A new one needs a test here."""
    derived = {row.name for row in TABLE.values() if row.source is Known.DERIVED}
    here = {f"tpu_bdc_{name}" for name in (*TWO, "or_C", "xor_C", "int_add", "int_sub", "cpy_cross_npu")}
    here |= {f"tpu_bdc_fp_{name}" for name in PER_CHANNEL}
    here |= {"tpu_gdma_system_set", "tpu_bdc_npu_bcast_from_static", "tpu_bdc_npu_distribute_from_static"}
    moves = ("cpy", "cpy_cw_trans", "cpy_nc_trans", "general_cpy", "h_gather", "h_scatter")
    here |= {f"tpu_gdma_{name}_{way}" for name in moves for way in WAYS}
    assert derived <= here


@pytest.mark.parametrize(
    "name, arguments, recorded",
    [
        ("tpu_get_local_size", (dim4(170, 127, 102, 54), DT_FP16, 2, False), 5_618_160),
        ("tpu_get_local_size", (dim4(194, 146, 126, 109), DT_INT8, 59, False), 10_657_584),
        ("tpu_get_local_size", (dim4(123, 153, 77, 92), DT_UINT8, 51, True), 3_495_168),
        ("tpu_get_local_size", (dim4(2, 3, 3, 5), DT_FP32, 0, True), 128),
        ("tpu_npu_c_offset", (63, 5, DT_FP32), 0),
        ("tpu_npu_c_offset", (200, 3, DT_INT8), 9),
        ("tpu_unified_c_offset", (63, 5, DT_FP32), 0xFC_0000),
        ("tpu_unified_c_offset", (70, 16, DT_FP16), 0x18_0020),
    ],
)
def test_sizes_and_offsets_are_the_vendors(name: str, arguments: tuple[Any, ...], recorded: int) -> None:
    """What the vendor's library answers, of which these were recorded."""
    assert FUNCTIONS[name](*arguments) == recorded
