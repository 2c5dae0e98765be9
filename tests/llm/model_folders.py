"""Model folders with seeded weights, written without the libraries that usually write them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

KINDS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int32": "I32", "float8_e4m3fn": "F8_E4M3"}


def save_tensors(file: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """A safetensors file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, array in tensors.items():
        place = [at, at := at + array.nbytes]
        header[name] = {"dtype": KINDS[array.dtype.name], "shape": list(array.shape), "data_offsets": place}
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in tensors.values()))


def seeded(name: str, shape: tuple[int, ...], seed: str, offset: float = 0.0) -> np.ndarray:
    """Weights that keep the size of what goes through them; norms are about 1, less what is added to their factors."""
    noise = np.random.default_rng(zlib.crc32(f"{seed}/{name}".encode())).standard_normal(shape).astype(np.float32)
    if name.endswith("bias"):
        return noise * np.float32(0.5)
    if len(shape) == 1:
        return np.float32(1 - offset) + np.float32(0.2) * noise
    return noise * np.float32(1 if "embed" in name else shape[-1] ** -0.5)


def write_folder(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Path:
    """`config.json` and one file of weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_tensors(folder / "model.safetensors", tensors)
    return folder


def small_config(**more: Any) -> dict[str, Any]:
    """A Llama of two layers."""
    return {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": 2, "vocab_size": 80, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 64, "torch_dtype": "float32", "tie_word_embeddings": False, **more,
    }  # fmt: skip


def small_tensors(config: Mapping[str, Any], dtype: Any = np.float32) -> dict[str, np.ndarray]:
    """The tensors of a Llama, Qwen2 or Qwen3 with this configuration."""
    hidden, inner, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config["vocab_size"], hidden)}
    for i in range(config["num_hidden_layers"]):
        root = f"model.layers.{i}"
        rows = {"q": (queries, hidden), "k": (keys, hidden), "v": (keys, hidden), "o": (hidden, queries)}
        shapes |= {f"{root}.self_attn.{name}_proj.weight": shape for name, shape in rows.items()}
        shapes |= {f"{root}.mlp.{name}_proj.weight": (inner, hidden) for name in ("gate", "up")}
        shapes |= {f"{root}.mlp.down_proj.weight": (hidden, inner)}
        shapes |= {f"{root}.{name}_layernorm.weight": (hidden,) for name in ("input", "post_attention")}
        if config["model_type"] == "qwen2":
            shapes |= {f"{root}.self_attn.{name}_proj.bias": rows[name][:1] for name in "qkv"}
        if config["model_type"] == "qwen3":
            shapes |= {f"{root}.self_attn.{name}_norm.weight": (dim,) for name in "qk"}
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    narrow = ml_dtypes.bfloat16 if dtype == "bf16" else dtype
    return {name: seeded(name, shape, "small").astype(narrow) for name, shape in shapes.items()}
