"""Layers with weights in two terms of bytes: what they compute, what that brings, where it is not done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nets import Net
from test_quantize import Refusing, feed, quantize, real_outputs, samples

from bmcompiler.interpreter import run_function, run_module
from bmcompiler.ir import Module, Operation
from bmcompiler.numeric.two_terms import finer_bits, left_over, second_term
from bmcompiler.passes.quantization.formulas import linear
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.table import CalibrationTable

seeds = st.integers(0, 2**32 - 1)
DOUBLE = "{mode=double}"


def spread(n: Net, *shape: int) -> Any:
    """Weights of which one is 8 times as large as the others, which then have 4 bits left."""
    array = n.random.uniform(-0.125, 0.125, shape)
    array.flat[n.random.integers(array.size)] = 1.0
    return n.constant(array)


KINDS = (
    "conv", "strided", "grouped", "depthwise", "deconv", "grouped deconv", "matmul", "transposed", "heads",
    "transposed heads", "turned heads",
)  # fmt: skip


def layer(kind: str, n: Net) -> Module:
    """A net of one layer with spread weights and a bias."""
    if kind in ("matmul", "transposed"):
        x, by_row = n.input(12, 40), kind == "transposed"
        return n.done(n.matmul(x, spread(n, *((12, 40) if by_row else (40, 12))), n.w(12), transpose_right=by_row))
    if "heads" in kind:  # of constants, as keys and values that are learned
        by_row, turned = kind.startswith("transposed"), kind.startswith("turned")
        x = n.input(1, 3, 40, 12) if turned else n.input(1, 3, 12, 40)
        weight = spread(n, 3, *((12, 40) if by_row else (40, 12)))
        return n.done(n.matmul(x, weight, transpose_left=turned, transpose_right=by_row))
    x = n.input(1, 8, 10, 10)
    shape, group = {"grouped": ((8, 4, 3, 3), 2), "depthwise": ((8, 1, 3, 3), 8)}.get(kind, ((6, 8, 3, 3), 1))
    if "deconv" in kind:
        group = 2 if "grouped" in kind else 1
        return n.done(n.deconv(x, spread(n, 8, 3, 2, 2), n.w(3 * group), strides=(2, 2), group=group))
    stride = 2 if kind == "strided" else 1
    return n.done(n.conv(x, spread(n, *shape), n.w(shape[0]), pads=(1, 1, 1, 1), strides=(stride,) * 2, group=group))


def doubled(module: Module) -> list[Operation]:
    return [op for op in module.main.ops if op.attributes.get("quantize.mode") == "double"]


def output_error(module: Module, exact: Module, data: dict[str, np.ndarray]) -> float:
    """Root of the mean square, in steps of the output; rounding of the input does not count."""
    argument = module.main.arguments[0]
    assert argument.type.quant is not None
    fed = feed(module, {"data": data["data"][: argument.shape[0]]})
    real = fed["data"].astype(np.float64) * argument.type.quant.scale
    want = run_module(exact, {"data": real.astype(np.float32)})["out0"]
    got = run_module(module, fed)["out0"]
    quant = module.main.returned[0].type.quant
    assert quant is not None
    return float(np.sqrt(np.mean((got.astype(np.float64) - want / quant.scale) ** 2)))


@settings(max_examples=5, deadline=None)
@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
def test_two_terms_leave_little_but_the_rounding_of_results(kind: str, seed: int) -> None:
    """Rounding of a result is 0.29 steps; where two results are rounded and added, 0.41. Little else is left."""
    data = samples(layer(kind, Net(seed)), 12, seed)
    errors = []
    for options in ("{mode=int8}", DOUBLE):
        module = quantize(layer(kind, Net(seed)), options, data=data)
        assert len(doubled(module)) == (options == DOUBLE)
        errors.append(output_error(module, layer(kind, Net(seed)), data))
    summed = "group" in kind or kind == "depthwise"
    assert errors[1] ** 2 < (0.5 if summed else 0.4) ** 2 + (errors[0] / 4) ** 2
    assert errors[1] < max(errors[0], 0.45 if summed else 0.33)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, transposed=st.booleans())
def test_a_dense_layer_is_one_sum_that_is_rounded_once(seed: int, transposed: bool) -> None:
    """Against sums of whole numbers of Python's size, without the functions of the op."""
    kind = "transposed" if transposed else "matmul"
    module = quantize(layer(kind, Net(seed)), DOUBLE)
    (op,) = doubled(module)
    weight, bias = (module.weights[value.op.attributes["key"]].astype(object) for value in op.operands[1:])
    weight = weight.T if transposed else weight
    x = feed(module, {"data": samples(module, 12, seed)["data"]})["data"].astype(object)
    sums = x @ weight[:40] + ((x + 4) // 8) @ weight[40:] + bias
    shift = op.attributes["rshift"]
    want = np.clip((sums + (1 << shift - 1)) // (1 << shift), -128, 127)
    got = run_module(module, feed(module, {"data": samples(module, 12, seed)["data"]}))["out0"]
    assert (got == want).all()


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_a_depthwise_layer_is_the_sum_of_two_results(seed: int) -> None:
    """The second one is finer by a power of two, never saturates, and the first is what the layer was."""
    data = samples(layer("depthwise", Net(seed)), 4, seed)
    module, single = (quantize(layer("depthwise", Net(seed)), o, data=data) for o in (DOUBLE, "{mode=int8}"))
    (op,) = doubled(module)
    assert op.short_name == "mac_shift"
    first, second = (value.type.quant.threshold for value in op.operands)
    high, low = op.attributes["multipliers"]
    assert high == 64 and first / second == pytest.approx(high / low) and 128 * high <= 32767
    seen: dict[Any, np.ndarray] = {}
    fed = feed(module, {"data": data["data"][:1]})
    run_function(module, module.main, fed, seen.__setitem__)
    y1, y0 = (seen[value].astype(np.int64) for value in op.operands)
    assert (y1 == run_module(single, fed)["out0"]).all()
    assert np.abs(y0).max() < 127
    assert (seen[op.result] == np.clip((64 * y1 + low * y0 + 32) >> 6, -128, 127)).all()


def test_the_second_term_by_hand() -> None:
    """Eighths of a step of what rounding took away, halves up."""
    first = np.array([10, -3, 7, 0, 1], np.int8)
    weight = 0.5 * np.array([10.5, -3.5, 7.1, 0.06, 1.0625])
    rest = left_over(weight, first, 0.5)
    np.testing.assert_allclose(rest, [0.25, -0.25, 0.05, 0.03, 0.03125], atol=1e-12)
    assert second_term(rest, 0.5).tolist() == [4, -4, 1, 0, 1]


@given(most=st.floats(0, 1e3), threshold=st.floats(1e-3, 1e3))
@example(most=1.0, threshold=8.0)
def test_the_second_result_is_as_fine_as_its_range_allows(most: float, threshold: float) -> None:
    bits = finer_bits(most, threshold)
    assert 0 <= bits <= 6
    assert bits == 0 or most <= threshold / 2**bits
    assert bits == 6 or most > threshold / 2 ** (bits + 1)


@given(seed=seeds)
def test_the_second_term_leaves_a_sixteenth_of_a_step(seed: int) -> None:
    weight = np.random.default_rng(seed).normal(0, 1, 50)
    ints = linear(weight, None, 2.0, 7.0)
    rest = left_over(weight, ints.weight, ints.weight_scale)
    found = (ints.weight + second_term(rest, ints.weight_scale) / 8.0) * ints.weight_scale
    assert np.abs(found - weight).max() <= ints.weight_scale / 16 * (1 + 1e-9)
    assert np.abs(second_term(rest, ints.weight_scale)).max() <= 4


def test_weights_that_are_bytes_have_no_second_term() -> None:
    """With the thresholds of a table that make them so: steps of 1/64 for input and result, 8 bits behind them."""

    def build() -> Module:
        n = Net()
        array = n.random.integers(-100, 101, (6, 8, 1, 1)) / 256
        array.flat[0] = 127 / 256
        return n.done(n.conv(n.input(1, 8, 4, 4), n.constant(array)))

    table = CalibrationTable.of({"data": 2.0, "conv2.out": 2.0})
    module, single = build(), build()
    for each, options in ((module, "{mode=double}"), (single, "{mode=int8}")):
        run_pipeline(each, f"calibrate,quantize{options}", PassContext(table=table), verify_each=True)
    assert not doubled(module) and str(module) == str(single)


@pytest.mark.parametrize(("kind", "refused"), [("conv", "concat"), ("depthwise", "mac_shift")])
def test_a_layer_has_one_term_where_the_target_lacks_the_other_form(kind: str, refused: str) -> None:
    module = quantize(layer(kind, Net()), DOUBLE, Refusing(refused))
    assert [op.short_name for op in module.main.ops if op.operands] == ["conv", "return"]
    run_pipeline(module, "dead-code", PassContext(), verify_each=True)
    assert len(module.weights) == 2


class Charging(Refusing):
    """Charges by multiplications, and little for what else there is."""

    def cycles(self, op: Operation) -> int | None:
        return 1000 if op.type.is_float else max(op.products() // 100, 1)  # type: ignore[attr-defined]


def two_layers(n: Net) -> Module:
    """A large layer with even weights; a small one whose results are one input each, and small parts of many others."""
    x = n.relu(n.conv(n.input(1, 8, 12, 12), n.w(128, 8, 3, 3)))
    parts = n.random.uniform(-0.03, 0.03, (4, 128, 1, 1))
    parts[:, :4, 0, 0] += np.eye(4)
    return n.done(n.conv(x, n.constant(parts)))


def choose(options: str, **context: Any) -> tuple[Module, PassContext]:
    module = two_layers(Net(4))
    data = {"data": np.random.default_rng(1).normal(0, 1, (12, 8, 12, 12)).astype(np.float32)}
    ctx = PassContext(data=data, target=Charging(), **context)
    run_pipeline(module, f"calibrate{{method=max}},quantize{options},dead-code", ctx, verify_each=True)
    return module, ctx


def test_the_layer_that_matters_is_doubled_where_that_costs_little(tmp_path: Path) -> None:
    module, ctx = choose(f'{{table="{tmp_path / "net.modes"}"}}')
    (op,) = doubled(module)
    assert op.location == module.main.ops[-2].location
    (note,) = [note for note in ctx.notes if note.startswith("quantization modes")]
    assert note.startswith("quantization modes: 1 int8, 1 double; outputs are at most")
    rows = [line.split() for line in (tmp_path / "net.modes").read_text().splitlines()[2:]]
    assert [row[1] for row in rows] == ["int8", "int8", "double"]
    assert "int8 would" in (tmp_path / "net.modes").read_text()
    again, _ = choose(f'{{table="{tmp_path / "net.modes"}"}}')
    assert str(again) == str(module)


def test_nothing_is_doubled_where_no_cycle_may_be_spent() -> None:
    module, _ = choose("{max_cycles=1}")
    assert not doubled(module)


@pytest.mark.parametrize(("size", "on_host"), [(4.0, False), (8.0, True)])
def test_two_terms_mend_what_one_ruins_unless_the_host_brings_far_more(size: float, on_host: bool) -> None:
    """Weights that meet only zeros are so large that one term leaves the others half a step or less."""
    n = Net(4)
    first = n.random.uniform(-1, 1, (128, 8, 3, 3))
    first[7] = 0
    x = n.relu(n.conv(n.input(1, 8, 12, 12), n.constant(first)))
    parts = n.random.uniform(-0.03, 0.03, (4, 128, 1, 1))
    parts[:, 7] = size
    module = n.done(n.conv(x, n.constant(parts)))
    data = {"data": np.random.default_rng(1).normal(0, 1, (12, 8, 12, 12)).astype(np.float32)}
    ctx = PassContext(data=data, target=Charging())
    run_pipeline(module, "calibrate{method=max},quantize,dead-code", ctx, verify_each=True)
    assert len(doubled(module)) == (not on_host)
    assert any("place.cpu" in op.attributes for op in module.main.ops) == on_host
    worst = re.search(r"at most ([\d.]+)% from float.*?, ([\d.]+)% with the fewest", ctx.notes[-1])
    assert worst is not None and float(worst[1]) < 20 and float(worst[2]) > 50


def test_floats_on_the_host_are_the_last_cure() -> None:
    modules = [choose(f"{{max_error={percent}}}")[0] for percent in (4, 1)]
    assert len(doubled(modules[0])) == 1
    assert not any("place.cpu" in op.attributes for op in modules[0].main.ops)
    assert any("place.cpu" in op.attributes for op in modules[1].main.ops)


def test_real_outputs_of_doubled_nets_are_nearer_to_float() -> None:
    data = samples(two_layers(Net(4)), 6)
    one = {"data": data["data"][:1]}
    want = run_module(two_layers(Net(4)), one)["out0"]
    errors = [
        np.linalg.norm(real_outputs(quantize(two_layers(Net(4)), options, data=data), one)["out0"] - want)
        for options in ("{mode=int8}", DOUBLE)
    ]
    assert errors[1] < 0.6 * errors[0]
