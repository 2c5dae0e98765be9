"""The conformance cases of the onnx package on the BM1684 simulator, those whose layers all run on the chip in f32.

Each must give the expected values and the bits of the chip's arithmetic.
`python -m bmcompiler.conformance.onnx_suite --kind node --device bm1684 --reasons`
prints the same counts per op, and why others are left out.
"""

from __future__ import annotations

import pytest

from bmcompiler.conformance.onnx_suite import cases, judge


@pytest.mark.slow
def test_node_cases_on_the_chip() -> None:
    report = judge(list(cases("node")), device="bm1684")
    assert not report.failed, "\n".join(f"{name}: {text}" for name, text in report.failed.items())
    assert report.total >= 1200 and report.folded == 0
