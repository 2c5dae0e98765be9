"""Corrected biases: what integers shift on average is taken back, if samples that were not measured on agree."""

from __future__ import annotations

import numpy as np
from nets import Net

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.ir.printer import print_module
from bmcompiler.numeric.arith import quantize_real
from bmcompiler.passmanager import PassContext, run_pipeline

DATA = np.random.default_rng(4).standard_normal((64, 3, 8, 8)).astype(np.float32)


def biased() -> Module:
    """Weights that are all rounded down meet values that are never negative: all means shift."""
    n = Net()
    x = n.relu(n.conv(n.input(1, 3, 8, 8), n.w(8, 3, 3, 3), n.w(8)))
    weight = n.random.integers(-60, 60, (8, 8, 1, 1)) + 0.49
    weight[0, 0] = 127
    return n.done(n.conv(x, n.constant(weight / 127), n.w(8)))


def outputs(module: Module) -> np.ndarray:
    (argument,), (result,) = module.main.arguments, module.main.returned
    found = []
    for k in range(0, len(DATA), 5):
        x = DATA[k : k + 1]
        fed = x if argument.type.quant is None else quantize_real(x, argument.type.quant.threshold)
        out = run_module(module, {"data": fed})["out0"]
        found.append(out if result.type.quant is None else out * result.type.quant.scale)
    return np.concatenate(found)


def quantized(options: str, data: np.ndarray = DATA) -> tuple[Module, list[str]]:
    module, ctx = biased(), PassContext(data={"data": data})
    run_pipeline(module, f"calibrate{{method=max}},quantize{{max_cycles=1,{options}}},dead-code", ctx)
    return module, [note for note in ctx.notes if note.startswith("biases of")]


def test_what_rounding_shifts_on_average_is_taken_back() -> None:
    want, shifts = outputs(biased()), {}
    for correct in ("true", "false"):
        module, notes = quantized(f"scheme=scale,round_weights=false,correct_bias={correct}")
        shifts[correct] = float(np.abs((outputs(module) - want).mean(axis=(0, 2, 3))).mean())
        assert bool(notes) == (correct == "true")
    assert shifts["true"] < 0.5 * shifts["false"]


def test_what_other_samples_do_not_confirm_is_dropped() -> None:
    """A single sample to judge by: nothing is measured and nothing changes."""
    (module, notes), (plain, _) = (
        quantized(f"scheme=scale,round_weights=false,correct_bias={each}", DATA[:1]) for each in ("true", "false")
    )
    assert not notes
    assert print_module(module) == print_module(plain)
