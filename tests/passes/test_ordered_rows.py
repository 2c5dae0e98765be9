"""Rows of maps in another order: what becomes one gather, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

SIDE, WINDOW, WIDTH = 28, 7, 128


def rolled(b: Builder, x: Value, axis: int, by: int) -> Value:
    """A map [1, side, side, c] moved around along an axis."""
    ends = [1, SIDE, SIDE, WIDTH]
    low, high = [0, 0, 0, 0], list(ends)
    low[axis] = high[axis] = by
    steps = [1] * 4
    parts = [b.slice(x, starts=low, ends=ends, steps=steps), b.slice(x, starts=[0] * 4, ends=high, steps=steps)]
    return b.concat(*parts, axis=axis)


def windows(b: Builder, x: Value) -> Value:
    """[1, side, side, c] -> [windows * places, c]."""
    count = SIDE // WINDOW
    cut = b.reshape(x, shape=[1, count, WINDOW, count, WINDOW, WIDTH])
    return b.reshape(b.permute(cut, order=[0, 1, 3, 2, 4, 5]), shape=[SIDE * SIDE, WIDTH])


def merged(b: Builder, x: Value) -> Value:
    """Four neighbours become the channels of one place."""
    ends = [1, SIDE, SIDE, WIDTH]
    parts = [
        b.slice(x, starts=[0, row, column, 0], ends=ends, steps=[1, 2, 2, 1]) for column in (0, 1) for row in (0, 1)
    ]
    return b.reshape(b.concat(*parts, axis=3), shape=[SIDE * SIDE // 4, 4 * WIDTH])


def net(kind: str, dtype: str = "f32") -> Module:
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((1, SIDE, SIDE, WIDTH), dtype)))
    if kind == "turned":
        turned = b.slice(x, starts=[0, SIDE - 1, 0, 0], ends=[1, -1, SIDE, WIDTH], steps=[1, -1, 1, 1])
        made = windows(b, turned)
    elif kind == "shifted":
        made = windows(b, rolled(b, rolled(b, x, 1, 3), 2, 3))
    else:
        made = windows(b, x) if kind == "windows" else merged(b, x)
    return b.outputs([b.relu(b.cast(made, dtype="f16") if dtype == "f32" else made)], ["y"])


def ops(module: Module, target: str = "bm1684x") -> list[str]:
    """What is left by the pass, which keeps every bit of the outputs."""
    given = {"x": np.random.default_rng(0).standard_normal((1, SIDE, SIDE, WIDTH))}
    inputs = {name: given[name].astype(module.main.arguments[0].type.numpy) for name in module.main.input_names}
    before = run_module(module, inputs)
    context = PassContext(target=find_target(target))
    run_pipeline(module, "ordered-rows", context)
    verify_module(module)
    for name, after in run_module(module, inputs).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), after.view(np.uint8))
    assert not run_pipeline(module, "ordered-rows", context)
    return [op.short_name for op in module.main.ops[:-1] if op.short_name not in ("reshape", "weight")]


@pytest.mark.parametrize("kind", ["windows", "shifted", "merged", "turned"])
def test_copies_become_a_gather_behind_the_cast(kind: str) -> None:
    assert ops(net(kind)) == ["relu", "cast", "gather", "relu"]
    assert ops(net(kind, "f16")) == ["relu", "gather", "relu"]


def test_neighbours_lie_side_by_side() -> None:
    module = net("merged", "f16")
    run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")))
    (gather,) = (op for op in module.main.ops if op.short_name == "gather")
    assert gather.results[0].shape == (SIDE * SIDE // 4, 4, WIDTH)


def test_what_others_read_stays() -> None:
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((1, SIDE, SIDE, WIDTH))))
    once = rolled(b, x, 1, 3)
    module = b.outputs([b.relu(windows(b, rolled(b, once, 2, 3))), b.relu(once)], ["y", "z"])
    assert "slice" in ops(module)


def test_permutes_that_stay_in_local_memory_stay() -> None:
    b = Builder.new("net")
    heads = b.reshape(b.relu(b.input("x", TensorType((1, SIDE, SIDE, WIDTH), "f16"))), shape=[16, 49, 4, 32])
    assert ops(b.outputs([b.relu(b.permute(heads, order=[0, 2, 1, 3]))], ["y"])) == ["relu", "permute", "relu"]


def test_elements_of_a_row_are_not_parted() -> None:
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((1, SIDE, SIDE, WIDTH))))
    half = b.slice(x, starts=[0] * 4, ends=[1, SIDE, SIDE, WIDTH // 2], steps=[1] * 4)
    assert "gather" not in ops(b.outputs([b.relu(half)], ["y"]))


def test_other_targets_keep_their_copies() -> None:
    assert "gather" not in ops(net("shifted"), "bm1684")


def test_norms_and_sums_of_maps_are_those_of_rows() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, SIDE, SIDE, WIDTH)))
    gain, shift = (b.weight(np.linspace(0.5, 2, WIDTH, dtype=np.float32), name) for name in ("gain", "shift"))
    rows = windows(b, b.layer_norm(x, gain, shift, axis=3))
    total = b.add(x, b.reshape(b.relu(rows), shape=[1, SIDE, SIDE, WIDTH]))
    module = b.outputs([total], ["y"])
    assert ops(module) == ["layer_norm", "gather", "relu", "add"]
    found = {op.short_name: op.results[0].shape for op in module.main.ops[:-1]}
    assert found["layer_norm"] == found["add"] == (SIDE * SIDE, WIDTH)


def test_sums_of_other_maps_stay_maps() -> None:
    b = Builder.new("net")
    x, y = (b.input(name, TensorType((1, SIDE, SIDE, WIDTH))) for name in "xy")
    module = b.outputs([b.reshape(b.add(x, y), shape=[SIDE, SIDE * WIDTH])], ["z"])
    assert not run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")))


def test_sums_that_more_maps_than_rows_meet_stay_maps() -> None:
    b = Builder.new("net")
    x, rows = b.input("x", TensorType((1, SIDE, SIDE, WIDTH))), b.input("rows", TensorType((SIDE * SIDE, WIDTH)))
    total = b.add(b.relu(x), b.reshape(b.relu(rows), shape=[1, SIDE, SIDE, WIDTH]))
    flat = b.reshape(total, shape=[SIDE * SIDE, WIDTH])
    module = b.outputs([b.relu(total), b.relu(flat)], ["y", "z"])
    assert not run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")))


@pytest.mark.parametrize("columns, changed", [(1, False), (4, True)])
def test_casts_of_rows_that_lie_in_lanes_already_stay(columns: int, changed: bool) -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((SIDE * columns, WIDTH), "f16"))
    wide = b.cast(b.reshape(b.relu(x), shape=[1, SIDE, columns, WIDTH]), dtype="f32")
    module = b.outputs([wide], ["y"])
    assert bool(run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")))) == changed


@pytest.mark.parametrize("around, rank", [("maps", 4), ("ends", 2)])
def test_norms_between_maps_stay_maps(around: str, rank: int) -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, SIDE, SIDE, WIDTH)))
    gain = b.weight(np.linspace(0.5, 2, WIDTH, dtype=np.float32), "gain")
    made = b.layer_norm(b.relu(x) if around == "maps" else x, gain, axis=3)
    module = b.outputs([b.relu(made) if around == "maps" else made], ["y"])
    run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")))
    (norm,) = (op for op in module.main.ops if op.short_name == "layer_norm")
    assert norm.results[0].type.rank == rank


def test_few_rows_stay() -> None:
    b = Builder.new("net")
    cut = b.reshape(b.relu(b.input("x", TensorType((1, 8, 8, WIDTH)))), shape=[1, 2, 4, 2, 4, WIDTH])
    moved = b.permute(cut, order=[0, 1, 3, 2, 4, 5])
    module = b.outputs([b.relu(moved)], ["y"])
    assert not run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")))


def test_rows_of_nothing_stay() -> None:
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((1, SIDE, SIDE, WIDTH))))
    none = b.slice(x, starts=[0] * 4, ends=[1, 0, SIDE, WIDTH], steps=[1] * 4)
    assert ops(b.outputs([b.permute(none, order=[0, 2, 1, 3])], ["y"]))[-1] == "permute"


def test_a_scalar_is_no_row() -> None:
    """Totals of a loop, one after the other: scalars that become axes."""
    b = Builder.new("net")
    scalars = [b.relu(b.input(name, TensorType((), "f32"))) for name in "xy"]
    once = b.concat(*[b.reshape(scalars[0], shape=[1])] * 2, axis=0)
    both = b.concat(*(b.reshape(each, shape=[1]) for each in scalars), axis=0)
    module = b.outputs([once, both], ["once", "both"])
    given = {"x": np.float32(2).reshape(()), "y": np.float32(3).reshape(())}
    before = run_module(module, given)
    run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")), verify_each=True)
    after = run_module(module, given)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_map_that_is_moved_around_often_takes_no_longer_for_each_time() -> None:
    """Each time two slices read it: asked anew for each, forty times would never end."""
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((1, SIDE, SIDE, WIDTH), "f32")))
    for turn in range(40):
        x = rolled(b, x, 1 + turn % 2, 1)
    module = b.outputs([b.relu(x)], ["y"])
    run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")), verify_each=True)


def test_short_rows_are_moved_by_other_passes() -> None:
    """A gather of rows of 8 bytes takes as long as one of 256 each: patches of 2 x 2 took 83 times their bound."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1760, 36, 2, 2), "f32"))
    module = b.outputs([b.permute(x, order=[0, 2, 1, 3])], ["y"])
    run_pipeline(module, "ordered-rows", PassContext(target=find_target("bm1684x")), verify_each=True)
    assert not any(op.short_name == "gather" for op in module.walk())


def quantized(b: Builder, x: Value, scale: float = 0.0625) -> Value:
    return b.quantize(x, rounding="away", out=x.type.with_dtype("i8", Quant(scale)))


@pytest.mark.parametrize("second", [0.0625, 0.125])
def test_parts_that_are_quantized_alike_are_quantized_before_they_are_parts(second: float) -> None:
    """Bytes of parts hid that these are rows of one map: a shift of quantized rows took 40,000 cycles to be cut."""
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((1, SIDE, SIDE, WIDTH))))
    whole, steps = [1, SIDE, SIDE, WIDTH], [1] * 4
    back = b.slice(x, starts=[0, 3, 0, 0], ends=whole, steps=steps)
    front = b.slice(x, starts=[0] * 4, ends=[1, 3, SIDE, WIDTH], steps=steps)
    made = b.concat(quantized(b, back), quantized(b, front, second), axis=1)
    found = ops(b.outputs([windows(b, made)], ["y"]))
    assert (found[:2] == ["relu", "quantize"]) == (second == 0.0625)
    assert found.count("quantize") == (1 if second == 0.0625 else 2)


def test_norms_in_front_of_bytes_are_those_of_rows() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, SIDE, SIDE, WIDTH)))
    gain = b.weight(np.linspace(0.5, 2, WIDTH, dtype=np.float32), "gain")
    made = quantized(b, b.layer_norm(x, gain, axis=3))
    module = b.outputs([b.reshape(made, shape=[SIDE * SIDE, WIDTH])], ["y"])
    ops(module)
    found = {op.short_name: op.results[0].shape for op in module.main.ops[:-1]}
    assert found["layer_norm"] == found["quantize"] == (SIDE * SIDE, WIDTH)
