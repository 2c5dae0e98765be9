"""Outputs of a few numbers end where others reach, not where samples do; the bound counts what ends cut off."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.accuracy.ends import cut_energy
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Module, Quant, TensorType
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.target import find_target


def samples(count: int, seed: int) -> Array:
    """Rows of which a few are much larger than most."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((count, 32)) * np.exp(random.normal(0, 0.4, (count, 1)))
    return rows.astype(np.float32)


def regression() -> Module:
    b, random = Builder.new("net"), np.random.default_rng(0)
    x = b.input("x", TensorType((1, 32)))
    return b.outputs([b.matmul(x, b.weight(random.standard_normal((32, 4)).astype(np.float32), "w"))], ["y"])


def errors(module: Module, session: Session, given: Array) -> tuple[float, float]:
    """Relative error, and the largest number that the chip gives."""
    found = np.concatenate([session.run({"x": each[None]})["y"] for each in given])
    wanted = np.concatenate([run_function(module, module.main, {"x": each[None]})["y"] for each in given])
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted)), float(np.abs(found).max())


@pytest.mark.parametrize("chip", ["bm1684", "bm1880"])
def test_others_are_not_cut_off(chip: str) -> None:
    module, seen, others = regression(), samples(64, 7), samples(300, 2)
    integers = find_target(chip).pipeline("int8", 2).replace("{scheme=scale}", "{scheme=scale,mode=low}")
    result = bmcompiler.compile_module(
        module, target=chip, quantize="int8", data={"x": seen}, decisions="norm", pipeline=integers
    )
    (said,) = [note for note in result.notes if "may reach" in note]
    assert said.startswith("output 'y' may reach ")
    assert result.accuracy is not None and result.accuracy.at_most is not None
    session = Session(result.model)
    _, most = errors(module, session, seen)
    error, more = errors(module, session, others)
    assert more > 1.2 * most and error <= result.accuracy.at_most < 0.1


def test_what_ends_cut_off_of_others_is_told_of_integers_alone() -> None:
    b = Builder.new("net")
    wide, narrow = (b.input(f"x{scale}", TensorType((1, 4), "i8", Quant(scale))) for scale in (1.0, 0.03))
    steps = [np.random.default_rng(k).exponential(1, (1, 4)).astype(np.float32) for k in range(32)]
    assert cut_energy(narrow, b.input("x", TensorType((1, 4))), steps) == 0.0
    assert cut_energy(wide, b.dequantize(wide), steps) < 1e-9
    assert cut_energy(narrow, b.reshape(b.dequantize(narrow), shape=(4,)), steps) > 1e-3
    scores = b.softmax(b.dequantize(narrow), axis=1)
    assert cut_energy(scores, narrow, steps) == 0.0
