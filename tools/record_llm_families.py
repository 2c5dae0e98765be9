"""Records what transformers computes for a tiny model of each family: tests/data/llm_families.npz.

Needs torch and transformers, which the tests then do not: `python tools/record_llm_families.py`. A case is a
`config.json` as published models have it, names and shapes of the tensors as transformers asks for them, and logits in
float32 of `TOKENS` tokens; weights are seeded (tests/llm/model_folders.py).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "llm"))
from model_folders import seeded, write_folder  # noqa: E402

TOKENS, VOCABULARY = 14, 48
BASE: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "num_hidden_layers": 2, "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "rope_theta": 500.0,
    "max_position_embeddings": 64, "torch_dtype": "float32", "tie_word_embeddings": False, "bos_token_id": 1,
    "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LONG = {
    "type": "longrope",
    "short_factor": [1.0, 1.1, 1.2, 1.5, 2.0, 2.5],
    "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
}
GEMMA = {
    "hidden_activation": "gelu_pytorch_tanh",
    "tie_word_embeddings": True,
    "query_pre_attn_scalar": 24,
    "sliding_window": 5,
}

CASES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "llama-biases": {"model_type": "llama", "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4},
    "llama3-tied": {"model_type": "llama", "rope_scaling": LLAMA3, "tie_word_embeddings": True},
    "llama-linear": {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 4.0}},
    "llama-dynamic": {
        "model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 3.0}, "max_position_embeddings": 8,
    },
    "mistral": {"model_type": "mistral", "sliding_window": 5},
    "qwen2": {"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 5, "max_window_layers": 1},
    "qwen2-window": {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    "qwen2-yarn": {"model_type": "qwen2", "rope_scaling": YARN},
    "qwen3": {"model_type": "qwen3", "tie_word_embeddings": True},
    "phi3": {"model_type": "phi3", "head_dim": 8},
    "phi3-short": {
        "model_type": "phi3", "head_dim": 16, "hidden_size": 64, "partial_rotary_factor": 0.75, "rope_scaling": LONG,
        "original_max_position_embeddings": 16,
    },
    "phi3-long": {
        "model_type": "phi3", "head_dim": 16, "hidden_size": 64, "partial_rotary_factor": 0.75, "rope_scaling": LONG,
        "original_max_position_embeddings": 8, "sliding_window": 6,
    },
    "gemma2": {**GEMMA, "model_type": "gemma2", "attn_logit_softcapping": 2.0, "final_logit_softcapping": 20.0},
    "gemma3": {
        **GEMMA, "model_type": "gemma3_text", "num_hidden_layers": 4, "sliding_window_pattern": 3,
        "rope_local_base_freq": 100.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "gemma3-newer": {
        **GEMMA, "model_type": "gemma3_text", "layer_types": ["full_attention", "sliding_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 700.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 90.0},
        },
    },
}  # fmt: skip


def recorded(name: str, config: dict[str, Any], folder: Path) -> tuple[dict[str, list[int]], np.ndarray]:
    """Shapes of the tensors, and the logits (tokens, vocabulary)."""
    (folder / "config.json").write_text(json.dumps(config))
    plain = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    shapes = {key: list(value.shape) for key, value in plain.state_dict().items()}
    if config["tie_word_embeddings"]:
        shapes.pop("lm_head.weight")
    offset = 1.0 if "gemma" in name else 0.0
    write_folder(folder, config, {key: seeded(key, tuple(shape), name, offset) for key, shape in shapes.items()})
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        logits = model(torch.tensor([tokens()])).logits[0]
    return shapes, logits.numpy()


def tokens() -> list[int]:
    return np.random.default_rng(33).integers(0, VOCABULARY, TOKENS).tolist()


def main() -> None:
    out: dict[str, np.ndarray] = {"tokens": np.array(tokens(), np.int32)}
    for name, facts in CASES.items():
        config = {**BASE, **facts}
        with tempfile.TemporaryDirectory() as folder:
            shapes, logits = recorded(name, config, Path(folder))
        out |= {f"{name}/config": np.array(json.dumps(config)), f"{name}/shapes": np.array(json.dumps(shapes))}
        out[f"{name}/logits"] = logits.astype(np.float32)
        print(name, float(np.abs(logits).max()))
    np.savez_compressed(ROOT / "tests" / "data" / "llm_families.npz", **out)


if __name__ == "__main__":
    main()
