"""The nets of a bundle as `evaluate` computes them, in the place of a device."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

import ml_dtypes
import numpy as np

from bmcompiler.defaults import LLM_TARGET
from bmcompiler.driver import compile_readers
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.llm.groups import BundleOptions, module_options, takes_prompts
from bmcompiler.llm.model import LanguageModel
from bmcompiler.llm.nets import build_net
from bmcompiler.target import find_target

BF16 = np.dtype(ml_dtypes.bfloat16)


class EvaluatedNet:
    """A net by the modules that its programs are made of."""

    def __init__(self, model: LanguageModel, name: str, options: BundleOptions) -> None:
        self.model, self.name, self.options = model, name, options
        self.module = cache(self._module)
        self._kept: dict[str, np.ndarray] = {}

    def _module(self, length: int) -> Module:
        """For prompts of a length."""
        given, options = self.options, module_options(self.options, self.name)
        sizes = {"length": length, "cache": given.cache, "precision": given.precision, "logits": given.logits}
        return compile_readers([partial(build_net, self.model, self.name, **sizes)], options).module

    def memory(self, name: str) -> np.ndarray:
        """What lasts of an input, as a device holds it."""
        main = self.module(self.options.length).main
        kind = dict(zip(main.input_names, (each.type for each in main.arguments)))[name]
        return self._kept.setdefault(name, np.zeros(kind.shape, np.uint16 if kind.numpy == BF16 else kind.numpy))

    def run(
        self, inputs: Mapping[str, np.ndarray], *, raw: bool, into: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """As a session does it; `raw` is how it is always done."""
        length = next(iter(inputs.values())).shape[1] if takes_prompts(self.name) else self.options.length
        module = self.module(length)
        names, values = module.main.input_names, module.main.arguments
        arrays = (inputs[name] if name in inputs else self.memory(name) for name in names)
        given = {name: _typed(array, value.type) for name, array, value in zip(names, arrays, values)}
        found = run_module(module, given, target=find_target(LLM_TARGET))
        bits = {name: each.view(np.uint16) if each.dtype == BF16 else each for name, each in found.items()}
        for name, place in into.items():
            place[...] = bits[name].reshape(place.shape)
        return {name: each.copy() for name, each in bits.items()}


class EvaluatedNets:
    """What a `Generator` takes for a session."""

    def __init__(self, model: LanguageModel, options: BundleOptions) -> None:
        self.net = cache(lambda name: EvaluatedNet(model, name, options))


def _typed(array: np.ndarray, kind: TensorType) -> np.ndarray:
    """Of the type of an input, of which bits are numbers, too."""
    return array.view(BF16) if array.dtype == np.uint16 and kind.numpy == BF16 else array.astype(kind.numpy)
