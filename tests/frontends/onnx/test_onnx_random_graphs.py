"""Random graphs mean the same to ONNX Runtime, to the import, after canonicalization, and on BM1880."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from onnx_models import reference
from random_graphs import Case, cases

import bmcompiler
from bmcompiler.errors import CalibrationError
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.interpreter import run_module
from bmcompiler.ir import verify_module
from bmcompiler.numeric.arith import quantize_real
from bmcompiler.passmanager import run_pipeline
from bmcompiler.runtime import Session

FIXED = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def check_float(case: Case) -> None:
    """Equal within rounding: 1e-4 of the largest value, and more only where tiny changes of the inputs matter as much
    to ONNX Runtime itself."""
    wanted = reference(case.model, case.feeds, rewrite=False)
    assume(all(np.isfinite(array).all() for array in wanted.values()))
    other = {name: array * np.float32(1 + 3e-6) for name, array in case.feeds.items()}
    nudged = reference(case.model, other, rewrite=False)
    module = import_onnx(case.model)
    verify_module(module)
    compare(run_module(module, case.feeds), wanted, nudged)
    run_pipeline(module, "canonicalize")
    verify_module(module)
    compare(run_module(module, case.feeds), wanted, nudged)


def compare(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray], nudged: dict[str, np.ndarray]) -> None:
    assert list(found) == list(wanted)
    for name, want in wanted.items():
        got = found[name]
        assert got.shape == want.shape and got.dtype == want.dtype
        peak = float(np.abs(want).max(initial=0.0))
        slack = 10 * np.abs(nudged[name] - want).max(initial=0.0) if np.isfinite(nudged[name]).all() else peak
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 + 1e-4 * peak + slack, err_msg=name)


@settings(FIXED, max_examples=50)
@given(cases())
def test_random_graph_means_what_onnx_runtime_computes(case: Case) -> None:
    check_float(case)


@pytest.mark.sweep
@settings(FIXED, max_examples=500)
@given(cases())
def test_500_random_graphs_mean_what_onnx_runtime_computes(case: Case) -> None:
    check_float(case)


def check_device(case: Case) -> None:
    """Compiled for BM1880 in int8, the simulator gives the bytes that `evaluate` gives."""
    try:
        result = bmcompiler.compile_module(import_onnx(case.model), target="bm1880", data=case.samples)
    except CalibrationError:
        assume(False)  # NaN or infinity on these samples
    function = result.module.main
    device = {}
    for name, argument in zip(function.input_names, function.arguments):
        quant = argument.type.quant
        device[name] = case.feeds[name] if quant is None else quantize_real(case.feeds[name], quant.threshold)
    expected = run_module(result.module, device)
    found = Session(result.model).run(device, raw=True)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == (array.shape or (1,))
        assert found[name].tobytes() == array.tobytes(), name


@settings(FIXED, max_examples=20)
@given(cases())
def test_random_graph_runs_on_bm1880_as_evaluated(case: Case) -> None:
    check_device(case)


@pytest.mark.sweep
@settings(FIXED, max_examples=150)
@given(cases())
def test_150_random_graphs_run_on_bm1880_as_evaluated(case: Case) -> None:
    check_device(case)
