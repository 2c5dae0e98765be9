"""Networks that fix their batch somewhere inside (often in a Reshape), compiled for another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bmcompiler.errors import BMError, RuntimeUseError
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Function, Module, TensorType
from bmcompiler.quant.rebatch import rebatch

_CLOSE = {"f32": 1e-4, "f16": 1e-2}
_COARSE = 5e-2
"""Parts of the largest value by which sums in another order may differ, by the narrowest type on their way; of types
with eight bits, whose roundings such sums turn, `_COARSE`. What samples share changes far more."""
_WHOLE = 100
"""Whole numbers that are no indices are drawn up to it: hardly two are alike, few are 0."""
Load = Callable[[None], Module]


def with_other_batch(load: Load, shapes: Sequence[tuple[int, ...]] | None) -> Module | None:
    """The network in its own shapes, then brought to the batch of `shapes`.

    None when `shapes` differ from the network's own in more than the batch, or when a trial shows that it does not keep
    its samples apart.
    """
    if not shapes:
        return None
    try:
        module = load(None)
    except BMError:
        return None
    function = module.main
    own, batches = [value.shape for value in function.arguments], {shape[:1] for shape in shapes}
    if [shape[1:] for shape in own] != [tuple(shape[1:]) for shape in shapes] or len(batches) != 1:
        return None
    larger, trial = rebatch(function, shapes[0][0]), rebatch(function, 2 * own[0][0])
    if larger is None or trial is None or not keeps_samples_apart(module, trial, function):
        return None
    larger.attributes = function.attributes
    module.functions = (larger, *module.functions[1:])
    note = f"the network fixes its batch at {own[0][0]} inside; it was rebuilt for {shapes[0][0]}"
    module.attributes["notes"] = (*module.attributes.get("notes", ()), note)
    return module


def keeps_samples_apart(module: Module, whole: Function, part: Function) -> bool:
    """Whether a function on several batches of noise gives what `part`, its form for one of them, gives on each.

    `rebatch` knows shapes and axes alone: repeated rows look the same for any batch.
    """
    plain = any(not value.type.is_float and value.type.quant is None for value in part.arguments)
    return _kept(module, whole, part, 1) and (not plain or _kept(module, whole, part, _WHOLE, unless=True))


def _kept(module: Module, whole: Function, part: Function, largest: int, unless: bool = False) -> bool:
    """On noise with whole numbers up to `largest`; unless: what is said where these are no indices."""
    count = whole.arguments[0].shape[0] // part.arguments[0].shape[0]
    batches = [_noise(part, seed, largest) for seed in range(count)]
    together = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    try:
        found = run_function(module, whole, together)
        wanted = [run_function(module, part, batch) for batch in batches]
    except RuntimeUseError:  # an index of images, or of what a part has less of
        return unless
    types = {value.dtype for op in part.ops if op.operands for value in op.results}
    close = max((_CLOSE.get(dtype, _COARSE) for dtype in types), default=0.0)
    return all(_same(array, np.concatenate([each[name] for each in wanted]), close) for name, array in found.items())


def _same(a: np.ndarray, b: np.ndarray, close: float) -> bool:
    if a.shape != b.shape or a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    peak = float(np.abs(np.nan_to_num(b)).max(initial=0.0))
    return bool(np.allclose(a, b, rtol=close, atol=close * peak, equal_nan=True))


def _noise(function: Function, seed: int, largest: int) -> dict[str, np.ndarray]:
    """Normal reals, quantized values of all sizes, other whole numbers, which may be indices, up to `largest`."""
    rng = np.random.default_rng(seed)

    def drawn(type: TensorType) -> np.ndarray:
        if type.is_float:
            return rng.standard_normal(type.shape)
        most = 1 if type.dtype == "bool" else largest
        limits = (0, most) if type.quant is None else (np.iinfo(type.numpy).min, np.iinfo(type.numpy).max)
        return rng.integers(limits[0], limits[1] + 1, type.shape)

    return {
        name: drawn(value.type).astype(value.type.numpy)
        for name, value in zip(function.input_names, function.arguments)
    }
