"""A model folder to a bundle: each net compiled, those that belong together with their weights stored once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bmcompiler.bmodel import BModel
from bmcompiler.defaults import LLM_TARGET
from bmcompiler.driver import compile_readers
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.llm.heads import GREEDY, SAMPLE
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.llm.nets import build_net
from bmcompiler.llm.precision import Precision
from bmcompiler.options import ModuleOptions, Progress, as_check, as_level
from bmcompiler.result import Result
from bmcompiler.target import find_target
from bmcompiler.version import version


@dataclass(frozen=True)
class BundleOptions:
    """How a model becomes a bundle.

    Attributes:
        precision: types of activations and weights.
        length: tokens of a prompt that are read at once. cache: tokens there is room for, None for as many.
        logits: lm_head gives scores of all tokens, and two more nets choose by them; else the token with the highest.
        opt: level of optimisation, 0 to 2. check: whether programs are proven, see `ModuleOptions`.
    """

    precision: Precision = field(default_factory=Precision)
    length: int = 512
    cache: int | None = None
    logits: bool = True
    opt: int = 2
    check: str | int = "auto"

    def __post_init__(self) -> None:
        if self.length < 1 or (self.cache is not None and self.cache < self.length):
            raise UsageError(f"prompts of {self.length} tokens do not fit a cache of {self.cache}")


@dataclass(frozen=True)
class CompiledBundle:
    """A bundle, and what was proven of it.

    Attributes:
        model: the container object, to save or to run.
        checked: how many programs gave, on a sample, the bits that their nets mean.
        unchecked: why others were not asked, by net.
    """

    model: BModel
    checked: int
    unchecked: Mapping[str, str]


def compile_bundle(
    folder: str | os.PathLike[str] | LanguageModel,
    options: BundleOptions | None = None,
    *,
    progress: Progress | None = None,
) -> CompiledBundle:
    """The bundle of a model folder, for the chip that language models run on.

    Raises:
        FileFormatError, UnsupportedError: of the folder; see `open_model`.
        UnsupportedError: more tokens than the model was made for.
        BMError: a net that cannot be compiled.
    """
    model = folder if isinstance(folder, LanguageModel) else open_model(folder)
    chosen = options or BundleOptions()
    rows = chosen.cache or chosen.length
    if rows > model.architecture.positions:
        raise UnsupportedError(
            f"the model was made for {model.architecture.positions} tokens, not for {rows}",
            file=Path(model.folder) / "config.json",
            remedy="choose a shorter length",
        )
    models: list[BModel] = []
    unchecked: dict[str, str] = {}
    groups = list(net_groups(model, chosen.logits))
    for names in groups if progress is None else progress(groups, "nets", len(groups)):
        result = _compiled(model, names, chosen)
        models.append(result.model.apart(names, [name for name in names if keeps_memory(name)]))
        if result.checked is not None and not result.checked.samples:
            unchecked |= dict.fromkeys(names, result.checked.reason)
    first, *others = models
    bundle = first.combined(others)
    bundle.producer = f"bmcompiler {version()}, language model, {chosen.precision.name}"
    return CompiledBundle(bundle, sum(map(len, groups)) - len(unchecked), unchecked)


def net_groups(model: LanguageModel, logits: bool) -> Iterator[tuple[str, ...]]:
    """Names of the nets of a bundle, together where they have the same weights. logits: see `BundleOptions`."""
    yield "embedding", "embedding_cache"
    for layer in range(model.architecture.layers):
        yield f"block_{layer}", f"block_cache_{layer}"
    yield ("lm_head",)
    if logits:
        yield (GREEDY,)
        yield (SAMPLE,)


def keeps_memory(name: str) -> bool:
    """Whether inputs and outputs of a net last between launches: its address mode is io_alone."""
    return name.startswith("block_cache_") or name in (GREEDY, SAMPLE)


def _compiled(model: LanguageModel, names: Sequence[str], options: BundleOptions) -> Result:
    """Nets with one memory of weights, as programs of one model."""
    build = partial(
        build_net,
        model,
        length=options.length,
        cache=options.cache,
        precision=options.precision,
        logits=options.logits,
    )
    return compile_readers([partial(build, name) for name in names], module_options(options, names[0]))


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
