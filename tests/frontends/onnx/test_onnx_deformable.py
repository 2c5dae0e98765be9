"""DeformConv against plain loops, whole on the chips."""

from __future__ import annotations

from itertools import product
from math import floor
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import op_model

import bmcompiler
from bmcompiler.errors import ShapeError
from bmcompiler.interpreter import run_module

OPSET = 19
DRAWN = range(8)


def drawn(seed: int) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    """Inputs of the op, bias and mask among them or not, and its attributes."""
    rng = np.random.default_rng(seed)
    n, group, offset_group, wide = (int(rng.integers(1, 3)) for _ in range(4))
    c, out = 2 * group * offset_group, group * int(rng.integers(1, 4))
    sizes, taps = rng.integers(4, 9, 2), rng.integers(1, 4, 2)
    strides, dilations, pads = rng.integers(1, 3, 2), rng.integers(1, 1 + wide, 2), rng.integers(0, 3, 4)
    spans = [int(size + pads[i] + pads[2 + i] - dilations[i] * (taps[i] - 1) - 1) for i, size in enumerate(sizes)]
    results = [max(span, 0) // int(stride) + 1 for span, stride in zip(spans, strides)]
    if min(spans) < 0:
        return drawn(seed + 100)

    def reals(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    count = offset_group * int(taps.prod())
    inputs: list[np.ndarray | None] = [reals(n, c, *sizes), reals(out, c // group, *taps)]
    inputs.append(2 * reals(n, 2 * count, *results))
    inputs.append(reals(out) if seed % 2 else None)
    inputs.append(reals(n, count, *results) if seed % 3 else None)
    lists = {"strides": strides, "dilations": dilations, "pads": pads}
    return inputs, {"group": group, "offset_group": offset_group, **{k: v.tolist() for k, v in lists.items()}}


def sampled(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """Between pixels, each channel; outside there are zeros."""
    total = np.zeros(len(image))
    for row, column in product((floor(y), floor(y) + 1), (floor(x), floor(x) + 1)):
        if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
            total += (1 - abs(y - row)) * (1 - abs(x - column)) * image[:, row, column]
    return total


def meant(inputs: list[np.ndarray | None], how: dict[str, Any]) -> np.ndarray:
    x, weight, offset, bias, mask = (None if each is None else each.astype(np.float64) for each in inputs)
    assert x is not None and weight is not None and offset is not None
    (n, c), (out, per_group, kh, kw), places = x.shape[:2], weight.shape, offset.shape[2:]
    moved = offset.reshape(n, how["offset_group"], kh, kw, 2, *places)
    masks = None if mask is None else mask.reshape(n, how["offset_group"], kh, kw, *places)
    y = np.zeros((n, out, *places))
    shared = c // how["offset_group"]
    for image, part, i, j, v, u in product(*map(range, (n, how["offset_group"], kh, kw, *places))):
        down, right = moved[image, part, i, j, :, v, u]
        at_y = v * how["strides"][0] - how["pads"][0] + i * how["dilations"][0] + down
        at_x = u * how["strides"][1] - how["pads"][1] + j * how["dilations"][1] + right
        found = sampled(x[image, part * shared : (part + 1) * shared], at_y, at_x)
        if masks is not None:
            found *= masks[image, part, i, j, v, u]
        for channel, o in product(range(shared), range(out)):
            inner = part * shared + channel - o // (out // how["group"]) * per_group
            if 0 <= inner < per_group:
                y[image, o, v, u] += weight[o, inner, i, j] * found[channel]
    return y if bias is None else y + bias[:, None, None]


def made(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray], np.ndarray]:
    """Weight and bias are constants in most of the models."""
    inputs, how = drawn(seed)
    while inputs[-1] is None:
        inputs.pop()
    constants = [i for i in (1, 3) if i < len(inputs) and inputs[i] is not None and seed % 4 < 3]
    model, feeds = op_model("DeformConv", inputs, constants, how, opset=OPSET)
    return model, feeds, meant([*inputs, None, None][:5], how)


@pytest.mark.parametrize("seed", DRAWN)
def test_windows_whose_taps_are_moved(seed: int) -> None:
    model, feeds, wanted = made(seed)
    (found,) = run_module(bmcompiler.load_network(model), feeds).values()
    assert np.abs(found - wanted).max() < 2e-5 * max(np.abs(wanted).max(), 1)


@pytest.mark.parametrize("target", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("seed", DRAWN[:3])
def test_they_are_whole_on_the_chips(seed: int, target: str) -> None:
    model, feeds, wanted = made(seed)
    result = bmcompiler.compile(model, target=target, quantize="f32", check="always")
    assert {row.where for row in result.rows} <= {target, "view", "alias"}
    (found,) = result.run(feeds).values()
    assert np.abs(found - wanted).max() < 2e-5 * max(np.abs(wanted).max(), 1)


@pytest.mark.parametrize(("index", "words"), [(2, "offset .* does not fit"), (4, "mask .* does not fit")])
def test_what_does_not_fit_is_said(index: int, words: str) -> None:
    inputs, how = drawn(1)
    inputs[index] = np.zeros((1, 3, 2, 2), np.float32)
    model, _ = op_model("DeformConv", inputs, [], how, opset=OPSET)
    with pytest.raises(ShapeError, match=words):
        bmcompiler.load_network(model)
