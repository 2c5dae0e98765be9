"""Integers that the BM1684 computes in fp32 are exact up to 2**24, with the half that rounds them beyond it, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bm1684_nets import Net, check

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.ir import TensorType
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import unsupported_reason

COUNT = 3000
CASES: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    *(("mul_shift", ("u16", "u8"), {"rshift": shift}) for shift in (17, 18, 21, 24)),
    *(("mac_shift", ("i16", "i16"), {"multipliers": pair, "rshift": 17}) for pair in ((255, 256), (-256, 255))),
    *(("muls_shift", ("u16",), {"multiplier": 255, "rshift": shift}) for shift in (9, 18)),
    *(("adds_shift", ("i16",), {"value": (1 << 24) - (1 << 15), "rshift": shift}) for shift in (12, 25)),
]
"""Largest sums just below 2**24; with the half of a shift by 18 or more they are beyond it, by 25 next to 2**25."""


@pytest.mark.parametrize("out", ["i8", "u8", "i16"])
@pytest.mark.parametrize(("name", "dtypes", "given"), CASES)
def test_sums_next_to_the_limit_are_exact(name: str, dtypes: tuple[str, ...], given: dict[str, Any], out: str) -> None:
    net = Net([], 0)
    values = [net.b.input(f"x{i}", TensorType((COUNT,), dtype)) for i, dtype in enumerate(dtypes)]
    made = getattr(net.b, name)(*values, **given, out=TensorType((COUNT,), out))
    assert isinstance(made.op, TensorOp) and unsupported_reason(TARGET, made.op) is None
    module, rng, inputs = net.module([made]), np.random.default_rng(1), {}
    for number, value in enumerate(values):
        info = np.iinfo(value.type.numpy)
        ends = np.array([info.min, info.max])[rng.integers(0, 2, COUNT)].astype(np.int64)
        inputs[f"x{number}"] = np.clip(ends + rng.integers(-9, 10, COUNT), info.min, info.max).astype(info.dtype)
    check(module, inputs=inputs)
