"""How well a model foresees a text: exp of the mean of -log p(next token)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.generate import Generator
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import Progress
from bmcompiler.parallel import Pool
from bmcompiler.parallel.task import InlinePool, NamedTask

Piece = Sequence[int]


def pieces(tokens: Sequence[int], length: int, count: int, before: Sequence[int] = ()) -> list[list[int]]:
    """Pieces of a text of so many tokens, spread over it, each behind those that begin every text (`before`).

    Raises UsageError: it is too short for one.
    """
    length -= len(before)
    if len(tokens) < 2:
        raise UsageError(f"the text has {len(tokens)} tokens, nothing to foresee", remedy="give a longer text")
    if length < 2:
        raise UsageError(f"a piece of {length + len(before)} tokens has none to foresee", remedy="give longer pieces")
    if len(tokens) < length:
        raise UsageError(
            f"the text has {len(tokens)} tokens, fewer than the {length} of a piece",
            remedy="give a longer text, or compile for shorter prompts",
        )
    count = min(count, len(tokens) // length)
    starts = [index * (len(tokens) - length) // max(1, count - 1) for index in range(count)]
    return [[*before, *tokens[start : start + length]] for start in starts]


def of_bundle(
    bundle: Bundle | Path, parts: Sequence[Piece], progress: Progress | None = None, pool: Pool | None = None
) -> float:
    """Of a bundle whose lm_head gives scores, each piece read as a prompt.

    Args:
        bundle: by its path where a pool of several processes computes, each of which maps it.

    Raises UnsupportedError without scores.
    """
    return _perplexity(_OfBundle(bundle), parts, progress, pool)


def of_model(
    model: LanguageModel | Path, parts: Sequence[Piece], progress: Progress | None = None, pool: Pool | None = None
) -> float:
    """Of a folder, in float32; by its path where a pool of several processes computes."""
    return _perplexity(_OfModel(model), parts, progress, pool)


@dataclass(frozen=True)
class _OfBundle(NamedTask[Generator, Piece, float]):
    """What the tokens of a piece lose, -log p in all, by a bundle."""

    bundle: Bundle | Path

    def load(self) -> Generator:
        return Generator(Bundle.load(self.bundle) if isinstance(self.bundle, Path) else self.bundle)

    def compute(self, state: Generator, part: Piece) -> float:
        states = state.states(part)
        return _lost(np.stack([state.logits(states[:, at]) for at in range(len(part) - 1)]), part)


@dataclass(frozen=True)
class _OfModel(NamedTask[FloatModel, Piece, float]):
    """What the tokens of a piece lose, by the model in float32."""

    model: LanguageModel | Path

    def load(self) -> FloatModel:
        return FloatModel(open_model(self.model) if isinstance(self.model, Path) else self.model)

    def compute(self, state: FloatModel, part: Piece) -> float:
        return _lost(state.logits(state.states(part[:-1])), part)


def _lost(scores: Array, piece: Piece) -> float:
    logits = scores.astype(np.float64)
    top = logits.max(1, keepdims=True)
    spread = np.log(np.exp(logits - top).sum(1)) + top[:, 0]
    return float((spread - logits[np.arange(len(logits)), list(piece[1:])]).sum())


def _perplexity(
    task: NamedTask[Any, Piece, float], parts: Sequence[Piece], progress: Progress | None, pool: Pool | None
) -> float:
    """Sums go by the order of the pieces, whoever is done first."""
    done = (InlinePool() if pool is None else pool).run(task, enumerate(parts))
    lost = dict(done if progress is None else progress(done, "pieces", len(parts)))
    return float(np.exp(sum(lost[number] for number in range(len(parts))) / sum(len(piece) - 1 for piece in parts)))
