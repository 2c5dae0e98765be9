"""Integers for nets with masks of infinities, and for nets whose inputs differ in their leading axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.errors import CalibrationError
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.quant.data import some_steps

CHIPS = ("bm1880", "bm1684", "bm1684x")
RNG = np.random.default_rng(0)
SAMPLES = {"x": RNG.normal(0, 1, (8, 6, 16)).astype(np.float32)}


def _scores(b: Builder) -> Any:
    x = b.input("x", TensorType((1, 6, 16)))
    query = b.matmul(x, b.weight(RNG.normal(0, 0.2, (16, 16)).astype(np.float32), "q"))
    return x, b.matmul(query, b.permute(x, order=(0, 2, 1)))


def masked(kind: str) -> Module:
    """Attention that does not look ahead, its mask put in or added; the place of a maximum in a range, or a mean there.

    The mean is by scores that are picked out and cast; some of them are hidden.
    """
    b = Builder.new("net")
    with b.at("scores"):
        x, scores = _scores(b)
    ahead = np.triu(np.ones((1, 6, 6), bool), 1)
    with b.at("mask"):
        if kind == "add":
            scores = b.add(scores, b.weight(np.where(ahead, np.float32(-np.inf), np.float32(0)), "mask"))
        else:
            endless = b.weight(np.full((1, 1, 1), -np.inf, np.float32), "endless")
            scores = b.where(b.weight(ahead, "ahead"), endless, scores)
    with b.at("end"):
        if kind == "maximum":
            y = b.arg(scores, axis=2, method="max")
        elif kind == "picked":
            near = b.weight(np.tile(np.arange(2), (1, 6, 1)), "near")
            shares = b.softmax(b.cast(b.gather_elements(scores, near, axis=2), dtype="f64"), axis=2)
            y = b.cast(shares, dtype="f32")
        else:
            y = b.matmul(b.softmax(scores, axis=2), x)
    return b.outputs([y], ["y"])


@pytest.mark.parametrize("kind", ["where", "add", "maximum", "picked"])
@pytest.mark.parametrize("chip", CHIPS)
def test_masks_of_infinities_are_calibrated_and_stay_in_float(chip: str, kind: str) -> None:
    module = masked(kind)
    made = bmcompiler.compile_module(module, target=chip, quantize="int8", data=SAMPLES, check="always")
    assert made.checked is not None and made.checked.samples == 1
    x = SAMPLES["x"][:1]
    wanted = bmcompiler.compile_module(module, target="bm1684x", quantize="f32").session().run({"x": x})["y"]
    found = made.session().run({"x": x})["y"]
    if kind == "maximum":
        assert (found[0, :, 0] <= np.arange(6)).all(), "nothing ahead is looked at"
        assert (found == wanted).mean() > 0.6
    else:
        assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


def recurrent() -> Module:
    """y = x W + the sum of a state's two layers: a run takes one sample of x and both layers."""
    b = Builder.new("net")
    x, state = b.input("x", TensorType((1, 12))), b.input("state", TensorType((2, 1, 8)))
    weight = b.weight(RNG.normal(0, 0.3, (12, 8)).astype(np.float32), "w")
    with b.at("sum"):
        layers = [
            b.reshape(b.slice(state, starts=(i, 0, 0), ends=(i + 1, 1, 8), steps=(1, 1, 1)), shape=(1, 8))
            for i in range(2)
        ]
        y = b.relu(b.add(b.add(b.matmul(x, weight), layers[0]), layers[1]))
    return b.outputs([y], ["y"])


@pytest.mark.parametrize("chip", CHIPS)
def test_a_state_whose_leading_axis_is_no_batch_takes_all_of_it_in_a_run(chip: str) -> None:
    data = {
        "x": RNG.normal(0, 1, (6, 12)).astype(np.float32),
        "state": RNG.normal(0, 1, (12, 1, 8)).astype(np.float32),
    }
    module = recurrent()
    steps = some_steps(module.main, data, 6)
    assert [step["x"].shape for step in steps] == [(1, 12)] * 6
    assert all(np.array_equal(step["state"], data["state"][2 * i : 2 * i + 2]) for i, step in enumerate(steps))
    made = bmcompiler.compile_module(module, target=chip, quantize="int8", data=data, check=3)
    assert made.checked is not None and made.checked.samples == 3 and made.checked.of_data
    few = data | {"state": data["state"][:7]}
    with pytest.raises(CalibrationError, match=r"numbers of samples: 'x' 6, 'state' 7.*1 of 'x', 2 of 'state'"):
        bmcompiler.compile_module(module, target=chip, quantize="int8", data=few)
