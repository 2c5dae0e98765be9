"""The conformance cases of the onnx package on the BM1684 simulator, those whose layers all run on the chip in f32.

Each must give the expected values and the bits of the chip's arithmetic.
`python -m bmcompiler.conformance.onnx_suite --kind node --device bm1684 --reasons`
prints the same counts per op, and why others are left out.
"""

from __future__ import annotations

import pytest
from masked_rows import LOWEST_MAXIMA

from bmcompiler.conformance.onnx_suite import cases, judge


@pytest.mark.slow
@pytest.mark.parametrize(("step", "least"), [(29, 35), pytest.param(1, 1400, marks=pytest.mark.sweep)])
def test_node_cases_on_the_chip(step: int, least: int) -> None:
    """Neighbours are variants of one another: a step takes one of each few."""
    report = judge(list(cases("node"))[::step], device="bm1684")
    failed = {name: text for name, text in report.failed.items() if name not in LOWEST_MAXIMA}
    assert not failed, "\n".join(f"{name}: {text}" for name, text in failed.items())
    assert report.total >= least and report.folded == 0
