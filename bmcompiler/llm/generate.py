"""Tokens of a bundle, one after the other: what hosts do between its nets (bm1684x-llm.md 3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bmcompiler.errors import RuntimeUseError, UnsupportedError
from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.heads import GREEDY, SAMPLE
from bmcompiler.numeric.arrays import Array, Ints
from bmcompiler.plugins.registry import lookup
from bmcompiler.spelling import spelled

if TYPE_CHECKING:
    from bmcompiler.llm.sampling import Sampler

_MASKED = np.float32(-10000)  # hides a position; 0 shows it


class BundleNet(Protocol):
    """A net, as `Session` is one."""

    def memory(self, name: str) -> Array:
        """The memory of a kept tensor."""

    def run(self, inputs: Mapping[str, Array], *, raw: bool, into: Mapping[str, Array]) -> Mapping[str, Array]:
        """Device values of the outputs, those in `into` also stored there."""


class BundleNets(Protocol):
    """The nets of a bundle on one device memory, as a `Session` gives them."""

    def net(self, name: str) -> BundleNet:
        """The net of that name."""


class Generator:
    """A bundle on a device, and what its caches hold.

    Hidden states and caches have the bundle's type; a bfloat16 number is the uint16 of its bits. Where lm_head gives
    scores, or ended in a dynamic search for the best, the search is done here: it is what the firmware would do.

    Attributes:
        tokens: those whose keys and values the caches hold.
        caches: keys and values of each layer, 1 x rows x heads x width, after the rotation by their positions; rows
            from `position` on are not seen.
    """

    def __init__(self, bundle: Bundle, nets: BundleNets | None = None) -> None:
        """Start with empty caches.

        Args:
            nets: a session of `bundle.model`; by default one on the first device of its chip.
        """
        self.bundle = bundle
        self.tokens: list[int] = []
        session: Any = nets or lookup("bmcompiler.runtimes", "session", "runtime")(bundle.model)
        self._nets: dict[str, BundleNet] = {name: session.net(name) for name in bundle.names}
        self.caches: list[tuple[Array, Array]] = []
        for layer in range(bundle.layers):
            name = f"block_cache_{layer}"
            keys, values = bundle.names[name][0][3:]
            self.caches.append((self._nets[name].memory(keys), self._nets[name].memory(values)))

    @property
    def position(self) -> int:
        """How many tokens the caches hold."""
        return len(self.tokens)

    def cached(self, prompt: Sequence[int] | Ints) -> int:
        """How many of the first tokens of a prompt the caches hold; the last one is to be read in any case."""
        pairs = zip(prompt[: len(prompt) - 1], self.tokens)
        return next(
            (place for place, (one, other) in enumerate(pairs) if one != other), min(len(prompt) - 1, self.position)
        )

    def prefill(self, prompt: Sequence[int] | Ints) -> Array:
        """Fill the caches with a prompt, at once; what they had is forgotten.

        Returns:
            The hidden state behind its last token, 1 x hidden. Raises as `states`.
        """
        return self.states(prompt)[:, -1]

    def states(self, prompt: Sequence[int] | Ints) -> Array:
        """As `prefill`, with the hidden states behind all its tokens, 1 x tokens x hidden.

        Raises:
            RuntimeUseError: no tokens, more than the bundle takes, or numbers that are no tokens.
            UnsupportedError: the nets for prompts are dynamic.
        """
        return self._read(self._tokens(prompt), 0)

    def extend(self, tokens: Sequence[int] | Ints) -> Array:
        """Read more tokens behind those of the caches, at once.

        Returns:
            The hidden state behind the last one, 1 x hidden. Raises as `states`, and UnsupportedError where the caches
            hold tokens and the bundle has no nets `block_kv_I`.
        """
        return self._read(self._tokens(tokens), self.position)[:, -1]

    def _read(self, tokens: Ints, first: int) -> Array:
        """States of tokens behind the first ones of the caches, in parts as long as nets take; others are forgotten."""
        bundle = self.bundle
        if not bundle.prompt:
            raise UnsupportedError(
                "the nets for prompts, block_0 and so on, are dynamic: their commands are made by the firmware, which "
                "is not simulated",
                remedy="give the tokens of the prompt one by one",
            )
        if first and not bundle.goes_on:
            raise UnsupportedError(
                "the bundle has no nets for tokens behind those of the caches, block_kv_0 and so on",
                remedy=f"compile the language model with {spelled('history')}, or give the tokens one by one",
            )
        count, room = first + len(tokens), bundle.rows[-1]
        length = room if bundle.goes_on else min(bundle.prompt, room)
        if count > length:
            more = f", or give tokens one by one: there is room for {room}" if count <= room else ""
            raise RuntimeUseError(
                f"the prompt has {count} tokens, the bundle takes 1 to {length} at once", remedy=f"shorten it{more}"
            )
        if not first:
            self._forget()
        del self.tokens[first:]
        found = [self._read_part(tokens[at : at + bundle.prompt]) for at in range(0, len(tokens), bundle.prompt)]
        return np.concatenate(found, axis=1)

    def _read_part(self, tokens: Ints) -> Array:
        """States of as many tokens as nets take, behind those of the caches."""
        first, count = self.position, len(tokens)
        taken = next(each for each in self.bundle.prompts if each >= count)
        before, kind = (self.bundle.rows[-1], "kv_") if first else (0, "")
        ids, positions = (np.zeros((1, taken), np.int32) for _ in range(2))
        ids[0, :count], positions[0, :count] = tokens, range(first, first + count)
        mask = np.full((1, 1, taken, before + taken), _MASKED)
        mask[0, 0, :count, :first] = 0
        mask[0, 0, :count, before:] = np.where(np.tri(count, taken, dtype=bool), 0, _MASKED)
        (states,) = self._run("embedding", ids)
        for layer, caches in enumerate(self.caches):
            states[:, count:] = 0  # rows behind the prompt are nobody's
            given = (states, positions, mask, *(caches if first else ()))
            states, *made = self._run(f"block_{kind}{layer}", *given)
            for cache, rows in zip(caches, made):
                cache[0, first : first + count] = rows[0, :count]
        self.tokens += tokens.tolist()
        return states[:, :count]

    def decode(self, token: int) -> Array:
        """Read one more token; its keys and values become row `position` of the caches.

        Returns:
            The hidden state behind it, 1 x hidden.

        Raises:
            RuntimeUseError: the caches are full, or it is no token.
        """
        row, rows = self.position, self.bundle.stage_rows(self.position)
        if not rows:
            raise RuntimeUseError(
                f"the caches are full: they hold {row} tokens",
                remedy="begin anew with fewer tokens, or compile the language model for more",
            )
        mask = np.full((1, 1, 1, rows + 1), _MASKED)
        mask[..., :row] = mask[..., -1] = 0  # the new token is behind the cache
        (states,) = self._run("embedding_cache", self._tokens([token])[None])
        position = np.array([[row]], np.int32)
        for layer, (keys, values) in enumerate(self.caches):
            name = f"block_cache_{layer}"
            into = dict(zip(self.bundle.names[name][1][1:], (keys[0, row], values[0, row])))
            states = self._run(name, states, position, mask, into=into)[0]
        self.tokens.append(int(token))
        return states[:, 0]

    def logits(self, hidden: Array) -> Array:
        """Scores of all tokens behind a hidden state. Raises UnsupportedError where lm_head gives the best token."""
        if not self.bundle.vocabulary:
            raise UnsupportedError("lm_head gives the best token, no scores", remedy="compile it with scores as output")
        (found,) = self._run("lm_head", hidden)
        return found[0]

    def best(self, hidden: Array) -> int:
        """The token with the highest score behind a hidden state."""
        if self.bundle.vocabulary and GREEDY not in self.bundle.names:
            return best(self.logits(hidden))
        (found,) = self._run("lm_head", hidden)
        if self.bundle.vocabulary:
            (found,) = self._run(GREEDY, found)
        return int(found[0, 0])

    def candidates(self, hidden: Array, before: Sequence[int], sampler: Sampler) -> tuple[Array, Array]:
        """Chances behind a hidden state, descending, and their tokens, as `sample_head` gives them.

        Args:
            before: tokens so far, of which the last are made less likely by the sampler's penalty.
        """
        seen = self.bundle.seen
        ids = np.full((1, seen), before[-1], np.int32)
        ids[0, : len(before)] = before[-seen:]
        penalty, temperature, top_p = (
            np.array([each], np.float32) for each in (sampler.penalty, sampler.temperature, sampler.top_p)
        )
        (logits,) = self._run("lm_head", hidden)
        top_k = np.array([sampler.top_k], np.int32)
        chances, tokens = self._run(SAMPLE, logits, ids, penalty, temperature, top_k, top_p)
        return chances[0], tokens[0]

    def generate(
        self,
        prompt: Sequence[int] | Ints,
        count: int,
        stop: Collection[int] = (),
        *,
        one_by_one: bool = False,
        go_on: bool = False,
    ) -> Iterator[int]:
        """The best tokens behind a prompt, at most `count`; a token of `stop` is the last.

        Args:
            one_by_one: read the prompt with the nets for one token, which is slower, has room for longer prompts, and
                needs no net that is dynamic; hidden states differ in last bits.
            go_on: where the caches hold the beginning of the prompt it is not read again.

        Raises:
            RuntimeUseError: as `prefill` and `decode`, where the caches are full after the tokens there is room for.
            UnsupportedError: as `prefill`.
        """
        return self.drawn(prompt, count, stop, None, one_by_one=one_by_one, go_on=go_on)

    def drawn(
        self,
        prompt: Sequence[int] | Ints,
        count: int,
        stop: Collection[int],
        sampler: Sampler | None,
        *,
        one_by_one: bool = False,
        go_on: bool = False,
    ) -> Iterator[int]:
        """As `generate`, tokens drawn by their scores; None, or no temperature, takes the best. Raises as `generate`.

        Where `top_k` tokens are no more than `sample_head` gives, their chances come from there.
        """
        seen = [int(token) for token in prompt]
        tokens = self._tokens(prompt)
        first = self.cached(tokens) if go_on else 0
        hidden = self._read_one_by_one(tokens, first) if one_by_one else self._read(tokens[first:], first)[:, -1]
        for left in range(count - 1, -1, -1):
            token = self._chosen(hidden, seen, sampler)
            seen.append(token)
            yield token
            if not left or token in stop:
                return
            hidden = self.decode(token)

    def _chosen(self, hidden: Array, before: Sequence[int], sampler: Sampler | None) -> int:
        if sampler is None or not sampler.temperature:
            return self.best(hidden)
        if 0 < sampler.top_k <= self.bundle.candidates:
            return sampler.draw(*self.candidates(hidden, before, sampler))
        return sampler.choose(self.logits(hidden), before)

    def _forget(self) -> None:
        """Empty the caches: rows of zeros, as the weight of a masked row is 0, which times infinity would be NaN."""
        self.tokens = []
        for cache in (each for pair in self.caches for each in pair):
            cache[...] = 0

    def _read_one_by_one(self, tokens: Ints, first: int) -> Array:
        room = self.bundle.rows[-1]
        if len(tokens) > room:
            raise RuntimeUseError(f"the prompt has {len(tokens)} tokens, the caches have room for {room}")
        if not first:
            self._forget()
        del self.tokens[first:]
        for token in tokens[first:]:
            hidden = self.decode(token)
        return hidden

    def _tokens(self, given: Sequence[int] | Ints) -> Ints:
        """Tokens as int32. Raises RuntimeUseError."""
        tokens, most = np.asarray(given), self.bundle.tokens or 1 << 31
        if not tokens.size:
            raise RuntimeUseError("there are no tokens, the first comes from a prompt")
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise RuntimeUseError(f"tokens are numbers in a row, not {tokens.ndim} axes of {tokens.dtype}")
        if tokens.min() < 0 or tokens.max() >= most:
            wrong = next(int(token) for token in tokens if not 0 <= token < most)
            raise RuntimeUseError(f"{wrong} is no token, they are 0 to {most - 1}")
        return tokens.astype(np.int32)

    def _run(self, name: str, *values: Array, into: Mapping[str, Array] | None = None) -> list[Array]:
        """Outputs of a net, in order; inputs that are left out keep what is in memory."""
        inputs, outputs = self.bundle.names[name]
        found = self._nets[name].run(dict(zip(inputs, values)), raw=True, into=into or {})
        return [found[each] for each in outputs]


def best(logits: Array) -> int:
    """The token with the highest score, of equal ones the first; NaN is no score."""
    return int(np.where(np.isnan(logits), -np.inf, logits).argmax())
