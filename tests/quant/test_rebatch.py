"""The same net for another batch: what may stand in it, and what is found by a trial alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bmcompiler.interpreter import run_function
from bmcompiler.ir import Module, Quant, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.quant.other_batch import _noise, keeps_samples_apart
from bmcompiler.quant.rebatch import rebatch

Made = Callable[[Builder, Value], Value]


def net(make: Made, images: int = 4, dtype: str = "f32") -> Module:
    """A net of one op or a few."""
    b = Builder.new("net")
    quant = None if dtype[0] == "f" or dtype == "bf16" else Quant(1 / 64)
    return b.outputs([make(b, b.input("x", TensorType((images, 6, 4, 4), dtype, quant)))], ["y"])


def _heads(b: Builder, x: Value) -> Value:
    """Heads beside the images, and back."""
    folded = b.relu(b.reshape(x, shape=(x.shape[0] * 3, 2, 16)))
    return b.reshape(folded, shape=x.shape)


def _larger(b: Builder, x: Value) -> Value:
    return b.resize(x, sizes=(x.shape[0], 6, 8, 8), scales=(1.0, 1.0, 2.0, 2.0), mode="linear")


def _rows(b: Builder, x: Value) -> Value:
    """A part of what lies in folded images."""
    folded = b.reshape(x, shape=(x.shape[0] * 6, 16))
    return b.slice(folded, starts=(0, 2), ends=(x.shape[0] * 6, 9), steps=(1, 1))


@pytest.mark.parametrize("make", [_heads, _larger, _rows])
def test_a_part_of_the_batch_gives_its_part_of_the_result(make: Made) -> None:
    module = net(make)
    part = rebatch(module.main, 2, folded=True)
    assert part is not None
    x = np.random.default_rng(1).standard_normal((4, 6, 4, 4)).astype(np.float32)
    whole = run_function(module, module.main, {"x": x})["y"]
    halves = [run_function(module, part, {"x": half})["y"] for half in (x[:2], x[2:])]
    np.testing.assert_array_equal(np.concatenate(halves), whole)


@pytest.mark.parametrize("make", [_heads, _rows])
def test_folded_images_are_asked_for(make: Made) -> None:
    assert rebatch(net(make).main, 2) is None


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
def test_images_that_meet_are_found_in_every_type(dtype: str) -> None:
    """Images in pairs beside each other: shapes alone do not show it."""

    def meeting(b: Builder, x: Value) -> Value:
        beside = b.reshape(x, shape=(x.shape[0], 96))
        return b.reshape(b.tile(beside, reps=(2, 1)), shape=(2 * x.shape[0], 96))

    for make, apart in ((_heads, True), (meeting, False)):
        module = net(make, dtype=dtype)
        one, two = (rebatch(module.main, images, folded=True) for images in (1, 2))
        assert one is not None and two is not None
        assert keeps_samples_apart(module, two, one) == apart


def test_times_on_the_first_axis_are_no_images() -> None:
    """Lengths of single steps reverse nothing: noise does not show it."""
    b = Builder.new("net")
    x, lengths = b.input("x", TensorType((4, 4), "f32")), b.input("lengths", TensorType((4,), "i32"))
    module = b.outputs([b.reverse_sequence(x, lengths, time_axis=0, batch_axis=1)], ["y"])
    assert rebatch(module.main, 1) is None


def test_an_index_of_images_does_not_keep_them_apart() -> None:
    b = Builder.new("net")
    x, places = b.input("x", TensorType((4, 6), "f32")), b.input("places", TensorType((4, 1), "i32"))
    module = b.outputs([b.gather_nd(x, places)], ["y"])
    one, two = (rebatch(module.main, images) for images in (1, 2))
    assert one is None or two is None or not keeps_samples_apart(module, two, one)


def test_a_triangle_over_samples_does_not_keep_them_apart() -> None:
    for shape, apart in (((4, 5), False), ((4, 5, 5), True)):
        b = Builder.new("net")
        module = b.outputs([b.trilu(b.input("x", TensorType(shape, "i32")))], ["y"])
        assert (rebatch(module.main, 1) is not None) == apart


def test_integers_are_drawn_that_differ() -> None:
    """Of single zeros and ones every other pair is alike."""
    b = Builder.new("net")
    x = b.input("x", TensorType((4, 1), "i32"))
    beside = b.tile(b.reshape(x, shape=(1, 4)), reps=(2, 1))
    module = b.outputs([b.reshape(beside, shape=(8, 1))], ["y"])
    one, two = (rebatch(module.main, images, folded=True) for images in (1, 2))
    assert one is None or two is None or not keeps_samples_apart(module, two, one)
    seen = [np.unique(list(_noise(module.main, seed, 100).values())).size for seed in range(3)]
    assert min(seen) == 4
