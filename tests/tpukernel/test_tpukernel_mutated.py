"""A kernel with a fault is refused with one sentence, or runs: never another exception, never without an end."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from kernel_faults import mutated
from mutated_kernels import KERNELS, calls_of, device, other, program_of_calls

from bmcompiler.errors import BMError
from bmcompiler.runtime.bm1684x_kernels import KernelDevice


def outcome(seed: int, known: tuple[KernelDevice, int, int]) -> str:
    """Whether it ran, a call was refused, or the launch failed; the sentence names a function."""
    random = Random(seed)
    card, dst, src = known
    calls = mutated(calls_of(random.choice(KERNELS), dst, src), random, other)
    try:
        program = program_of_calls(calls)
    except BMError as error:
        kind, said = "refused", str(error)
    else:
        try:
            card.launch(program)
        except BMError as error:
            kind, said = "failed", str(error)
        else:
            return "ran"
    assert "\n" not in said, (seed, said)
    assert "tpu_" in said or "parallel state" in said, (seed, said)
    return kind


def ask(seeds: range) -> None:
    known = device()
    found = Counter(outcome(seed, known) for seed in seeds)
    assert found["ran"] > len(seeds) // 5 and found["refused"] > len(seeds) // 5 and found["failed"], found


def test_a_mutated_kernel_is_refused_in_a_sentence_or_runs() -> None:
    ask(range(60))


@pytest.mark.sweep
def test_two_thousand_mutated_kernels() -> None:
    ask(range(1000, 3000))
