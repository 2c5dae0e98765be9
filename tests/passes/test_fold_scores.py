"""Rules 6 and 7 of fold-batch-norm: a number behind scores or queries of an attention goes into their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nets import Net, apply

from bmcompiler.ir import Module

PIPELINE = "fold-batch-norm{scores=true}"


def heads(n: Net, x: Any, order: tuple[int, ...] = (0, 2, 1, 3)) -> Any:
    """Three tokens of eight channels in two heads."""
    flat = n.matmul(x, n.w(8, 8), n.w(8))
    return n.permute(n.reshape(flat, shape=(1, 3, 2, 4)), order=order)


def scores(n: Net) -> Module:
    x = n.input(3, 8)
    return n.done(n.div(n.matmul(heads(n, x), heads(n, x, (0, 2, 3, 1))), n.fill(2.0, 1)))


def names(module: Module) -> list[str]:
    return [op.short_name for op in module.main.ops]


def test_the_scale_goes_and_what_it_changes_has_no_name_of_the_source() -> None:
    module = scores(Net())
    assert apply(module, PIPELINE)
    assert not {"scale", "div"} & set(names(module)) and names(module).count("matmul") == 3
    *_, product, _ = module.main.ops
    query = product.operands[0].op
    assert query is not None and "source.tensor" not in query.attributes and "source.tensor" in product.attributes


def test_by_default_it_stays() -> None:
    module = scores(Net())
    apply(module, "fold-batch-norm")
    assert "scale" in names(module)


def test_others_stay() -> None:
    n = Net()
    x = n.input(3, 8)
    query, key = heads(n, x), heads(n, x, (0, 2, 3, 1))
    per_head = n.scale(n.matmul(query, key), n.w(2))
    shifted = n.scale(n.matmul(heads(n, x), key), n.fill(2.0, 2), n.fill(1.0, 2))
    keys = n.permute(n.input(2, 5, 8, name="c"), order=(0, 2, 1))
    bare = n.scale(n.matmul(n.input(2, 3, 8, name="b"), keys), n.fill(2.0, 3))
    assert not apply(n.done(per_head, shifted, bare, n.softmax(query, axis=3)), PIPELINE)


def test_queries_split_from_keys_and_values_stay() -> None:
    """One layer makes all three: a factor in its weights would reach the keys and values."""
    n = Net()
    query, key, _value = n.split(n.matmul(n.input(3, 8), n.w(8, 24), n.w(24)), axis=1, sizes=(8, 8, 8))
    product = n.matmul(query, n.permute(key, order=(1, 0)))
    assert not apply(n.done(n.scale(product, n.fill(2.0, 3))), PIPELINE)


def parts(n: Net, *, query: tuple[int, int] = (0, 1), factor: float = 0.5) -> Module:
    """Queries, keys and values cut from one layer of 2 heads, as Swin has them; the queries are scaled."""
    flat = n.reshape(n.matmul(n.input(3, 8), n.w(8, 24), n.w(24)), shape=(1, 3, 3, 2, 4))
    moved = n.permute(flat, order=(2, 0, 3, 1, 4))

    def cut(first: int, end: int) -> Any:
        part = n.slice(moved, starts=(first, 0, 0, 0, 0), ends=(end, 1, 2, 3, 4), steps=(1,) * 5)
        return n.reshape(part, shape=(end - first, 2, 3, 4))

    return n.done(n.scale(cut(*query), n.fill(factor, 2)), cut(1, 2), cut(2, 3))


def test_columns_of_the_queries_alone_are_scaled() -> None:
    n = Net()
    module = parts(n)
    product = next(op for op in module.main.ops if op.short_name == "matmul")
    weight, bias = (module.weights[value.op.key] for value in product.operands[1:])
    assert apply(module, PIPELINE) and "scale" not in names(module)
    product = next(op for op in module.main.ops if op.short_name == "matmul")
    factors = np.repeat((0.5, 1, 1), 8).astype(np.float32)
    for value, before in zip(product.operands[1:], (weight, bias)):
        np.testing.assert_array_equal(module.weights[value.op.key], before * factors)
    assert not apply(module, PIPELINE)


@pytest.mark.parametrize("query", [(0, 2), (1, 2)])
def test_columns_that_others_read_stay(query: tuple[int, int]) -> None:
    assert not apply(parts(Net(), query=query), PIPELINE)
