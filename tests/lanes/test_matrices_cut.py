"""Constant right operands of several matrices, and biases, of products that groups compute part by part.

What a part leaves in local memory is read by a later one only where it is what that one needs: the same columns of the
same matrices, in as many lanes. Results are cut along images, heads, rows and columns into parts of unlike sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from lane_nets import LaneChecks

from bmcompiler.backends.bm1684.target import TARGET as BM1684
from bmcompiler.backends.bm1684x.target import TARGET as BM1684X
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime.bm1684_device import Bm1684Device
from bmcompiler.runtime.bm1684x_device import Bm1684xDevice

CHIPS = {"bm1684": LaneChecks(BM1684, Bm1684Device), "bm1684x": LaneChecks(BM1684X, Bm1684xDevice)}
MODES = ("bm1684", "f32"), ("bm1684", "i8"), ("bm1684x", "f32"), ("bm1684x", "f16"), ("bm1684x", "i8")
LEADS = {
    "one per matrix": ((2, 3), (2, 3)),
    "one per head": ((2, 3), (1, 3)),
    "one per image": ((2, 3), (2, 1)),
    "one for all": ((2, 3), (1, 1)),
    "one matrix by several": ((1, 1), (1, 3)),
}
SIZES = ((35, 260, 8), (70, 48, 20), (100, 40, 130))
"""Rows, depth, columns: the right operand is stored transposed, as it is, and has more columns than lanes."""
CUTS = ((2, 1, 1, 1), (2, 3, 1, 1), (1, 1, 3, 1), (1, 1, 1, 2), (2, 2, 2, 2))


def net(dtype: str, lead: str, size: tuple[int, int, int], transposed: bool) -> Module:
    """relu(x w + bias), which is cut anywhere: products alone are cut at multiples of lanes."""
    (left, right), (rows, depth, columns) = LEADS[lead], size
    b, random = Builder.new("net"), np.random.default_rng(0)
    x = b.input("x", TensorType((*left, rows, depth), dtype))
    shapes = (*right, *((columns, depth) if transposed else (depth, columns))), (columns,)
    weight, bias = (random.standard_normal(shape) for shape in shapes)
    if dtype == "i8":
        batch = tuple(max(sizes) for sizes in zip(left, right))
        out: dict[str, Any] = {"out": TensorType((*batch, rows, columns), "i8"), "rshift": 6}
        operands = b.weight((weight * 40).astype(np.int8), "w"), b.weight((bias * 400).astype(np.int16), "b")
    else:
        out, operands = {}, tuple(b.weight(each.astype(x.type.numpy), "w") for each in (weight, bias))
    return b.outputs([b.relu(b.matmul(x, *operands, transpose_right=transposed, **out))], ["y"])


def cases() -> Iterator[Any]:
    """All, of which every run of the tests has each of `LEADS` in floats of the BM1684X, and each mode by turns."""
    for (turn, lead), transposed, mode in product(enumerate(LEADS), (False, True), MODES):
        usual = mode[1] == ("f16" if transposed == turn % 2 else "f32") if mode[0] == "bm1684x" else False
        usual |= mode == MODES[turn % len(MODES)] and not transposed
        marks = [] if usual else [pytest.mark.sweep]
        yield pytest.param(*mode, lead, transposed, id=f"{'-'.join(mode)}-{lead}-{transposed}", marks=marks)


@pytest.mark.parametrize("chip, dtype, lead, transposed", list(cases()))
def test_each_part_has_its_matrices(chip: str, dtype: str, lead: str, transposed: bool) -> None:
    checks, random = CHIPS[chip], np.random.default_rng(1)
    for size in SIZES:
        module = net(dtype, lead, size, transposed)
        x = module.main.arguments[0]
        inputs = {"x": (random.standard_normal(x.shape) * (30 if dtype == "i8" else 1)).astype(x.type.numpy)}
        want = run_module(module, inputs, target=checks.target)["y"]
        for slices in CUTS:
            for op in (op for op in module.main.ops if op.short_name in ("matmul", "relu")):
                op.attributes |= {GROUP: 0, SLICES: slices}
            got = checks.on_device(checks.target.compile([module], 2), module, inputs)["y"]
            np.testing.assert_array_equal(got, want, f"{size} in {slices}")
