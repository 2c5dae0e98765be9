"""Weights rounded by samples: sums come nearer to float, and what other samples do not confirm is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nets import Net

from bmcompiler.interpreter import run_function, run_module
from bmcompiler.ir import Module
from bmcompiler.numeric.arith import quantize_real
from bmcompiler.ops.core import Weight
from bmcompiler.passes.quantization.choice import reference, rounded
from bmcompiler.passes.quantization.look import Look
from bmcompiler.passes.quantization.moments import as_matrices, as_weight, rows_of
from bmcompiler.passes.quantization.rounding import WeightRounding, _pulls, descended
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant import calibration as calibration_task

RANDOM = np.random.default_rng(7)
PATTERNS = RANDOM.standard_normal((4, 3 * 8 * 8))


def samples(count: int, seed: int) -> np.ndarray:
    """Mixtures of four patterns: pixels go together, as those of pictures do."""
    mixed = np.random.default_rng(seed).standard_normal((count, 4)) @ PATTERNS
    return mixed.reshape(count, 3, 8, 8).astype(np.float32)


DATA = samples(48, 1)


def net() -> Module:
    """One weight of each result is large, so that the steps of the others are coarse."""
    n = Net()
    first, second = n.random.uniform(-1, 1, (8, 3, 3, 3)), n.random.uniform(-1, 1, (6, 8, 3, 3))
    first[:, 0, 0, 0] = second[:, 0, 0, 0] = 16
    x = n.relu(n.conv(n.input(1, 3, 8, 8), n.constant(first), n.w(8)))
    return n.done(n.conv(x, n.constant(second), n.w(6)))


def quantized(scheme: str, data: np.ndarray, option: str = "") -> tuple[Module, list[str]]:
    module, ctx = net(), PassContext(data={"data": data})
    run_pipeline(module, f"calibrate{{method=max}},quantize{{scheme={scheme},max_cycles=1{option}}},dead-code", ctx)
    return module, [note for note in ctx.notes if note.startswith("weights of")]


def weights(module: Module) -> list[bytes]:
    return [array.tobytes() for _, array in sorted(module.weights.items())]


def error(module: Module) -> float:
    """How far outputs are from float, on samples that calibration had not seen."""
    (argument,), (result,) = module.main.arguments, module.main.returned
    exact, total = net(), 0.0
    for x in samples(8, 2)[:, None]:
        fed = x if argument.type.quant is None else quantize_real(x, argument.type.quant.threshold)
        found = run_module(module, {"data": fed})["out0"]
        real = found if result.type.quant is None else found * result.type.quant.scale
        total += float(np.square(real - run_module(exact, {"data": x})["out0"]).sum())
    return total


@pytest.mark.parametrize("scheme", ["shift", "scale", "channel"])
def test_outputs_come_nearer_to_float(scheme: str) -> None:
    (module, notes), (plain, none) = (quantized(scheme, DATA, each) for each in ("", ",round_weights=false"))
    assert notes and not none
    assert error(module) < 0.9 * error(plain)
    assert weights(quantized(scheme, DATA)[0]) == weights(module)


def test_outputs_of_large_nets_that_are_as_near_as_wanted_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    near = ",max_error=90"
    assert quantized("channel", DATA, near)[1]
    monkeypatch.setattr(rounded, "_LARGE", 1000)
    assert quantized("channel", DATA)[1] and not quantized("channel", DATA, near)[1]


def test_what_other_samples_do_not_confirm_is_dropped() -> None:
    """The samples that judge meet weights that the measured ones said nothing of."""
    module = net()
    function = module.main
    op = next(op for op in function.ops if op.short_name == "conv")
    bright, dark = DATA[:1].copy(), DATA[:1].copy()
    bright[:, 1:], dark[:, :1] = 0, 0
    weight = module.weights[op.operands[1].op.attributes["key"]] + np.float32(0.4)
    nearest = np.rint(weight / 0.1).astype(np.int8)
    for judging, measured, changes in ((dark, bright, False), (DATA[:1], DATA[1:2], True)):
        found = WeightRounding(function)
        found.measure(module, function, [{"data": judging}, {"data": measured}])
        assert np.array_equal(found.integers(op, weight, nearest, 0.1), nearest) != changes


def test_another_input_shape_takes_over_the_integers_of_the_first() -> None:
    module = net()
    op = next(op for op in module.main.ops if op.short_name == "conv")
    weight = module.weights[op.operands[1].op.attributes["key"]]
    nearest = np.rint(weight / 0.1).astype(np.int8)
    first = WeightRounding(module.main)
    first.measure(module, module.main, [{"data": DATA[:1]}, {"data": DATA[1:2]}])
    again = WeightRounding(module.main, first.found)
    assert np.array_equal(again.integers(op, weight, nearest, 0.1), nearest)  # nothing is known of it yet
    found = first.integers(op, weight, nearest, 0.1)
    assert np.array_equal(again.integers(op, weight, nearest, 0.1), found)
    assert not np.array_equal(found, nearest)


def test_each_weight_is_on_one_side_of_its_real_number() -> None:
    reals = RANDOM.uniform(-127, 127, (2, 40, 5)).astype(np.float32)
    rows = (RANDOM.standard_normal((2, 90, 40)) + 1).astype(np.float32)
    moments = rows.transpose(0, 2, 1) @ rows
    pulls = moments / np.einsum("gkk->gk", moments)[:, :, None]
    codes = descended(reals, np.rint(reals), pulls)
    assert ((codes == np.floor(reals)) | (codes == np.ceil(reals))).all()
    before, after = (np.square(rows @ (each - reals)).sum() for each in (np.rint(reals), codes))
    assert after < 0.7 * before


@pytest.mark.parametrize(
    ("weight", "attributes"),
    [
        ((4, 6, 3, 3), {"pads": (1, 1, 1, 1)}),
        ((6, 1, 3, 2), {"group": 6, "strides": (2, 1), "pads": (0, 1, 2, 0)}),
        ((4, 3, 2, 3), {"group": 2, "dilations": (2, 3)}),
    ],
)
def test_rows_times_weights_are_the_results_of_a_convolution(weight: tuple[int, ...], attributes: dict) -> None:
    n = Net()
    module = n.done(n.b.conv(n.input(2, 6, 9, 8), n.w(*weight), **attributes))
    check_rows(module)


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_times_weights_are_the_results_of_a_product(transposed: bool) -> None:
    n = Net()
    x = n.b.reshape(n.input(2, 6, 9, 8), shape=(2, 6, 72))
    check_rows(n.done(n.b.matmul(x, n.w(*((5, 72) if transposed else (72, 5))), transpose_right=transposed)))


def check_rows(module: Module) -> None:
    op, seen = module.main.returned[0].op, {}
    x = RANDOM.standard_normal(module.main.arguments[0].shape).astype(np.float32)
    run_function(module, module.main, {"data": x}, seen.__setitem__)
    weight = module.weights[op.operands[1].op.attributes["key"]]
    matrices = as_matrices(op, weight)
    assert np.array_equal(as_weight(op, matrices, weight.shape), weight)
    found = rows_of(op, seen[op.operands[0]], 1 << 20) @ matrices
    results = seen[op.result] if op.short_name == "matmul" else np.moveaxis(seen[op.result], 1, -1)
    np.testing.assert_allclose(np.moveaxis(found, 0, 1).reshape(results.shape), results, atol=1e-4)
    assert rows_of(op, seen[op.operands[0]], 7).shape[1] == 7


def test_what_calibration_saw_is_what_would_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmcompiler.quant.calibration._VALUES_AT_ONCE", 1)  # a sample at a time, as of large nets
    runs: list[object] = []

    def counted(*given: Any) -> Any:
        runs.append(given)
        return run_function(*given)

    for module in (calibration_task, reference):
        monkeypatch.setattr(module, "run_function", counted)

    def compiled() -> tuple[Module, list[str]]:
        module, ctx = net(), PassContext(data={"data": DATA[:8]})
        run_pipeline(module, "calibrate{method=auto},quantize{scheme=channel,max_error=90},dead-code", ctx)
        return module, ctx.notes

    seen, once = compiled(), len(runs)
    assert once == 8  # calibration alone
    monkeypatch.setattr(Look, "complete", False)
    again = compiled()
    assert len(runs) - once == 8 * 2  # and what errors are measured from
    assert weights(seen[0]) == weights(again[0]) and seen[1] == again[1]


@pytest.mark.parametrize("rows", [1, 3, 500])
def test_inputs_that_are_always_zero_pull_nothing(rows: int) -> None:
    """Nor are they pulled by others; all other weights give way by moments over their own."""
    x = np.random.default_rng(2).standard_normal((2, rows, 5))
    x[:, :, 3] = 0
    moments = np.einsum("gri,grj->gij", x, x)
    found, share = _pulls(moments, rows), min(rows, 5) / (min(rows, 5) + 5)
    assert not found[:, 3].any() and not found[:, :, 3].any()
    for i, j in ((0, 1), (4, 2), (1, 1)):
        want = moments[:, i, j] / moments[:, i, i] * (1 if i == j else share)
        np.testing.assert_allclose(found[:, i, j], want, rtol=1e-6)


@pytest.mark.parametrize("scheme", ["shift", "scale"])
def test_integers_keep_the_names_of_their_weights(scheme: str) -> None:
    module, _ = quantized(scheme, DATA)
    names = {op.key for op in net().main.ops if isinstance(op, Weight)}
    layers = [op for op in module.main.ops if op.short_name == "conv"]
    found = [value.op.key for op in layers for value in op.operands[1:] if isinstance(value.op, Weight)]
    assert len(found) >= 4 and all(any(key.startswith(name) for name in names) for key in found), (found, names)
