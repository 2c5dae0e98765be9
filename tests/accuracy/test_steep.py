"""What probabilities that a network is sure of do not show of those that it is not sure of."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.accuracy.steep import steep_energy
from bmcompiler.evaluation.confidence import share_not_seen
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ir.keys import TENSOR_NAME
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session


def classifier(classes: int = 4) -> Module:
    b, rng = Builder.new("net"), np.random.default_rng(0)
    x = b.input("x", TensorType((1, 32)))
    matrix = b.weight(rng.standard_normal((32, classes)).astype(np.float32), "w")
    scores = b.matmul(x, matrix)
    assert scores.op is not None
    scores.op.attributes[TENSOR_NAME] = "scores"
    return b.outputs([b.softmax(scores, axis=1)], ["y"])


def float_of(module: Module, x: Array) -> Array:
    return run_function(module, module.main, {"x": x})["y"]


def samples(module: Module, count: int, *, sure: bool) -> Array:
    drawn = np.random.default_rng(1).standard_normal((2000, 32)).astype(np.float32)
    best = np.concatenate([float_of(module, each[None]) for each in drawn]).max(1)
    return drawn[best > 0.9999 if sure else best < 0.6][:count]


def test_a_bound_from_sure_samples_holds_for_others() -> None:
    """One of ten that is not sure: no sample that was held back said so."""
    module = classifier()
    seen, others = samples(module, 64, sure=True), samples(module, 20, sure=False)
    result = bmcompiler.compile_module(module, target="bm1880", quantize="int8", data={"x": seen})
    session, unseen = Session(result.model), np.concatenate([np.repeat(seen[:20], 9, 0), others])
    found = np.concatenate([session.run({"x": each[None]})["y"] for each in unseen])
    wanted = np.concatenate([float_of(module, each[None]) for each in unseen])
    error = float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
    assert result.accuracy is not None and result.accuracy.at_most is not None
    (said,) = result.accuracy.outputs
    assert 3 * said.error < error <= result.accuracy.at_most < 10 * error


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_energy_is_that_of_an_even_chance(kind: str) -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 2)))
    y = b.softmax(x, axis=1) if kind == "softmax" else b.sigmoid(x)
    module = b.outputs([b.reshape(y, shape=[2])], ["y"])
    moved = np.random.default_rng(2).normal(0, 0.1, (400, 1, 2)).astype(np.float32)
    even = float_of(module, np.zeros((1, 2), np.float32))
    energy = float(np.mean([np.square(float_of(module, each) - even).sum() for each in moved]))
    expected = steep_energy(module.main.returned[0], {module.main.arguments[0]: float(np.square(moved).mean())})
    assert expected == pytest.approx(energy, rel=0.1)


def test_nothing_is_said_where_scores_are_not_known() -> None:
    module = classifier()
    returned: Value = module.main.returned[0]
    assert steep_energy(returned, {}) is None
    assert steep_energy(returned.op.operands[0], {}) is None if returned.op else False


def test_what_so_many_have_not_shown_may_be_the_share_that_would_show_in_nineteen_of_twenty() -> None:
    assert (1 - share_not_seen(16)) ** 16 == pytest.approx(0.05)
