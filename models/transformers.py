"""Transformers with seeded weights: `python models/transformers.py vit_64 bert_tiny gpt_step`.

`vit_64`: images of 64 x 64 in patches of 8, a class token, 4 layers of 96 channels and 3 heads, 10 classes.
`bert_tiny`: 32 token ids and their mask (0 or 1), embeddings of 512 tokens, positions and a normalisation, 4 layers of
128 channels and 4 heads; masked positions get the lowest float before the softmax, as exporters write it.
`bert_any`: the same of any number of tokens up to 128; `bert_short`: two layers of it. `bert_wide`: likewise, two
layers as MiniLM has them, of 384 channels and 12 heads. `bert_1024`: 1024 tokens, one layer of 256 channels and 8
heads; its scores exceed local memory.
`bert_block`, `vit_block`: one layer of BERT-base on 384 tokens, of ViT-B/16 on 197: 768 channels, 12 heads, floats in.
`bert_base`: all twelve layers of BERT-base on 384 tokens, without its embeddings.
`swin_t`, `swin_stage1` to `swin_stage4`: all of Swin-T, and two layers of each of its stages (`models/swin.py`).
`detr_layer`, `mobilevit_block`, `segformer_b0`: parts of others (`models/vision_transformers.py`).
`gpt_step`: one step of a decoder: a token id and its place, keys and values of 31 tokens before it, 2 layers of 128
channels and 4 heads, scores of 512 tokens by the table of embeddings, keys and values with the new ones.

Layer normalisation and GELU are spelled out (ReduceMean, Sub, Pow, Sqrt, Div; Erf), as exports of PyTorch have them.
Some channels of the residual stream are many times larger than others, as in trained encoders.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

THIRD_PARTY = Path(__file__).resolve().parent / "third_party"
OPSET = 13
LOWEST = float(np.finfo(np.float32).min)
OUTLIERS = 4
"""Channels of the residual stream that a normalisation makes `OUTLIER_GAIN` times larger."""
OUTLIER_GAIN = 12.0
PAST = (1, 4, 31, 32)
"""Keys or values of the tokens before: heads, tokens, channels of a head."""


class Encoder:
    """An ONNX graph as it grows: methods add nodes and return the name of a result."""

    def __init__(self, name: str, tokens: int, width: int, heads: int) -> None:
        self.name, self.tokens, self.width, self.heads = name, tokens, width, heads
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, onnx.TensorProto] = {}

    def weight(self, name: str, values: np.ndarray) -> str:
        self.weights.setdefault(name, numpy_helper.from_array(values, name))
        return name

    def number(self, value: float) -> str:
        return self.weight(f"const_{value:g}", np.asarray(value, np.float32))

    def shape(self, *dims: int) -> str:
        return self.weight(f"shape_{'x'.join(map(str, dims))}", np.asarray(dims, np.int64))

    def random(self, name: str) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(f"{self.name}/{name}".encode()))

    def op(self, kind: str, name: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def linear(self, name: str, source: str, inner: int, outer: int, gain: float = 1.0) -> str:
        random = self.random(name)
        values = random.standard_normal((inner, outer), np.float32) * np.float32(np.sqrt(gain / inner))
        product = self.op("MatMul", f"{name}/MatMul", source, self.weight(f"{name}.weight", values))
        bias = (random.standard_normal(outer) * 0.02).astype(np.float32)
        return self.op("Add", name, self.weight(f"{name}.bias", bias), product)

    def layer_norm(self, name: str, source: str) -> str:
        random = self.random(name)
        gain = random.uniform(0.5, 1.5, self.width).astype(np.float32)
        gain[random.choice(self.width, OUTLIERS, replace=False)] *= OUTLIER_GAIN
        shift = (random.standard_normal(self.width) * 0.1).astype(np.float32)
        mean = self.op("ReduceMean", f"{name}/mean", source, axes=[-1])
        centred = self.op("Sub", f"{name}/centred", source, mean)
        square = self.op("Pow", f"{name}/square", centred, self.number(2.0))
        variance = self.op("ReduceMean", f"{name}/variance", square, axes=[-1])
        root = self.op("Sqrt", f"{name}/root", self.op("Add", f"{name}/eps", variance, self.number(1e-5)))
        scaled = self.op(
            "Mul", f"{name}/scaled", self.op("Div", f"{name}/div", centred, root), self.weight(f"{name}.gain", gain)
        )
        return self.op("Add", name, scaled, self.weight(f"{name}.shift", shift))

    def gelu(self, name: str, source: str) -> str:
        part = self.op("Erf", f"{name}/erf", self.op("Div", f"{name}/div", source, self.number(float(np.sqrt(2)))))
        product = self.op("Mul", f"{name}/product", source, self.op("Add", f"{name}/one", part, self.number(1.0)))
        return self.op("Mul", name, product, self.number(0.5))

    def heads_of(self, name: str, source: str, order: Sequence[int] = (0, 2, 1, 3)) -> str:
        """A linear layer whose channels are cut into heads."""
        flat = self.linear(name, source, self.width, self.width)
        shape = self.shape(1, self.tokens, self.heads, self.width // self.heads)
        return self.op("Transpose", f"{name}/heads", self.op("Reshape", f"{name}/split", flat, shape), perm=list(order))

    def attention(self, name: str, source: str, mask: str | None) -> str:
        query = self.heads_of(f"{name}/query", source)
        key = self.heads_of(f"{name}/key", source, (0, 2, 3, 1))
        return self.attend(name, query, key, self.heads_of(f"{name}/value", source), mask)

    def attend(self, name: str, query: str, key: str, value: str, mask: str | None = None) -> str:
        """Tokens of the query, mixed from values by the keys, which are transposed."""
        scores = self.op("MatMul", f"{name}/scores", query, key)
        scores = self.op("Div", f"{name}/scaled", scores, self.number(float(np.sqrt(self.width // self.heads))))
        if mask is not None:
            scores = self.op("Add", f"{name}/masked", scores, mask)
        mixed = self.op("MatMul", f"{name}/mixed", self.op("Softmax", f"{name}/softmax", scores, axis=-1), value)
        joined = self.op("Transpose", f"{name}/tokens", mixed, perm=[0, 2, 1, 3])
        flat = self.op("Reshape", f"{name}/joined", joined, self.shape(1, self.tokens, self.width))
        return self.linear(f"{name}/out", flat, self.width, self.width, 0.5)

    def mlp(self, name: str, source: str) -> str:
        wide = self.gelu(f"{name}/gelu", self.linear(f"{name}/up", source, self.width, 4 * self.width))
        return self.linear(f"{name}/down", wide, 4 * self.width, self.width, 0.5)

    def model(self, inputs: Sequence[onnx.ValueInfoProto], **outputs: Sequence[int | str]) -> onnx.ModelProto:
        """`outputs`: their shapes by name."""
        results = [real(name, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self.nodes, self.name, list(inputs), results, list(self.weights.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="seeded")
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        return model


def real(name: str, shape: Sequence[int | str]) -> onnx.ValueInfoProto:
    """An input or output of floats."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def vit() -> onnx.ModelProto:
    """Normalisation before each part (pre-norm)."""
    net = Encoder("vit_64", 65, 96, 3)
    random = net.random("patches")
    kernel = random.standard_normal((96, 3, 8, 8), np.float32) * np.float32(np.sqrt(1 / 192))
    patches = net.op(
        "Conv", "patches", "image", net.weight("patches.weight", kernel), kernel_shape=[8, 8], strides=[8, 8]
    )
    flat = net.op("Reshape", "patches/flat", patches, net.shape(1, 96, 64))
    tokens = net.op("Transpose", "patches/tokens", flat, perm=[0, 2, 1])
    own = (random.standard_normal((1, 1, 96)) * 0.5).astype(np.float32)
    tokens = net.op("Concat", "tokens", net.weight("class_token", own), tokens, axis=1)
    places = (random.standard_normal((1, 65, 96)) * 0.2).astype(np.float32)
    value = net.op("Add", "placed", tokens, net.weight("positions", places))
    for layer in range(4):
        name = f"layer{layer}"
        part = net.attention(f"{name}/attention", net.layer_norm(f"{name}/norm1", value), None)
        value = net.op("Add", f"{name}/add1", value, part)
        part = net.mlp(f"{name}/mlp", net.layer_norm(f"{name}/norm2", value))
        value = net.op("Add", f"{name}/add2", value, part)
    index = net.weight("first", np.asarray(0, np.int64))
    chosen = net.op("Gather", "class", net.layer_norm("norm", value), index, axis=1)
    scores = net.linear("classes", chosen, 96, 10)
    return net.model([real("image", (1, 3, 64, 64))], **{scores: (1, 10)})


def bert(name: str, tokens: int, width: int, heads: int, layers: int, most: int = 0) -> onnx.ModelProto:
    """Normalisation behind each sum (post-norm). With `most` any number of tokens up to that, and `tokens` is -1."""
    net = Encoder(name, tokens, width, heads)
    random = net.random("embeddings")
    words = (random.standard_normal((512, width)) * 0.5).astype(np.float32)
    places = (random.standard_normal((1, most or tokens, width)) * 0.2).astype(np.float32)
    value = net.op("Gather", "words", net.weight("words.weight", words), "ids", axis=0)
    positions = net.weight("positions", places)
    if most:
        length = net.op("Slice", "length", net.op("Shape", "sizes", "ids"), net.shape(1), net.shape(2))
        positions = net.op("Slice", "positions/first", positions, net.shape(0), length, net.shape(1))
    value = net.layer_norm("embeddings", net.op("Add", "placed", value, positions))
    wide = net.op(
        "Reshape", "mask/wide", net.op("Cast", "mask/float", "mask", to=TensorProto.FLOAT), net.shape(1, 1, 1, tokens)
    )
    mask = net.op("Mul", "mask/low", net.op("Sub", "mask/off", net.number(1.0), wide), net.number(LOWEST))
    for layer in range(layers):
        name = f"layer{layer}"
        part = net.attention(f"{name}/attention", value, mask)
        value = net.layer_norm(f"{name}/norm1", net.op("Add", f"{name}/add1", part, value))
        part = net.mlp(f"{name}/mlp", value)
        value = net.layer_norm(f"{name}/norm2", net.op("Add", f"{name}/add2", part, value))
    size = "tokens" if most else tokens
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, size])
    given = helper.make_tensor_value_info("mask", TensorProto.INT64, [1, size])
    return net.model([ids, given], **{value: (1, size, width)})


def block(name: str, tokens: int, before: bool, layers: int = 1) -> onnx.ModelProto:
    """Layers of 768 channels and 12 heads; normalisation before each part, or behind each sum."""
    net = Encoder(name, tokens, 768, 12)
    value, shape = "tokens", (1, tokens, 768)
    parts = (("attention", lambda n, x: net.attention(n, x, None)), ("mlp", net.mlp))
    for number, (part, make) in enumerate(parts * layers):
        part = part if layers == 1 else f"layer{number // 2}/{part}"
        made = make(part, net.layer_norm(f"{part}/norm", value) if before else value)
        value = net.op("Add", f"{part}/add", value, made)
        value = value if before else net.layer_norm(f"{part}/norm", value)
    return net.model([real("tokens", shape)], **{value: shape})


def _swin(name: str) -> onnx.ModelProto:
    import swin

    return swin.swin_t() if name == "swin_t" else swin.swin_stage(int(name[-1]) - 1)


def _vision(name: str) -> onnx.ModelProto:
    import vision_transformers

    return vision_transformers.NETS[name]()


def gpt() -> onnx.ModelProto:
    """Normalisation before each part; the keys and values so far are inputs."""
    net = Encoder("gpt_step", 1, 128, 4)
    random = net.random("embeddings")
    words = (random.standard_normal((512, 128)) * 0.5).astype(np.float32)
    places = (random.standard_normal((32, 128)) * 0.2).astype(np.float32)
    word = net.op("Gather", "word", net.weight("words.weight", words), "id", axis=0)
    value = net.op("Add", "placed", word, net.op("Gather", "place", net.weight("places.weight", places), "at", axis=0))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, 1]) for name in ("id", "at")]
    outputs: dict[str, Sequence[int]] = {"scores": (1, 1, 512)}
    for layer in range(2):
        name, known = f"layer{layer}", {}
        norm = net.layer_norm(f"{name}/norm1", value)
        query = net.heads_of(f"{name}/attention/query", norm)
        for part in ("key", "value"):
            inputs.append(real(f"{part}{layer}", PAST))
            new = net.heads_of(f"{name}/attention/{part}", norm)
            known[part] = net.op("Concat", f"{part}{layer}_out", f"{part}{layer}", new, axis=2)
            outputs[known[part]] = (1, 4, 32, 32)
        keys = net.op("Transpose", f"{name}/attention/key/transposed", known["key"], perm=[0, 1, 3, 2])
        value = net.op("Add", f"{name}/add1", value, net.attend(f"{name}/attention", query, keys, known["value"]))
        value = net.op("Add", f"{name}/add2", value, net.mlp(f"{name}/mlp", net.layer_norm(f"{name}/norm2", value)))
    columns = net.weight("columns", np.ascontiguousarray(words.T))
    net.op("MatMul", "scores", net.layer_norm("norm", value), columns)
    return net.model(inputs, **outputs)


def samples(name: str, count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """`count` seeded samples by input name."""
    random = np.random.default_rng(seed)
    if name == "vit_64":
        return {"image": random.standard_normal((count, 3, 64, 64), np.float32)}
    if name == "gpt_step":
        past = {
            f"{part}{layer}": random.standard_normal((count, *PAST[1:]), np.float32)
            for layer in (0, 1)
            for part in ("key", "value")
        }
        return {"id": random.integers(0, 512, (count, 1)), "at": np.full((count, 1), 31), **past}
    tokens = 1024 if name == "bert_1024" else 32
    lengths = random.integers(tokens // 4, tokens + 1, count)
    mask = (np.arange(tokens) < lengths[:, None]).astype(np.int64)
    return {"ids": random.integers(1, 512, (count, tokens)) * mask, "mask": mask}


NETS: dict[str, Callable[[], onnx.ModelProto]] = {
    "vit_64": vit,
    "bert_tiny": partial(bert, "bert_tiny", 32, 128, 4, 4),
    "gpt_step": gpt,
}
VISION = ("detr_layer", "mobilevit_block", "segformer_b0")
SWIN = ("swin_t", "swin_stage1", "swin_stage2", "swin_stage3", "swin_stage4")
LONG: dict[str, Callable[[], onnx.ModelProto]] = {
    "bert_1024": partial(bert, "bert_1024", 1024, 256, 8, 1),
    "bert_any": partial(bert, "bert_any", -1, 128, 4, 4, 128),
    "bert_short": partial(bert, "bert_short", -1, 128, 4, 2, 128),
    "bert_wide": partial(bert, "bert_wide", -1, 384, 12, 2, 128),
    "bert_block": partial(block, "bert_block", 384, before=False),
    "bert_base": partial(block, "bert_base", 384, before=False, layers=12),
    "vit_block": partial(block, "vit_block", 197, before=True),
    **{name: partial(_swin, name) for name in SWIN},
    **{name: partial(_vision, name) for name in VISION},
}
"""Too large for most tests."""


def transformer(name: str, folder: Path = THIRD_PARTY) -> Path:
    """Path of `NAME.onnx` in `folder`, written on first use, the same bytes on every machine."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes({**NETS, **LONG}[name]().SerializeToString(deterministic=True))
        part.replace(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Write transformers with seeded weights as ONNX files.")
    parser.add_argument(
        "names", nargs="*", choices=[*NETS, *LONG, []], metavar="NAME", help=f"which of {', '.join((*NETS, *LONG))}"
    )
    parser.add_argument("--folder", type=Path, default=THIRD_PARTY, help="where to (default: models/third_party)")
    given = parser.parse_args()
    for name in given.names or NETS:
        print(transformer(name, given.folder))


if __name__ == "__main__":
    main()
