"""Eager results against plain loops over elements, for every operator and choice of types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bmlang_samples import NAMES, ROWS, arguments, call, combinations, variants
from oracle import expected

from bmcompiler import bmlang
from bmcompiler.bmlang import COMPUTE_CPU, DataType, Tensor
from bmcompiler.frontends.bmlang.rows import CHIPS
from bmcompiler.frontends.bmlang.typings import accepted


def plain(given: dict[str, Any]) -> dict[str, Any]:
    """Tensors as arrays."""
    return {
        key: value.get_data()
        if isinstance(value, Tensor)
        else [each.get_data() for each in value]
        if isinstance(value, list)
        else value
        for key, value in given.items()
    }


def check(name: str, given: dict[str, Any], outs: tuple[DataType, ...]) -> None:
    for got, want in zip(call(name, given, outs), expected(name, plain(given), outs), strict=True):
        array = got.get_data()
        assert array.dtype == want.dtype
        if want.dtype.kind == "f":
            largest = np.abs(want[np.isfinite(want)]).max(initial=0)
            np.testing.assert_allclose(array, want, rtol=1e-6, atol=1e-6 * float(largest), err_msg=name)
        else:
            np.testing.assert_array_equal(array, want, name)


@pytest.mark.parametrize("chip", CHIPS[:2])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_plain_loops(name: str, chip: str) -> None:
    row, seed = ROWS[name], 0
    with bmlang.init(COMPUTE_CPU, chip):
        for variant in variants(row):
            for ins, outs in combinations(row):
                if not accepted(row.typing(chip), variant, ins, outs, False):
                    continue
                seed += 1
                check(name, arguments(row, ins, outs, variant, np.random.default_rng(seed)), outs)
