"""How well a model foresees a text: exp of the mean of -log p(next token)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.generate import Generator
from bmcompiler.llm.model import LanguageModel
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import Progress

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


def of_bundle(bundle: Bundle, parts: Sequence[Piece], progress: Progress | None = None) -> float:
    """Of a bundle whose lm_head gives scores, each piece read as a prompt. Raises UnsupportedError without scores."""
    generator = Generator(bundle)

    def scores(piece: Piece) -> Array:
        states = generator.states(piece)
        return np.stack([generator.logits(states[:, at]) for at in range(len(piece) - 1)])

    return _perplexity(scores, parts, progress)


def of_model(model: LanguageModel, parts: Sequence[Piece], progress: Progress | None = None) -> float:
    """Of a folder, in float32."""
    reference = FloatModel(model)
    return _perplexity(lambda piece: reference.logits(reference.states(piece[:-1])), parts, progress)


def _perplexity(scores: Callable[[Piece], Array], parts: Sequence[Piece], progress: Progress | None) -> float:
    lost, count = 0.0, 0
    for piece in parts if progress is None else progress(parts, "pieces", len(parts)):
        logits = scores(piece).astype(np.float64)
        top = logits.max(1, keepdims=True)
        spread = np.log(np.exp(logits - top).sum(1)) + top[:, 0]
        lost += float((spread - logits[np.arange(len(logits)), list(piece[1:])]).sum())
        count += len(logits)
    return float(np.exp(lost / count))
