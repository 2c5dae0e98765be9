"""Nets of a bundle that have the same weights, compiled as programs of one model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bmcompiler.bmodel import BModel
from bmcompiler.defaults import LLM_TARGET
from bmcompiler.driver import compile_readers
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.llm.config import Architecture
from bmcompiler.llm.heads import GREEDY, SAMPLE
from bmcompiler.llm.model import LanguageModel
from bmcompiler.llm.nets import build_net
from bmcompiler.llm.precision import Precision
from bmcompiler.options import ModuleOptions, as_check, as_level
from bmcompiler.proof.prove import Proof
from bmcompiler.target import FoundGroups, find_target


@dataclass(frozen=True)
class BundleOptions:
    """How a model becomes a bundle.

    Attributes:
        precision: types of activations and weights.
        length: tokens of a prompt that are read at once. shorter: lengths with programs of their own, which take less
            time for prompts that fit. cache: tokens there is room for, None for `length`.
        goes_on: nets `block_kv_I` read tokens behind those of the caches: longer prompts, further turns of a chat.
        logits: lm_head gives scores of all tokens, and two more nets choose by them; else the token with the highest.
        opt: level of optimisation, 0 to 2. check: whether programs are proven, see `ModuleOptions`.
    """

    precision: Precision = field(default_factory=Precision)
    length: int = 512
    shorter: tuple[int, ...] = ()
    cache: int | None = None
    goes_on: bool = False
    logits: bool = True
    opt: int = 2
    check: str | int = "auto"

    def __post_init__(self) -> None:
        if self.length < 1 or (self.cache is not None and self.cache < self.length):
            raise UsageError(f"prompts of {self.length} tokens do not fit a cache of {self.cache}")
        if len({*self.shorter, self.length}) <= len(self.shorter) or not all(0 < n < self.length for n in self.shorter):
            raise UsageError(
                f"lengths {', '.join(map(str, (*self.shorter, self.length)))} are not several",
                remedy="give each once, all from 1 on",
            )


def check_positions(facts: Architecture, options: BundleOptions, file: Path) -> None:
    """Raises UnsupportedError where a bundle is for more tokens than the model was made for."""
    rows = options.cache or options.length
    if rows > facts.positions:
        raise UnsupportedError(
            f"the model was made for {facts.positions} tokens, not for {rows}",
            file=file / "config.json" if file.is_dir() else file,
            remedy="choose a shorter length",
        )


def net_groups(model: LanguageModel, options: BundleOptions) -> Iterator[tuple[str, ...]]:
    """Names of the nets of a bundle, together where they have the same weights."""
    yield "embedding", "embedding_cache"
    for layer in range(model.architecture.layers):
        yield f"block_{layer}", f"block_cache_{layer}", *([f"block_kv_{layer}"] if options.goes_on else [])
    yield ("lm_head",)
    if options.logits:
        yield (GREEDY,)
        yield (SAMPLE,)


def takes_prompts(name: str) -> bool:
    """Whether a net has a program for each length of prompts."""
    return name == "embedding" or re.fullmatch(r"block_(kv_)?\d+", name) is not None


def keeps_memory(name: str) -> bool:
    """Whether inputs and outputs of a net last between launches: its address mode is io_alone."""
    return name.startswith("block_cache_") or name in (GREEDY, SAMPLE)


def compile_group(
    model: LanguageModel, names: Sequence[str], options: BundleOptions, known: FoundGroups
) -> tuple[BModel, Proof]:
    """Nets with one memory of weights, as a model with each by its name, and what was proven of their programs.

    Weights of a layer are read and quantized once. Raises as `compile_bundle`.

    Args: known: how earlier layers of the bundle are computed, which equal ones need not find again.
    """
    lengths = [
        (name, n)
        for name in names
        for n in (*options.shorter, options.length)
        if n == options.length or takes_prompts(name)
    ]
    build = partial(
        build_net,
        model,
        cache=options.cache or options.length,
        precision=options.precision,
        logits=options.logits,
        layers={},
    )
    readers = [partial(build, name, length=length) for name, length in lengths]
    result = compile_readers(readers, module_options(options, names[0]), groups=known)
    apart = result.model.apart([name for name, _ in lengths], [name for name in names if keeps_memory(name)])
    assert result.checked is not None, "what was compiled here has a proof"
    return apart.combined([]), result.checked  # programs of several lengths are stages of a net


def module_options(options: BundleOptions, net: str) -> ModuleOptions:
    """Of the compiler: hidden states and caches have the type of the bundle at the borders, scores are f32."""
    dtype = "f32" if net in (GREEDY, SAMPLE) else options.precision.dtype
    passes = find_target(LLM_TARGET).pipeline(dtype, options.opt)
    borders = f"half-precision{{dtype={dtype},inputs=true,outputs={str(net != 'lm_head').lower()}}}"
    return ModuleOptions(
        target=LLM_TARGET,
        opt=as_level(options.opt),
        check=as_check(options.check),
        log=lambda text: None,
        pipeline=passes.replace(f"half-precision{{dtype={dtype}}}", borders),
    )
