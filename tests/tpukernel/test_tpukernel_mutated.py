"""A kernel with a fault is refused with one sentence, or runs: never another exception, never without an end."""

from __future__ import annotations

from random import Random

import pytest
from kernel_faults import Call, mutated, need_sentences
from mutated_kernels import KERNELS, calls_of, device, other, program_of_calls


def ask(seeds: range) -> None:
    card, target, source = device()

    def drawn(seed: int) -> list[Call]:
        random = Random(seed)
        return mutated(calls_of(random.choice(KERNELS), target, source), random, other)

    need_sentences(map(drawn, seeds), program_of_calls, card.launch, "tpu_")


def test_a_mutated_kernel_is_refused_in_a_sentence_or_runs() -> None:
    ask(range(60))


@pytest.mark.sweep
def test_two_thousand_mutated_kernels() -> None:
    ask(range(1000, 3000))
