"""Permutes that part elements from their neighbours become several that move runs; values only move."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.long_runs import merged, ways_to
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.runtime import Session
from bmcompiler.target import find_target


def _permuted(shape: tuple[int, ...], order: tuple[int, ...]) -> Module:
    b = Builder.new("net")
    return b.outputs([b.permute(b.input("x", TensorType(shape)), order=order)], ["y"])


def _names(module: Module) -> list[str]:
    return [op.short_name for op in module.main.ops]


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize(
    "shape, order",
    [
        ((3, 48, 64), (2, 1, 0)),
        ((1, 16, 8, 24, 24), (0, 2, 4, 3, 1)),
        ((64, 40, 2, 40, 2), (0, 2, 4, 1, 3)),
        ((1, 3, 40, 4, 40, 4), (0, 3, 5, 1, 2, 4)),
    ],
)
def test_single_elements_move_in_steps_of_runs(shape: tuple[int, ...], order: tuple[int, ...], chip: str) -> None:
    module = _permuted(shape, order)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (before,) = [op for op in module.main.ops if op.short_name == "permute"]
    target = find_target(chip)
    once = target.moving_cycles(before)
    assert run_pipeline(module, "long-runs", PassContext(target=target))
    verify_module(module)
    steps = [op for op in module.main.ops if op.short_name == "permute"]
    assert len(steps) in (2, 3) and once is not None
    assert 1.5 * sum(target.moving_cycles(op) or once for op in steps) < once
    np.testing.assert_array_equal(run_module(module, {"x": x})["y"], x.transpose(order))
    assert not run_pipeline(module, "long-runs", PassContext(target=target)), _names(module)


@pytest.mark.parametrize(
    "shape, order",
    [
        ((8, 197, 12, 64), (0, 2, 1, 3)),  # runs of 64
        ((64, 80, 80), (0, 2, 1)),  # matrices
        ((1, 64, 1, 80), (3, 0, 2, 1)),  # matrices, but for axes of one element
        ((2, 3, 4), (2, 1, 0)),  # small
    ],
)
def test_others_stay(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    assert not run_pipeline(_permuted(shape, order), "long-runs", PassContext(target=find_target("bm1684x")))


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_patches_that_become_sequences_of_pixels_are_permuted_once(chip: str) -> None:
    """MobileViT: a map in patches of 2 x 2, and then a sequence for each of their pixels."""
    b, side, width = Builder.new("net"), 16, 144
    x = b.input("x", TensorType((1, width, 2 * side, 2 * side)))
    rows = b.reshape(x, shape=[width * side, 2, side, 2])
    patches = b.reshape(b.permute(rows, order=[0, 2, 1, 3]), shape=[1, width, side * side, 4])
    module = b.outputs([b.permute(patches, order=[0, 3, 2, 1])], ["y"])
    target = find_target(chip)
    before = [target.moving_cycles(op) or 0 for op in module.main.ops if op.short_name == "permute"]
    array = np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
    wanted = run_module(module, {"x": array})["y"]
    assert run_pipeline(module, "long-runs", PassContext(target=target))
    verify_module(module)
    after = [target.moving_cycles(op) or 0 for op in module.main.ops if op.short_name == "permute"]
    assert len(after) == 2 and 2 * sum(after) < sum(before)
    np.testing.assert_array_equal(run_module(module, {"x": array})["y"], wanted)


def test_a_target_that_does_not_tell_keeps_them() -> None:
    assert not run_pipeline(_permuted((3, 48, 64), (2, 1, 0)), "long-runs", PassContext(target=find_target("dv700")))


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("kind, behind", [("gather", 1), ("gather", 2), ("concat", 1)])
def test_gathered_and_joined_columns_are_rows_meanwhile(kind: str, behind: int, chip: str) -> None:
    b, rng = Builder.new("net"), np.random.default_rng(0)
    shape, other = (2, 900, 30, behind), (2, 9000, 1, behind)
    x, y = b.input("x", TensorType(shape)), b.input("y", TensorType(other))
    indices = rng.integers(0, 30, 50).astype(np.int32)
    made = b.gather(x, b.weight(indices, "i"), axis=2) if kind == "gather" else b.concat(y, y, y, axis=2)
    module = b.outputs([made, b.relu(x), b.relu(y)], ["z", "x2", "y2"])
    assert run_pipeline(module, "long-runs", PassContext(target=find_target(chip)))
    verify_module(module)
    assert [(op.short_name, op.axis) for op in module.main.ops if hasattr(op, "axis")] == [(kind, 0)]
    arrays = {"x": rng.standard_normal(shape).astype(np.float32), "y": rng.standard_normal(other).astype(np.float32)}
    wanted = arrays["x"][:, :, indices] if kind == "gather" else np.concatenate([arrays["y"]] * 3, axis=2)
    np.testing.assert_array_equal(run_module(module, arrays)["z"], wanted)
    result = bmcompiler.compile_module(module, target=chip, quantize="f32")
    np.testing.assert_array_equal(Session(result.model).run(arrays)["z"], wanted)


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_columns_are_taken_from_one_permute(chip: str) -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 8400, 4)))
    columns = [b.slice(x, starts=(0, 0, at), ends=(1, 8400, at + 1), steps=(1, 1, 1)) for at in range(4)]
    module = b.outputs([b.sigmoid(column) for column in columns], list("abcd"))
    array = np.random.default_rng(0).standard_normal((1, 8400, 4)).astype(np.float32)
    wanted = run_module(module, {"x": array})
    assert run_pipeline(module, "long-runs,common-subexpressions", PassContext(target=find_target(chip)))
    verify_module(module)
    assert _names(module).count("permute") == 1
    assert all((run_module(module, {"x": array})[name] == wanted[name]).all() for name in "abcd")


@pytest.mark.parametrize("images", [1, 2, 4])
@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_a_permute_for_one_slice_alone_is_shared_by_none(chip: str, images: int) -> None:
    """It counts in full: every second column of a map is picked where the map lies."""
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((images, 64, 80, 80))))
    half = b.slice(x, starts=(0, 0, 0, 0), ends=(images, 64, 80, 80), steps=(1, 1, 1, 2))
    module = b.outputs([half], ["y"])
    assert not run_pipeline(module, "long-runs", PassContext(target=find_target(chip)))


@pytest.mark.parametrize("count", [3, 4, 5])
def test_every_way_ends_at_the_order(count: int) -> None:
    x = np.arange(np.prod(range(2, 2 + count))).reshape(range(2, 2 + count))
    for order in permutations(range(count)):
        for way in ways_to(order):
            made = x
            for step in way:
                made = made.transpose(step)
            assert made.shape == x.transpose(order).shape and (made == x.transpose(order)).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.data())
def test_merged_axes_move_the_same_elements(sizes: list[int], data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(len(sizes)))))
    x = np.arange(np.prod(sizes)).reshape(sizes)
    shape, fewer = merged(tuple(sizes), order)
    assert (x.reshape(shape).transpose(fewer).ravel() == x.transpose(order).ravel()).all()


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_repeated_axes_are_repeated_one_by_one(chip: str) -> None:
    """With both at once a command moved single elements."""
    b, x = Builder.new("net"), np.random.default_rng(0).standard_normal((1, 44, 41, 1)).astype(np.float32)
    module = b.outputs([b.tile(b.input("x", TensorType(x.shape)), reps=(7, 1, 1, 54))], ["y"])
    (whole,), target = [op for op in module.main.ops if op.short_name == "tile"], find_target(chip)
    once = target.moving_cycles(whole)
    assert run_pipeline(module, "long-runs", PassContext(target=target)) and once is not None
    steps = [op for op in module.main.ops if op.short_name == "tile"]
    assert len(steps) == 2 and 2 * sum(target.moving_cycles(op) or once for op in steps) < once
    np.testing.assert_array_equal(run_module(module, {"x": x})["y"], np.tile(x, (7, 1, 1, 54)))


@pytest.mark.parametrize("computed", [False, True])
def test_joined_columns_stay_where_ops_leave_them_in_local_memory(computed: bool) -> None:
    """Columns that were cut of another value lie in global memory: joining them there moves single elements."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 78, 123, 2)))
    left, right = (b.slice(x, starts=(0, 0, 0, i), ends=(1, 78, 123, i + 1), steps=(1,) * 4) for i in (0, 1))
    module = b.outputs([b.concat(b.sigmoid(right) if computed else right, left, axis=3)], ["y"])
    assert run_pipeline(module, "long-runs", PassContext(target=find_target("bm1684x")))
    assert [op.axis for op in module.main.ops if op.short_name == "concat"] == [3 if computed else 0]
