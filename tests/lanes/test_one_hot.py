"""One of two values for each place that an index may mean, on the chip."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize(("axis", "dtype"), [(0, "f32"), (1, "f32"), (2, "i32")])
def test_places_are_told_apart(chip: str, axis: int, dtype: str) -> None:
    b = Builder.new("net")
    values = b.weight(np.array([-3, 5], {"f32": np.float32, "i32": np.int32}[dtype]), "values")
    made = b.one_hot(b.input("at", TensorType((2, 40), "i32")), values, depth=9, axis=axis)
    result = bmcompiler.compile_module(b.outputs([made], ["y"]), target=chip, quantize="f32")
    assert {layer.where for layer in result.rows} <= {chip, "view"}
    at = np.random.default_rng(0).integers(-12, 12, (2, 40)).astype(np.int32)
    found = Session(result.model).run({"at": at})["y"]
    wanted = np.full((2, 40, 9), -3.0)
    for place in np.ndindex(2, 40):
        if -9 <= at[place] < 9:
            wanted[(*place, int(at[place]))] = 5
    np.testing.assert_array_equal(found, np.moveaxis(wanted, 2, axis))
