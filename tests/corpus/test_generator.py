"""The corpus' networks are valid, run in ONNX Runtime with finite results, and are the same for the same seed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from .cases import FAMILIES, drawn
from .graph import run_onnx


@pytest.mark.parametrize("family", FAMILIES)
def test_network_is_valid_and_runs(family: str) -> None:
    case = drawn(3, family)
    onnx.checker.check_model(case.model, full_check=True)
    assert all(np.isfinite(value).all() for value in run_onnx(case.model, case.batch))


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
