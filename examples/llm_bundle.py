"""Tokens from a bundle of a language model for the BM1684X, as the vendor's llm_convert makes them.

    python examples/llm_bundle.py model.bmodel 1,17,300,42 --count 8

The nets are embedding, block_i for a prompt, embedding_cache, block_cache_i for one more token, lm_head. Hidden states
and caches stay in the model's type; a bfloat16 number is the uint16 of its bits. Where lm_head ends in a dynamic search
for the highest logit, which firmware makes commands for, the search is done here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler import bmodel
from bmcompiler.runtime import Session

MASKED = np.float32(-10000)  # hides a position; 0 shows it
Array = NDArray[Any]


def best(logits: Array) -> int:
    """The token with the highest score, of equal ones the first; NaN is no score."""
    return int(np.where(np.isnan(logits), -np.inf, logits).argmax())


class Bundle:
    """A bundle and what it has in its caches: `position` tokens."""

    def __init__(self, session: Session) -> None:
        self.embedding, self.embedding_cache, self.head = (
            session.net(name) for name in ("embedding", "embedding_cache", "lm_head")
        )
        layers = range(sum(name.startswith("block_cache_") for name in session.nets))
        self.blocks = [session.net(f"block_{layer}") for layer in layers]
        self.cached = [session.net(f"block_cache_{layer}") for layer in layers]
        self.histories = [(net.memory("history_k"), net.memory("history_v")) for net in self.cached]
        stages = (one for one in session.model.stages() if one.net == "block_cache_0")
        self.lengths = sorted(one.inputs[3].shape[1] for one in stages)
        self.position = 0

    def prefill(self, tokens: Sequence[int]) -> Array:
        """Fill the caches with a prompt; the hidden state behind its last token."""
        count, length = len(tokens), self.embedding.inputs[0].shape[1]
        if not 1 <= count <= length:
            raise SystemExit(f"the prompt has {count} tokens, 1 to {length} are possible")
        ids, positions = (np.zeros((1, length), np.int32) for _ in range(2))
        ids[0, :count], positions[0, :count] = tokens, range(count)
        mask = np.full((1, 1, length, length), MASKED)
        mask[0, 0, :count] = np.where(np.tri(count, length, dtype=bool), 0, MASKED)
        (states,) = self.embedding.run(ids, raw=True).values()
        for net, histories in zip(self.blocks, self.histories):
            inputs = {"input_states": states, "position_ids": positions, "attention_mask": mask}
            states, *rows = net.run(inputs, raw=True).values()
            for history, new in zip(histories, rows):
                history[0, :count] = new[0, :count]
        self.position = count
        return states[:, count - 1]

    def decode(self, token: int) -> Array:
        """One more token: the hidden state behind it. Its keys and values go into row `position` of the caches."""
        row = self.position
        room = [length for length in self.lengths if length > row]
        if not room:
            raise SystemExit(f"the caches are full: they have {row} tokens")
        mask = np.full((1, 1, 1, room[0] + 1), MASKED)
        mask[..., :row] = mask[..., -1] = 0  # the new token lies behind the cache
        (states,) = self.embedding_cache.run(np.array([[token]], np.int32), raw=True).values()
        for net, (keys, values) in zip(self.cached, self.histories):
            inputs = {"input_states": states, "position_ids": np.array([[row]], np.int32), "attention_mask": mask}
            states, *_ = net.run(inputs, raw=True, into={"k_cache": keys[0, row], "v_cache": values[0, row]}).values()
        self.position += 1
        return states[:, 0]

    def logits(self, hidden: Array) -> Array:
        """Scores of all tokens."""
        (found,) = self.head.run(hidden, raw=True).values()
        return found[0]

    def greedy(self, prompt: Sequence[int], count: int) -> Iterator[tuple[int, Array]]:
        """`count` tokens, each the `best` one, with the hidden state it comes from."""
        hidden = self.prefill(prompt)
        for step in range(count):
            token = best(self.logits(hidden))
            yield token, hidden
            if step + 1 < count:
                hidden = self.decode(token)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("prompt", help="numbers of tokens, with commas")
    parser.add_argument("--count", type=int, default=8, help="tokens to generate")
    given = parser.parse_args()
    bundle = Bundle(Session(bmodel.load(given.bundle).static_part()))
    for token, _ in bundle.greedy([int(one) for one in given.prompt.split(",")], given.count):
        print(token, flush=True)


if __name__ == "__main__":
    main()
