"""Rotary embedding: the frequencies of the ways to stretch them, and the tables that positions look up.

A pair (x[i], x[i + n/2]) of the first n dimensions of a head is rotated by position * frequency[i] (Su et al., arXiv
2104.09864). `config.json` names the way under `rope_scaling` or `rope_parameters`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.numeric.arrays import Floats


@dataclass(frozen=True)
class Rotary:
    """The rotation of some layers.

    Attributes:
        theta: base of the frequencies. dims: dimensions of a head that are rotated, the first ones; even.
        kind: how frequencies are stretched, a key of `KINDS`. parameters: of `config.json`, for that kind.
        positions: tokens the model was made for.
    """

    theta: float
    dims: int
    positions: int
    kind: str = "default"
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def tables(self, rows: int) -> tuple[Floats, Floats]:
        """Cosines and sines of positions 0 .. rows - 1, each f32 (rows, dims); both halves of a row are the same.

        Raises FileFormatError for parameters that are missing or no numbers.
        """
        try:
            frequencies, factor = KINDS[self.kind](self, rows)
        except KeyError as error:
            raise FileFormatError(f"rotary embedding '{self.kind}' needs {error}, which is not given") from None
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise FileFormatError(f"rotary embedding '{self.kind}': parameters that cannot be ({error})") from None
        angles = np.arange(rows, dtype=np.float32)[:, None] * frequencies.astype(np.float32)
        both = np.concatenate([angles, angles], axis=1)
        scale = np.float32(factor)
        return np.cos(both) * scale, np.sin(both) * scale


class Stretch(NamedTuple):
    """Frequencies (dims / 2), and what cosines and sines are multiplied by."""

    frequencies: Floats
    factor: float = 1.0


def _plain(rotary: Rotary, theta: float | None = None) -> Floats:
    steps = np.arange(0, rotary.dims, 2, dtype=np.float32) / np.float32(rotary.dims)
    return np.float32(1) / np.float32(theta or rotary.theta) ** steps


def _original(rotary: Rotary) -> float:
    """Tokens the model was first trained on."""
    return float(rotary.parameters.get("original_max_position_embeddings") or rotary.positions)


def _default(rotary: Rotary, rows: int) -> Stretch:
    return Stretch(_plain(rotary))


def _linear(rotary: Rotary, rows: int) -> Stretch:
    return Stretch(_plain(rotary) / np.float32(rotary.parameters["factor"]))


def _dynamic(rotary: Rotary, rows: int) -> Stretch:
    """A larger base for tables that are longer than the model was made for."""
    length, factor = max(rows, rotary.positions), float(rotary.parameters["factor"])
    grown = factor * length / rotary.positions - (factor - 1)
    return Stretch(_plain(rotary, rotary.theta * grown ** (rotary.dims / (rotary.dims - 2))))


def _llama3(rotary: Rotary, rows: int) -> Stretch:
    """Waves longer than the context are stretched, short ones are not, and between the two it is blended."""
    given, plain = rotary.parameters, _plain(rotary)
    low, high = float(given["low_freq_factor"]), float(given["high_freq_factor"])
    turns = _original(rotary) * plain / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return Stretch((1 - kept) * plain / float(given["factor"]) + kept * plain)


def _yarn(rotary: Rotary, rows: int) -> Stretch:
    """Peng et al., arXiv 2309.00071: dimensions that turn seldom are stretched; scores are sharpened."""
    given, plain, dims = rotary.parameters, _plain(rotary), rotary.dims
    factor = float(given["factor"])

    def dimension(turns: float) -> float:
        return dims * math.log(_original(rotary) / (turns * 2 * math.pi)) / (2 * math.log(rotary.theta))

    first, last = dimension(given.get("beta_fast") or 32), dimension(given.get("beta_slow") or 1)
    if given.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dims - 1)
    ramp = np.clip((np.arange(dims // 2) - first) / (last - first if last != first else 0.001), 0, 1)
    return Stretch(ramp * plain / factor + (1 - ramp) * plain, _yarn_scale(given, factor))


def _yarn_scale(given: Mapping[str, Any], factor: float) -> float:
    def scale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0

    if given.get("attention_factor") is not None:
        return float(given["attention_factor"])
    if given.get("mscale") and given.get("mscale_all_dim"):
        return scale(given["mscale"]) / scale(given["mscale_all_dim"])
    return scale(1)


def _longrope(rotary: Rotary, rows: int) -> Stretch:
    """Ding et al., arXiv 2402.13753: a factor per frequency; longer tables than the original have others."""
    given, original = rotary.parameters, _original(rotary)
    each = np.asarray(given["long_factor" if rows > original else "short_factor"], np.float32)
    if each.shape != (rotary.dims // 2,):
        raise FileFormatError(f"rotary embedding 'longrope' needs {rotary.dims // 2} factors, got {list(each.shape)}")
    factor = float(given.get("factor") or rotary.positions / original)
    scale = given.get("attention_factor")
    if scale is None:
        scale = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    return Stretch(_plain(rotary) / each, float(scale))


KINDS: Mapping[str, Callable[[Rotary, int], Stretch]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}


def kind_of(name: str, file: object) -> str:
    """The key of a kind, by any of its names. Raises UnsupportedError."""
    kind = {"su": "longrope"}.get(name, name)
    if kind not in KINDS:
        raise UnsupportedError(
            f"unknown scaling of the rotary embedding '{name}'", file=file, remedy=f"known are {', '.join(KINDS)}"
        )
    return kind
