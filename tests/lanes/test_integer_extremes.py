"""Integer sums as large as they get: what holds them on the way is wide enough, or saturates as the op says.

Random bytes do not show it: on average their sum over 257 positions is the middle of what 16 bits hold.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from lane_nets import Net

from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.runtime import Session
from bmcompiler.target import Target, find_target, unsupported_reason

Make = Callable[[Net, Value, str], Value]
RESULTS = ("i8", "u8", "i16", "u16")


def ends(dtype: str, *shape: int) -> np.ndarray:
    """Along the first axis in turn: all highest, all lowest, a mix of both, any."""
    rng, limits = np.random.default_rng(4), np.iinfo(TensorType((), dtype).numpy)
    made = rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
    made[0::4], made[1::4] = limits.max, limits.min
    made[2::4] = rng.choice(np.array([limits.min, limits.max], limits.dtype), made[2::4].shape)
    return made


def mean(kernel: tuple[int, int], pad: int = 0, **modes: Any) -> Make:
    def make(t: Net, x: Value, result: str) -> Value:
        window = {"kernel": kernel, "pads": (pad,) * 4, "count_include_pad": pad > 0, "strides": kernel}
        floats = Net([x.shape])
        shape = floats.b.avg_pool(floats.inputs[0], **window).shape
        return t.b.avg_pool(x, out=TensorType(shape, result), **window, **modes)

    return make


def conv(weight: str, depthwise: bool, **modes: Any) -> Make:
    def make(t: Net, x: Value, result: str) -> Value:
        out, depth = (x.shape[1], 1) if depthwise else (9, x.shape[1])
        w, shape = t.b.weight(ends(weight, out, depth, 3, 3)), (x.shape[0], out, x.shape[2] - 2, x.shape[3] - 2)
        return t.b.conv(x, w, out=TensorType(shape, result), group=out if depthwise else 1, **modes)

    return make


def rows(weight: str, **modes: Any) -> Make:
    def make(t: Net, x: Value, result: str) -> Value:
        left = t.b.reshape(x, shape=(x.shape[0], x.type.size // x.shape[0]))
        w = t.b.weight(ends(weight, 9, left.shape[1]))
        return t.b.matmul(left, w, out=TensorType((x.shape[0], 9), result), transpose_right=True, **modes)

    return make


def elements(name: str, operands: int, **modes: Any) -> Make:
    def make(t: Net, x: Value, result: str) -> Value:
        others = [t.b.weight(ends("i8", *x.shape)) for _ in range(operands)]
        made: Value = getattr(t.b, name)(x, *others, out=TensorType(x.shape, result), **modes)
        return made

    return make


MEANS = ({"scale": 1 / 2160}, {"scale": 1 / 160}, {"multiplier": 1, "rshift": 8}, {"multiplier": 255, "rshift": 19})
SUMS = ({"rshift": 0}, {"rshift": 16}, {"mode": "low", "scale": 0.5}, {"mode": "high", "scale": 1e-4},
        {"mode": "asymmetric", "scale": 1e-4, "zero_points": (3, 5, 7)})  # fmt: skip
LARGEST: dict[str, tuple[Make, tuple[int, ...]]] = {
    **{f"mean of 12x12 {modes}": (mean((12, 12), **modes), (4, 20, 12, 12)) for modes in MEANS},
    **{f"mean of 13x13, padded {modes}": (mean((13, 13), 1, **modes), (4, 3, 24, 24)) for modes in MEANS},
    **{f"mean of 40x54 {modes}": (mean((40, 54), **modes), (4, 8, 40, 54)) for modes in MEANS},
    **{f"conv {w} {m}": (conv(w, False, **m), (4, 20, 9, 9)) for w, m in product(("i8", "u8"), SUMS)},
    **{f"depthwise {w} {m}": (conv(w, True, **m), (4, 20, 9, 9)) for w, m in product(("i8", "u8"), SUMS)},
    **{f"product {w} {m}": (rows(w, **m), (4, 20, 9, 9)) for w, m in product(("i8", "u8"), SUMS)},
    **{f"{name} {shift}": (elements(name, 1, rshift=shift), (4, 20, 9, 9))
       for name, shift in product(("add_shift", "sub_shift", "mul_shift"), (0, 1, 8))},
    **{f"mac_shift {shift}": (elements("mac_shift", 1, multipliers=(127, -128), rshift=shift), (4, 20, 9, 9))
       for shift in (0, 1, 8)},
    **{f"muls_shift {factor}": (elements("muls_shift", 0, multiplier=factor, rshift=7), (4, 20, 9, 9))
       for factor in (-128, 127, 255, 1000)},
}  # fmt: skip


def supported(name: str, dtype: str, result: str, target: Target) -> Module | None:
    """The net, if there are such types of the op and the chip has a kernel for them."""
    make, shape = LARGEST[name]
    net = Net([shape], 3, dtype)
    try:
        module = net.module([make(net, net.inputs[0], result)])
    except BMError:
        return None
    made = module.main.ops[-2]
    return module if unsupported_reason(target, made) is None else None  # type: ignore[arg-type]


@pytest.mark.parametrize("chip", ["bm1880", "bm1684", "bm1684x"])
@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_sums(name: str, chip: str) -> None:
    target, asked = find_target(chip), 0
    for dtype, result in product(("i8", "u8"), RESULTS):
        module = supported(name, dtype, result, target)
        if module is None:
            continue
        asked += 1
        inputs = {"x0": ends(dtype, *LARGEST[name][1])}
        want = run_module(module, inputs, target=target)["y0"]
        for level in (0, 2):
            got = Session(target.compile([module], level).model).run(inputs, raw=True)["y0"]
            np.testing.assert_array_equal(got, want, f"{dtype} to {result} at level {level}")
    if not asked:
        assert chip != "bm1684", "it has a kernel for each of them"
        pytest.skip("no kernel")
