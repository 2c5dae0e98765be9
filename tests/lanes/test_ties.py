"""Floats half way between two integers, where one rounding differs from another: the chip does what `evaluate` says."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Quant, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.target import find_target, unsupported_reason

SCALE = 0.25
TIES = (np.arange(-12, 12, dtype=np.float32) + np.float32(0.5)) * np.float32(SCALE)


@pytest.mark.parametrize("zero", [0, 3, -5])
@pytest.mark.parametrize("dtype", ["i8", "u8", "i16"])
@pytest.mark.parametrize(("chip", "rounding"), [("bm1684", "away"), ("bm1684", "even"), ("bm1684x", "away")])
def test_halves_become_integers(chip: str, rounding: str, dtype: str, zero: int) -> None:
    if dtype == "u8" and zero < 0:
        zero = 12
    b, target = Builder.new("net"), find_target(chip)
    x = b.input("x", TensorType((2, 3, 2, 2), "f32"))
    made = b.quantize(x, out=TensorType(x.shape, dtype, Quant(SCALE, zero)), rounding=rounding)
    module = b.outputs([made], ["y"])
    assert made.op is not None
    if unsupported_reason(target, made.op) is not None:
        pytest.skip("no kernel")
    inputs = {"x": TIES.reshape(x.shape)}
    got = Session(target.compile([module], 2).model).run(inputs, raw=True)["y"]
    assert got.tobytes() == run_module(module, inputs, target=target)["y"].tobytes()
    steps = TIES / np.float32(SCALE)
    whole = np.rint(steps) if rounding == "even" else np.sign(steps) * np.floor(np.abs(steps) + 0.5)
    limits = np.iinfo(got.dtype)
    np.testing.assert_array_equal(got.ravel(), np.clip(whole + zero, limits.min, limits.max))
