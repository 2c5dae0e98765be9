"""Language models by the cycle model: python benchmarks/bench_llm.py [MODEL ...] [--length N] [--folder FOLDER]

Compiles one layer and the last net of each model in w4f16, with lm_head in 4 bits, and prints tokens per second and the
time until the first token: layers x block + embedding + lm_head with the vendor's cycle model, and with 0.044 ms more
for each launch; beside it what `bmnet-llm estimate` says before anything is compiled. Weights are seeded noise: all
tensors lie in one pool of it, each from another place on, so that a folder of 7 billion parameters takes 0.3 GB.
With --folder the folders are made there and left, to compile them with `bmnet-llm compile`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bmcompiler.analysis.timing_profile import named_profiles
from bmcompiler.defaults import LLM_TARGET
from bmcompiler.llm.estimate import estimate
from bmcompiler.llm.groups import BundleOptions
from bmcompiler.llm.model import open_model
from bmcompiler.llm.planned import net_cycles
from bmcompiler.llm.precision import Precision

BARS = {"qwen1.5-1.8b": 50.0, "qwen2.5-1.5b": 57.0, "llama2-7b": 13.3}
"""Tokens per second that are asked for, 512 tokens of context."""
_PART = 1 << 22


class Sizes(NamedTuple):
    """Of a model, as `config.json` has them."""

    family: str
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    layers: int
    tied: bool


MODELS = {
    "qwen3-0.6b": Sizes("qwen3", 1024, 3072, 16, 8, 128, 151936, 28, True),
    "qwen2.5-1.5b": Sizes("qwen2", 1536, 8960, 12, 2, 128, 151936, 28, True),
    "qwen1.5-1.8b": Sizes("qwen2", 2048, 5504, 16, 16, 128, 151936, 24, False),
    "llama2-7b": Sizes("llama", 4096, 11008, 32, 32, 128, 32000, 32, False),
}


def make_folder(sizes: Sizes, folder: Path) -> Path:
    """`config.json` and weights in f16."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": sizes.family, "hidden_size": sizes.hidden, "intermediate_size": sizes.inner,
        "num_attention_heads": sizes.heads, "num_key_value_heads": sizes.kv_heads, "head_dim": sizes.head_dim,
        "vocab_size": sizes.vocabulary, "num_hidden_layers": sizes.layers, "tie_word_embeddings": sizes.tied,
        "torch_dtype": "float16", "max_position_embeddings": 4096,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    shapes = dict(_tensors(sizes))
    pool = max(map(prod, shapes.values())) + _PART
    places: dict[str, dict[str, object]] = {}
    for number, (name, shape) in enumerate(shapes.items()):
        norm = name.endswith("norm.weight")
        first = pool if norm else number * 7919 % _PART
        ends = [2 * first, 2 * (first + prod(shape))]
        places[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": ends}
    header, rng = json.dumps(places).encode(), np.random.default_rng(1)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for first in range(0, pool, _PART):
            noise = rng.standard_normal(min(_PART, pool - first), np.float32) * np.float32(0.02)
            file.write(noise.astype(np.float16).tobytes())
        file.write(np.ones(sizes.hidden, np.float16).tobytes())
    return folder


def _tensors(sizes: Sizes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of all weights."""
    hidden, inner = sizes.hidden, sizes.inner
    queries, keys = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    yield "model.embed_tokens.weight", (sizes.vocabulary, hidden)
    yield "model.norm.weight", (hidden,)
    if not sizes.tied:
        yield "lm_head.weight", (sizes.vocabulary, hidden)
    for layer in range(sizes.layers):
        root = f"model.layers.{layer}"
        yield f"{root}.input_layernorm.weight", (hidden,)
        yield f"{root}.post_attention_layernorm.weight", (hidden,)
        for each, rows in (("q", queries), ("k", keys), ("v", keys)):
            yield f"{root}.self_attn.{each}_proj.weight", (rows, hidden)
            if sizes.family == "qwen2":
                yield f"{root}.self_attn.{each}_proj.bias", (rows,)
        yield f"{root}.self_attn.o_proj.weight", (hidden, queries)
        if sizes.family == "qwen3":
            yield f"{root}.self_attn.q_norm.weight", (sizes.head_dim,)
            yield f"{root}.self_attn.k_norm.weight", (sizes.head_dim,)
        yield f"{root}.mlp.gate_proj.weight", (inner, hidden)
        yield f"{root}.mlp.up_proj.weight", (inner, hidden)
        yield f"{root}.mlp.down_proj.weight", (hidden, inner)


def measure(name: str, folder: Path, length: int, prefill: bool) -> None:
    """Print the row of a model."""
    options = BundleOptions(Precision("f16", 4, head_bits=4), length, check="never")
    model = open_model(folder)
    layers, clock = model.architecture.layers, named_profiles(LLM_TARGET)["vendor"].clock_hz
    launches = (layers + 2) * named_profiles(LLM_TARGET)["silicon"].launch * 1e-9

    def seconds(block: str, embedding: str) -> float:
        nets = {block: layers, embedding: 1, "lm_head": 1}
        return sum(count * net_cycles(model, net, options) for net, count in nets.items()) / clock

    token = seconds("block_cache_0", "embedding_cache")
    bound = estimate(model.architecture, options.precision, length)
    estimated = bound.token - launches
    first = f"{seconds('block_0', 'embedding'):8.3f} {bound.first - launches:8.3f}" if prefill else f"{'':17}"
    print(
        f"{name:14} {length:6} {1 / token:9.1f} {1 / (token + launches):9.1f} {1 / estimated:9.1f} "
        f"{token / estimated - 1:+8.1%} {BARS.get(name, '') if length == 512 else '':>5} {first}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Language models by the cycle model.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; default all")
    parser.add_argument("--length", type=int, nargs="+", default=[512])
    parser.add_argument("--prefill", action="store_true", help="the time until the first token, too")
    parser.add_argument("--folder", type=Path, help="where folders are made and stay")
    given = parser.parse_args()
    words = f"{'tokens/s':>9} {'launched':>9} {'estimate':>9} {'time':>8} {'bar':>5} first s, bound"
    print(f"{'model':14} {'tokens':>6} {words}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.models or MODELS:
            folder = make_folder(MODELS[name], (given.folder or Path(scratch)) / name)
            for length in given.length:
                measure(name, folder, length, given.prefill)


if __name__ == "__main__":
    main()
