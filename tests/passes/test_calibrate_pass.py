"""The calibrate pass: thresholds from data and from tables, by tensor name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import Net

from bmcompiler.errors import CalibrationError, UsageError
from bmcompiler.ir import Module
from bmcompiler.passes.precision.calibrate import make_table, thresholds
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.table import CalibrationTable, load_table, save_table

DATA = {"data": np.random.default_rng(0).normal(size=(6, 2, 6, 6)).astype(np.float32)}


def net() -> Module:
    n = Net()
    y = n.relu(n.conv(n.input(1, 2, 6, 6), n.w(4, 2, 3, 3), n.w(4)))
    return n.done(n.max_pool(y, kernel=(2, 2)), n.softmax(n.reshape(y, shape=(1, 64))))


def by_name(module: Module) -> dict[str, float]:
    return make_table(module).thresholds


def calibrated(method: str = "max") -> Module:
    module = net()
    run_pipeline(module, f"calibrate{{method={method}}}", PassContext(data=DATA), verify_each=True)
    return module


def test_thresholds_are_stored_in_the_text_of_the_ir() -> None:
    assert "calib.threshold = " in str(calibrated()) and "input_thresholds" in str(calibrated())


def test_a_second_run_changes_nothing() -> None:
    module = calibrated()
    assert not run_pipeline(module, "calibrate{method=max}", PassContext(data=DATA))


@pytest.mark.parametrize("ending", ["table", "pb2", "prototxt"])
def test_a_table_gives_the_thresholds_back(tmp_path: Path, ending: str) -> None:
    module = calibrated("kl")
    save_table(make_table(module), tmp_path / f"t.{ending}")
    again = net()
    run_pipeline(again, "calibrate", PassContext(table=load_table(tmp_path / f"t.{ending}")))
    for name, value in by_name(module).items():
        assert by_name(again)[name] == pytest.approx(value, rel=1e-6)


def test_measured_thresholds_serve_the_same_net_in_another_shape() -> None:
    ctx = PassContext(data=DATA)
    first, second = net(), net()
    run_pipeline(first, "calibrate", ctx)
    ctx.data = None
    run_pipeline(second, "calibrate", ctx)
    assert by_name(first) == by_name(second)


def test_tensors_missing_in_a_table_are_derived_where_that_is_safe() -> None:
    table = CalibrationTable.of({"data": 3.0, "relu4.out": 5.0})
    module = net()
    run_pipeline(module, "calibrate", PassContext(table=table))
    found = by_name(module)
    assert found["conv3.out"] == 5.0, "the conv takes the threshold of the relu that alone reads it"
    assert found["max_pool5.out"] == found["reshape6.out"] == 5.0, "pooling and reshape keep that of their input"
    assert found["softmax7.out"] == 1.0, "probabilities are at most 1"


def test_a_layer_name_stands_in_for_a_tensor_without_a_name() -> None:
    module = net()
    for op in module.main.ops:
        op.attributes.pop("source.tensor", None)
    run_pipeline(module, "calibrate", PassContext(table=CalibrationTable.of({"data": 3, "conv3": 7, "relu4": 5})))
    assert by_name(module)["conv3/conv"] == 7


def test_an_incomplete_table_names_tensor_layer_and_remedy() -> None:
    table = CalibrationTable.of({"data": 3.0})
    with pytest.raises(CalibrationError, match=r"layer 'conv3' .conv.*tensor 'conv3.out'.*bmnet-calibrate") as error:
        run_pipeline(net(), "calibrate", PassContext(table=table))
    assert "\n" not in str(error.value)


def test_neither_data_nor_table_names_both_options() -> None:
    with pytest.raises(CalibrationError, match=r"pass data with real samples, or table"):
        run_pipeline(net(), "calibrate")


@pytest.mark.parametrize("options", ["bins=100", "bins=0", "percentile=10", "percentile=101", "method=best"])
def test_options_out_of_range_are_refused(options: str) -> None:
    with pytest.raises(UsageError, match="calibrate"):
        run_pipeline(net(), f"calibrate{{{options}}}", PassContext(data=DATA))


def test_a_tensor_of_zeros_gets_a_harmless_threshold() -> None:
    n = Net()
    module = n.done(n.mul(n.input(1, 2, 6, 6), n.fill(0.0, 1)))
    run_pipeline(module, "calibrate", PassContext(data=DATA))
    assert thresholds(module.main)[module.main.returned[0]] == 1.0


def test_layers_made_after_calibration_ask_for_it_again() -> None:
    module = calibrated()
    module.main.ops[-2].attributes.pop("calib.threshold")
    with pytest.raises(CalibrationError, match=r"softmax7.*no threshold"):
        thresholds(module.main)
