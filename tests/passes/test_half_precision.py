"""Which ops become 16-bit floats, and what stands where types meet."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.errors import UsageError
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target


def halved(b: Builder, result: Value, dtype: str = "f16", target: str = "bm1684x") -> tuple[Module, list[str]]:
    """The net with this result after the pass, and the notes of the pass."""
    module = b.outputs([result], ["y"])
    ctx = PassContext(target=find_target(target))
    run_pipeline(module, f"half-precision{{dtype={dtype}}},dead-code", ctx)
    verify_module(module)
    return module, ctx.notes


def shown(module: Module) -> list[tuple[str, ...]]:
    """(name, types of operands, type of the result) of every op that computes."""
    ops = [op for op in module.main.ops[:-1] if op.short_name != "weight"]
    return [(op.short_name, *(v.dtype for v in (*op.operands, *op.results))) for op in ops]


def net(channels: int = 4, group: int = 1) -> tuple[Builder, Value]:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, channels, 6, 6), "f32"))
    weight = b.weight(np.full((channels, channels // group, 3, 3), 0.1, np.float32), "w")
    return b, b.conv(x, weight, b.weight(np.ones(channels, np.float32), "c"), group=group)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums_of_products_keep_their_bias_in_f32_and_borders_their_types(dtype: str) -> None:
    module, notes = halved(*net(), dtype)
    wanted = [("cast", "f32", dtype), ("conv", dtype, dtype, "f32", dtype), ("cast", dtype, "f32")]
    assert shown(module) == wanted
    assert notes == [f"1 ops are computed in {dtype}, 0 in f32"]


def test_the_bias_of_a_depthwise_convolution_has_the_type_of_the_data() -> None:
    module, _ = halved(*net(4, 4))
    assert shown(module)[1] == ("conv", "f16", "f16", "f16", "f16")


def test_what_follows_stays_in_the_type_and_what_the_target_refuses_is_f32() -> None:
    b, y = net()
    z = b.relu(b.concat(y, y, axis=1))
    module, notes = halved(b, b.add(b.softmax(z, axis=1), z))
    names = [row[0] for row in shown(module)]
    assert names == ["cast", "conv", "concat", "relu", "cast", "softmax", "cast", "add", "cast"]
    assert {row[0]: row[1:] for row in shown(module)}["softmax"] == ("f32", "f32")
    assert shown(module)[-2] == ("add", "f16", "f16", "f16")
    assert notes == ["4 ops are computed in f16, 1 in f32"]


def test_nothing_before_the_first_sum_of_products_changes() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4, 6, 6), "f32"))
    module, notes = halved(b, b.relu(b.add(x, x)))
    assert shown(module) == [("add", "f32", "f32", "f32"), ("relu", "f32", "f32")]
    assert notes == []


def test_means_of_many_elements_are_f32() -> None:
    b, y = net(72)
    module, _ = halved(b, b.avg_pool(b.pad(y, pads=(0, 0, 0, 0, 1, 0, 1, 0)), kernel=(5, 5)))
    assert [row for row in shown(module) if row[0] == "avg_pool"] == [("avg_pool", "f32", "f32")]
    b, y = net(72)
    module, _ = halved(b, b.avg_pool(y, kernel=(4, 4)))
    assert [row for row in shown(module) if row[0] == "avg_pool"] == [("avg_pool", "f16", "f16")]


@pytest.mark.parametrize("form", ["add", "scale"])
@pytest.mark.parametrize(("least", "wanted"), [(1e-10, "f32"), (1e-6, "f16"), (0.0, "f16")])
def test_what_a_number_is_added_to_that_is_zero_in_f16_is_f32(form: str, least: float, wanted: str) -> None:
    """As the power of a spectrum before its logarithm: 0 has none."""
    b, y = net()
    power, small = b.mul(y, y), b.weight(np.full((4, 1, 1) if form == "add" else 4, least, np.float32))
    scale = b.weight(np.full(4, 2, np.float32))
    module, _ = halved(b, b.log(b.add(power, small) if form == "add" else b.scale(power, scale, small)))
    types = {row[0]: row[-1] for row in shown(module)}
    assert (types["mul"], types[form]) == (wanted, wanted)


def test_a_target_without_the_type_keeps_all_in_f32() -> None:
    module, notes = halved(*net(), target="bm1684")
    assert shown(module) == [("conv", "f32", "f32", "f32", "f32")]
    assert notes == []


def test_other_types_are_refused() -> None:
    with pytest.raises(UsageError, match="'i8' is no 16-bit float type"):
        halved(*net(), "i8")


@pytest.mark.parametrize(("size", "wanted"), [(1.0, "f16"), (3e4, "f32")])
def test_floats_of_integer_nets_stay_f32_where_calibration_found_large_numbers(size: float, wanted: str) -> None:
    b, x = net()
    weight = b.weight(np.full((4, 4, 1, 1), size, np.float32), "w")
    with b.at("float"):
        y = b.conv(x, weight)
    module = b.outputs([b.conv(y, b.weight(np.full((4, 4, 1, 1), 1e-3, np.float32), "w"))], ["y"])
    data = {"x": np.random.default_rng(0).uniform(-1, 1, (3, 4, 6, 6)).astype(np.float32)}
    ctx = PassContext(target=find_target("bm1684x"), data=data)
    scheme = "{scheme=channel,mode=channel,skip=float}"
    run_pipeline(module, f"calibrate{{method=max}},quantize{scheme},half-precision,dead-code", ctx, verify_each=True)
    convs = [types for name, *types in shown(module) if name == "conv"]
    assert [types[0] for types in convs] == ["i8", wanted, "i8"]


@pytest.mark.parametrize(("border", "wanted"), [("f32", "f32"), ("f64", "f16")])
def test_exact_sums_of_integers_in_a_net_of_other_inputs_are_f32(border: str, wanted: str) -> None:
    """Codes of bytes, as of MatMulInteger: their sums are beyond f16. A net of f64 alone means no such sums."""
    b = Builder.new("net")
    codes = b.cast(b.input("x", TensorType((1, 300), border)), dtype="f64")
    sums = b.matmul(codes, b.weight(np.full((300, 4), 100.0), "w"))
    module = b.outputs([b.cast(sums, dtype="f32")], ["y"])
    ctx = PassContext(target=find_target("bm1684x"))
    run_pipeline(module, "single-precision,half-precision{dtype=f16},dead-code", ctx)
    verify_module(module)
    assert [row[1:] for row in shown(module) if row[0] == "matmul"] == [(wanted,) * 3]
