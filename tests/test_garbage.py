"""Compilations look for dead cycles seldom, and leave the threshold of the process as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import bmcompiler
from bmcompiler.garbage import OBJECTS, seldom_collected
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder


@pytest.fixture(params=[700, 0, 2 * OBJECTS])
def threshold(request: pytest.FixtureRequest) -> Iterator[int]:
    before = gc.get_threshold()
    gc.set_threshold(request.param, 7, 9)
    yield request.param
    gc.set_threshold(*before)


def test_the_threshold_is_raised_until_the_last_leaves(threshold: int) -> None:
    raised = OBJECTS if threshold == 700 else threshold
    with seldom_collected:
        with seldom_collected:
            assert gc.get_threshold() == (raised, 7, 9)
        assert gc.get_threshold() == (raised, 7, 9)
    assert gc.get_threshold() == (threshold, 7, 9)


def test_a_compilation_that_fails_restores_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = gc.get_threshold(), list[int]()

    def fail(target: str, options: object) -> None:
        seen.append(gc.get_threshold()[0])
        raise RuntimeError

    monkeypatch.setattr("bmcompiler.driver.pipeline_for", fail)
    b = Builder.new("net")
    module = b.outputs([b.relu(b.input("data", TensorType((1, 4))))], ["out"])
    with pytest.raises(RuntimeError):
        bmcompiler.compile_module(module, target="bm1684", data={"data": np.zeros((1, 4), np.float32)})
    assert seen == [OBJECTS] and gc.get_threshold() == before
