"""Whether thresholds were given or measured here, which decides who may choose others."""

from __future__ import annotations

from bmcompiler.passes.quantization.state import CalibrationState
from bmcompiler.quant.table import CalibrationTable


def test_a_table_is_given_where_it_is_not_the_one_that_was_measured() -> None:
    given, measured = CalibrationTable.of({"x": 1.0}), CalibrationTable.of({"x": 1.0})
    assert CalibrationState().was_given(given)
    assert CalibrationState(measured=measured).was_given(given)
    assert not CalibrationState(measured=measured).was_given(measured)
    assert not CalibrationState(measured=measured).was_given(None)
