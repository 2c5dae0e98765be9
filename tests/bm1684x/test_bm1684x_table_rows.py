"""Rows of a table by indices of run time, on the chip: embeddings."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session

CHIP = "bm1684x"


def lookup(table: np.ndarray, shape: tuple[int, ...], dtype: str = "i32") -> Module:
    b = Builder.new("lookup")
    return b.outputs([b.gather(b.weight(table, "table"), b.input("ids", TensorType(shape, dtype)))], ["rows"])


@pytest.mark.parametrize(
    ("length", "row", "shape"),
    [(5, (3,), (4,)), (300, (40,), (2, 100)), (7, (2, 3, 5), (1, 1)), (2, (1,), (65,)), (1000, (768,), (1, 12))],
)
@pytest.mark.parametrize("level", [0, 2])
def test_rows_are_those_of_the_table(
    length: int, row: tuple[int, ...], shape: tuple[int, ...], level: bmcompiler.Level
) -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((length, *row)).astype(np.float32)
    ids = rng.integers(-length, length, shape).astype(np.int32)
    result = bmcompiler.compile_module(lookup(table, shape), target=CHIP, quantize="f32", opt=level)
    assert {layer.where for layer in result.rows} <= {CHIP, "view"}
    np.testing.assert_array_equal(Session(result.model).run({"ids": ids})["rows"], table[ids])


def test_indices_and_flags_of_64_bits_stay_on_the_chip() -> None:
    """Casts to 64 bits are not made at the border where their reader takes what comes in."""
    rng, b = np.random.default_rng(0), Builder.new("net")
    ids, flags = (b.input(name, TensorType((1, 6), "i64")) for name in ("ids", "flags"))
    table = rng.standard_normal((9, 4)).astype(np.float32)
    rows = b.gather(b.weight(table, "table"), ids)
    factor = b.reshape(b.cast(flags, dtype="f32"), shape=(1, 6, 1))
    module = b.outputs([b.mul(rows, factor)], ["y"])
    result = bmcompiler.compile_module(module, target=CHIP, quantize="f32")
    assert {layer.where for layer in result.rows} <= {CHIP, "view"}
    given = {"ids": np.array([[0, 8, -1, -9, 3, 4]], np.int32), "flags": np.array([[1, 0, 1, 1, 0, 2]], np.int32)}
    (found,) = Session(result.model).run(given).values()
    np.testing.assert_array_equal(found, table[given["ids"]] * given["flags"][..., None].astype(np.float32))
