"""The quantize pass with real scales: every rule against the float op, in every mode, and what stays in float."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_target import FakeTarget
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import Net, names

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Operation, Quant, Value
from bmcompiler.numeric.quant_modes import dequantize, quantize_away
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.table import save_table
from bmcompiler.target import find_target

MODES = ("low", "high", "asymmetric", "channel", "shifts")
"""Those of the scheme "scale", of "channel", and "shifts" for the mode channel of the scheme "scale"."""
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


class Refusing(FakeTarget):
    """A target that runs everything but ops that a function picks."""

    name = "picky"

    def __init__(self, refused: Callable[[Any], bool]) -> None:
        self.refused = refused

    def kernel_for(self, op: Operation) -> Any:
        return self

    def unsupported_reason(self, op: Operation) -> str | None:
        return "too hard" if self.refused(op) else None


def samples(module: Module, count: int = 6, seed: int = 3, low: float = -2.0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        name: random.uniform(low, 2, (count, *value.shape[1:])).astype(np.float32)
        for name, value in zip(module.main.input_names, module.main.arguments)
    }


def quantize(
    module: Module, options: str = "", target: Any = None, data: dict[str, np.ndarray] | None = None
) -> Module:
    ctx = PassContext(data=data or samples(module), target=target)
    scheme = "channel" if "mode=channel" in options else "scale"
    options = options.replace("mode=shifts", "mode=channel")
    run_pipeline(
        module, f"fuse-activation,calibrate{{method=max}},quantize{{scheme={scheme}{options}}}", ctx, verify_each=True
    )
    return module


def error(build: Callable[[Net], Module], mode: str = "high", seed: int = 0, steps: float = 2.0) -> Module:
    """Integers differ from the float net by at most `steps` steps of the output, on inputs rounded to integers.

    Rounded inputs can make an output larger than any that the thresholds were found from, by few steps: it saturates.
    """
    module, float_module = build(Net(seed)), build(Net(seed))
    data = samples(module, 4, seed)
    quantize(module, f",mode={mode},io=integer", data=data)
    assert not any("quantize.float" in op.attributes for op in module.main.ops), str(module)
    fed, rounded = {}, {}
    for name, value in zip(module.main.input_names, module.main.arguments):
        quant = quant_of(value)
        fed[name] = quantize_away(data[name][: value.shape[0]], quant.scale, value.dtype, quant.zero_point)
        rounded[name] = dequantize(fed[name], quant.scale, quant.zero_point)
    want, raw = run_module(float_module, rounded)["out0"], run_module(module, fed)["out0"]
    quant = quant_of(module.main.returned[0])
    got = dequantize(raw, quant.scale, quant.zero_point)
    assert got.shape == want.shape
    limits = np.iinfo(raw.dtype)
    held = np.clip(
        want, *(dequantize(np.array(end), quant.scale, quant.zero_point) for end in (limits.min, limits.max))
    )
    np.testing.assert_allclose(held, want, rtol=0, atol=max(steps, 3) * quant.scale)
    np.testing.assert_allclose(got, held, rtol=0, atol=steps * quant.scale)
    return module


def quant_of(value: Value) -> Quant:
    assert value.type.quant is not None
    return value.type.quant


def weight_steps(taps: int) -> float:
    """Output steps that `taps` weights, each rounded by half of at most 1/64 of the largest, can cost at |x| <= 2."""
    return 3 + taps * 0.5


def dtypes(module: Module, op: str) -> list[str]:
    return [o.results[0].dtype for o in module.main.ops if o.short_name == op]


@given(seeds, st.sampled_from(MODES), st.integers(1, 4), st.integers(1, 3), st.booleans(), st.booleans())
@few
def test_conv(seed: int, mode: str, c: int, k: int, bias: bool, relu: bool) -> None:
    def build(n: Net) -> Module:
        x = n.input(1, c, 7, 7)
        y = n.conv(x, n.w(3, c, k, k), *([n.w(3)] if bias else []), strides=(2, 1), pads=(1, 0, 1, 0))
        return n.done(n.relu(y) if relu else y)

    module = error(build, mode, seed, weight_steps(c * k * k))
    (conv,) = [op for op in module.main.ops if op.short_name == "conv"]
    assert conv.attributes["mode"] == mode.replace("shifts", "channel") and conv.type.dtype == ("u8" if relu else "i8")  # type: ignore[attr-defined]
    assert "activation" not in conv.attributes


@given(seeds, st.sampled_from(MODES))
@few
def test_deconv_depthwise_and_inner_product(seed: int, mode: str) -> None:
    error(lambda n: n.done(n.deconv(n.input(1, 2, 4, 4), n.w(2, 3, 3, 3), strides=(2, 2))), mode, seed, 12)
    error(lambda n: n.done(n.conv(n.input(1, 3, 6, 6), n.w(3, 1, 3, 3), group=3)), mode, seed, 8)
    error(lambda n: n.done(n.matmul(n.input(2, 9), n.w(9, 4), n.w(4))), mode, seed, 8)
    error(lambda n: n.done(n.matmul(n.input(1, 3, 5), n.input(1, 5, 4, name="b"))), mode, seed, 3)


@pytest.mark.parametrize("mode", MODES)
def test_one_value_per_channel(mode: str) -> None:
    error(lambda n: n.done(n.scale(n.input(1, 3, 4, 5), n.w(3), n.w(3))), mode, steps=4)
    error(lambda n: n.done(n.mul(n.input(1, 3, 4, 5), n.w(3, 1, 1))), mode, steps=4)
    error(lambda n: n.done(n.add(n.input(1, 6), n.w(6))), mode, steps=4)


@given(seeds, st.integers(1, 4), st.booleans())
@few
def test_averages_are_rounded_once(seed: int, kernel: int, relu: bool) -> None:
    def build(n: Net) -> Module:
        x = n.input(1, 3, 8, 8)
        return n.done(n.avg_pool(n.relu(x) if relu else x, kernel=(kernel, kernel), strides=(2, 2)))

    error(build, seed=seed, steps=1.1)
    error(lambda n: n.done(n.reduce(n.input(1, 3, 8, 8), method="mean", axes=(2, 3), keepdims=False)), steps=0.51)


@pytest.mark.parametrize("op", ["sigmoid", "tanh", "leaky_relu", "elu", "hard_swish", "gelu", "exp", "abs"])
def test_functions_by_table(op: str) -> None:
    error(lambda n: n.done(getattr(n, op)(n.input(1, 4, 8))), steps=0.51)


@pytest.mark.parametrize("slopes", [1, 3])
def test_prelu(slopes: int) -> None:
    error(lambda n: n.done(n.prelu(n.input(1, 3, 6, 6), n.w(slopes, low=-0.3, high=0.5))), steps=2)


@given(seeds, st.sampled_from(["add", "sub", "mul", "max", "min"]), st.sampled_from(["full", "map", "one", "weight"]),
       st.booleans())  # fmt: skip
@few
def test_two_tensors(seed: int, op: str, other: str, positive: bool) -> None:
    def build(n: Net) -> Module:
        x = n.input(1, 3, 4, 5)
        operands: dict[str, Callable[[], Value]] = {
            "full": lambda: n.input(1, 3, 4, 5, name="b"),
            "map": lambda: n.input(1, 3, 1, 1, name="b"),
            "one": lambda: n.w(1),
            "weight": lambda: n.w(3, 4, 5),
        }
        return n.done(getattr(n, op)(n.abs(x) if positive else x, operands[other]()))

    error(build, seed=seed, steps=3.5)


def test_products_of_unsigned_tensors_fit_16_bits() -> None:
    module = error(lambda n: n.done(n.mul(n.abs(n.input(1, 9)), n.abs(n.input(1, 9, name="b")))), steps=2.5)
    assert names(module) == ["lut", "lut", "mul_shift", "muls_shift"] and dtypes(module, "mul_shift") == ["i16"]
    assert dtypes(module, "muls_shift") == ["u8"]


def test_moving_ops_are_exact_and_stay_unsigned() -> None:
    def build(n: Net) -> Module:
        x = n.max_pool(n.abs(n.input(1, 4, 6, 6)), kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
        a, b = n.split(x, axis=1, sizes=(1, 3))
        y = n.concat(b, a, axis=1)
        y = n.upsample(n.pad(y, pads=(0, 0, 0, 0, 1, 1, 0, 0)), scale=(2, 1))
        return n.done(n.tile(n.permute(y, order=(0, 2, 3, 1)), reps=(1, 1, 2, 1)))

    module = error(build, steps=0.51)
    assert {op.results[0].dtype for op in module.main.ops[2:-1]} == {"u8"}


def test_a_relu_after_a_saturating_op_is_no_work() -> None:
    def build(n: Net) -> Module:
        x = n.input(1, 3, 6, 6)
        return n.done(n.relu(n.avg_pool(n.conv(x, n.w(3, 3, 1, 1)), kernel=(2, 2))))

    module = error(build, steps=5)
    assert names(module) == ["conv", "avg_pool"] and dtypes(module, "avg_pool") == ["u8"]


@pytest.mark.parametrize("top", [6.0, 0.5])
def test_upper_bounds_saturate(top: float) -> None:
    def build(n: Net) -> Module:
        return n.done(n.clip(n.conv(n.input(1, 3, 6, 6), n.w(4, 3, 1, 1, low=-3, high=3)), min=0.0, max=top))

    module = error(build, steps=10 if top == 6 else 30)
    assert names(module) == ["conv"] and dtypes(module, "conv") == ["u8"]
    assert quant_of(module.main.returned[0]).scale * 255 <= top * 1.0001


def test_sums_with_relu_inside_end_unsigned() -> None:
    module = error(lambda n: n.done(n.relu(n.add(n.input(1, 9), n.input(1, 9, name="b")))), steps=2)
    assert names(module) == ["mac_shift"] and dtypes(module, "mac_shift") == ["u8"]


def test_prelu_leaves_positive_values_as_they_are() -> None:
    """Its result has the scale of its operand, whatever that is, unless that would be much coarser."""
    module = quantize(_with_slopes(0.5))
    (prelu,) = [op for op in module.main.ops if op.short_name == "prelu"]
    assert prelu.operands[0].type.quant == prelu.results[0].type.quant
    assert (prelu.attributes.get("multiplier", 1) >> prelu.attributes.get("rshift", 0)) == 1
    assert "muls_shift" not in names(module)


def _with_slopes(slope: float) -> Module:
    n = Net()
    x = n.conv(n.input(1, 3, 6, 6), n.w(3, 3, 1, 1))
    return n.done(n.conv(n.prelu(x, n.w(3, low=0.0, high=slope)), n.w(3, 3, 1, 1)))


# -- borders ------------------------------------------------------------------------------
def test_inputs_and_outputs_stay_float_unless_asked() -> None:
    def build(n: Net) -> Module:
        return n.done(n.conv(n.input(1, 3, 6, 6), n.w(3, 3, 1, 1)))

    module = quantize(build(Net()))
    assert names(module) == ["quantize", "conv", "dequantize"]
    assert module.main.ops[0].attributes == {"rounding": "even"}
    assert names(quantize(build(Net()), ",io=integer")) == ["conv"]


def test_what_has_no_integer_form_stays_in_float_on_the_chip() -> None:
    n = Net()
    module = quantize(n.done(n.softmax(n.matmul(n.input(1, 8), n.w(8, 4)))))
    assert names(module) == ["quantize", "matmul", "dequantize", "softmax"]
    softmax = module.main.ops[-2]
    assert (
        softmax.attributes["quantize.float"] == "'softmax' has no int8 form" and "place.cpu" not in softmax.attributes
    )


def test_a_refused_mode_falls_back_and_a_refused_op_stays_in_float() -> None:
    def build(n: Net) -> Module:
        return n.done(n.conv(n.input(1, 3, 6, 6), n.w(3, 3, 1, 1)))

    module = quantize(build(Net()), ",mode=asymmetric", Refusing(lambda op: op.attributes.get("mode") == "asymmetric"))
    assert [op.attributes["mode"] for op in module.main.ops if op.short_name == "conv"] == ["high"]
    refused = quantize(build(Net()), "", Refusing(lambda op: op.short_name == "conv" and not op.type.is_float))
    assert names(refused) == ["conv"] and refused.main.ops[-2].attributes["quantize.float"] == "too hard"


def test_a_product_without_16_bits_takes_the_nearest_scale() -> None:
    n = Net()
    module = n.done(n.mul(n.input(1, 9), n.input(1, 9, name="b")))
    quantize(module, ",io=integer,mode=high", Refusing(lambda op: op.results[0].dtype == "i16"))
    assert names(module) == ["mul_shift"] and dtypes(module, "mul_shift") == ["i8"]


@pytest.mark.parametrize("seed", range(4))
def test_low_products_cost_one_pass_over_the_larger_operand(seed: int) -> None:
    """The gate gets the scale for which the product has only to be shifted; in the other modes 16 bits lie between."""

    def build(n: Net) -> Module:
        gate = n.sigmoid(n.input(1, 5, 1, 1, name="gate"))
        return n.done(n.mul(n.input(1, 5, 6, 7), gate))

    low, high = (quantize(build(Net(seed)), f",io=integer,mode={mode}") for mode in ("low", "high"))
    assert [name for name in names(low) if name != "lut"] in (["mul_shift"], ["muls_shift", "mul_shift"])
    assert names(high) == ["lut", "mul_shift", "muls_shift"] and dtypes(high, "mul_shift") == ["i16"]
    (made,) = (op for op in low.main.ops if op.short_name == "mul_shift")
    x, gate, y = (value.type.quant for value in (*made.operands, made.results[0]))
    assert x and gate and y
    assert y.scale == pytest.approx(x.scale * gate.scale * 2.0 ** made.attributes["rshift"], rel=0.005)
    error(build, steps=4, mode="low")


def test_averages_with_a_free_scale_have_an_exact_multiplier() -> None:
    """One command; the multiplier of 8 bits is what the scale of the result says, to the last digit."""

    def build(n: Net, free: bool) -> Module:
        y = n.avg_pool(n.conv(n.input(1, 3, 14, 10), n.w(3, 3, 1, 1)), kernel=(7, 5), strides=(7, 5))
        return n.done(n.conv(y, n.w(3, 3, 1, 1)) if free else n.max(y, n.input(1, 3, 2, 2, name="b")))

    (pool,) = (op for op in quantize(build(Net(), True)).main.ops if op.short_name == "avg_pool")
    x, y = pool.operands[0].type.quant, pool.results[0].type.quant
    assert x and y and "scale" not in pool.attributes
    exact = pool.attributes["multiplier"] / 2.0 ** pool.attributes["rshift"]
    assert exact == pytest.approx(x.scale / y.scale / 35, rel=1e-6)
    (pool,) = (op for op in quantize(build(Net(), False), ",mode=high").main.ops if op.short_name == "avg_pool")
    assert pool.attributes["scale"] > 0


def test_averages_of_large_maps_have_a_real_factor_where_the_target_is_faster_so() -> None:
    def build(n: Net, size: int) -> Module:
        y = n.avg_pool(n.conv(n.input(1, 3, size, size), n.w(3, 3, 1, 1)), kernel=(size, size))
        return n.done(n.conv(y, n.w(3, 3, 1, 1)))

    for size, staged in ((10, False), (80, True)):
        (pool,) = (
            op
            for op in quantize(build(Net(), size), target=find_target("bm1684")).main.ops
            if op.short_name == "avg_pool"
        )
        assert (pool.attributes.get("scale", 0) > 0) == staged


def test_concat_of_signed_and_unsigned_tensors_is_signed() -> None:
    def build(n: Net) -> Module:
        x = n.input(1, 3, 6, 6)
        return n.done(n.concat(n.conv(x, n.w(3, 3, 1, 1)), n.relu(n.conv(x, n.w(3, 3, 1, 1))), axis=1))

    module = error(build, steps=5)
    assert dtypes(module, "concat") == ["i8"]


def test_mixed_nets_evaluate() -> None:
    """Float islands between integer layers, with a branch on each side."""
    n = Net()
    x = n.conv(n.input(1, 3, 6, 6), n.w(8, 3, 3, 3))
    y = n.softmax(x, axis=1)
    z = n.conv(n.add(x, y), n.w(4, 8, 1, 1))
    module = n.done(z, y)
    data = samples(module)
    want = run_module(module, {"data": data["data"][:1]})
    quantize(module, data=data)
    got = run_module(module, {"data": data["data"][:1]})
    for name, array in want.items():
        assert np.linalg.norm(got[name] - array) <= 0.03 * np.linalg.norm(array)


def test_results_that_only_float_layers_read_have_16_bits() -> None:
    def build(n: Net) -> Module:
        x = n.conv(n.input(1, 3, 6, 6), n.w(8, 3, 3, 3))
        return n.done(n.reshape(n.conv(x, n.w(4, 8, 1, 1)), shape=(1, 64)), n.softmax(x, axis=1))

    module = quantize(build(Net()), ",mode=high")
    assert names(module)[:2] == ["quantize", "conv"] and dtypes(module, "conv") == ["i8", "i16"]
    assert dtypes(quantize(build(Net()), ",mode=low"), "conv") == ["i8", "i8"]
    assert dtypes(quantize(build(Net()), ",mode=high,io=integer"), "conv") == ["i8", "i8"]
    narrow = quantize(build(Net()), ",mode=high", Refusing(lambda op: op.results[0].dtype == "i16"))
    assert dtypes(narrow, "conv") == ["i8", "i8"]


def test_tables_before_asymmetric_layers_have_a_zero_point() -> None:
    def build(n: Net) -> Module:
        y = n.leaky_relu(n.conv(n.input(1, 3, 8, 8), n.w(8, 3, 3, 3)), slope=0.02)
        return n.done(n.conv(y, n.w(4, 8, 3, 3), n.w(4), pads=(1, 1, 1, 1)))

    module = error(build, "asymmetric", steps=20)
    (table,) = [op for op in module.main.ops if op.short_name == "lut"]
    quant = quant_of(table.results[0])
    assert table.results[0].dtype == "u8" and 0 < quant.zero_point < 20
    last = module.main.ops[-2]
    assert last.attributes["zero_points"] == (quant.zero_point, 0, 0)
    assert dtypes(error(build, "high", steps=20), "lut") == ["i8"]


def test_a_zero_point_that_a_refused_mode_cannot_take_is_removed() -> None:
    n = Net()
    y = n.leaky_relu(n.conv(n.input(1, 3, 8, 8), n.w(8, 3, 3, 3)), slope=0.02)
    module = n.done(n.conv(y, n.w(4, 8, 3, 3), n.w(4)))
    data = samples(module)
    want = run_module(module, {"data": data["data"][:1]})["out0"]
    quantize(module, ",mode=asymmetric", Refusing(lambda op: bool(op.attributes.get("zero_points"))), data)
    assert names(module) == ["quantize", "conv", "lut", "lut", "conv", "dequantize"]
    got = run_module(module, {"data": data["data"][:1]})["out0"]
    assert np.linalg.norm(got - want) <= 0.03 * np.linalg.norm(want)


def test_a_table_of_modes_that_was_made_from_samples_goes_with_one_of_thresholds(tmp_path: Path) -> None:
    """Only with samples a softmax of two numbers becomes a sigmoid, and the layer before it makes other numbers."""
    data = {"data": np.random.default_rng(1).standard_normal((8, 6)).astype(np.float32)}

    def net() -> Module:
        n = Net()
        return n.done(n.softmax(n.matmul(n.relu(n.matmul(n.input(1, 6), n.w(6, 16))), n.w(16, 2)), axis=1))

    options: dict[str, Any] = {"target": "bm1684", "quantize": "int8", "quant_table": tmp_path / "modes"}
    bmcompiler.compile_module(net(), **options, data=data)
    layers = [line.split()[0] for line in (tmp_path / "modes").read_text().splitlines()[2:]]
    ctx = PassContext(data=data)
    run_pipeline(net(), "calibrate", ctx)
    assert ctx.table is not None
    save_table(ctx.table, tmp_path / "thresholds")
    found = bmcompiler.compile_module(net(), **options, table=tmp_path / "thresholds")
    assert layers == ["relu3.out", "matmul5.out", "softmax6.out"]
    assert all(row.where == "bm1684" for row in found.rows)


def test_the_report_says_what_became_of_a_layer() -> None:
    """Every figure of the line, from the integers that were made."""
    n, lines = Net(), list[str]()
    module = n.done(n.conv(n.input(1, 3, 6, 6), n.w(4, 3, 3, 3), n.w(4)))
    ctx = PassContext(data=samples(module), log=lines.append)
    run_pipeline(module, "calibrate{method=max},quantize{scheme=scale,mode=high,report=true}", ctx)
    (conv,) = (op for op in module.main.ops if op.short_name == "conv")
    bias = np.abs(module.weights[conv.bias.op.key].astype(int)).max()
    assert lines == [
        f"conv3 (conv): mode high, factor {conv.attributes['scale']:.5g} -> i16, "
        f"scale {conv.result.type.quant.scale:.5g}, largest bias {bias}"
    ]
