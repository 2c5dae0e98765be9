"""The conformance cases of the onnx package on the BM1684X simulator, as on the BM1684 (`test_onnx_suite.py`)."""

from __future__ import annotations

import pytest
from masked_rows import LOWEST_MAXIMA

from bmcompiler.conformance.onnx_suite import cases, judge


@pytest.mark.slow
@pytest.mark.parametrize(("step", "least"), [(29, 30), pytest.param(1, 1420, marks=pytest.mark.sweep)])
def test_node_cases_on_the_chip(step: int, least: int) -> None:
    report = judge(list(cases("node"))[::step], device="bm1684x")
    failed = {name: text for name, text in report.failed.items() if name not in LOWEST_MAXIMA}
    assert not failed, "\n".join(f"{name}: {text}" for name, text in failed.items())
    assert report.total >= least and report.folded == 0
