"""Ops on one image become ops on bands of rows, and compute the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from fake_target import FakeTarget
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.band_forms import best_rows
from bmcompiler.passes.layout.bands import FillImageSlots
from bmcompiler.passmanager import PassContext


class Eager(FakeTarget):
    """Every op on bands pays."""

    name = "eager"

    def image_slots(self, dtype: str) -> int:
        return 4 if dtype in ("i8", "u8") else 1

    def local_cycles(self, op: object) -> int:
        return 0 if op.results[0].shape[0] == 4 or op.short_name == "from_bands" else 9  # type: ignore[attr-defined]


class Layers:
    """A net of bytes under construction."""

    def __init__(self, seed: int, *shape: int) -> None:
        self.rng, self.b = np.random.default_rng(seed), Builder.new("net")
        self.x = self.b.input("x", TensorType(shape, "i8"))

    def weight(self, *shape: int, dtype: str = "int8") -> Value:
        return self.b.weight(self.rng.integers(-100, 100, shape).astype(dtype), "w")

    def conv(self, x: Value, channels: int, kernel: int, stride: int, dilation: int = 1, **more: object) -> Value:
        _, c, h, w = x.shape
        size = dilation * (kernel - 1)
        pads = (size // 2, size - size // 2, size // 2, size // 2)
        out = ((h + size - size - 1) // stride + 1, (w + 2 * (size // 2) - size - 1) // stride + 1)
        attributes = {"strides": (stride,) * 2, "pads": pads, "dilations": (dilation,) * 2, **more}
        bias = None if more.get("mode") == "asymmetric" else self.weight(channels, dtype="int16")
        weight = self.weight(channels, c // int(more.get("group", 1)), kernel, kernel)  # type: ignore[call-overload]
        return self.b.conv(x, weight, bias, out=TensorType((1, channels, *out), "i8"), **attributes)

    def module(self, *values: Value) -> Module:
        return self.b.outputs(list(values), [f"y{i}" for i in range(len(values))])


LOW = {"mode": "low", "scale": 2.0**-9}
ASYMMETRIC = {"mode": "asymmetric", "scale": 0.002, "zero_points": (3, 0, 5)}


def banded(module: Module, target: object = None) -> tuple[dict[str, np.ndarray], Counter[str], Module]:
    """Outputs before the pass, ops after it; both nets compute the same."""
    verify_module(module)
    (argument,) = module.main.arguments
    x = {"x": np.random.default_rng(5).integers(-128, 128, argument.shape).astype(np.int8)}
    before = run_module(module, x)
    FillImageSlots().run(module, PassContext(target=target or Eager()))
    verify_module(module)
    for name, array in run_module(module, x).items():
        np.testing.assert_array_equal(array, before[name])
    return before, Counter(op.short_name for op in module.main.ops), module


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_chains_compute_the_same(data: st.DataObject) -> None:
    def number(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    net = Layers(number(0, 99), 1, 4, number(5, 40), number(9, 12))
    value, b = net.x, net.b
    for _ in range(number(1, 5)):
        _, c, h, w = value.shape
        if min(h, w) < 4:
            break
        kind = data.draw(
            st.sampled_from(["conv", "depthwise", "max_pool", "avg_pool", "deconv", "upsample", "eltwise"])
        )
        kernel, stride = number(1, 4), number(1, 3)
        if kind == "conv":
            mode = data.draw(st.sampled_from([LOW, ASYMMETRIC]))
            value = net.conv(value, number(2, 5), kernel, stride, number(1, 2), **mode)
        elif kind == "depthwise":
            value = net.conv(value, c, 3, min(stride, 2), group=c, **LOW)
        elif kind == "max_pool":
            pads = (min(kernel - 1, 1),) * 4
            ceil = data.draw(st.booleans())
            value = b.max_pool(value, kernel=(kernel,) * 2, strides=(stride,) * 2, pads=pads, ceil_mode=ceil)
        elif kind == "avg_pool":
            value = b.avg_pool(
                value, kernel=(kernel,) * 2, strides=(stride,) * 2, ceil_mode=data.draw(st.booleans()),
                multiplier=3, rshift=4,
            )  # fmt: skip
        elif kind == "deconv":
            top, left = number(0, kernel - 1), number(0, kernel - 1)
            size = ((h - 1) * stride + kernel - top, (w - 1) * stride + kernel - left)
            pads = (top, 0, left, 0)
            weight, out = net.weight(c, 3, kernel, kernel), TensorType((1, 3, *size), "i8")
            value = b.deconv(value, weight, strides=(stride,) * 2, pads=pads, out=out, **LOW)
        elif kind == "upsample":
            value = b.upsample(value, scale=(stride, 2))
        else:
            value = b.mac_shift(value, b.relu(value), multipliers=(3, 2), rshift=2, out=value.type)
    banded(net.module(value))


def test_a_net_stays_on_bands_between_its_ends() -> None:
    net = Layers(0, 1, 8, 28, 9)
    a = net.conv(net.x, 8, 3, 1, **LOW)
    b = net.conv(a, 8, 1, 1, **LOW)
    c = net.b.mac_shift(a, b, multipliers=(1, 1), rshift=1, out=a.type)
    d = net.b.concat(net.conv(c, 6, 3, 2, **LOW), net.conv(c, 4, 1, 2, **LOW), axis=1)
    _, ops, module = banded(net.module(net.b.relu(d)))
    assert (ops["to_bands"], ops["regroup_bands"], ops["from_bands"]) == (1, 1, 1)
    assert [op.type.shape[2] for op in module.main.ops if op.short_name == "mac_shift"] == [8]


def test_branches_that_join_one_after_the_other_are_one_region() -> None:
    net = Layers(0, 1, 8, 28, 9)
    branches = [net.conv(net.x, 8, 1, 1, **LOW) for _ in range(4)]
    joined = branches[0]
    for branch in branches[1:]:
        joined = net.b.mac_shift(joined, branch, multipliers=(1, 1), rshift=1, out=branch.type)
    last = net.b.mac_shift(branches[0], joined, multipliers=(1, 1), rshift=1, out=joined.type)
    _, ops, _ = banded(net.module(last))
    assert (ops["to_bands"], ops["regroup_bands"], ops["from_bands"]) == (1, 0, 1)


def test_other_ops_read_the_image() -> None:
    net = Layers(0, 1, 4, 12, 6)
    a = net.conv(net.x, 4, 3, 1, **LOW)
    gate = net.b.avg_pool(a, kernel=(12, 6), scale=0.01)
    scaled = net.b.mul_shift(a, gate, rshift=5, out=a.type)
    permuted = net.b.permute(scaled, order=(0, 2, 3, 1))
    _, ops, module = banded(net.module(permuted, a))
    assert ops["from_bands"] == 2
    pool = next(op for op in module.main.ops if op.short_name == "avg_pool")
    assert pool.operands[0].op is not None and pool.operands[0].op.short_name == "from_bands"


def test_of_operands_that_are_cut_differently_the_least_rows_lead() -> None:
    net = Layers(0, 1, 4, 104, 8)
    half = net.conv(net.x, 4, 3, 2, **LOW)  # 52 rows in bands of 14, as 104 are cut into 28
    quarter = net.conv(half, 4, 3, 2, **LOW)
    grown = net.b.upsample(net.conv(quarter, 4, 3, 2, **LOW), scale=(2, 2))  # 13 rows in bands of 4
    _, _, module = banded(net.module(net.b.concat(grown, quarter, axis=1)))
    rows = {op.short_name: op.type.shape[2] for op in module.main.ops if op.short_name in ("upsample", "concat")}
    assert rows == {"upsample": 8, "concat": 7}


def test_padding_below_an_image_is_not_what_bands_hold_there() -> None:
    net = Layers(0, 1, 4, 18, 9)
    pooled = net.b.max_pool(net.x, kernel=(2, 2), strides=(2, 2), pads=(1, 1, 1, 1))  # 10 rows in bands of 3
    _, ops, _ = banded(net.module(net.conv(pooled, 2, 2, 3, **LOW)))  # the last window reads row 10
    assert ops["regroup_bands"] == 1


def test_batches_and_single_rows_stay() -> None:
    for shape in ((2, 4, 12, 6), (1, 4, 3, 6)):
        net = Layers(0, *shape)
        y = net.b.relu(net.b.max_pool(net.x, kernel=(2, 2)))
        _, ops, _ = banded(net.module(y))
        assert "to_bands" not in ops


@pytest.mark.parametrize("op", ["max_pool", "avg_pool", "relu"])
def test_a_float_net_stays(op: str) -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4, 12, 6), "f32"))
    y = b.relu(x) if op == "relu" else getattr(b, op)(x, kernel=(2, 2))
    assert not FillImageSlots().run(b.outputs([y], ["y"]), PassContext(target=Eager())).modified


def test_bands_are_left_where_they_do_not_pay() -> None:
    class Reluctant(Eager):
        def local_cycles(self, op: object) -> int:
            return 9

    net = Layers(0, 1, 4, 12, 6)
    _, ops, _ = banded(net.module(net.b.relu(net.x)), Reluctant())
    assert "to_bands" not in ops
    net = Layers(0, 1, 4, 12, 6)
    assert not FillImageSlots().run(net.module(net.b.relu(net.x)), PassContext()).modified


@pytest.mark.parametrize(
    ("height", "rows"), [(7, 2), (14, 4), (28, 8), (56, 16), (112, 32), (224, 64), (5, 2), (10, 3), (20, 5), (80, 20)]
)
def test_rows_of_bands_can_be_halved_where_that_costs_little(height: int, rows: int) -> None:
    assert best_rows(height, 4) == rows


def test_the_default_pipeline_of_level_2_has_the_pass() -> None:
    assert [("fill-image-slots" in TARGET.pipeline("int8", level)) for level in (0, 1, 2)] == [False, False, True]
