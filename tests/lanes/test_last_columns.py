"""Products whose columns are computed in tiles: the last tile has few of them, in sections as wide as the others'."""

from __future__ import annotations

import pytest

from bmcompiler import compile_module
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder

MODES = [("bm1684", "f32"), ("bm1684x", "f32"), pytest.param("bm1684x", "f16", marks=pytest.mark.sweep)]


@pytest.mark.parametrize("depth", [2000, 2304])
@pytest.mark.parametrize("columns", [2064, 2100, 3000, 4097])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("chip, precision", MODES)
def test_few_columns_behind_many_are_right(
    chip: str, precision: str, transposed: bool, columns: int, depth: int
) -> None:
    """Both operands are computed; the proof compares every bit with `evaluate`, and refuses what differs.

    On the BM1684 a tile of deep products has 2048 columns.
    """
    b = Builder.new("net")
    left = b.input("x", TensorType((1, 2, depth)))
    right = b.input("y", TensorType((1, columns, depth) if transposed else (1, depth, columns)))
    module = b.outputs([b.matmul(left, right, transpose_right=transposed)], ["out"])
    result = compile_module(module, target=chip, quantize=precision, check="always", opt=0)
    assert result.checked is not None and result.checked.samples == 1
    assert all(row.where == chip for row in result.rows)
    assert (chip, depth) != ("bm1684", 2304) or result.rows[0].tiles > 1
