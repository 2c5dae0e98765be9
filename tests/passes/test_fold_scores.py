"""Rule 6 of fold-batch-norm: a number behind scores of an attention goes into the weights of the queries."""

from __future__ import annotations

from typing import Any

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
