"""Products of transposed keys: which permutes go, and with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.transposed_products import TransposedProducts
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target
from bmcompiler.testing import check_op

TARGET = find_target("bm1684x")


def scores(order: tuple[int, ...], shape: tuple[int, ...], dtype: str = "f16", readers: int = 1) -> Module:
    """Queries times keys (`shape`) that are permuted."""
    b = Builder.new("net")
    key = b.input("key", TensorType(shape, dtype))
    permuted = b.permute(key, order=order)
    *heads, depth, _ = permuted.shape
    query = b.input("query", TensorType((*heads, 6, depth), dtype))
    made = [b.matmul(query, permuted)] + [permuted] * (readers - 1)
    return b.outputs(made, [f"y{i}" for i in range(len(made))])


def ops(module: Module) -> list[str]:
    """The ops after the pass; outputs stay, bit for bit."""
    rng = np.random.default_rng(0)
    inputs = {
        name: rng.standard_normal(value.shape).astype(value.type.numpy)
        for name, value in zip(module.main.input_names, module.main.arguments)
    }
    before = run_module(module, inputs, target=TARGET)
    TransposedProducts().run(module, PassContext(target=TARGET))
    verify_module(module)
    for name, after in run_module(module, inputs, target=TARGET).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), after.view(np.uint8))
    return [op.short_name for op in module.main.ops[:-1]]


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_a_permute_of_the_last_axes_goes(dtype: str) -> None:
    module = scores((0, 1, 3, 2), (1, 4, 9, 32), dtype)
    assert ops(module) == ["matmul"]
    assert module.main.ops[0].attributes["transpose_right"]


def test_heads_move_as_rows() -> None:
    module = scores((0, 2, 3, 1), (1, 9, 4, 32))
    assert ops(module) == ["permute", "matmul"]
    assert tuple(module.main.ops[0].attributes["order"]) == (0, 2, 1, 3)


def test_others_stay() -> None:
    for module in (
        scores((0, 2, 1, 3), (1, 32, 4, 9)),
        scores((0, 3, 1, 2), (1, 9, 4, 32)),
        scores((0, 1, 3, 2), (1, 4, 9, 32), readers=2),
    ):
        assert ops(module) == ["permute", "matmul"]
        assert not module.main.ops[1].attributes.get("transpose_right", False)


def test_without_a_target_nothing_changes() -> None:
    assert not TransposedProducts().run(scores((0, 1, 3, 2), (1, 4, 9, 32)), PassContext()).modified


@pytest.mark.parametrize(("dtype", "readers", "stays"), [("f32", 1, False), ("f32", 2, True), ("f16", 1, True)])
def test_constants_of_f32_are_transposed_once_and_for_all(dtype: str, readers: int, stays: bool) -> None:
    """16-bit floats are multiplied by rows as they are; a constant that others read would be stored twice."""
    b = Builder.new("net")
    x = b.input("x", TensorType((70, 48), dtype))
    weight = b.weight(np.random.default_rng(0).standard_normal((33, 48)).astype(x.type.numpy), "w")
    made = [b.matmul(x, weight, transpose_right=True) for _ in range(readers)]
    module = b.outputs(made, [f"y{i}" for i in range(readers)])
    ops(module)
    products = [op for op in module.main.ops if op.short_name == "matmul"]
    assert [bool(op.attributes.get("transpose_right", False)) for op in products] == [stays] * readers


def thin(rows: int, columns: int, transposed: bool, dtype: str = "f32") -> Module:
    """A product whose result has few columns."""
    b = Builder.new("net")
    left = b.input("left", TensorType((5, rows, 3), dtype))
    right = b.input("right", TensorType((5, columns, 3) if transposed else (5, 3, columns), dtype))
    return b.outputs([b.matmul(left, right, transpose_right=transposed, activation="relu")], ["y"])


def test_rows_of_thin_products_are_columns() -> None:
    assert ops(thin(1551, 2, transposed=False)) == ["permute", "matmul", "permute"]
    assert ops(thin(1551, 2, transposed=True)) == ["matmul", "permute"]


def test_other_products_keep_their_rows() -> None:
    for module in (thin(20, 16, False), thin(1551, 17, False), thin(2, 2, True), thin(1551, 2, False, "f16")):
        assert ops(module) == ["matmul"]


def test_a_left_operand_that_lies_transposed_stays() -> None:
    b = Builder.new("net")
    left, right = b.input("left", TensorType((5, 3, 1551), "f32")), b.input("right", TensorType((5, 3, 2), "f32"))
    assert ops(b.outputs([b.matmul(left, right, transpose_left=True)], ["y"])) == ["matmul"]


@pytest.mark.parametrize("transposed", [False, True])
def test_thin_products_compute_what_evaluate_does(transposed: bool) -> None:
    shapes = [(5, 1551, 3), (5, 2, 3) if transposed else (5, 3, 2)]
    check_op(
        lambda b, x, y: b.matmul(x, y, transpose_right=transposed, activation="relu"),
        shapes,
        target="bm1684x",
        quantize="f32",
        seeds=1,
    )
