"""Drawn folders of every family as bundles: what a device says is what `evaluate` says, and near the float model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from llm.drawn_folders import KINDS, Drawn
from llm.evaluated_nets import BF16, EvaluatedNets

from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.compile import compile_bundle
from bmcompiler.llm.families import FAMILIES
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.generate import Generator
from bmcompiler.llm.model import open_model

NEAR = {"f16": 0.02, "bf16": 0.15}
"""Distance of hidden states from float ones with the same weights, as a part of their length."""
SEEDS, QUICK = 2, ("llama", "w4f16", 0)


@pytest.mark.parametrize(
    "family, kind, seed",
    [
        pytest.param(*case, marks=() if case == QUICK else pytest.mark.sweep)
        for case in ((family, kind, seed) for family in FAMILIES for kind in KINDS for seed in range(SEEDS))
    ],
)
def test_a_drawn_model_says_what_evaluate_says(family: str, kind: str, seed: int, tmp_path: Path) -> None:
    """A prompt of full length, half of it, and four tokens behind it: states, caches and tokens."""
    drawn = Drawn(family, seed)
    model, options = open_model(drawn.write(tmp_path)), drawn.options(kind)
    made = compile_bundle(model, options)
    assert not made.unchecked
    device = Generator(Bundle.of(made.model))
    meant = Generator(device.bundle, EvaluatedNets(model, replace(options, check="never")))
    prompt = drawn.tokens(options.length)
    for tokens in (prompt[: len(prompt) // 2 + 1], prompt):
        states = device.states(tokens)
        assert states.tobytes() == meant.states(tokens).tobytes()
    floats = FloatModel(model, precision=options.precision).states(prompt)
    numbers = (states.view(BF16) if states.dtype == np.uint16 else states)[0].astype(np.float32)
    assert np.linalg.norm(numbers - floats) < NEAR[options.precision.dtype] * np.linalg.norm(floats)
    assert list(device.generate(prompt, 5)) == list(meant.generate(prompt, 5))
    for pair, other in zip(device.caches, meant.caches):
        assert [each.tobytes() for each in pair] == [each.tobytes() for each in other]
    if options.goes_on:
        more = drawn.tokens(2)
        assert device.extend(more).tobytes() == meant.extend(more).tobytes()
