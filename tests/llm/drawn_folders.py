"""Model folders that are drawn: each seed gives a family, its sizes, its options and its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from llm.model_folders import seeded, write_folder

from bmcompiler.llm.config import read_architecture
from bmcompiler.llm.families import FAMILIES
from bmcompiler.llm.groups import BundleOptions
from bmcompiler.llm.model import float_shapes
from bmcompiler.llm.precision import Precision

KINDS = {"w4f16": ("f16", 4), "w8f16": ("f16", 8), "f16": ("f16", None), "bf16": ("bf16", None)}
"""Types of activations, bits of weights."""
_TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
_STRETCHED: list[dict[str, Any]] = [
    {}, {}, {"rope_type": "linear", "factor": 4.0}, {"rope_type": "dynamic", "factor": 3.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 16},
]  # fmt: skip


class Drawn:
    """A folder of one family, and how bundles are made of it."""

    def __init__(self, family: str, seed: int) -> None:
        self.family, self.seed = family, seed
        self.rng = np.random.default_rng([seed, sorted(FAMILIES).index(family)])
        self.config = self._config()

    def _between(self, low: int, high: int) -> int:
        """Small numbers as often as large ones."""
        return round(float(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def _pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def _config(self) -> dict[str, Any]:
        kv_heads, width = self._between(1, 5), 2 * self._between(2, 48)
        config = {
            "model_type": self.family, "hidden_size": self._between(8, 320), "intermediate_size": self._between(5, 500),
            "num_attention_heads": kv_heads * self._between(1, 7), "num_key_value_heads": kv_heads, "head_dim": width,
            "num_hidden_layers": self._between(1, 3), "vocab_size": self._between(20, 900),
            "rms_norm_eps": self._pick(1e-5, 1e-6), "rope_theta": self._pick(500.0, 1e4, 1e6),
            "max_position_embeddings": 64, "tie_word_embeddings": self._pick(True, False),
            "torch_dtype": self._pick(*_TYPES), "attention_bias": self._pick(True, False),
            "mlp_bias": self._pick(True, False), "sliding_window": self._pick(None, 3, self._between(2, 40)),
            "use_sliding_window": True, "max_window_layers": 1, "query_pre_attn_scalar": self._between(4, 200),
            "sliding_window_pattern": self._pick(2, 3),
        }  # fmt: skip
        if self.family == "phi3":
            stretch = {"rope_type": "longrope"} | {
                f"{each}_factor": [1 + i * 0.1 for i in range(width // 2)] for each in ("short", "long")
            }
            config["original_max_position_embeddings"] = 16
            config["rope_scaling"] = self._pick(None, stretch)
        else:
            config["rope_scaling"] = self._pick(*_STRETCHED)
        return config

    def write(self, folder: Path) -> Path:
        """The folder."""
        write_folder(folder, self.config, {})
        offset = 1.0 if "gemma" in self.family else 0.0
        tied, dtype = self.config["tie_word_embeddings"], _TYPES[self.config["torch_dtype"]]
        shapes = dict(float_shapes(read_architecture(folder), "model."))
        tensors = {
            name: seeded(name, shape, f"{self.seed}", offset).astype(dtype)
            for name, shape in shapes.items()
            if name != "lm_head.weight" or not tied
        }
        return write_folder(folder, self.config, tensors)

    def tokens(self, count: int) -> list[int]:
        """Some that the vocabulary has."""
        return self.rng.integers(0, self.config["vocab_size"], count).tolist()

    def options(self, kind: str) -> BundleOptions:
        """Lengths and the finer choices of a precision."""
        dtype, bits = KINDS[kind]
        length, whether = self._between(1, 24), (True, False)
        precision = Precision(
            dtype, bits, self._pick(None, 4, 8), group_size=self._pick(0, 32, 64, 128), symmetric=self._pick(*whether)
        )
        return BundleOptions(
            precision, length, shorter=(length // 2,) * self._pick(0, int(length > 1)),
            cache=length + self._between(6, 30), goes_on=self._pick(*whether), logits=self._pick(*whether),
            check="always",
        )  # fmt: skip
