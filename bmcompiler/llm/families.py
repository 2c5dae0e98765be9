"""What one family of decoders does otherwise than another: a row each.

A decoder layer is x + attention(norm(x)), then x + mlp(norm(x)), where mlp is down(activation(gate(x)) * up(x)). A
package adds a family by an entry point of the group `bmcompiler.llm_families`, called like its `model_type`, that names
a `Family`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bmcompiler.errors import UnsupportedError
from bmcompiler.plugins.registry import entry_points, failure_note

GROUP = "bmcompiler.llm_families"


@dataclass(frozen=True)
class Norms:
    """Names of the norms of a layer in a checkpoint, "" where there is none: before and behind each half of it."""

    attention: str = "input_layernorm"
    attention_out: str = ""
    mlp: str = "post_attention_layernorm"
    mlp_out: str = ""


@dataclass(frozen=True)
class Family:
    """Architectural facts of a family.

    Attributes:
        norms: where norms stand. norm_offset: added to their factors (1 where a checkpoint holds w of 1 + w).
        head_norms: queries and keys are normalised, each head by itself, before they are rotated.
        qkv_bias, out_bias, mlp_bias: True, False, or the key of `config.json` that says it.
        fused: query, key and value are one tensor, and gate and up another.
        activation: key of `config.json`.
        scaled_embedding: rows of the embedding are multiplied by the root of their width.
        attention_scalar: key of the number whose root divides the scores; "" is the width of a head.
        caps: keys of the limits that tanh bends scores of the attention and logits to, "" for none.
        window: which layers see `sliding_window` tokens alone: none, all, from `max_window_layers` on ("late"), every
            second ("alternate"), or all but every `sliding_window_pattern`-th ("pattern"). `layer_types` of
            `config.json` counts before that.
        local_theta: key of the base of the rotation in layers with a window, which is not scaled; "" is the same.
        defaults: of keys that `config.json` may leave out.
    """

    norms: Norms = Norms()
    norm_offset: float = 0.0
    head_norms: bool = False
    qkv_bias: bool | str = False
    out_bias: bool | str = False
    mlp_bias: bool | str = False
    fused: bool = False
    activation: str = "hidden_act"
    scaled_embedding: bool = False
    attention_scalar: str = ""
    caps: tuple[str, str] = ("", "")
    window: str = "none"
    local_theta: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)


_SANDWICH = Norms(
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
)
_GEMMA: dict[str, Any] = {
    "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True, "head_dim": 256,
    "query_pre_attn_scalar": 256, "num_attention_heads": 8, "num_key_value_heads": 4, "sliding_window": 4096,
}  # fmt: skip
_CAPS = ("attn_logit_softcapping", "final_logit_softcapping")

FAMILIES: Mapping[str, Family] = {
    "llama": Family(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias"),
    "mistral": Family(window="all", defaults={"num_key_value_heads": 8, "sliding_window": 4096}),
    "qwen2": Family(qkv_bias=True, window="late", defaults={"max_window_layers": 28}),
    "qwen3": Family(
        head_norms=True, qkv_bias="attention_bias", out_bias="attention_bias", window="late",
        defaults={"head_dim": 128, "max_window_layers": 28},
    ),
    "phi3": Family(fused=True, window="all", defaults={"rms_norm_eps": 1e-5}),
    "gemma2": Family(
        norms=_SANDWICH, norm_offset=1.0, qkv_bias="attention_bias", out_bias="attention_bias",
        activation="hidden_activation", scaled_embedding=True, attention_scalar="query_pre_attn_scalar", caps=_CAPS,
        window="alternate",
        defaults={**_GEMMA, "vocab_size": 256000, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    ),
    "gemma3_text": Family(
        norms=_SANDWICH, norm_offset=1.0, head_norms=True, qkv_bias="attention_bias", out_bias="attention_bias",
        activation="hidden_activation", scaled_embedding=True, attention_scalar="query_pre_attn_scalar", caps=_CAPS,
        window="pattern", local_theta="rope_local_base_freq",
        defaults={
            **_GEMMA, "vocab_size": 262208, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 6,
            "max_position_embeddings": 131072,
        },
    ),
}  # fmt: skip
"""By `model_type`. The language half of a model of text and pictures has its own there (`text_config`)."""


def family_of(model_type: str, file: object) -> Family:
    """Raises UnsupportedError: nobody knows the family. PluginError: the package that has it is broken."""
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    loader = entry_points(GROUP).get(model_type)
    if loader is None:
        known = ", ".join(sorted({*FAMILIES, *entry_points(GROUP)}))
        raise UnsupportedError(
            f"unknown family of language models, model_type '{model_type}'",
            file=file,
            remedy=f"known are {known}; a package adds one by an entry point of {GROUP}" + failure_note(GROUP),
        )
    found: Family = loader()
    return found
