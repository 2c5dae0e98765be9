"""Moving elements on the BM1684, every element type: what comes out of the simulator has the very bits of the op."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from bm1684_nets import Net, check, check_op, on_device
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from planned_cycles import computations, taken

import bmcompiler
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.target import Compiled, unsupported_reason

DTYPES = st.sampled_from(["f32", "i8", "u8", "i16", "u16", "i32"])
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=6).map(tuple)
SEED = st.integers(0, 99)
property_test = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def commands(compiled: Compiled) -> list[int]:
    return [row.commands for row in compiled.rows]


def module_of(make: Any, *shapes: tuple[int, ...], dtype: str = "f32") -> Module:
    net = Net(shapes, 0, dtype)
    made = make(net, *net.inputs)
    return net.module([made] if isinstance(made, Value) else list(made))


@property_test
@given(SHAPES, DTYPES, st.data(), SEED)
def test_permute(shape: tuple[int, ...], dtype: str, data: st.DataObject, seed: int) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    check_op(lambda net, x: net.b.permute(x, order=order), shape, dtype=dtype, seed=seed)


@pytest.mark.parametrize("order", [(2, 0, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_four_axes_are_transposed_by_one_command(order: tuple[int, ...]) -> None:
    module = module_of(lambda net, x: net.b.permute(x, order=order), (3, 5, 70, 90), dtype="i8")
    assert commands(check(module)) == [1]


def test_a_long_last_axis_moves_by_one_command() -> None:
    module = module_of(lambda net, x: net.b.permute(x, order=(2, 1, 0)), (33, 2, 5000))
    assert commands(check(module)) == [1]


@pytest.mark.parametrize("level", [0, 2])
def test_squares_are_transposed(level: int) -> None:
    check(module_of(lambda net, x: net.b.permute(x, order=(0, 2, 1)), (1, 2, 2)), level=level)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize(
    "shape, order",
    [
        ((1, 70, 15, 15), (0, 2, 3, 1)),  # pixels of a map, to be read in their order
        ((1, 33, 16, 16), (0, 2, 3, 1)),
        ((1, 31, 33, 3), (0, 3, 1, 2)),  # the other way
        ((2, 1300, 3), (0, 2, 1)),
        ((1, 6, 3549), (0, 2, 1)),
    ],
)
def test_matrices_are_transposed_in_lanes(shape: tuple[int, ...], order: tuple[int, ...], level: int) -> None:
    """Of single elements in global memory, each takes as long as 64 bytes, once to read and once to write."""
    module = module_of(lambda net, x: net.b.permute(net.b.sqrt(x), order=order), shape)
    with computations() as found:
        compiled = check(module, level=level)
    assert found and [taken(one.commands) for one in found] == [one.planned for one in found]
    assert analyze(compiled.model).timing().cycles < 2 * 64 / 50 * prod(shape) / 2


@pytest.mark.parametrize("shape", [(1, 12, 12, 3), (1, 24, 25, 3), (1, 70, 9, 5), (1, 5, 3, 70)])
@pytest.mark.parametrize("dtype", ["i8", "u8", "i16"])
def test_channels_become_lanes_inside_local_memory(shape: tuple[int, ...], dtype: str) -> None:
    """A map of pixels that was made there, read by a layer there: only the ends of the net cross the bus."""

    def make(net: Net, x: Value) -> Value:
        narrow = net.b.quantize(x, out=TensorType(shape, dtype, Quant(2.0**-6)), rounding="even")
        return net.b.dequantize(net.b.permute(narrow, order=(0, 3, 1, 2)))

    module = module_of(make, shape)
    with computations() as found:
        compiled = check(module)
    assert found and [taken(one.commands) for one in found] == [one.planned for one in found]
    timing = analyze(compiled.model).timing()
    assert (timing.loaded, timing.stored) == (4 * prod(shape), 4 * prod(shape))


@property_test
@given(SHAPES, DTYPES, st.data(), st.sampled_from([0, 1, 2]), SEED)
def test_concat(shape: tuple[int, ...], dtype: str, data: st.DataObject, level: int, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]

    def make(net: Net, *parts: Value) -> Value:
        constant = net.f32(*shape) if dtype == "f32" else net.integers(dtype, *shape)
        made = [net.b.permute(part, order=tuple(range(len(shape)))) for part in parts]
        return net.b.concat(*made, constant, parts[0], axis=axis)

    check_op(make, *shapes, dtype=dtype, seed=seed, level=level)


@property_test
@given(SHAPES, DTYPES, st.data(), st.sampled_from([0, 1, 2]), SEED)
def test_split(shape: tuple[int, ...], dtype: str, data: st.DataObject, level: int, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    whole = (*shape[:axis], sum(sizes), *shape[axis + 1 :])
    check_op(lambda net, x: net.b.split(x, axis=axis, sizes=sizes), whole, dtype=dtype, seed=seed, level=level)


def test_parts_made_in_place_need_no_command() -> None:
    def make(net: Net, x: Value, y: Value) -> Value:
        return net.b.concat(net.b.permute(x, order=(0, 1, 3, 2)), net.b.permute(y, order=(0, 1, 3, 2)), axis=1)

    module = module_of(make, (1, 3, 4, 5), (1, 2, 4, 5))
    assert commands(check(module)) == [1, 1, 0]
    assert commands(check(module, level=1)) == [1, 1, 2]


@st.composite
def ranges(draw: st.DrawFn, size: int) -> tuple[int, int, int]:
    """Start, end and step in normal form of a slice that takes something."""
    first, last = draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))
    step = draw(st.integers(1, 3))
    return (first, last + 1, step) if first <= last else (first, last - 1, -step)


@property_test
@given(SHAPES, DTYPES, st.data(), SEED)
def test_slice(shape: tuple[int, ...], dtype: str, data: st.DataObject, seed: int) -> None:
    starts, ends, steps = zip(*(data.draw(ranges(size)) for size in shape))
    assume(prod(len(range(*bounds)) for bounds in zip(starts, ends, steps) if bounds[2] < 0) <= 100)
    check_op(
        lambda net, x: net.b.slice(x, starts=starts, ends=ends, steps=steps),
        shape,
        dtype=dtype,
        seed=seed,
        lanes=1 << 19,
    )


@property_test
@given(
    SHAPES.filter(lambda s: len(s) < 5),
    DTYPES,
    st.sampled_from(["constant", "reflect", "edge", "symmetric"]),
    st.data(),
    SEED,
)
def test_pad(shape: tuple[int, ...], dtype: str, mode: str, data: st.DataObject, seed: int) -> None:
    most = {"reflect": -1, "symmetric": 0}
    pads = tuple(
        data.draw(st.integers(0, min(3, max(0, size + most.get(mode, 3))))) for size in shape for _ in range(2)
    )
    if mode in most:  # each mirrored row is a copy of its own, and the kernel takes 512
        assume(prod(1 + before + after for before, after in zip(pads[::2], pads[1::2])) <= 512)
    value = data.draw(st.integers(0, 127)) if dtype != "f32" else data.draw(st.floats(-9, 9, width=32))
    check_op(lambda net, x: net.b.pad(x, pads=pads, mode=mode, value=float(value)), shape, dtype=dtype, seed=seed)


def test_mirrors_of_more_copies_than_the_kernel_takes_are_mirrored_axis_by_axis() -> None:
    """735 copies at once: what users compile stays on the chip."""
    b = Builder.new("net")
    x = b.input("x", TensorType((2, 3, 3, 3), "f32"))
    module = b.outputs([b.pad(x, pads=(0, 2, 3, 3, 3, 3, 3, 1), mode="symmetric")], ["y"])
    result = bmcompiler.compile_module(module, target="bm1684", quantize="f32", check="always")
    assert {row.where for row in result.rows} <= {"bm1684", "view"}
    given = np.arange(54, dtype=np.float32).reshape(2, 3, 3, 3)
    wanted = np.pad(given, ((0, 2), (3, 3), (3, 3), (3, 1)), mode="symmetric")
    np.testing.assert_array_equal(result.run({"x": given})["y"], wanted)


def test_constant_pads_are_filled_and_the_rest_copied() -> None:
    module = module_of(lambda net, x: net.b.pad(x, pads=(0, 0, 1, 1, 2, 2, 0, 0), value=-np.inf), (2, 3, 8, 9))
    assert commands(check(module)) == [5]


@property_test
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=4), DTYPES, SEED)
def test_tile(axes: list[tuple[int, int]], dtype: str, seed: int) -> None:
    shape, reps = zip(*axes)
    check_op(lambda net, x: net.b.tile(x, reps=reps), shape, dtype=dtype, seed=seed)


@pytest.mark.parametrize(("shape", "reps"), [((1, 64, 4, 4), (1, 3, 1, 1)), ((2, 3, 4), (1, 5, 1)), ((7,), (100000,))])
def test_a_repeated_axis_takes_few_commands(shape: tuple[int, ...], reps: tuple[int, ...]) -> None:
    module = module_of(lambda net, x: net.b.tile(x, reps=reps), shape, dtype="u8")
    assert commands(check(module)) <= [2]


@property_test
@given(SHAPES.filter(lambda s: len(s) > 1), DTYPES, st.booleans(), st.integers(-4, 4), SEED)
def test_trilu(shape: tuple[int, ...], dtype: str, upper: bool, k: int, seed: int) -> None:
    check_op(lambda net, x: net.b.trilu(x, upper=upper, k=k), shape, dtype=dtype, seed=seed)


def test_bit_cast() -> None:
    check_op(lambda net, x: net.b.bit_cast(x, dtype="i32"), (2, 3, 5))


WIDE = {"bool": (np.random.default_rng(0).random((3, 4, 5)) < 0.5)} | {
    name: np.random.default_rng(0).integers(-(2**40), 2**40, (3, 4, 5)).astype(name) for name in ("int64", "float64")
}


@pytest.mark.parametrize("name", list(WIDE))
def test_wide_elements_and_truth_values_are_words_and_bytes(name: str) -> None:
    """The container cannot hold such inputs, so they are constants next to what the device makes."""
    dtype = {"bool": "bool", "int64": "i64", "float64": "f64"}[name]
    b = Builder.new("net")
    x = b.input("x", TensorType((3, 4, 5), "u8" if name == "bool" else "f32"))
    made = b.cast(x, dtype=dtype)
    joined = b.concat(b.permute(made, order=(2, 1, 0)), b.weight(WIDE[name].T.copy(), "w"), axis=1)
    padded = b.pad(joined, pads=(0, 0, 1, 2, 0, 1), value=1.0)
    turned = b.slice(padded, starts=(4, 0, 0), ends=(-1, 11, 4), steps=(-2, 1, 1))
    module = b.outputs([b.cast(turned, dtype="f32")], ["y0"])
    assert [unsupported_reason(TARGET, value.op) for value in (joined, padded, turned)] == [None] * 3
    check(module, device=False)


def test_bits_of_floats_are_kept() -> None:
    bits = np.array([1, 0x80000001, 0x7F800001, 0xFFC12345, 0x80000000, 0x007FFFFF], np.uint32)
    b = Builder.new("net")
    x = b.input("x", TensorType((6,), "f32"))
    module = b.outputs([b.tile(b.slice(x, starts=(5,), ends=(-1,), steps=(-1,)), reps=(2,))], ["y"])
    inputs = {"x": bits.view(np.float32)}
    compiled = TARGET.compile([module], 2)
    for found in (on_device(compiled, module, inputs), run_module(module, inputs, target=TARGET)):
        np.testing.assert_array_equal(found["y"].view(np.uint32), np.tile(bits[::-1], 2))


def test_too_many_copies_stay_on_the_cpu() -> None:
    module = module_of(lambda net, x: net.b.slice(x, starts=(599,), ends=(-1,), steps=(-1,)), (600,))
    (row,) = TARGET.compile([module], 2).rows
    assert (row.where, row.reason) == ("cpu", "The result must take at most 512 strided copies")
