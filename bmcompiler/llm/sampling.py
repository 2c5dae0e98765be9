"""Which token comes next, by the scores of all."""

from __future__ import annotations

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
        seed: equal seeds draw equal tokens.

    Raises UsageError for numbers that cannot be.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    _random: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.top_k < 0 or not 0 < self.top_p <= 1 or self.seed < 0:
            given = f"temperature {self.temperature:g}, top-k {self.top_k}, top-p {self.top_p:g}, seed {self.seed}"
            raise UsageError(
                f"{given} cannot be",
                remedy="temperature, top-k and seed are 0 or more, top-p above 0 and at most 1",
            )
        self._random = np.random.default_rng(self.seed)

    def choose(self, logits: Array) -> int:
        """A token, by scores of all (vocabulary); NaN is no score."""
        if not self.temperature:
            return best(logits)
        scores = np.where(np.isnan(logits), -np.inf, logits).astype(np.float64)
        order = np.argsort(-scores, kind="stable")
        order = order[: self.top_k or len(order)]
        chances = np.exp((scores[order] - scores[order[0]]) / self.temperature)
        chances /= chances.sum()
        kept = 1 + int(np.searchsorted(np.cumsum(chances), self.top_p))  # the best one is always among them
        chances = chances[:kept] / chances[:kept].sum()
        return int(order[self._random.choice(len(chances), p=chances)])
