"""Integers that drawn nets become are those that were recorded: `tests/data/integers`, a digest of every net and mode.

Whether they are near the floats is asked elsewhere. A scale, a shift or a threshold that is only a little worse than
the chosen one is found here.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from drawn_layers import drawn_layers, state

from bmcompiler.ir import Module
from bmcompiler.passes.quantization.nets import Nets
from bmcompiler.passes.quantization.rounding import WeightRounding
from bmcompiler.passes.quantization.scheme import real_scales
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

FOLDER = Path(__file__).parents[1] / "data/integers"
NETS = 150
WAYS = {
    "shift-int8": ("shift", "int8", "bm1880", ""),
    "shift-double": ("shift", "double", "bm1880", ""),
    "shift-any": ("shift", "int8", None, ",io=integer,strict_table=true"),
    "scale-low": ("scale", "low", "bm1684", ""),
    "scale-high": ("scale", "high", "bm1684", ",io=integer"),
    "scale-asymmetric": ("scale", "asymmetric", None, ""),
    "scale-channel": ("scale", "channel", "bm1684", ""),
    "channel": ("channel", "channel", "bm1684x", ""),
    "channel-stated": ("channel", "channel", "bm1684x", ",io=integer"),
}
"""Scheme, mode, chip (None: one that can do all), further options."""


def digest(module: Module) -> str:
    """Of a module's text and of the bytes of its weights."""
    told = blake2b(str(module).encode(), digest_size=5)
    for key in sorted(module.weights):
        array = module.weights[key]
        told.update(f"{key} {array.dtype} {array.shape}".encode() + array.tobytes())
    return told.hexdigest()


def integers(seed: int, way: str) -> str:
    """What a net becomes."""
    scheme, mode, chip, options = WAYS[way]
    module = drawn_layers(seed)
    if way.endswith("stated"):
        state(module, random.Random(seed))
    ctx = PassContext(target=find_target(chip) if chip else None)
    run_pipeline(module, f"quantize{{scheme={scheme},mode={mode}{options}}}", ctx, verify_each=True)
    in_float = sum("quantize.float" in op.attributes for op in module.main.ops)
    return f"{digest(module)} {len(module.main.ops)} ops, {in_float} in float"


@pytest.mark.parametrize("way", WAYS)
def test_drawn_nets_become_the_integers_that_were_recorded(way: str, golden: Callable[[Path, str], None]) -> None:
    lines = [f"{seed}: {integers(seed, way)}" for seed in range(NETS)]
    golden(FOLDER / f"{way}.txt", "\n".join([*lines, ""]))


def rounded(seed: int, scheme: str, mode: str) -> str:
    """What a net becomes whose weights are rounded by samples, and of how many layers they are others then."""
    module = drawn_layers(seed)
    function, random = module.main, np.random.default_rng(seed)
    x = function.arguments[0]
    steps = [{function.input_names[0]: random.integers(-9, 20, x.shape).astype(np.float32)} for _ in range(6)]
    rounding = WeightRounding(function)
    nets = Nets(module, function, None, real_scales(scheme), strict=False)
    with np.errstate(all="ignore"):  # some nets divide by 0
        rounding.measure(module, function, steps)
        low, _ = nets.final(dict.fromkeys(function.ops, mode), {}, rounding, integer_io=False)
    return f"{digest(low.module)} {rounding.layers} layers"


@pytest.mark.parametrize(("scheme", "mode"), [("shift", "int8"), ("scale", "high"), ("channel", "channel")])
def test_weights_are_rounded_by_samples_as_was_recorded(
    scheme: str, mode: str, golden: Callable[[Path, str], None]
) -> None:
    lines = [f"{seed}: {rounded(seed, scheme, mode)}" for seed in range(NETS // 2)]
    golden(FOLDER / f"{scheme}-rounded.txt", "\n".join([*lines, ""]))
