"""`config.json`: the sizes and numbers of a model, read by what its family says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.llm.families import Family, family_of
from bmcompiler.llm.rotary import Rotary, kind_of

_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}
_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
_MOST = 1 << 24  # a size beyond is a damaged file


@dataclass(frozen=True)
class Architecture:
    """A decoder, as its nets need it.

    Attributes:
        model_type: of the family. hidden, inner: widths of the stream and inside the mlp. kv_heads: heads of keys and
            values, each shared by heads / kv_heads queries. head_dim: width of a head. vocabulary: tokens.
        epsilon: of the norms. activation: "silu", "gelu" (exact) or "gelu_tanh". attention_scale: factor of scores.
        embedding_scale: factor of embedded tokens. attention_cap, logit_cap: c of c * tanh(x / c), None for none.
        windows: tokens that a layer sees, itself included, by layer; None for all. rotaries: by layer.
        tied: the table of embeddings gives the logits. dtype: "f16", "bf16" or "f32", of the weights.
        positions: tokens the model was made for.
        quantization: `quantization_config`, None without.
    """

    model_type: str
    family: Family
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    epsilon: float
    activation: str
    attention_scale: float
    embedding_scale: float
    attention_cap: float | None
    logit_cap: float | None
    windows: tuple[int | None, ...]
    rotaries: tuple[Rotary, ...]
    qkv_bias: bool
    out_bias: bool
    mlp_bias: bool
    tied: bool
    dtype: str
    positions: int
    quantization: Mapping[str, Any] | None

    @property
    def layers(self) -> int:
        """Number of decoder layers."""
        return len(self.windows)


class Config:
    """Values of a JSON file by key, checked as they are asked for; errors name file and key."""

    def __init__(self, file: Path, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self.file, self.values, self.defaults = file, values, defaults

    def get(self, key: str) -> Any:
        """The value of a key, or the family's default; None where there is neither."""
        found = self.values.get(key)
        return self.defaults.get(key) if found is None else found

    def number(self, key: str, otherwise: float | None = None) -> float:
        """A positive number. Raises FileFormatError."""
        found = self.get(key)
        found = otherwise if found is None else found
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found < math.inf:
            raise self.wrong(key, "a positive number")
        return float(found)

    def size(self, key: str, otherwise: int | None = None) -> int:
        """A positive integer. Raises FileFormatError."""
        found = self.number(key, otherwise)
        if found != int(found) or found > _MOST:
            raise self.wrong(key, f"an integer from 1 to {_MOST}")
        return int(found)

    def flag(self, key: bool | str) -> bool:
        """A yes or no, or that itself; False where nothing is said. Raises FileFormatError."""
        found = key if isinstance(key, bool) else self.get(key)
        if not isinstance(found, (bool, type(None))):
            raise self.wrong(str(key), "true or false")
        return bool(found)

    def wrong(self, key: str, wanted: str) -> FileFormatError:
        """The error of a key that does not hold what it must."""
        got = json.dumps(self.get(key)) if self.get(key) is not None else "nothing"
        return FileFormatError(f"'{key}' must be {wanted}, got {got[:80]}", file=self.file)


def read_json(file: Path) -> Mapping[str, Any]:
    """An object of a JSON file. Raises FileFormatError where it is none, or cannot be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(
            f"cannot be read: {error.strerror}", file=file, remedy="give a folder as Hugging Face writes them"
        ) from None
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"is no JSON ({error})", file=file, remedy="fetch the file again") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"must hold an object, got {type(found).__name__}", file=file)
    return found


def read_architecture(folder: Path) -> Architecture:
    """What `config.json` of a folder says. Raises FileFormatError, UnsupportedError."""
    file = folder / "config.json"
    outer = read_json(file)
    inner = outer.get("text_config")
    values = {**outer, **inner} if isinstance(inner, dict) else outer
    model_type = values.get("model_type")
    if not isinstance(model_type, str):
        raise FileFormatError("'model_type' must be a name, got nothing of that kind", file=file)
    family = family_of(model_type, file)
    config = Config(file, values, {"max_position_embeddings": 2048, "rms_norm_eps": 1e-6, **family.defaults})
    heads, hidden = config.size("num_attention_heads"), config.size("hidden_size")
    head_dim, kv_heads = config.size("head_dim", max(hidden // heads, 1)), config.size("num_key_value_heads", heads)
    if heads % kv_heads:
        raise FileFormatError(f"{heads} heads of queries cannot share {kv_heads} of keys and values alike", file=file)
    windows = _windows(config, family)
    whole, local = _rotaries(config, family, head_dim)
    return Architecture(
        model_type=model_type,
        family=family,
        hidden=hidden,
        inner=config.size("intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=config.size("vocab_size"),
        epsilon=config.number("rms_norm_eps"),
        activation=_activation(config, family),
        attention_scale=config.number(family.attention_scalar, head_dim) ** -0.5,
        embedding_scale=hidden**0.5 if family.scaled_embedding else 1.0,
        attention_cap=_cap(config, family.caps[0]),
        logit_cap=_cap(config, family.caps[1]),
        windows=windows,
        rotaries=tuple(whole if window is None else local for window in windows),
        qkv_bias=config.flag(family.qkv_bias),
        out_bias=config.flag(family.out_bias),
        mlp_bias=config.flag(family.mlp_bias),
        tied=config.flag("tie_word_embeddings"),
        dtype=_dtype(config),
        positions=config.size("max_position_embeddings"),
        quantization=_quantization(config),
    )


def _activation(config: Config, family: Family) -> str:
    name = config.get(family.activation) or config.get("hidden_act") or "silu"
    if name not in _ACTIVATIONS:
        raise UnsupportedError(
            f"unknown activation '{name}'", file=config.file, remedy=f"known are {', '.join(_ACTIVATIONS)}"
        )
    return _ACTIVATIONS[name]


def _cap(config: Config, key: str) -> float | None:
    return None if config.get(key) is None else config.number(key)


def _dtype(config: Config) -> str:
    name = config.get("torch_dtype") or config.get("dtype") or "float32"
    if name not in _TYPES:
        raise UnsupportedError(
            f"weights of type '{name}' are not supported", file=config.file, remedy=f"known are {', '.join(_TYPES)}"
        )
    return _TYPES[name]


def _quantization(config: Config) -> Mapping[str, Any] | None:
    found = config.get("quantization_config")
    if found is not None and not isinstance(found, dict):
        raise config.wrong("quantization_config", "an object")
    return found


def _windows(config: Config, family: Family) -> tuple[int | None, ...]:
    """What each layer sees."""
    layers, types = config.size("num_hidden_layers"), config.get("layer_types")
    narrow = [_is_narrow(config, family, layer) for layer in range(layers)]
    if types is not None:
        if not isinstance(types, list) or len(types) != layers:
            raise config.wrong("layer_types", f"a list with a name for each of {layers} layers")
        unknown = sorted({str(each) for each in types} - {"full_attention", "sliding_attention"})
        if unknown:
            raise UnsupportedError(f"layers of type '{unknown[0]}' are not supported", file=config.file)
        narrow = [each == "sliding_attention" for each in types]
    return tuple(config.size("sliding_window") if each else None for each in narrow)


def _is_narrow(config: Config, family: Family, layer: int) -> bool:
    if family.window == "none" or config.values.get("sliding_window", 0) is None or not config.get("sliding_window"):
        return False
    if family.window == "late":
        return config.flag("use_sliding_window") and layer >= int(config.number("max_window_layers", 1))
    if family.window == "alternate":
        return layer % 2 == 0
    return family.window == "all" or (layer + 1) % config.size("sliding_window_pattern") != 0


def _rotaries(config: Config, family: Family, head_dim: int) -> tuple[Rotary, Rotary]:
    """Of layers that see everything, and of those with a window."""
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(given, dict):
        raise config.wrong("rope_scaling", "an object")
    if isinstance(given.get("full_attention"), dict):
        whole, local = given["full_attention"], given.get("sliding_attention") or {}
    else:
        whole, local = given, {} if family.local_theta else given
    theta = config.number("rope_theta", 10000.0)
    narrow = config.number(family.local_theta, theta) if family.local_theta else theta
    return _rotary(config, whole, theta, head_dim), _rotary(config, local, narrow, head_dim)


def _rotary(config: Config, given: Mapping[str, Any], theta: float, head_dim: int) -> Rotary:
    named = str(given.get("rope_type") or given.get("type") or "default")
    # the first files of Phi-3 call their factors per frequency so
    kind = "longrope" if "short_factor" in given else kind_of(named, config.file)
    parameters = dict(given)
    if config.get("original_max_position_embeddings") is not None:
        parameters.setdefault("original_max_position_embeddings", config.get("original_max_position_embeddings"))
    share = Config(config.file, given, {}).number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0))
    dims = int(head_dim * share)
    if dims % 2 or not 0 < dims <= head_dim:
        raise FileFormatError(f"{dims} of {head_dim} dimensions of a head cannot be rotated in pairs", file=config.file)
    base = Config(config.file, given, {}).number("rope_theta", theta)
    return Rotary(base, dims, config.size("max_position_embeddings"), kind, parameters)
