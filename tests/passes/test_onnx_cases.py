"""Canonicalization and legalization keep what the cases of the onnx package compute."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bmcompiler.conformance.onnx_backend import Prepared
from bmcompiler.conformance.onnx_suite import cases
from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target


def imported(kind: str, step: int) -> Iterator[tuple[str, Module, dict[str, Any]]]:
    """(case, module, inputs): with all inputs computed, and with constants for all but the first.

    `step` > 1 takes one of each few cases: neighbours are variants of one another.
    """
    for case in list(cases(kind))[::step]:
        model, sets = case.load()
        inputs = sets[0][0]
        runner = Prepared(model)
        if any(isinstance(value, (list, type(None))) for value in inputs) or len(inputs) != len(runner.names):
            continue
        arrays = [np.asarray(value) for value in inputs]
        for constant in dict.fromkeys([(False,) * len(arrays), tuple(i > 0 for i in range(len(arrays)))]):
            with contextlib.suppress(BMError):
                module = runner._import(arrays, constant)
                feeds = {name: array for name, array, fixed in zip(runner.names, arrays, constant) if not fixed}
                yield case.name, module, {name: feeds[name] for name in module.main.input_names}


def assert_same(got: dict[str, np.ndarray], want: dict[str, np.ndarray], name: str) -> None:
    for output, array in want.items():
        assert (got[output].dtype, got[output].shape) == (array.dtype, array.shape), name
        if array.dtype.kind == "f":
            finite = np.where(np.isfinite(array), array, 0).astype(float)
            limit = 1e-4 * max(1e-3, np.abs(finite).max(initial=0))
            np.testing.assert_allclose(got[output].astype(float), array.astype(float), 2e-3, limit, err_msg=name)
        else:
            np.testing.assert_array_equal(got[output], array, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "step", "least"),
    [("node", 13, 100), ("pytorch-operator", 3, 15), pytest.param("node", 3, 500, marks=pytest.mark.sweep)],
)
def test_passes_keep_the_results_of_the_onnx_cases(kind: str, step: int, least: int) -> None:
    count, target = 0, find_target("bm1880")
    with np.errstate(all="ignore"):
        for name, module, feeds in imported(kind, step):
            want = run_module(module, feeds)
            for pipeline in ("canonicalize", "legalize"):
                run_pipeline(module, pipeline, PassContext(target=target), verify_each=True)
                assert_same(run_module(module, feeds), want, f"{name} after {pipeline}")
            count += 1
    assert count >= least
