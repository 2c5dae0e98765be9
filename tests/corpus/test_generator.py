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
