"""Calibration of nets: which values are seen, in whatever batches, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from bmcompiler.errors import CalibrationError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.quant.calibration import Settings, calibrate, collect
from bmcompiler.quant.data import check_data
from bmcompiler.quant.rebatch import rebatch

RANDOM = np.random.default_rng(0)
DATA = RANDOM.normal(size=(40, 3, 8, 8)).astype(np.float32)


def small_net(batch: int = 1) -> Module:
    b = Builder.new("net")
    x = b.input("data", TensorType((batch, 3, 8, 8)))
    y = b.relu(b.conv(x, b.weight(RANDOM.normal(size=(4, 3, 3, 3)).astype(np.float32)), pads=(1, 1, 1, 1)))
    y = b.max_pool(y, kernel=(2, 2), strides=(2, 2))
    y = b.reshape(y, shape=(batch, 64))
    y = b.matmul(y, b.weight(RANDOM.normal(size=(64, 5)).astype(np.float32)))
    return b.outputs([b.softmax(y, axis=1)], ["prob"])


def mixing_net() -> Module:
    """Each sample is its own batch: the net normalises over axis 0."""
    b = Builder.new("net")
    x = b.input("data", TensorType((1, 3, 8, 8)))
    y = b.reduce(x, method="mean", axes=(0,), keepdims=False)
    return b.outputs([b.softmax(b.reshape(y, shape=(3, 64)), axis=0)], ["prob"])


def maxima_one_by_one(module: Module, data: np.ndarray) -> list[float]:
    found: dict[int, float] = {}
    batch = module.main.arguments[0].shape[0]

    def observe(value: Any, array: np.ndarray) -> None:
        found[id(value)] = max(found.get(id(value), 0.0), float(np.abs(array).max()))

    for start in range(0, len(data), batch):
        run_module(module, {"data": data[start : start + batch]}, observe)
    return list(found.values())


@pytest.mark.parametrize("module", [small_net(), small_net(4), mixing_net()], ids=["batch 1", "batch 4", "mixing"])
def test_every_tensor_is_seen_whatever_the_batch(module: Module) -> None:
    found = calibrate(module, module.main, {"data": DATA}, Settings("max"))
    np.testing.assert_allclose(list(found.values()), maxima_one_by_one(module, DATA), rtol=1e-5)


def test_all_values_are_counted_once() -> None:
    module = small_net()
    histograms = collect(module, module.main, check_data(module.main, {"data": DATA[:32]}))
    for value, histogram in histograms.items():
        assert histogram.total == 32 * value.type.size


def test_a_rebatched_net_gives_every_sample_its_own_result() -> None:
    module = small_net(2)
    larger = rebatch(module.main, 6)
    assert larger is not None and larger.arguments[0].shape == (6, 3, 8, 8)
    whole = Module([larger])
    whole.weights = module.weights
    got = run_module(whole, {"data": DATA[:6]})["prob"]
    for start in (0, 2, 4):
        want = run_module(module, {"data": DATA[start : start + 2]})["prob"]
        np.testing.assert_allclose(got[start : start + 2], want, rtol=1e-4, atol=1e-6)


def test_nets_that_mix_samples_are_not_rebatched() -> None:
    module = mixing_net()
    assert rebatch(module.main, 4) is None


def test_nets_without_inputs_or_with_different_batches_are_left_alone() -> None:
    b = Builder.new("net")
    a, c = b.input("a", TensorType((1, 4))), b.input("c", TensorType((3, 4)))
    module = b.outputs([b.add(a, c)], ["out"])
    assert rebatch(module.main, 4) is None
    found = calibrate(module, module.main, {"a": DATA[:4, 0, 0, :4], "c": DATA[:4, 1, 0, :4]}, Settings("max"))
    assert all(value > 0 for value in found.values())


def test_tensors_that_overflow_name_their_layer() -> None:
    b = Builder.new("net")
    x = b.input("data", TensorType((1, 3, 8, 8)))
    with b.at("boom"):
        y = b.log(x)
    module = b.outputs([y], ["out"])
    with pytest.raises(CalibrationError, match=r"layer 'boom' .log.*NaN or infinite.*Remedy"):
        calibrate(module, module.main, {"data": DATA})


def test_progress_sees_every_step() -> None:
    seen: list[int] = []

    def progress(items: Iterable[Any], label: str, total: int) -> Iterator[Any]:
        assert label == "calibrating"
        for item in items:
            seen.append(total)
            yield item

    module = small_net(4)
    calibrate(module, module.main, {"data": DATA}, progress=progress)
    assert len(seen) == seen[0]
