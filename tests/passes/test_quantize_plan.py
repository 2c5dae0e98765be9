"""Planning of thresholds, rule by rule, and of what has no channels."""

from __future__ import annotations

import numpy as np
import pytest
from nets import Net, names, random_inputs

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Value
from bmcompiler.passes.quantization.levels import reach
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.table import CalibrationTable
from bmcompiler.testing import check_op


def quantized(module: Module, thresholds: dict[str, float], options: str = "") -> Module:
    run_pipeline(
        module, f"calibrate,quantize{options}", PassContext(table=CalibrationTable.of(thresholds)), verify_each=True
    )
    run_module(module, random_inputs(module))
    return module


def threshold(module: Module, op: str, index: int = 0) -> float:
    """Threshold of the result of the index-th op called so."""
    found = [o for o in module.main.ops if o.short_name == op][index].results[0].type.quant
    assert found is not None
    return found.threshold


def conv(n: Net, x: Value) -> Value:
    return n.conv(x, n.w(2, x.shape[1], 1, 1))


def test_rule_1_a_conv_that_only_relu_reads_uses_its_threshold() -> None:
    n = Net()
    module = quantized(n.done(n.relu(conv(n, n.input(1, 2, 4, 4)))), {"data": 1, "conv2.out": 8, "relu3.out": 3})
    assert threshold(module, "conv") == threshold(module, "relu") == 3


def test_rule_1_not_when_others_read_it_too() -> None:
    n = Net()
    y = conv(n, n.input(1, 2, 4, 4))
    module = quantized(n.done(n.relu(y), y), {"data": 1, "conv2.out": 8, "relu3.out": 3})
    assert threshold(module, "conv") == threshold(module, "relu") == 8


def test_rule_1_reaches_through_pooling() -> None:
    n = Net()
    y = n.relu(n.max_pool(conv(n, n.input(1, 2, 4, 4)), kernel=(2, 2)))
    module = quantized(n.done(y), {"data": 1, "conv2.out": 8, "max_pool3.out": 7, "relu4.out": 3})
    assert threshold(module, "conv") == 3 and names(module) == ["conv", "max_pool", "relu"]


def test_rule_2_moving_ops_keep_the_threshold_of_their_input() -> None:
    n = Net()
    x = n.input(1, 2, 4, 4)
    y = n.pad(n.permute(n.slice(x, starts=(0, 0, 0, 0), ends=(1, 2, 4, 2), steps=(1, 1, 1, 1)), order=(0, 2, 3, 1)),
              pads=(0, 0, 1, 1, 0, 0, 0, 0))  # fmt: skip
    module = quantized(n.done(y), {"data": 2, "slice1.out": 9, "permute2.out": 8, "pad3.out": 7})
    assert [op.results[0].type.quant.threshold for op in module.main.ops[:-1]] == [2, 2, 2]


def test_rule_3_operands_of_concat_are_produced_at_the_largest_threshold() -> None:
    n = Net()
    x = n.input(1, 2, 4, 4)
    a, b = n.relu(conv(n, x)), n.max_pool(n.sigmoid(x), kernel=(1, 1))
    y = n.concat(a, b, axis=1)
    known = {"data": 1, "conv2.out": 8, "relu3.out": 3, "sigmoid4.out": 1, "max_pool5.out": 1, "concat6.out": 3}
    module = quantized(n.done(y), known)
    assert threshold(module, "conv") == threshold(module, "lut") == threshold(module, "concat") == 3
    assert "muls_shift" not in names(module)


def test_rule_3_operands_that_others_read_are_rescaled_once() -> None:
    n = Net()
    x = n.input(1, 2, 4, 4)
    y = conv(n, x)
    module = quantized(n.done(n.concat(x, y, x, axis=1), y), {"data": 1, "conv2.out": 8, "concat3.out": 8})
    assert names(module) == ["conv", "muls_shift", "concat"]
    rescale = next(op for op in module.main.ops if op.short_name == "muls_shift")
    assert (rescale.multiplier, rescale.rshift) == (128, 10)  # type: ignore[attr-defined]
    assert threshold(module, "muls_shift") == 8


def test_rule_3_max_and_min_share_a_threshold() -> None:
    n = Net()
    x = n.input(1, 2, 4, 4)
    module = quantized(n.done(n.max(conv(n, x), n.tanh(x))), {"data": 1, "conv2.out": 4, "tanh3.out": 1, "max4.out": 4})
    assert threshold(module, "conv") == threshold(module, "lut") == threshold(module, "max") == 4


def test_rule_3_concat_of_concats_and_constants() -> None:
    n = Net()
    x = n.input(1, 2, 4, 4)
    inner = n.concat(conv(n, x), n.tanh(x), axis=1)
    y = n.concat(inner, n.fill(2.0, 1, 1, 4, 4), conv(n, x), axis=1)
    known = {"data": 1, "conv2.out": 4, "tanh3.out": 1, "concat4.out": 4, "conv7.out": 16, "concat8.out": 16}
    module = quantized(n.done(y), known)
    assert threshold(module, "conv", 0) == threshold(module, "conv", 1) == threshold(module, "lut") == 16
    assert "muls_shift" not in names(module)


def test_rule_3_what_moves_a_constant_is_rescaled() -> None:
    """A constant has the threshold of its largest element, whoever reads it."""
    n = Net()
    x = n.input(1, 2, 4, 4)
    y = n.concat(n.max_pool(n.w(1, 2, 4, 4), kernel=(1, 1)), conv(n, x), axis=1)
    known = {"data": 1, "max_pool2.out": 1, "conv4.out": 16, "concat5.out": 16}
    module = quantized(n.done(y), known)
    assert threshold(module, "max_pool") < 2 < threshold(module, "conv") == threshold(module, "concat") == 16
    assert "muls_shift" in names(module)


def test_rule_4_saturation_is_the_upper_bound_of_relu6() -> None:
    n = Net()
    y = n.clip(conv(n, n.input(1, 2, 4, 4)), min=0.0, max=6.0)
    module = quantized(n.done(y), {"data": 1, "conv2.out": 20, "clip3.out": 6})
    assert names(module) == ["conv", "relu"] and threshold(module, "conv") == 6


def test_rule_4_a_table_where_the_operand_has_other_readers() -> None:
    n = Net()
    y = conv(n, n.input(1, 2, 4, 4))
    module = quantized(n.done(n.clip(y, min=0.0, max=6.0), y), {"data": 1, "conv2.out": 20, "clip3.out": 6})
    assert names(module) == ["conv", "lut"] and threshold(module, "lut") == 6


def test_rule_4_stays_where_a_concat_is_within_the_bound() -> None:
    """The layer before the clip takes the threshold of the concatenation."""
    n = Net()
    x = n.input(1, 2, 4, 4)
    y = n.concat(n.clip(conv(n, x), min=0.0, max=6.0), conv(n, x), axis=1)
    known = {"data": 1, "conv2.out": 20, "clip3.out": 4, "conv5.out": 5, "concat6.out": 5}
    module = quantized(n.done(y), known)
    assert "lut" not in names(module)
    assert [threshold(module, "conv", index) for index in (0, 1)] == [threshold(module, "concat")] * 2 == [5, 5]


def test_rule_4_gives_way_to_a_concat_beyond_the_bound() -> None:
    n = Net()
    x = n.input(1, 2, 4, 4)
    y = n.concat(n.clip(conv(n, x), min=0.0, max=6.0), conv(n, x), axis=1)
    known = {"data": 1, "conv2.out": 20, "clip3.out": 6, "conv5.out": 24, "concat6.out": 24}
    module = quantized(n.done(y), known)
    assert names(module) == ["conv", "lut", "conv", "concat"] and threshold(module, "lut") == 24


def test_rule_5_strict_tables_keep_every_named_threshold() -> None:
    def net() -> Module:
        n = Net()
        return n.done(n.max_pool(conv(n, n.input(1, 2, 4, 4)), kernel=(2, 2)))

    table = {"data": 1, "conv2.out": 1.39003, "max_pool3.out": 2.22406}
    assert names(quantized(net(), table)) == ["conv", "max_pool"]
    module = quantized(net(), table, "{strict_table=true}")
    assert names(module) == ["conv", "max_pool", "muls_shift"]
    rescale = module.main.ops[-2]
    assert (rescale.multiplier, rescale.rshift) == (160, 8)  # type: ignore[attr-defined]


def test_products_are_planned_at_the_threshold_they_get() -> None:
    n = Net()
    x = n.input(1, 2, 4, 4)
    y = n.concat(n.mul(x, n.sigmoid(x)), conv(n, x), axis=1)
    known = {"data": 3, "sigmoid1.out": 1, "mul2.out": 2, "conv4.out": 1, "concat5.out": 2}
    module = quantized(n.done(y), known)
    assert threshold(module, "mul_shift") == threshold(module, "conv") == 3 and "muls_shift" not in names(module)
    assert np.isclose(threshold(module, "mul_shift"), 3 * 1 / 128 * 2**7)


LEVELS = [
    ("sigmoid", {}), ("tanh", {}), ("hard_swish", {}), ("gelu", {}), ("softplus", {}), ("mish", {}), ("elu", {}),
    *[("swish", {"alpha": alpha}) for alpha in (0.5, 1.0, 3.0)],
    *[("hard_sigmoid", {"alpha": alpha, "beta": beta}) for alpha, beta in ((0.2, 0.5), (1 / 6, 0.2), (0.1, 0.9))],
]  # fmt: skip


@pytest.mark.parametrize(("name", "attributes"), LEVELS)
def test_beyond_its_reach_a_function_is_level(name: str, attributes: dict[str, float]) -> None:
    """To half a step of 8 bits of a result of some units; and no two values within the result's range are one."""
    n = Net()
    module = n.done(getattr(n, name)(n.input(1, 4001), **attributes))
    op = module.main.ops[0]
    x = np.linspace(-100, 100, 4001, dtype=np.float32)[None]
    for result in (0.3, 1.0, 4.0, 50.0):
        far = reach(op, result)
        assert far is not None
        whole, cut = (run_module(module, {"data": each})["out0"] for each in (x, np.clip(x, -far, far)))
        apart = np.abs(np.clip(whole, -result, result) - np.clip(cut, -result, result)).max()
        assert apart <= max(1.0, result) / 127
        assert far <= 16 + result


@pytest.mark.parametrize("name", ["swish", "hard_sigmoid"])
def test_a_function_without_slope_is_level_nowhere_or_everywhere(name: str) -> None:
    n = Net()
    op = n.done(getattr(n, name)(n.input(1, 9), alpha=0.0)).main.ops[0]
    assert reach(op, 1.0) is None


@pytest.mark.parametrize("chip", ["bm1880", "bm1684", "bm1684x"])
def test_a_vector_times_a_number_has_no_channels_for_a_convolution(chip: str) -> None:
    """Tensors of more axes are scaled by a convolution of one tap."""
    number = np.float32([0.37])
    done = check_op(
        lambda b, x: b.relu(b.mul(b.tanh(x), b.weight(number, "w"))), [(6,)], target=chip, quantize="int8", seeds=1
    )
    assert "conv" not in {row.kind for row in done.result.rows} and done.error < 0.05
