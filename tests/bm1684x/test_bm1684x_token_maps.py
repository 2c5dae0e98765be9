"""Tokens of maps and maps of tokens stay in lanes, however short their rows are, as do heads of several images."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder


def tokens_of_a_map(side: int, width: int, images: int = 1) -> Module:
    """A map becomes tokens, which are normalised, and a map again, as in SegFormer."""
    b, rng = Builder.new("net"), np.random.default_rng(0)

    def constant(*shape: int) -> Value:
        return b.weight((rng.standard_normal(shape) / 4).astype(np.float32), "w")

    x = b.conv(b.input("x", TensorType((images, 8, side, side))), constant(width, 8, 1, 1), constant(width))
    rows = b.permute(b.reshape(x, shape=[images, width, side * side]), order=[0, 2, 1])
    rows = b.layer_norm(rows, constant(width), constant(width), axis=2)
    back = b.reshape(b.permute(rows, order=[0, 2, 1]), shape=[images, width, side, side])
    return b.outputs([b.conv(back, constant(8, width, 1, 1), constant(8))], ["y"])


def attention(images: int, tokens: int, heads: int, width: int) -> Module:
    b, rng = Builder.new("net"), np.random.default_rng(0)
    shape = (images, tokens, heads * width)
    x = b.input("x", TensorType(shape))
    flat, parts = b.reshape(x, shape=[images * tokens, shape[2]]), []
    for name in "qkv":
        matrix = b.weight((rng.standard_normal((shape[2],) * 2) / 8).astype(np.float32), name)
        split = b.reshape(b.matmul(flat, matrix), shape=[images, tokens, heads, width])
        parts.append(b.permute(split, order=[0, 2, 1, 3]))
    scores = b.softmax(b.matmul(parts[0], parts[1], transpose_right=True), axis=3)
    mixed = b.permute(b.matmul(scores, parts[2]), order=[0, 2, 1, 3])
    return b.outputs([b.reshape(mixed, shape=shape)], ["y"])


@pytest.mark.parametrize("precision", ["f16", "f32"])
@pytest.mark.parametrize("side, width", [(64, 32), (60, 24), (31, 33)])
def test_tokens_of_a_map_never_leave_local_memory(side: int, width: int, precision: str) -> None:
    module = tokens_of_a_map(side, width)
    result = bmcompiler.compile_module(module, target="bm1684x", quantize=precision, check="always")
    analysis = analysis_of("bm1684x", result.model)
    assert analysis is not None and analysis.timing().spill == 0


@pytest.mark.parametrize("side, images", [(16, 2), (9, 3)])
def test_tokens_of_several_maps_have_the_same_bits(side: int, images: int) -> None:
    module = tokens_of_a_map(side, 32, images)
    bmcompiler.compile_module(module, target="bm1684x", quantize="f16", check="always")


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("images, tokens", [(4, 64), (2, 128), (2, 65), (3, 40)])
def test_heads_of_images_are_read_in_place(images: int, tokens: int, precision: str) -> None:
    """Rows that fill lanes lie alike image by image and as one matrix; others are made image by image."""
    module = attention(images, tokens, 4, 32)
    result = bmcompiler.compile_module(module, target="bm1684x", quantize=precision, check="always")
    analysis = analysis_of("bm1684x", result.model)
    assert analysis is not None
    heads = [layer.transfer for layer in analysis.timing().layers if layer.kind == "permute"]
    assert heads and not any(heads)
