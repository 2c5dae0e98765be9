"""Batches image by image: which of them, and with the same bits on the chip."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thresholds import table_of

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.codegen.groups.images import images_of
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ir.keys import IMAGE, PLACE_CPU
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.split_images import SplitImages
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target


def net(images: int = 4, size: int = 96, then: Any = None) -> Module:
    """A skip over layers that fit local memory with it for one image, not for four."""
    rng, b = np.random.default_rng(3), Builder.new("net")

    def conv(x: Any, channels: int) -> Any:
        weight = rng.standard_normal((channels, x.shape[1], 1, 1)).astype(np.float32)
        return b.relu(b.conv(x, b.weight(weight, "w")))

    x = b.input("x", TensorType((images, 3, size, size), "f32"))
    skip = conv(x, 64)
    small = conv(conv(b.max_pool(skip, kernel=(2, 2), strides=(2, 2)), 64), 64)
    joined = b.concat(skip, b.upsample(small, scale=(2, 2)), axis=1)
    made = conv(joined, 64)
    return b.outputs([made if then is None else then(b, made)], ["y"])


def _product(b: Builder, y: Any) -> Any:
    """A row of each image."""
    rows = b.reduce(y, method="max", axes=(2, 3), keepdims=False)
    return b.matmul(rows, b.weight(np.ones((64, 16), np.float32), "w"))


def test_a_product_of_all_images_is_cut_where_sums_keep_their_order() -> None:
    """Rows of 16 images are enough for a kernel that adds in another order than that of few rows."""
    for images in (4, 16):
        assert SplitImages().run(net(images, then=_product), PassContext(target=TARGET)).modified == (images == 4)


def test_each_part_of_the_batch_has_ops_of_its_own_and_the_bits_stay() -> None:
    module = net()
    x = {"x": np.random.default_rng(1).standard_normal((4, 3, 96, 96), np.float32)}
    before, ops = run_module(module, x, target=TARGET)["y"], len(module.main.ops)
    assert SplitImages().run(module, PassContext(target=TARGET)).modified
    verify_module(module)
    convs = [op for op in module.main.ops if op.short_name == "conv"]
    assert len(convs) == 8 and len({op.operands[1] for op in convs}) == 4, "weights are shared"
    assert len(module.main.ops) < 2 * ops + 4
    np.testing.assert_array_equal(run_module(module, x, target=TARGET)["y"].view(np.uint32), before.view(np.uint32))


def _on_host(b: Builder, y: Any) -> Any:
    """A function that the host computes, and a layer behind it."""
    made = b.sqrt(y)
    made.op.attributes[PLACE_CPU] = "asked for"
    return b.conv(made, b.weight(np.random.default_rng(4).standard_normal((64, 64, 1, 1)).astype(np.float32), "last"))


def test_what_the_host_computes_between_parts_it_computes_of_all_images_at_once() -> None:
    module = net(then=_on_host)
    x = {"x": np.random.default_rng(1).standard_normal((4, 3, 96, 96), np.float32)}
    before = run_module(module, x, target=TARGET)["y"]
    assert SplitImages().run(module, PassContext(target=TARGET)).modified
    verify_module(module)
    (host,) = (op for op in module.main.ops if PLACE_CPU in op.attributes)
    assert host.operands[0].shape == (4, 64, 96, 96) and IMAGE not in host.attributes
    assert [op.attributes[IMAGE] for op in module.main.ops if op.short_name == "conv"] == [0] * 4 + [1] * 4 + [0, 1]
    np.testing.assert_array_equal(run_module(module, x, target=TARGET)["y"].view(np.uint32), before.view(np.uint32))


@pytest.mark.parametrize("alike", [True, False])
def test_a_class_token_of_each_image_is_made_for_parts_where_all_are_the_same(alike: bool) -> None:
    tokens = np.random.default_rng(5).standard_normal((1 if alike else 4, 64, 96, 1)).astype(np.float32)
    token = np.ascontiguousarray(np.broadcast_to(tokens, (4, 64, 96, 1)))
    module = net(then=lambda b, y: b.concat(b.weight(token, "token"), y, axis=3))
    x = {"x": np.random.default_rng(1).standard_normal((4, 3, 96, 96), np.float32)}
    before, keys = run_module(module, x, target=TARGET)["y"], set(module.weights)
    assert SplitImages().run(module, PassContext(target=TARGET)).modified == alike
    verify_module(module)
    assert len(set(module.weights) - keys) == alike, "tokens that no part reads are not kept"
    np.testing.assert_array_equal(run_module(module, x, target=TARGET)["y"].view(np.uint32), before.view(np.uint32))


def test_groups_are_those_of_one_part_for_each() -> None:
    module = net()
    SplitImages().run(module, PassContext(target=TARGET))
    ops = [op for op in module.main.ops if IMAGE in op.attributes]
    each = len(ops) // 2
    assert [op.attributes[IMAGE] for op in ops] == [part for part in range(2) for _ in range(each)]
    found = [([ops.index(op) for op in members], slices) for members, slices in TARGET.layer_groups(module.main, 2)]
    first = [(places, slices) for places, slices in found if places[0] < each]
    assert first and found == [([at + n * each for at in places], slices) for n in range(2) for places, slices in first]


def test_images_that_are_not_alike_are_grouped_as_one_run() -> None:
    module = net()
    SplitImages().run(module, PassContext(target=TARGET))
    ops = [op for op in module.main.ops if op.operands]
    assert len(images_of(ops)) == 2
    assert not images_of(ops[:-3])
    assert not images_of([op for op in ops if op.attributes.get(IMAGE) == 0])


@pytest.mark.parametrize(
    "module",
    [
        net(images=1),
        net(size=32),  # all fits local memory
        net(then=lambda b, y: b.reduce(y, method="sum", axes=(0,))),  # images meet
        net(then=lambda b, y: b.tile(y, reps=(2, 1, 1, 1))),  # all images come once before one comes again
        net(then=lambda b, y: b.trilu(b.reduce(y, method="max", axes=(2, 3), keepdims=False))),  # a row of its own each
    ],
)
def test_what_gains_nothing_or_joins_images_stays(module: Module) -> None:
    assert not SplitImages().run(module, PassContext(target=TARGET)).modified


def test_targets_that_plan_nothing_keep_the_batch() -> None:
    for target in (None, find_target("dv700")):
        assert not SplitImages().run(net(), PassContext(target=target)).modified


def test_on_the_bm1684x_four_images_take_four_times_one_with_the_same_bits() -> None:
    """Together they did not fit local memory and took 13 times as long."""
    four, one = (bmcompiler.compile_module(net(n, 64), target="bm1684x", quantize="f32") for n in (4, 1))
    assert any(IMAGE in op.attributes for op in four.module.walk())
    taken = [timing.cycles for each in (four, one) if (timing := estimate(each)) is not None]
    assert len(taken) == 2 and taken[0] < 4 * 1.05 * taken[1]
    x = {"x": np.random.default_rng(1).standard_normal((4, 3, 64, 64), np.float32)}
    plain = bmcompiler.compile_module(net(4, 64), target="bm1684x", quantize="f32", opt=0, check="never").module
    found, wanted = (run_module(module, x, target=find_target("bm1684x"))["y"] for module in (four.module, plain))
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize(
    "chip, precision, images, size", [("bm1684", "f32", 4, 96), ("bm1684x", "f32", 4, 64), ("bm1684x", "f16", 8, 64)]
)
def test_programs_in_parts_are_proven_on_the_chip(chip: str, precision: str, images: int, size: int) -> None:
    result = bmcompiler.compile_module(net(images, size), target=chip, quantize=precision, check="always")
    assert any(IMAGE in op.attributes for op in result.module.walk()), "not in parts: this proves nothing"
    assert result.checked is not None and result.checked.samples == 1


def few_channels(images: int) -> Module:
    """Layers on maps that are large for their channels."""
    rng, b = np.random.default_rng(3), Builder.new("net")
    x = b.input("x", TensorType((images, 3, 120, 80), "f32"))
    for channels in (16, 16, 32):
        weight = rng.standard_normal((channels, x.shape[1], 3, 3)).astype(np.float32)
        x = b.relu(b.conv(x, b.weight(weight, "w"), pads=(1, 1, 1, 1)))
    return b.outputs([b.reduce(x, method="mean", axes=(2, 3))], ["y"])


def test_images_that_leave_places_in_words_of_bytes_are_computed_one_by_one_as_bands(tmp_path: Path) -> None:
    """Two took 2.8 times as long as one, whose rows fill the words, and as long as four."""
    samples = {"x": np.random.default_rng(1).standard_normal((2, 3, 120, 80), np.float32)}
    options: Any = {"target": "bm1684", "quantize": "int8", "table": table_of(few_channels(2), samples, tmp_path)}
    one = bmcompiler.compile_module(few_channels(1), **options, check="never")
    two = bmcompiler.compile_module(few_channels(2), **options, check="always")
    taken = [timing.cycles for each in (one, two) if (timing := estimate(each)) is not None]
    assert taken[1] <= 2.1 * taken[0], taken
    assert [op.operands[0].shape[0] for op in two.module.walk() if op.short_name == "conv"] == [4] * 6
    assert two.checked is not None


_MODES = [
    ("bm1684", "f32"),
    ("bm1684", "int8"),
    ("bm1684x", "f32"),
    ("bm1684x", "f16"),
    ("bm1684x", "int8"),
    ("bm1880", "int8"),
]
_IMAGES = (2, 4, 8)
"""Two fit local memory, eight do not."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thresholds of the net, for any number of images."""
    samples = np.random.default_rng(1).standard_normal((8, 3, 64, 64), np.float32)
    return table_of(net(8, 64), {"x": samples}, tmp_path_factory.mktemp("table"))


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("chip, precision", _MODES)
def test_twice_the_images_take_twice_the_time(chip: str, precision: str, level: int, table: Path) -> None:
    given, taken = table if precision == "int8" else None, []
    for images in _IMAGES:
        result = bmcompiler.compile_module(
            net(images, 64), target=chip, quantize=precision, table=given, opt=level, check="never"
        )
        timing = estimate(result)
        assert timing is not None
        taken.append(timing.cycles)
    # 2.32 where four images became quicker by a quarter on the BM1684 and eight, which do not fit, by little
    assert all(twice <= 2.35 * once for once, twice in pairwise(taken)), taken
