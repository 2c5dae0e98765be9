"""Swin-T with seeded weights, as PyTorch exports it: windows of 7 x 7, every other time shifted, on 224 x 224 pixels.

Windows are cut by reshape and permute, shifts are two concatenations of slices each way, a table of position biases
[heads, 49, 49] is added to the scores, and in shifted layers a mask [windows, 1, 49, 49] that keeps apart what was not
neighbours. Between stages four neighbours become the channels of one place, slice by slice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from transformers import Encoder, real

WINDOW = 7
WIDTH, HEADS, DEPTHS = 96, (3, 6, 12, 24), (2, 2, 6, 2)
APART = -100.0
"""What the mask adds to scores of places that were not neighbours."""


class Swin(Encoder):
    """An encoder whose tokens are the places of a map [1, side, side, width]."""

    def __init__(self, name: str, side: int, width: int, heads: int) -> None:
        super().__init__(name, side * side, width, heads)
        self.side = side

    def rolled(self, name: str, source: str, shift: int) -> str:
        """Rows and columns moved around by `shift` places."""
        for axis in (1, 2):
            at = shift % self.side
            parts = [
                self.op("Slice", f"{name}/{part}{axis}", source, *(self.shape(n) for n in (low, high, axis)))
                for part, low, high in (("back", at, self.side), ("front", 0, at))
            ]
            source = self.op("Concat", f"{name}/axis{axis}", *parts, axis=axis)
        return source

    def windows(self, name: str, source: str) -> str:
        """[1, side, side, c] -> [windows, 49, c]."""
        count = self.side // WINDOW
        cut = self.op("Reshape", f"{name}/cut", source, self.shape(1, count, WINDOW, count, WINDOW, self.width))
        moved = self.op("Transpose", f"{name}/moved", cut, perm=[0, 1, 3, 2, 4, 5])
        return self.op("Reshape", name, moved, self.shape(count**2, WINDOW**2, self.width))

    def joined(self, name: str, source: str) -> str:
        """The inverse of `windows`."""
        count = self.side // WINDOW
        cut = self.op("Reshape", f"{name}/cut", source, self.shape(1, count, count, WINDOW, WINDOW, self.width))
        moved = self.op("Transpose", f"{name}/moved", cut, perm=[0, 1, 3, 2, 4, 5])
        return self.op("Reshape", name, moved, self.shape(1, self.side, self.side, self.width))

    def window_attention(self, name: str, source: str, shift: int) -> str:
        """[windows, 49, c] -> the same; query, key and value come from one product."""
        count, tokens, head = (self.side // WINDOW) ** 2, WINDOW**2, self.width // self.heads
        flat = self.linear(f"{name}/qkv", source, self.width, 3 * self.width)
        cut = self.op("Reshape", f"{name}/split", flat, self.shape(count, tokens, 3, self.heads, head))
        parts = self.op("Transpose", f"{name}/heads", cut, perm=[2, 0, 3, 1, 4])
        query, key, value = (
            self.op("Gather", f"{name}/{part}", parts, self.weight(f"index{i}", np.asarray(i, np.int64)), axis=0)
            for i, part in enumerate(("query", "key", "value"))
        )
        query = self.op("Mul", f"{name}/scaled", query, self.number(head**-0.5))
        key = self.op("Transpose", f"{name}/turned", key, perm=[0, 1, 3, 2])
        scores = self.op("MatMul", f"{name}/scores", query, key)
        table = self.random(f"{name}/bias").standard_normal((1, self.heads, tokens, tokens)) * 0.5
        scores = self.op("Add", f"{name}/biased", scores, self.weight(f"{name}.bias_table", table.astype(np.float32)))
        if shift:
            scores = self.op("Reshape", f"{name}/wide", scores, self.shape(1, count, self.heads, tokens, tokens))
            scores = self.op("Add", f"{name}/masked", scores, self.weight(f"mask{self.side}", mask(self.side, shift)))
            scores = self.op("Reshape", f"{name}/flat", scores, self.shape(count, self.heads, tokens, tokens))
        mixed = self.op("MatMul", f"{name}/mixed", self.op("Softmax", f"{name}/softmax", scores, axis=-1), value)
        moved = self.op("Transpose", f"{name}/tokens", mixed, perm=[0, 2, 1, 3])
        flat = self.op("Reshape", f"{name}/joined", moved, self.shape(count, tokens, self.width))
        return self.linear(f"{name}/out", flat, self.width, self.width, 0.5)

    def block(self, name: str, source: str, shift: int) -> str:
        """One layer on a map [1, side, side, c]."""
        part = self.layer_norm(f"{name}/norm1", source)
        part = self.rolled(f"{name}/shift", part, shift) if shift else part
        part = self.window_attention(f"{name}/attention", self.windows(f"{name}/windows", part), shift)
        part = self.joined(f"{name}/whole", part)
        part = self.rolled(f"{name}/back", part, -shift) if shift else part
        value = self.op("Add", f"{name}/add1", source, part)
        return self.op("Add", f"{name}/add2", value, self.mlp(f"{name}/mlp", self.layer_norm(f"{name}/norm2", value)))

    def merged(self, name: str, source: str) -> str:
        """Half of the side, twice the width."""
        parts = []
        for column in (0, 1):
            for row in (0, 1):
                starts, ends = self.shape(row, column), self.shape(self.side, self.side)
                given = (starts, ends, self.shape(1, 2), self.weight("shape_2x2", np.asarray((2, 2), np.int64)))
                parts.append(self.op("Slice", f"{name}/part{row}{column}", source, *given))
        wide = self.op("Concat", f"{name}/wide", *parts, axis=3)
        self.width *= 4
        wide = self.layer_norm(f"{name}/norm", wide)
        self.width, self.side = self.width // 2, self.side // 2
        random = self.random(name)
        weight = random.standard_normal((2 * self.width, self.width), np.float32) / np.float32(np.sqrt(2 * self.width))
        return self.op("MatMul", name, wide, self.weight(f"{name}.weight", weight))


def mask(side: int, shift: int) -> np.ndarray:
    """0 or `APART` for each window and pair of its places, [1, windows, 1, 49, 49]."""
    part = np.zeros(side, int)
    part[side - WINDOW :], part[side - shift :] = 1, 2
    region = 3 * part[:, None] + part
    count = side // WINDOW
    flat = region.reshape(count, WINDOW, count, WINDOW).swapaxes(1, 2).reshape(count**2, WINDOW**2)
    other = flat[:, :, None] != flat[:, None, :]
    return np.where(other, np.float32(APART), np.float32(0)).astype(np.float32)[None, :, None]


def swin_t() -> onnx.ModelProto:
    """The whole network: four stages, a mean over places, 1000 classes."""
    net = Swin("swin_t", 56, WIDTH, HEADS[0])
    random = net.random("patches")
    kernel = random.standard_normal((WIDTH, 3, 4, 4), np.float32) * np.float32(np.sqrt(1 / 48))
    patches = net.op(
        "Conv", "patches", "image", net.weight("patches.weight", kernel), kernel_shape=[4, 4], strides=[4, 4]
    )
    value = net.layer_norm("patches/norm", net.op("Transpose", "patches/places", patches, perm=[0, 2, 3, 1]))
    for stage, depth in enumerate(DEPTHS):
        net.heads = HEADS[stage]
        if stage:
            value = net.merged(f"merge{stage}", value)
        value = layers(net, f"stage{stage}", value, depth)
    mean = net.op("ReduceMean", "mean", net.layer_norm("norm", value), axes=[1, 2], keepdims=0)
    scores = net.linear("classes", mean, net.width, 1000)
    return net.model([real("image", (1, 3, 224, 224))], **{scores: (1, 1000)})


def layers(net: Swin, name: str, source: str, depth: int) -> str:
    """So many layers, every other one shifted where there is more than one window."""
    shift = WINDOW // 2 if net.side > WINDOW else 0
    for layer in range(depth):
        source = net.block(f"{name}/layer{layer}", source, shift * (layer % 2))
    return source


def swin_stage(number: int) -> onnx.ModelProto:
    """Two layers of one stage alone, plain and shifted, on a map of its size."""
    side, width = 56 >> number, WIDTH << number
    net = Swin(f"swin_stage{number + 1}", side, width, HEADS[number])
    shape: Sequence[int] = (1, side, side, width)
    result = layers(net, "stage", "map", 2)
    return net.model([real("map", shape)], **{result: shape})
