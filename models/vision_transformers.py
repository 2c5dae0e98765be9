"""Parts of other vision transformers with seeded weights, as PyTorch exports them.

`detr_layer`: a decoder layer of DETR: 100 queries of 256 channels in 8 heads read each other, then 850 places of a map;
positions are added to queries and keys. `mobilevit_block`: that of MobileViT-S on 32 x 32 places: four
pixels of each 2 x 2 patch are a sequence each, two layers of 144 channels and 4 heads between convolutions.
`segformer_b0`: the encoder of SegFormer-B0 on 256 x 256 pixels: keys and values from maps that a convolution made
smaller, a depthwise window in each feed-forward part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from transformers import Encoder, real

_WIDTHS, _HEADS, _SHRINKS, _STARTS = (32, 64, 160, 256), (1, 2, 5, 8), (8, 4, 2, 1), ((7, 4), (3, 2), (3, 2), (3, 2))
_DEPTH = 2


class Mixed(Encoder):
    """An encoder whose queries and keys may be of different values, and whose values may be maps."""

    def conv(self, name: str, source: str, inner: int, outer: int, size: int, stride: int, pad: int) -> str:
        """A convolution with a bias, depthwise where `inner` is 1."""
        random, count = self.random(name), inner * size * size
        kernel = random.standard_normal((outer, inner, size, size), np.float32) / np.float32(np.sqrt(count))
        bias = self.weight(f"{name}.bias", (random.standard_normal(outer) * 0.02).astype(np.float32))
        given = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        group = outer if inner == 1 else 1
        return self.op("Conv", name, source, self.weight(f"{name}.weight", kernel), bias, group=group, **given)

    def swish(self, name: str, source: str) -> str:
        return self.op("Mul", name, source, self.op("Sigmoid", f"{name}/sigmoid", source))

    def reading(self, name: str, sources: Sequence[str], batch: int, tokens: int, keys: int) -> str:
        """Attention: `sources` are what queries, keys and values are made of."""
        head, parts = self.width // self.heads, []
        layouts = ((tokens, [0, 2, 1, 3]), (keys, [0, 2, 3, 1]), (keys, [0, 2, 1, 3]))
        for part, source, (count, order) in zip(("query", "key", "value"), sources, layouts):
            flat = self.linear(f"{name}/{part}", source, self.width, self.width)
            cut = self.op("Reshape", f"{name}/{part}/split", flat, self.shape(batch, count, self.heads, head))
            parts.append(self.op("Transpose", f"{name}/{part}/heads", cut, perm=order))
        scores = self.op("MatMul", f"{name}/scores", parts[0], parts[1])
        scores = self.op("Div", f"{name}/scaled", scores, self.number(float(np.sqrt(head))))
        mixed = self.op("MatMul", f"{name}/mixed", self.op("Softmax", f"{name}/softmax", scores, axis=-1), parts[2])
        joined = self.op("Transpose", f"{name}/tokens", mixed, perm=[0, 2, 1, 3])
        flat = self.op("Reshape", f"{name}/joined", joined, self.shape(batch, tokens, self.width))
        return self.linear(f"{name}/out", flat, self.width, self.width, 0.5)

    def tokens_of(self, name: str, source: str, count: int) -> str:
        """[1, c, h, w] -> [1, h * w, c]."""
        flat = self.op("Reshape", f"{name}/flat", source, self.shape(1, self.width, count))
        return self.op("Transpose", f"{name}/tokens", flat, perm=[0, 2, 1])

    def map_of(self, name: str, source: str, width: int, side: int) -> str:
        """The inverse of `tokens_of`, of a square."""
        turned = self.op("Transpose", f"{name}/turned", source, perm=[0, 2, 1])
        return self.op("Reshape", f"{name}/map", turned, self.shape(1, width, side, side))


def detr_layer() -> onnx.ModelProto:
    """Normalisation behind each sum (post-norm), ReLU between 2048 channels."""
    net, queries, places = Mixed("detr_layer", 100, 256, 8), 100, 850
    random, where = net.random("places"), {}
    for part, count in (("queries", queries), ("memory", places)):
        values = random.standard_normal((1, count, 256)).astype(np.float32)
        where[part] = net.weight(f"{part}.places", values)
    placed = net.op("Add", "self/placed", "queries", where["queries"])
    part = net.reading("self", (placed, placed, "queries"), 1, queries, queries)
    value = net.layer_norm("norm1", net.op("Add", "add1", "queries", part))
    placed = net.op("Add", "cross/placed", value, where["queries"])
    keys = net.op("Add", "cross/keys", "memory", where["memory"])
    part = net.reading("cross", (placed, keys, "memory"), 1, queries, places)
    value = net.layer_norm("norm2", net.op("Add", "add2", value, part))
    wide = net.op("Relu", "mlp/relu", net.linear("mlp/up", value, 256, 2048))
    value = net.layer_norm("norm3", net.op("Add", "add3", value, net.linear("mlp/down", wide, 2048, 256, 0.5)))
    inputs = [real("queries", (1, queries, 256)), real("memory", (1, places, 256))]
    return net.model(inputs, **{value: (1, queries, 256)})


def mobilevit_block() -> onnx.ModelProto:
    """96 channels in and out, SiLU throughout, normalisation before each part (pre-norm)."""
    side, channels, width, batch = 32, 96, 144, 4
    half, count = side // 2, side * side // 4
    net = Mixed("mobilevit_block", count, width, 4)
    near = net.swish("near/act", net.conv("near", "map", channels, channels, 3, 1, 1))
    value = net.conv("wide", near, channels, width, 1, 1, 0)

    def moved(name: str, source: str, perm: Sequence[int], *shape: int) -> str:
        return net.op("Reshape", name, net.op("Transpose", f"{name}/moved", source, perm=list(perm)), net.shape(*shape))

    value = net.op("Reshape", "cut", value, net.shape(width * half, 2, half, 2))
    value = moved("patches", value, (0, 2, 1, 3), 1, width, count, batch)
    value = moved("pixels", value, (0, 3, 2, 1), batch, count, width)
    for layer in range(2):
        name = f"layer{layer}"
        norm = net.layer_norm(f"{name}/norm1", value)
        value = net.op("Add", f"{name}/add1", value, net.reading(name, (norm,) * 3, batch, count, count))
        wide = net.linear(f"{name}/up", net.layer_norm(f"{name}/norm2", value), width, 2 * width)
        wide = net.linear(f"{name}/down", net.swish(f"{name}/act", wide), 2 * width, width, 0.5)
        value = net.op("Add", f"{name}/add2", value, wide)
    value = net.op("Reshape", "sequences", net.layer_norm("norm", value), net.shape(1, batch, count, width))
    value = moved("unpatched", value, (0, 3, 2, 1), width * half, half, 2, 2)
    value = moved("whole", value, (0, 2, 1, 3), 1, width, side, side)
    value = net.swish("narrow/act", net.conv("narrow", value, width, channels, 1, 1, 0))
    both = net.op("Concat", "both", "map", value, axis=1)
    value = net.swish("out/act", net.conv("out", both, 2 * channels, channels, 3, 1, 1))
    return net.model([real("map", (1, channels, side, side))], **{value: (1, channels, side, side)})


def segformer_b0() -> onnx.ModelProto:
    """Four stages of two layers; the map that each makes is a result."""
    net, source, inner, side = Mixed("segformer_b0", 0, 3, 1), "image", 3, 256
    outputs: dict[str, Sequence[int]] = {}
    for stage, (width, heads, shrink, (size, stride)) in enumerate(zip(_WIDTHS, _HEADS, _SHRINKS, _STARTS)):
        name, side, net.width, net.heads = f"stage{stage}", side // stride, width, heads
        count = side * side
        value = net.tokens_of(name, net.conv(f"{name}/patches", source, inner, width, size, stride, size // 2), count)
        value = net.layer_norm(f"{name}/patches/norm", value)
        for layer in range(_DEPTH):
            value = _mixing(net, f"{name}/layer{layer}", value, side, shrink)
        source, inner = net.map_of(name, net.layer_norm(f"{name}/norm", value), width, side), width
        outputs[source] = (1, width, side, side)
    return net.model([real("image", (1, 3, 256, 256))], **outputs)


def _mixing(net: Mixed, name: str, source: str, side: int, shrink: int) -> str:
    """A layer of SegFormer on side x side tokens."""
    count, width = side * side, net.width
    norm = keys = net.layer_norm(f"{name}/norm1", source)
    small = count // shrink**2
    if shrink > 1:
        picture = net.map_of(f"{name}/keys", norm, width, side)
        keys = net.conv(f"{name}/shrunk", picture, width, width, shrink, shrink, 0)
        keys = net.layer_norm(f"{name}/shrunk/norm", net.tokens_of(f"{name}/shrunk", keys, small))
    value = net.op("Add", f"{name}/add1", source, net.reading(name, (norm, keys, keys), 1, count, small))
    wide = net.linear(f"{name}/up", net.layer_norm(f"{name}/norm2", value), width, 4 * width)
    wide = net.conv(f"{name}/near", net.map_of(f"{name}/wide", wide, 4 * width, side), 1, 4 * width, 3, 1, 1)
    flat = net.op("Reshape", f"{name}/near/flat", wide, net.shape(1, 4 * width, count))
    wide = net.gelu(f"{name}/gelu", net.op("Transpose", f"{name}/near/tokens", flat, perm=[0, 2, 1]))
    return net.op("Add", f"{name}/add2", value, net.linear(f"{name}/down", wide, 4 * width, width, 0.5))


NETS: dict[str, Callable[[], onnx.ModelProto]] = {
    "detr_layer": detr_layer,
    "mobilevit_block": mobilevit_block,
    "segformer_b0": segformer_b0,
}
