"""Nets have the names, tensors, orders, shapes and types that recorded bundles of the vendor have."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from llm.model_folders import small_config, small_tensors, write_folder

from bmcompiler.llm.model import open_model
from bmcompiler.llm.nets import build_net, net_names
from bmcompiler.llm.precision import Precision

RECORDED = Path(__file__).parents[1] / "data" / "bm1684x_bundles"
BUNDLES = {
    "llama_a_w4f16": ("llama", (256, 4, 64, 512, 512), 64, Precision("f16", 4), False),
    "qwen2_a_w8bf16_sample": ("qwen2", (192, 3, 64, 448, 640), 96, Precision("bf16", 8), True),
    "qwen3_s_bf16_chunk": ("qwen3", (128, 4, 64, 320, 384), 48, Precision("bf16"), False),
}
"""Family; hidden, heads, head_dim, inner, vocabulary; length; precision; whether lm_head gives logits."""
HEADS = {"greedy_head", "sample_head"}
"""Of which the second set of recordings has the sizes that they have without settings: 50 tokens to draw from."""


@pytest.mark.parametrize("bundle", BUNDLES)
def test_nets_are_those_of_the_vendor(bundle: str, tmp_path: Path) -> None:
    family, sizes, length, precision, logits = BUNDLES[bundle]
    names = ("hidden_size", "num_attention_heads", "head_dim", "intermediate_size", "vocab_size")
    shared = 1 if family == "qwen2" else 2
    config = small_config(model_type=family, num_key_value_heads=shared, **dict(zip(names, sizes)))
    model = open_model(write_folder(tmp_path, config, small_tensors(config)))
    recorded: dict[str, dict[str, dict[str, tuple[tuple[int, ...], str]]]] = {}
    with np.load(RECORDED / f"{bundle}.npz") as arrays:
        for key in arrays:
            first, net, way, tensor = key.split("/")
            if first == ("b" if net in HEADS else "a"):
                ends = recorded.setdefault(net, {"in": {}, "out": {}})
                ends[way][tensor] = (arrays[key].shape, arrays[key].dtype.name)
    assert recorded and set(recorded) <= set(net_names(model))
    for net, ends in recorded.items():
        main = build_net(model, net, length=length, precision=precision, logits=logits).main
        assert described(main.input_names, main.arguments) == list(ends["in"].items())
        assert described(main.output_names, main.returned) == list(ends["out"].items())


def described(names: list[str], values: list) -> list[tuple[str, tuple[tuple[int, ...], str]]]:
    """Tensors as recordings have them: bfloat16 as its bits."""
    kinds = [np.uint16 if v.type.numpy == ml_dtypes.bfloat16 else v.type.numpy for v in values]
    return [(name, (tuple(v.shape), np.dtype(kind).name)) for name, v, kind in zip(names, values, kinds)]
