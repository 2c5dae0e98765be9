"""How many products a sum of integers may have: as many as the extremes of its operands leave within 32 bits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from bm1684x_nets import Net

from bmcompiler.backends.bm1684x.kernels.channel_end import fits_sums
from bmcompiler.ir import TensorType

MOST = (1 << 31) - 1
BIAS = 1 << 15


def farthest(data: str, weight: str) -> int:
    """The largest magnitude of a product."""
    ends = [(limits.min, limits.max) for limits in (np.iinfo(TensorType((), each).numpy) for each in (data, weight))]
    return max(abs(int(a) * int(b)) for a, b in product(*ends))


@pytest.mark.parametrize("terms", [1, 2])
@pytest.mark.parametrize("weight", ["i8", "u8"])
@pytest.mark.parametrize("data", ["i8", "u8"])
def test_the_deepest_sum_that_fits(data: str, weight: str, terms: int) -> None:
    """With zero points the bias takes back as much as the products are."""
    net = Net([(1, 8)], 0, data)
    modes = {} if terms == 1 else {"mode": "asymmetric", "scale": 0.5, "zero_points": (3, 0, 0)}
    made = net.b.matmul(net.inputs[0], net.integers(weight, 8, 4), out=TensorType((1, 4), "i8"), **modes)
    assert made.op is not None
    deepest = (MOST - BIAS) // (terms * farthest(data, weight))
    assert fits_sums(made.op, deepest)  # type: ignore[arg-type]
    assert not fits_sums(made.op, deepest + 1)  # type: ignore[arg-type]
