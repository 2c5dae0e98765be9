"""The conformance cases of the onnx package on the DV700 simulator, host layers included.

Each must give the expected values within what fp16 allows, and the bits of `evaluate`.
`python -m bmcompiler.conformance.onnx_suite --kind node --device dv700 --host --reasons`
prints the counts per op; without --host all layers must be on the device.
"""

from __future__ import annotations

import pytest

from bmcompiler.conformance.onnx_suite import cases, judge

WIDE_INTEGERS = {"test_bitcast_float64_to_int64", "test_bitcast_int64_to_float64", "test_bitcast_uint32_to_int32"}
"""All bits of a number leave the net as an integer, which a model file narrows to i32 by its value."""


@pytest.mark.slow
@pytest.mark.parametrize(("step", "least"), [(13, 110), pytest.param(1, 1550, marks=pytest.mark.sweep)])
def test_node_cases_on_device_and_host(step: int, least: int) -> None:
    """Neighbours are variants of one another: a step takes one of each few."""
    report = judge(list(cases("node"))[::step], device="dv700", host=True)
    failed = {name: text for name, text in report.failed.items() if name not in WIDE_INTEGERS}
    assert not failed, "\n".join(f"{name}: {text}" for name, text in failed.items())
    assert report.total >= least


@pytest.mark.slow
def test_cases_whose_layers_are_all_on_the_device() -> None:
    names = ("conv", "convtranspose", "maxpool_2d", "globalaveragepool", "relu", "sigmoid", "tanh", "elu", "leakyrelu")
    chosen = [case for case in cases("node") if case.name.removeprefix("test_").startswith(names)]
    report = judge(chosen, device="dv700")
    assert not report.failed, report.failed
    assert report.total >= 25
