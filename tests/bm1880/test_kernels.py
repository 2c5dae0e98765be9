"""Every kernel of the BM1880: what the command simulator computes from the model file is what the op means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from chip_nets import Net, check, check_op
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM
from bmcompiler.backends.bm1880.kernels.base import flat_view
from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.ir import TensorType, Value

FULL = 65536
LANES = st.sampled_from([1024, 2048, 6000, FULL])
SIDE = st.integers(1, 17)
BATCH = st.integers(1, 3)
CHANNELS = st.one_of(st.integers(1, 9), st.sampled_from([31, 32, 33, 40, 65]))
SHIFT = st.integers(0, 12)
SEED = st.integers(0, 99)
property_test = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def pair(values: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(values, values)


def reaches(size: int, kernel: int, before: int, after: int, stride: int) -> bool:
    """Every window sees some of the input."""
    span = size + before + after - kernel
    return span >= 0 and before < kernel and after < kernel and (span // stride) * stride < before + size


@st.composite
def windows(draw: st.DrawFn, dilated: bool = True) -> dict[str, Any]:
    """Geometry of a convolution: input size (h, w), kernel, strides, pads, dilations."""
    size, kernel, strides = draw(pair(SIDE)), draw(pair(st.integers(1, 5))), draw(pair(st.integers(1, 4)))
    dilations = draw(pair(st.integers(1, 3))) if dilated else (1, 1)
    pads = tuple(draw(st.integers(0, 3)) for _ in range(4))
    for axis in range(2):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        assume(reaches(size[axis], reach, pads[2 * axis], pads[2 * axis + 1], strides[axis]))
    return {"size": size, "kernel": kernel, "strides": strides, "pads": pads, "dilations": dilations}


@property_test
@given(windows(), BATCH, st.integers(1, 3), CHANNELS, CHANNELS, SHIFT, st.booleans(), LANES, SEED)
def test_conv(
    g: dict[str, Any], n: int, group: int, ci: int, co: int, rshift: int, bias: bool, lanes: int, seed: int
) -> None:
    def make(net: Net, x: Value) -> Value:
        w = net.i8(co * group, ci, *g["kernel"])
        b = net.bias(co * group) if bias else None
        keys = ("strides", "pads", "dilations")
        return net.b.conv(x, w, b, group=group, rshift=rshift, **{k: g[k] for k in keys})

    check_op(make, (n, ci * group, *g["size"]), seed=seed, lanes=lanes, device=lanes == FULL)


@property_test
@given(windows(), BATCH, st.sampled_from([2, 7, 33, 70]), SHIFT, st.booleans(), LANES, SEED)
def test_depthwise_conv(g: dict[str, Any], n: int, c: int, rshift: int, bias: bool, lanes: int, seed: int) -> None:
    def make(net: Net, x: Value) -> Value:
        b = net.bias(c) if bias else None
        keys = ("strides", "pads", "dilations")
        return net.b.conv(x, net.i8(c, 1, *g["kernel"]), b, group=c, rshift=rshift, **{k: g[k] for k in keys})

    check_op(make, (n, c, *g["size"]), seed=seed, lanes=lanes, device=lanes == FULL)


@st.composite
def deconvolutions(draw: st.DrawFn) -> dict[str, Any]:
    size, strides, dilations = (
        draw(pair(st.integers(1, 9))),
        draw(pair(st.integers(1, 4))),
        draw(pair(st.integers(1, 2))),
    )
    kernel = tuple(draw(st.integers(s, 5)) for s in strides)
    reach = [(k - 1) * d for k, d in zip(kernel, dilations)]
    pads = tuple(draw(st.integers(0, min(2, reach[axis]))) for axis in (0, 0, 1, 1))
    extra = tuple(draw(st.integers(0, s - 1)) for s in strides)
    out = [
        (n - 1) * s + r + 1 + e - p - q for n, s, r, e, p, q in zip(size, strides, reach, extra, pads[::2], pads[1::2])
    ]
    assume(min(out) >= 1)
    return {
        "size": size,
        "kernel": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "output_pads": extra,
    }


@property_test
@given(deconvolutions(), BATCH, st.integers(1, 3), CHANNELS, CHANNELS, SHIFT, LANES, SEED)
def test_deconv(g: dict[str, Any], n: int, group: int, ci: int, co: int, rshift: int, lanes: int, seed: int) -> None:
    def make(net: Net, x: Value) -> Value:
        w = net.i8(ci * group, co, *g["kernel"])
        keys = ("strides", "pads", "dilations", "output_pads")
        return net.b.deconv(x, w, net.bias(co * group), group=group, rshift=rshift, **{k: g[k] for k in keys})

    check_op(make, (n, ci * group, *g["size"]), seed=seed, lanes=lanes, device=False)


@property_test
@given(deconvolutions(), BATCH, st.integers(2, 40), SHIFT, LANES, SEED)
def test_depthwise_deconv(g: dict[str, Any], n: int, channels: int, rshift: int, lanes: int, seed: int) -> None:
    def make(net: Net, x: Value) -> Value:
        w, keys = net.i8(channels, 1, *g["kernel"]), ("strides", "pads", "dilations", "output_pads")
        return net.b.deconv(x, w, net.bias(channels), group=channels, rshift=rshift, **{k: g[k] for k in keys})

    check_op(make, (n, channels, *g["size"]), seed=seed, lanes=lanes, device=False)


@property_test
@given(windows(dilated=False), BATCH, CHANNELS, st.booleans(), LANES)
def test_max_pool(g: dict[str, Any], n: int, c: int, ceil: bool, lanes: int) -> None:
    def make(net: Net, x: Value) -> Value:
        return net.b.max_pool(x, kernel=g["kernel"], strides=g["strides"], pads=g["pads"], ceil_mode=ceil)

    check_op(make, (n, c, *g["size"]), lanes=lanes, device=False)


@property_test
@given(windows(dilated=False), BATCH, CHANNELS, st.booleans(), st.integers(0, 255), SHIFT, LANES)
def test_avg_pool(g: dict[str, Any], n: int, c: int, ceil: bool, multiplier: int, rshift: int, lanes: int) -> None:
    def make(net: Net, x: Value) -> Value:
        keys = ("kernel", "strides", "pads")
        options = {"ceil_mode": ceil, "count_include_pad": True, "multiplier": multiplier, "rshift": rshift}
        return net.b.avg_pool(x, **{k: g[k] for k in keys}, **options)

    check_op(make, (n, c, *g["size"]), lanes=lanes, device=False)


ANY_SHAPE = st.one_of(
    st.tuples(st.integers(1, 2000)),
    st.tuples(BATCH, CHANNELS),
    st.tuples(BATCH, CHANNELS, SIDE),
    st.tuples(BATCH, CHANNELS, SIDE, SIDE),
    st.tuples(BATCH, BATCH, CHANNELS, SIDE, BATCH),
    st.sampled_from(
        [(1, 1, 3, 2100), (1, 2, 1500, 3), (5000,), (4100, 2), (4100, 1, 1, 3), (1, 5000, 1, 2), (1, 1, 90, 90)]
    ),
)
ELEMENTWISE: dict[str, tuple[int, Callable[..., Value]]] = {
    "relu": (1, lambda net, x: net.b.relu(x)),
    "mins": (1, lambda net, x: net.b.mins(x, value=-7)),
    "maxs": (1, lambda net, x: net.b.maxs(x, value=99)),
    "max": (2, lambda net, x, y: net.b.max(x, y)),
    "min": (2, lambda net, x, y: net.b.min(x, y)),
    "bit_and": (2, lambda net, x, y: net.b.bit_and(x, y)),
    "bit_or": (2, lambda net, x, y: net.b.bit_or(x, y)),
    "bit_xor": (2, lambda net, x, y: net.b.bit_xor(x, y)),
    "muls_shift": (1, lambda net, x: net.b.muls_shift(x, multiplier=-77, rshift=6)),
    "muls_shift unsigned": (1, lambda net, x: net.b.muls_shift(x, multiplier=255, rshift=8)),
    "mul_shift": (2, lambda net, x, y: net.b.mul_shift(x, y, rshift=5)),
    "square": (1, lambda net, x: net.b.mul_shift(x, x, rshift=7)),
    "mac_shift 1": (1, lambda net, x: net.b.mac_shift(x, multipliers=(200,), rshift=7)),
    "mac_shift 2": (2, lambda net, x, y: net.b.mac_shift(x, y, multipliers=(127, -128), rshift=7)),
    "mac_shift 4": (3, lambda net, x, y, z: net.b.mac_shift(x, y, x, z, multipliers=(9, -90, 77, 1), rshift=0)),
    "lut": (1, lambda net, x: net.b.lut(x, net.i8(256))),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@settings(max_examples=12, deadline=None)
@given(shape=ANY_SHAPE, lanes=st.sampled_from([2048, 8192, FULL]))
def test_elementwise(name: str, shape: tuple[int, ...], lanes: int) -> None:
    count, make = ELEMENTWISE[name]
    check_op(make, *[shape] * count, lanes=lanes, device=lanes == FULL)


@property_test
@given(BATCH, CHANNELS, pair(SIDE), st.integers(0, 255), SHIFT, SHIFT, st.booleans(), LANES)
def test_prelu(
    n: int, c: int, hw: tuple[int, int], multiplier: int, rshift: int, slopes: int, shared: bool, lanes: int
) -> None:
    def make(net: Net, x: Value) -> Value:
        options = {"multiplier": multiplier, "rshift": rshift, "slope_rshift": slopes}
        return net.b.prelu(x, net.i8(1 if shared else c), **options)

    check_op(make, (n, c, *hw), lanes=lanes)


@property_test
@given(BATCH, CHANNELS, pair(SIDE), st.booleans(), st.booleans(), SHIFT, LANES)
def test_channel_factors(
    n: int, c: int, hw: tuple[int, int], shared: bool, swapped: bool, rshift: int, lanes: int
) -> None:
    def make(net: Net, x: Value, factor: Value) -> Value:
        return net.b.mul_shift(factor, x, rshift=rshift) if swapped else net.b.mul_shift(x, factor, rshift=rshift)

    check_op(make, (n, c, *hw), (1 if shared else n, c, 1, 1), lanes=lanes)


@pytest.mark.parametrize("batch", [1, 3])
def test_constant_channel_factors(batch: int) -> None:
    check_op(lambda net, x: net.b.mul_shift(x, net.i8(batch, 40, 1, 1), rshift=7), (3, 40, 5, 6))
    check_op(lambda net, x: net.b.mul_shift(net.i8(batch, 40, 1, 1), x, rshift=7), (3, 40, 5, 6), lanes=1024)


DEPTHS = st.one_of(st.integers(1, 70), st.sampled_from([33, 100, 600, 1021, 2048, 3000, 4032, 4096, 6000, 25088]))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([(1,), (3,), (2, 2), (40,)]),
    DEPTHS,
    st.sampled_from([1, 10, 16, 17, 32, 33, 100]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([4096, 32768, FULL]),
)
def test_matmul(rows: tuple[int, ...], k: int, columns: int, bias: bool, transposed: bool, lanes: int) -> None:
    def make(net: Net, x: Value) -> Value:
        w = net.i8(columns, k) if transposed else net.i8(k, columns)
        b = net.bias(columns) if bias else None
        return net.b.matmul(x, w, b, transpose_right=transposed, rshift=min(12, k.bit_length()))

    check_op(make, (*rows, k), lanes=lanes, device=lanes == FULL)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(), (1,), (3,), (2, 2)]),
    st.sampled_from([1, 5, 33, 70]),
    st.sampled_from([1, 8, 33, 100, 1000, 3000]),
    st.sampled_from([1, 10, 16, 17, 33, 100]),
    st.sampled_from([8192, 32768, FULL]),
)
def test_matmul_of_two_activations(batch: tuple[int, ...], rows: int, k: int, columns: int, lanes: int) -> None:
    def make(net: Net, x: Value, y: Value) -> Value:
        return net.b.matmul(x, y, rshift=min(12, k.bit_length()))

    assume(k <= 1000 or lanes == FULL)
    assume(k * 16 * (1 + (columns > 32)) <= lanes - 2048)
    check_op(make, (*batch, rows, k), (*batch, k, columns), lanes=lanes, device=lanes == FULL)


@pytest.mark.parametrize("lanes", [2048, FULL])
@pytest.mark.parametrize("shape", [(2, 40, 9, 11), (3, 5), (2, 3, 4, 5, 6)])
def test_elementwise_with_constants(shape: tuple[int, ...], lanes: int) -> None:
    check_op(lambda net, x: net.b.max(x, net.i8(*shape)), shape, lanes=lanes)
    check_op(lambda net, x: net.b.mul_shift(net.i8(*shape), x, rshift=6), shape, lanes=lanes)
    check_op(lambda net, x: net.b.mac_shift(x, net.i8(*shape), multipliers=(50, -3), rshift=6), shape, lanes=lanes)


def test_concat_with_constants() -> None:
    check_op(lambda net, x: net.b.concat(net.i8(1, 1, 8), x, axis=1), (1, 6, 8))
    check_op(lambda net, x: net.b.concat(x, net.i8(3, 2, 2), x, net.i8(3, 1, 2), axis=1), (3, 6, 2))
    check_op(lambda net, x: net.b.concat(net.i8(1, 20000), x, axis=1), (1, 5))


def test_backward_slices() -> None:
    def make(net: Net, x: Value) -> Value:
        return net.b.slice(x, starts=(0, 4, 1, 6), ends=(2, -1, 5, 0), steps=(1, -2, 2, -1))

    check_op(make, (2, 5, 6, 7))
    check_op(lambda net, x: net.b.slice(x, starts=(8,), ends=(-1,), steps=(-1,)), (9,))


def test_wide_matmul() -> None:
    check_op(lambda net, x: net.b.matmul(x, net.i8(64, 5000), rshift=9), (2, 64))
    check_op(lambda net, x: net.b.matmul(x, net.i8(5, 3), rshift=5), (5000, 5))


@st.composite
def shapes(draw: st.DrawFn, most: int = 6) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, most), min_size=1, max_size=5)))


@property_test
@given(shapes(), st.data())
def test_concat_and_split(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    parts = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    check_op(lambda net, *x: net.b.concat(*x, x[0], axis=axis), *parts)
    check_op(lambda net, *x: net.b.relu(net.b.concat(*(net.b.relu(v) for v in x), axis=axis)), *parts)
    whole = (*shape[:axis], sum(sizes), *shape[axis + 1 :])

    def split(net: Net, x: Value) -> list[Value]:
        results = net.b.split(net.b.relu(x), axis=axis, sizes=tuple(sizes))
        results = [results] if isinstance(results, Value) else results
        return [results[0], *(net.b.mins(r, value=5) for r in results)]

    check_op(split, whole)


@property_test
@given(shapes(), st.data())
def test_slice_permute_tile_pad(shape: tuple[int, ...], data: st.DataObject) -> None:
    starts = [data.draw(st.integers(0, d - 1)) for d in shape]
    ends = [data.draw(st.integers(s + 1, d)) for s, d in zip(starts, shape)]
    steps = [data.draw(st.integers(1, 3)) for _ in shape]
    check_op(lambda net, x: net.b.slice(x, starts=starts, ends=ends, steps=steps), shape)
    order = data.draw(st.permutations(range(len(shape))))
    check_op(lambda net, x: net.b.permute(x, order=order), shape)
    reps = [data.draw(st.integers(1, 3)) for _ in shape]
    check_op(lambda net, x: net.b.tile(x, reps=reps), shape)
    pads = [data.draw(st.integers(0, 2)) for _ in range(2 * len(shape))]
    check_op(lambda net, x: net.b.pad(x, pads=pads, value=-7.0), shape)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 3, 1, 2), (2, 0, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3)])
def test_permute_of_a_wide_tensor(order: tuple[int, ...]) -> None:
    check_op(lambda net, x: net.b.permute(x, order=order), (2, 3, 300, 250))


def test_large_copies() -> None:
    check_op(lambda net, x, y: net.b.concat(x, y, axis=1), (2, 8, 100, 100), (2, 3, 100, 100))
    check_op(lambda net, x: net.b.pad(x, pads=(0, 0, 0, 1, 2, 3, 1, 0), value=-5.0), (2, 5, 90, 80))
    check_op(lambda net, x: net.b.slice(x, starts=(70001,), ends=(140003,), steps=(1,)), (140007,))


@property_test
@given(BATCH, CHANNELS, pair(SIDE), pair(st.integers(1, 4)), LANES)
def test_upsample(n: int, c: int, hw: tuple[int, int], scale: tuple[int, int], lanes: int) -> None:
    check_op(lambda net, x: net.b.upsample(x, scale=scale), (n, c, *hw), lanes=lanes)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda net, x: net.b.conv(x, net.i8(8, 3, 3, 3), dilations=(2, 3), rshift=8), (1, 3, 1300, 30)),
        (lambda net, x: net.b.conv(x, net.i8(4, 2, 1, 1), rshift=4), (1, 2, 3, 2500)),
        (
            lambda net, x: net.b.conv(x, net.i8(40, 3, 7, 7), strides=(2, 2), pads=(3, 3, 3, 3), rshift=9),
            (1, 3, 225, 225),
        ),
        (lambda net, x: net.b.conv(x, net.i8(33, 33, 3, 3), pads=(1, 1, 1, 1), rshift=9), (2, 33, 60, 1100)),
        (lambda net, x: net.b.max_pool(x, kernel=(2, 2), strides=(2, 2)), (1, 3, 2100, 30)),
        (lambda net, x: net.b.avg_pool(x, kernel=(7, 7), multiplier=200, rshift=12), (1, 2048, 7, 7)),
        (
            lambda net, x: net.b.deconv(x, net.i8(3, 4, 16, 16), strides=(8, 8), pads=(4, 4, 4, 4), rshift=8),
            (1, 3, 70, 70),
        ),
        (lambda net, x: net.b.upsample(x, scale=(2, 2)), (1, 3, 3, 700)),
        (lambda net, x: net.b.conv(x, net.i8(4200, 8, 1, 1), rshift=5), (1, 8, 3, 3)),
        (lambda net, x: net.b.conv(x, net.i8(8, 4095, 1, 1), rshift=12), (1, 4095, 2, 2)),
        (lambda net, x: net.b.permute(x, order=(0, 1, 3, 2)), (20, 20, 14, 30)),
    ],
)
def test_beyond_one_instruction(make: Callable[..., Value], shape: tuple[int, ...]) -> None:
    """Sizes above the limits of one instruction, or of local memory, are tiled."""
    check_op(make, shape)


def test_unsigned_bytes_are_moved() -> None:
    net = Net([(2, 3, 4)], dtype="u8")
    x = net.inputs[0]
    compiled = check(net.module([net.b.permute(x, order=(2, 0, 1)), net.b.concat(x, x, axis=1)]))
    assert {row.where for row in compiled.rows} == {"bm1880"}


def test_other_types_run_on_the_cpu() -> None:
    def make(net: Net, x: Value) -> Value:
        wide = net.b.muls_shift(x, multiplier=3, rshift=0, out=TensorType(x.shape, "i16"))
        return net.b.round_rshift(wide, rshift=2, out=TensorType(x.shape, "i8"))

    compiled = check_op(make, (2, 5), device=False)
    assert [row.where for row in compiled.rows] == ["cpu", "cpu"]
    assert all(row.reason for row in compiled.rows)


@pytest.mark.parametrize("size", [1 << 16, 1 << 18, 4096 * 9, 4097 * 5, 3 * 5 * 7 * 11 * 13, 65537, 4095 * 4095])
def test_flat_views_fit_an_instruction(size: int) -> None:
    n, c, h, w = flat_view(TARGET.machine, (size,))
    assert (n, h, c * w) == (1, 1, size)
    assert c <= MAX_TPU_DIM
