"""The corpus' networks are valid, run in ONNX Runtime with finite results, and are the same for the same seed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from .blocks import drawn_net
from .cases import FAMILIES, drawn
from .depth import block_of, repeated
from .graph import run_onnx, valid


@pytest.mark.parametrize("seeds", [range(3, 5), pytest.param(range(5, 40), marks=pytest.mark.sweep)], ids=["", "more"])
@pytest.mark.parametrize("family", FAMILIES)
def test_networks_are_valid_and_run_also_deeper(family: str, seeds: range) -> None:
    """`drawn` and `repeated` give nothing that onnx and ONNX Runtime do not load."""
    for seed in seeds:
        case = drawn(seed, family)
        assert all(np.isfinite(value).all() for value in run_onnx(case.model, case.batch))
        block = block_of(case.model)
        if block is not None:
            repeated(case.model, block, 3)


def test_numbers_are_no_part_that_is_repeated() -> None:
    """Indices of rows [4, 5] have the shape of the classes of 4 rows; what takes them does not take floats."""
    net = drawn_net(np.random.default_rng(0), ((16, 16),), (4,))
    ids = net.g.input("x", net.random.integers(0, 9, (4, 5)))
    rows = net.g.add("Gather", net.g.constant(net.random.standard_normal((9, 8))), ids)
    net.g.outputs = [net.dense(net.g.add("ReduceMean", rows, axes=[1], keepdims=0), 5)]
    assert net.g.shape(net.g.outputs[0]) == (4, 5) and block_of(net.g.model()) is None


def test_a_network_that_is_none_is_not_drawn() -> None:
    model = drawn(3, "vgg").model
    model.graph.node[0].op_type = "Gather"
    with pytest.raises((onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
        valid(model)


def test_a_seed_says_everything() -> None:
    first, second, other = drawn(7), drawn(7), drawn(8)
    assert first.model.SerializeToString() == second.model.SerializeToString()
    assert first.modes == second.modes
    assert all((first.data[name] == second.data[name]).all() for name in first.data)
    assert first.model.SerializeToString() != other.model.SerializeToString()


def test_some_pictures_are_large() -> None:
    """A tenth, as far as constants allow it; they are asked in one mode, and the largest are not calibrated."""
    cases = [drawn(seed, "super_resolution") for seed in range(60)]
    large = [case for case in cases if max(case.batch["x"].shape) >= 224]
    assert 2 <= len(large) <= 15 and max(max(case.batch["x"].shape) for case in large) >= 1280
    for case in large:
        assert len(case.modes) == 1 and (case.modes[0][1] != "int8" or case.batch["x"].size <= 3 * 480 * 640)
