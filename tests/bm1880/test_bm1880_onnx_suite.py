"""The conformance cases of the onnx package on the BM1880 simulator, in int8 that is calibrated on each case.

`python -m bmcompiler.conformance.onnx_suite --kind node --device bm1880 --reasons` prints all counts and why the rest
does not run: integers of more than eight bits are the host's there, norms and softmax where the inputs of a case show
that eight bits do not for them, the latter without `--bytes`.
"""

from __future__ import annotations

import pytest

from bmcompiler.conformance.onnx_suite import cases, judge

STEEP = ("acosh", "atanh", "log", "linear_attention", "lppool", "gru_seq_length")
"""Where one code of eight bits is more than the tolerance: roots, poles, powers of e, long products, many steps."""
BETWEEN = ("floor", "round")
"""Half a code decides about a whole number."""
OUTLIERS = ("averagepool",)
"""Few values lie far outside of the rest and are cut, or leave no codes to the others."""
COARSE = tuple(f"test_{name}" for name in (*STEEP, *BETWEEN, *OUTLIERS))
NOT_NUMBERS = "test_mod_float_edge_cases_fmod"
"""NaN is no constant of a net."""
EMPTY = (
    "causal_conv_with_state_kernel_size_one",
    "constantofshape_int_shape_zero",
    "reshape_allowzero_reordered",
    "triu_zero",
    "shape_start_greater_than_end",
    "split_zero_size_splits_opset18",
    "reduce_sum_empty_set_non_reduced_axis_zero",
)


@pytest.mark.sweep
@pytest.mark.parametrize(("statistics", "least"), [("measured", 150), ("bytes", 150)])
def test_node_cases_on_the_chip(statistics: str, least: int) -> None:
    """Neighbours are variants of one another: a step takes one of each few."""
    report = judge(list(cases("node"))[::7], device="bm1880", statistics=statistics)
    named = {name: text for name, text in report.failed.items() if not name.startswith(NOT_NUMBERS)}
    failed = {n: text for n, text in named.items() if not (n.startswith(COARSE) and "Not equal" in text)}
    assert not failed, "\n".join(f"{name}: {text}" for name, text in failed.items())
    assert report.total >= least and report.folded == 0


@pytest.mark.parametrize("device", ["bm1684", "bm1684x", "bm1880", "dv700"])
def test_outputs_without_elements_have_no_error(device: str) -> None:
    names = {f"test_{name}" for name in EMPTY}
    report = judge([case for case in cases("node") if case.name in names], device=device, host=True)
    assert not report.failed, report.failed
