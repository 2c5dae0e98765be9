"""Elements picked and replaced by constant indices, and resizing to nearest elements, on the BM1684."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bm1684_nets import Net, check, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.errors import BMError
from bmcompiler.ir import Value
from bmcompiler.ops.places.resample import COORDINATES, ROUNDINGS

DTYPES = st.sampled_from(["f32", "i8", "u8", "i16", "u16", "i32"])
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
MORE_AXES = st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple)
SEED = st.integers(0, 99)
property_test = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def indices(net: Net, size: int, *shape: int, dtype: type = np.int64) -> Value:
    """A random constant of indices into an axis, also from its end."""
    return net.b.weight(net.rng.integers(-size, size, shape).astype(dtype), "i")


def constant(net: Net, dtype: str, *shape: int) -> Value:
    return net.f32(*shape) if dtype == "f32" else net.integers(dtype, *shape)


@property_test
@given(MORE_AXES, st.lists(st.integers(1, 4), max_size=2), DTYPES, st.data(), SEED)
def test_gather(shape: tuple[int, ...], chosen: list[int], dtype: str, data: st.DataObject, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    check_op(
        lambda net, x: net.b.gather(x, indices(net, shape[axis], *chosen, dtype=np.int32), axis=axis),
        shape,
        dtype=dtype,
        seed=seed,
    )


@property_test
@given(SHAPES, DTYPES, st.data(), SEED)
def test_gather_elements(shape: tuple[int, ...], dtype: str, data: st.DataObject, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    wanted = [data.draw(st.integers(1, 5 if i == axis else size)) for i, size in enumerate(shape)]
    check_op(
        lambda net, x: net.b.gather_elements(x, indices(net, shape[axis], *wanted), axis=axis),
        shape,
        dtype=dtype,
        seed=seed,
    )


def tuples(net: Net, shape: tuple[int, ...], *count: int) -> Value:
    """Random index tuples into the axes of `shape`."""
    found = [net.rng.integers(-size, size, count) for size in shape]
    return net.b.weight(np.stack(found, -1).astype(np.int64), "i")


@property_test
@given(SHAPES, DTYPES, st.data(), SEED)
def test_gather_nd(shape: tuple[int, ...], dtype: str, data: st.DataObject, seed: int) -> None:
    batch = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(1, len(shape) - batch))
    count = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    where = (*shape[:batch], *count)
    check_op(
        lambda net, x: net.b.gather_nd(x, tuples(net, shape[batch : batch + depth], *where), batch_dims=batch),
        shape,
        dtype=dtype,
        seed=seed,
    )


@property_test
@given(SHAPES.filter(lambda shape: len(shape) > 1), DTYPES, st.data(), SEED)
def test_reverse_sequence(shape: tuple[int, ...], dtype: str, data: st.DataObject, seed: int) -> None:
    batch, time = data.draw(st.permutations(range(len(shape))))[:2]

    def make(net: Net, x: Value) -> Value:
        lengths = net.b.weight(net.rng.integers(0, shape[time] + 1, shape[batch]).astype(np.int64), "n")
        return net.b.reverse_sequence(x, lengths, batch_axis=batch, time_axis=time)

    check_op(make, shape, dtype=dtype, seed=seed)


@property_test
@given(SHAPES, DTYPES, st.data(), SEED)
def test_scatter_elements(shape: tuple[int, ...], dtype: str, data: st.DataObject, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = [data.draw(st.integers(1, 5 if i == axis else size)) for i, size in enumerate(shape)]

    def make(net: Net, x: Value) -> Value:
        where = indices(net, shape[axis], *sizes)
        return net.b.scatter_elements(x, where, constant(net, dtype, *sizes), axis=axis)

    check_op(make, shape, dtype=dtype, seed=seed)


@property_test
@given(SHAPES, DTYPES, st.data(), SEED)
def test_scatter_nd(shape: tuple[int, ...], dtype: str, data: st.DataObject, seed: int) -> None:
    depth = data.draw(st.integers(1, len(shape)))
    count = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))

    def make(net: Net, updates: Value) -> Value:
        return net.b.scatter_nd(constant(net, dtype, *shape), tuples(net, shape[:depth], *count), updates)

    check_op(make, (*count, *shape[depth:]), dtype=dtype, seed=seed)


def reason(make: Any, *shapes: tuple[int, ...]) -> str:
    net = Net(shapes, dtype="i32")
    (row,) = TARGET.compile([net.module([make(net, *net.inputs)])], 2).rows
    return row.reason


def test_what_stays_on_the_cpu_says_why() -> None:
    assert reason(lambda net, x, i: net.b.gather(x, i), (5,), (3,)) == "Indices must be constants"
    many = "There must be at most 512 elements or blocks to pick"
    assert reason(lambda net, x: net.b.gather(x, indices(net, 5, 513)), (5,)) == many
    added = "Only without a reduction: got add"
    assert (
        reason(lambda net, x: net.b.scatter_nd(x, indices(net, 5, 2, 1), net.integers("i32", 2), reduction="add"), (5,))
        == added
    )


def test_an_index_outside_is_reported() -> None:
    net = Net([(5, 2)])
    module = net.module([net.b.gather(net.inputs[0], net.b.weight(np.array([7]), "i"), axis=0)])
    with pytest.raises(BMError, match="outside an axis with 5 elements"):
        TARGET.compile([module], 2)


def test_even_indices_take_few_commands() -> None:
    net = Net([(2, 64, 9, 9)])
    shuffle = np.arange(64).reshape(4, 16).T.ravel()
    module = net.module([net.b.gather(net.inputs[0], net.b.weight(shuffle, "i"), axis=1)])
    assert [row.commands for row in check(module).rows] == [1]


@property_test
@given(
    st.tuples(*[st.integers(1, 5)] * 4),
    st.tuples(*[st.integers(1, 4)] * 2),
    DTYPES,
    SEED,
)
def test_upsample(shape: tuple[int, ...], scale: tuple[int, int], dtype: str, seed: int) -> None:
    check_op(lambda net, x: net.b.upsample(x, scale=scale), shape, dtype=dtype, seed=seed)


def test_upsampling_copies_columns_in_local_memory() -> None:
    """A load, a copy for each image and column of a block, a store: one copy in global memory moves single bytes."""
    net = Net([(2, 20, 26, 26)], dtype="i8")
    assert [row.commands for row in check(net.module([net.b.upsample(net.inputs[0], scale=(2, 2))])).rows] == [6]


@property_test
@given(
    st.lists(st.tuples(st.integers(1, 7), st.integers(1, 9)), min_size=1, max_size=2),
    st.integers(1, 4),
    st.sampled_from(sorted(COORDINATES)),
    st.sampled_from(sorted(ROUNDINGS)),
    DTYPES,
    SEED,
)
def test_resize_nearest(
    axes: list[tuple[int, int]], channels: int, coordinates: str, rounding: str, dtype: str, seed: int
) -> None:
    axes = [(channels, channels), *axes]
    shape, sizes = zip(*axes)

    def make(net: Net, x: Value) -> Value:
        roi = tuple(net.rng.random(2 * len(shape)) * 1.4 - 0.2) if coordinates == "tf_crop_and_resize" else ()
        scales = tuple(want / have for have, want in axes)
        options = {"coordinates": coordinates, "rounding": rounding, "roi": roi, "extrapolation": 3.0}
        return net.b.resize(x, sizes=sizes, scales=scales, **options)

    check_op(make, shape, dtype=dtype, seed=seed)


@pytest.mark.parametrize(("size", "want", "most"), [(13, 26, 4), (40, 60, 7), (60, 40, 4), (64, 224, 15)])
def test_resizing_by_a_fraction_takes_few_commands(size: int, want: int, most: int) -> None:
    """A load and a store, and in between a copy for each two runs of rows and columns that repeat alike."""
    net = Net([(1, 3, size, size)])
    scale = want / size
    resized = net.b.resize(
        net.inputs[0],
        sizes=(1, 3, want, want),
        scales=(1.0, 1.0, scale, scale),
        coordinates="asymmetric",
        rounding="floor",
    )
    (row,) = check(net.module([resized])).rows
    assert row.commands <= most
