"""Which token comes next, by the scores of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.llm.generate import best
from bmcompiler.numeric.arrays import Array


@dataclass
class Sampler:
    """Draws a token: of the `top_k` with the highest scores those that make up `top_p` of all probability.

    Attributes:
        temperature: scores are divided by it; 0 takes the best token, always. top_k: 0 = all. top_p: 0 to 1.
        penalty: scores of tokens that came before are divided by it, those below 0 multiplied.
        seed: equal seeds draw equal tokens.

    Raises UsageError for numbers that cannot be.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    penalty: float = 1.0
    seed: int = 0
    _random: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parted = self.temperature < 0 or not 0 < self.top_p <= 1 or self.penalty <= 0
        if parted or self.top_k < 0 or self.seed < 0:
            given = f"temperature {self.temperature:g}, top-k {self.top_k}, top-p {self.top_p:g}"
            raise UsageError(
                f"{given}, penalty {self.penalty:g}, seed {self.seed} cannot be",
                remedy="temperature, top-k and seed are 0 or more, penalty and top-p above 0, top-p at most 1",
            )
        self._random = np.random.default_rng(self.seed)

    def draw(self, chances: Array, tokens: Array) -> int:
        """One of tokens, by chances that sum to about 1."""
        exact = chances.astype(np.float64)
        return int(tokens[self._random.choice(len(exact), p=exact / exact.sum())])

    def choose(self, logits: Array, before: Sequence[int] = ()) -> int:
        """A token, by scores of all (vocabulary); NaN is no score. before: tokens so far."""
        if not self.temperature:
            return best(logits)
        scores = np.where(np.isnan(logits), -np.inf, logits).astype(np.float64)
        seen = list(set(before))
        scores[seen] = np.where(scores[seen] < 0, scores[seen] * self.penalty, scores[seen] / self.penalty)
        order = np.argsort(-scores, kind="stable")
        order = order[: self.top_k or len(order)]
        chances = np.exp((scores[order] - scores[order[0]]) / self.temperature)
        chances /= chances.sum()
        kept = 1 + int(np.searchsorted(np.cumsum(chances), self.top_p))  # the best one is always among them
        chances = chances[:kept] / chances[:kept].sum()
        return self.draw(chances, order[:kept])
