"""What a bundle will take on a board, by the programs of a layer of each kind, of the embeddings and of the scores.

How long a program takes does not depend on weights: noise stands for them, and `config.json` is all that is read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np

from bmcompiler.analysis.estimate import estimate as timing_of
from bmcompiler.analysis.timing_profile import named_profiles, profile_for
from bmcompiler.defaults import LLM_TARGET
from bmcompiler.driver import compile_readers
from bmcompiler.llm.checkpoint import Checkpoint
from bmcompiler.llm.config import Architecture
from bmcompiler.llm.estimate import Estimate, estimate
from bmcompiler.llm.groups import BundleOptions, module_options
from bmcompiler.llm.model import FolderModel, LanguageModel, float_shapes
from bmcompiler.llm.nets import build_net
from bmcompiler.numeric.arrays import Array

_PREFIX = "model."
_SPREAD = np.float32(0.02)


class _Noise(Checkpoint):
    """Floats for every tensor of an architecture, the same for the same name."""

    def __init__(self, facts: Architecture) -> None:
        self._shapes = dict(float_shapes(facts, _PREFIX))

    def __contains__(self, name: str) -> bool:
        return name in self._shapes

    def read(self, name: str) -> Array:
        rng = np.random.default_rng(crc32(name.encode()))
        return rng.standard_normal(self._shapes[name], np.float32) * _SPREAD


def net_cycles(model: LanguageModel, net: str, options: BundleOptions) -> int:
    """Of a net of a bundle once it is compiled, by the vendor's cycle model. Raises BMError subclasses."""
    read = partial(
        build_net, model, net, length=options.length, cache=options.cache, precision=options.precision, logits=True
    )
    timing = timing_of(compile_readers([read], module_options(options, net)), profile_for(LLM_TARGET, ["vendor"]))
    assert timing is not None, "the chip has a cycle model"
    return timing.cycles


def planned(facts: Architecture, options: BundleOptions) -> Estimate:
    """`estimate` with the times of compiled programs, launches by board times.

    Layers of one window and one rotary embedding take the same time; the norm behind the last one is not counted.
    Raises BMError subclasses.
    """
    options = replace(options, check="never")
    model = FolderModel(Path(), facts, _Noise(facts), _PREFIX, None)
    kinds = list(zip(facts.windows, facts.rotaries))
    layers = {kinds.index(kind): count for kind, count in Counter(kinds).items()}
    bounds = estimate(facts, options.precision, options.length, options.cache)
    profiles = named_profiles(LLM_TARGET)
    launching = bounds.launches * profiles["silicon"].launch * 1e-9
    head = net_cycles(model, "lm_head", options)

    def seconds(block: str, embedding: str) -> float:
        cycles = sum(count * net_cycles(model, f"{block}_{layer}", options) for layer, count in layers.items())
        cycles += net_cycles(model, embedding, options) + head
        return cycles / profiles["vendor"].clock_hz + launching

    return replace(bounds, first=seconds("block", "embedding"), token=seconds("block_cache", "embedding_cache"))
