"""Convolutions of weights that a net computes (style, dynamic filters, trackers): wholly on the chip."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder


class Window(NamedTuple):
    """A convolution or, where `plus` says rows and columns that the result has more, a transposed one."""

    input: tuple[int, int, int, int]
    channels: int
    kernel: tuple[int, int]
    group: int = 1
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    plus: tuple[int, int] | None = None
    bias: str = ""

    def module(self) -> Module:
        b, each = Builder.new("net"), self.channels // self.group
        depth = self.input[1] // self.group
        shape = (self.channels, depth) if self.plus is None else (self.input[1], each)
        x = b.input("x", TensorType(self.input, "f32"))
        weight = b.mul(
            b.input("w", TensorType((*shape, *self.kernel), "f32")),
            b.input("style", TensorType((1, shape[1], 1, 1), "f32")),
        )
        bias = []
        if self.bias == "computed":
            bias = [b.relu(b.input("bias", TensorType((self.channels,), "f32")))]
        elif self.bias:
            bias = [b.weight(np.linspace(-1, 1, self.channels, dtype=np.float32), "bias")]
        more: dict[str, Any] = {"strides": self.strides, "pads": self.pads, "dilations": self.dilations}
        more["group"] = self.group
        if self.plus is None:
            return b.outputs([b.conv(x, weight, *bias, **more)], ["y"])
        return b.outputs([b.deconv(x, weight, *bias, output_pads=self.plus, **more)], ["y"])


WINDOWS = {
    "style": Window((1, 16, 12, 12), 24, (3, 3), pads=(1, 1, 1, 1)),
    "batch-and-bias": Window((2, 5, 9, 7), 6, (2, 3), strides=(2, 1), pads=(1, 0, 0, 2), bias="computed"),
    "groups": Window((3, 8, 6, 10), 12, (3, 1), group=4, dilations=(2, 1), bias="constant"),
    "group-of-one-image": Window((1, 8, 6, 10), 4, (3, 3), group=2, dilations=(1, 3)),
    "pointwise": Window((1, 70, 5, 5), 3, (1, 1), bias="computed"),
    "strided-pointwise": Window((2, 3, 5, 5), 2, (1, 1), strides=(2, 3)),
    "tracker": Window((1, 128, 22, 22), 128, (4, 4), group=128),
    "trackers": Window((3, 70, 9, 11), 70, (3, 5), group=70, strides=(2, 1), pads=(1, 1, 2, 0), bias="computed"),
    "tracker-pair": Window((2, 32, 15, 15), 1, (5, 5)),
    "line": Window((1, 6, 1, 200), 6, (1, 5), group=6, pads=(0, 0, 4, 0)),
    "whole-map": Window((1, 12, 7, 5), 9, (7, 5)),
    "far-taps": Window((1, 2, 40, 9), 2, (3, 3), dilations=(17, 1), pads=(17, 18, 1, 1)),
    "wide-steps": Window((2, 65, 13, 7), 65, (3, 5), group=65, strides=(2, 3), pads=(2, 0, 1, 3), bias="computed"),
    "large-kernel": Window((1, 2, 9, 9), 2, (9, 9), group=2),
    "back-wide-step": Window((3, 10, 5, 4), 14, (4, 3), group=2, strides=(3, 1), pads=(1, 2, 0, 1), plus=(0, 0)),
    "back": Window((1, 6, 5, 7), 4, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1), plus=(1, 1), bias="constant"),
    "back-groups": Window((2, 6, 4, 3), 9, (2, 3), group=3, strides=(2, 3), plus=(0, 0)),
}


def numbers(module: Module) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    given = zip(module.main.input_names, module.main.arguments)
    return {name: random.standard_normal(value.shape).astype(np.float32) for name, value in given}


@pytest.mark.parametrize(
    ("chip", "precision"), [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16"), ("bm1684x", "bf16")]
)
@pytest.mark.parametrize("name", WINDOWS)
def test_they_run_on_the_chip(name: str, chip: str, precision: str) -> None:
    module = WINDOWS[name].module()
    feeds = numbers(module)
    wanted = run_module(module, feeds)["y"]
    result = bmcompiler.compile_module(module, target=chip, quantize=precision, check="always")
    assert {layer.where for layer in result.rows} <= {chip, "view"}
    error = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}[precision] * float(np.abs(wanted).max())
    np.testing.assert_allclose(result.run(feeds)["y"], wanted, rtol=0, atol=error)


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x", "bm1880"])
@pytest.mark.parametrize("name", ["style", "tracker", "back"])
def test_integers_stay_near_floats(name: str, chip: str) -> None:
    module = WINDOWS[name].module()
    feeds = numbers(module)
    wanted = run_module(module, feeds)["y"]
    result = bmcompiler.compile_module(module, target=chip, quantize="int8", data=feeds, check="always")
    assert np.linalg.norm(result.run(feeds)["y"] - wanted) < 0.05 * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        *(
            (name, chip)
            for chip in ("bm1684", "bm1684x")
            for name in ("wide-steps", "batch-and-bias", "back-wide-step")
        ),
        ("style", "bm1880"),
        ("back-wide-step", "bm1880"),
    ],
)
def test_dead_taps_and_outliers_do_no_harm(name: str, chip: str) -> None:
    module = WINDOWS[name].module()
    feeds = numbers(module)
    feeds["x"][:, 1] *= 1e4
    feeds["w"].flat[::7] = 0
    feeds["w"].flat[3] *= 500
    wanted = run_module(module, feeds)["y"]
    result = bmcompiler.compile_module(module, target=chip, quantize="int8", data=feeds, check="always")
    assert np.linalg.norm(result.run(feeds)["y"] - wanted) < 0.01 * np.linalg.norm(wanted)


def test_maps_of_their_own_weights_are_read_once() -> None:
    """Sums of scaled slices take 199,000 cycles."""
    result = bmcompiler.compile_module(WINDOWS["tracker"].module(), target="bm1684x", quantize="f32")
    timing = estimate(result)
    assert timing is not None and timing.cycles < 12_000
