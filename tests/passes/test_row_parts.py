"""Rows of windows in parts: each bit stays, parts take stages in turn, and it is done where that is quicker."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, copy_module, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.shape import Concat
from bmcompiler.passes.schedule import row_parts
from bmcompiler.passes.schedule.row_cuts import RowCut
from bmcompiler.passes.schedule.row_orders import RowOrders
from bmcompiler.passes.schedule.row_stages import RowStages
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

WINDOWS, TOKENS, HEADS, WIDTH = 16, 6, 2, 8
ROWS = WINDOWS * TOKENS


class Net:
    """Layers of windows whose rows are gathered before each, with masks of each window; on rows or on a map."""

    def __init__(self, rank: int = 2) -> None:
        self.b, self.random = Builder.new("net"), np.random.default_rng(0)
        self.shape = (ROWS, WIDTH) if rank == 2 else (1, WINDOWS, TOKENS, WIDTH)

    def weight(self, *shape: int) -> Value:
        return self.b.weight(self.random.standard_normal(shape, np.float32), "w")

    def ordered(self, x: Value, order: np.ndarray) -> Value:
        b = self.b
        rows = b.gather(b.reshape(x, shape=(ROWS, WIDTH)), b.weight(order.astype(np.int32), "order"), axis=0)
        return b.reshape(rows, shape=self.shape)

    def heads(self, x: Value) -> Value:
        b, size = self.b, WIDTH // HEADS
        cut = b.reshape(
            b.matmul(x, self.weight(WIDTH, WIDTH), self.weight(WIDTH)), shape=(WINDOWS, TOKENS, 1, HEADS, size)
        )
        return b.reshape(b.permute(cut, order=(2, 0, 3, 1, 4)), shape=(WINDOWS, HEADS, TOKENS, size))

    def attention(self, x: Value) -> Value:
        b = self.b
        query, key, value = (self.heads(b.reshape(x, shape=(ROWS, WIDTH))) for _ in range(3))
        scores = b.add(b.matmul(query, key, transpose_right=True), self.weight(1, HEADS, TOKENS, TOKENS))
        wide = b.reshape(scores, shape=(1, WINDOWS, HEADS, TOKENS, TOKENS))
        masked = b.add(wide, self.weight(1, WINDOWS, 1, TOKENS, TOKENS))
        shares = b.softmax(b.reshape(masked, shape=(WINDOWS, HEADS, TOKENS, TOKENS)), axis=3)
        mixed = b.reshape(b.permute(b.matmul(shares, value), order=(0, 2, 1, 3)), shape=(ROWS, WIDTH))
        return b.reshape(b.matmul(mixed, self.weight(WIDTH, WIDTH)), shape=self.shape)

    def layer(self, x: Value) -> Value:
        b = self.b
        x = b.add(x, self.attention(b.layer_norm(x, self.weight(WIDTH), axis=len(self.shape) - 1)))
        return b.add(x, b.gelu(b.matmul(x, self.weight(WIDTH, WIDTH))))

    def input(self) -> Value:
        return self.b.input("x", TensorType(self.shape))


def orders() -> Iterator[np.ndarray]:
    """Of whole windows, of rows anywhere, and of windows moved around by some rows."""
    random = np.random.default_rng(1)
    yield (random.permutation(WINDOWS)[:, None] * TOKENS + np.arange(TOKENS)).ravel()
    yield random.permutation(ROWS)
    yield np.roll(np.arange(ROWS), 3)


def two_layers(rank: int, last: int = 2) -> Module:
    net, (first, second, third) = Net(rank), orders()
    x = net.layer(net.ordered(net.input(), first))
    x = net.ordered(net.layer(net.ordered(x, second)), (first, second, third)[last])
    return net.b.outputs([net.b.relu(x)], ["y"])


def cut(module: Module, parts: int) -> Module:
    """The module in parts, by hand."""
    after = copy_module(module)
    stages = RowStages(after, after.main, RowOrders(after), {ROWS: parts})
    if stages.cut:
        after.functions = (stages.rebuilt(),)
    verify_module(after)
    return after


def same(before: Module, after: Module) -> None:
    given = {
        name: np.random.default_rng(2).standard_normal(value.shape, np.float32)
        for name, value in zip(before.main.input_names, before.main.arguments)
    }
    found = run_module(after, given)
    for name, wanted in run_module(before, given).items():
        np.testing.assert_array_equal(wanted.view(np.uint8), found[name].view(np.uint8))


def products(module: Module) -> int:
    return sum(isinstance(op, Matmul) for op in module.main.ops)


@pytest.mark.parametrize("rank", [2, 4])
@pytest.mark.parametrize("parts", [2, 4, 8])
@pytest.mark.parametrize("last", [0, 1, 2])
def test_every_bit_stays(rank: int, parts: int, last: int) -> None:
    before = two_layers(rank, last)
    after = cut(before, parts)
    same(before, after)
    assert products(after) == parts * products(before)


def test_parts_that_cut_windows_are_none() -> None:
    before = two_layers(2)
    assert products(cut(before, 3)) == products(cut(before, 32)) == products(before)


def test_the_first_part_is_a_stage_ahead_of_the_next() -> None:
    """Between two products of one part, one of which reads what the other makes, the other part computes."""
    net, (order, *_) = Net(), orders()
    x = net.ordered(net.input(), order)
    for _ in range(3):
        x = net.b.relu(net.b.matmul(x, net.weight(WIDTH, WIDTH)))
    after = cut(net.b.outputs([x], ["y"]), 2)
    made = [op for op in after.main.ops if isinstance(op, Matmul)]
    part = {}
    for number, op in enumerate(made):
        left = op.left.op
        maker = left.operands[0].op if left is not None and not isinstance(left, Gather) else None
        part[op] = part.get(maker, number)
    assert [part[op] for op in made] == [0, 0, 2, 0, 2, 2]


def test_rows_that_come_from_one_part_are_gathered_of_it_alone() -> None:
    """So they need not wait for the others: nothing is joined but what leaves the net."""
    after = cut(two_layers(2, last=2), 4)
    joined = [op for op in after.main.ops if isinstance(op, Concat)]
    assert len(joined) == 2
    last = [op for op in after.main.ops if isinstance(op, Gather)][-5:]  # the rows that were moved around are apart
    assert sum(op.type.shape[0] for op in last) == ROWS
    assert {op.x.shape[0] for op in last} == {ROWS // 4}


def test_what_others_read_is_there_as_a_whole() -> None:
    net, (order, *_) = Net(), orders()
    x = net.ordered(net.input(), order)
    y = net.layer(x)
    z = net.b.softmax(net.b.relu(x), axis=0)  # rows meet: no part of them alone
    before = net.b.outputs([y, z, net.ordered(y, np.roll(order, 1))], ["y", "z", "moved"])
    same(before, cut(before, 2))


def test_rows_that_meet_are_not_cut() -> None:
    net, (order, *_) = Net(), orders()
    x = net.ordered(net.input(), order)
    x = net.b.softmax(net.b.matmul(x, net.weight(WIDTH, WIDTH)), axis=0)
    before = net.b.outputs([x], ["y"])
    assert products(cut(before, 2)) == 1


def test_residuals_around_an_order_keep_every_bit() -> None:
    """Rows that a layer reads in an order and adds to in the one before."""
    net, (order, *_) = Net(), orders()
    x = net.b.relu(net.input())
    part = net.ordered(net.layer(net.ordered(x, order)), np.argsort(order))
    before = net.b.outputs([net.layer(net.b.add(x, part))], ["y"])
    after = cut(before, 4)
    same(before, after)
    assert products(after) == 4 * products(before)


@pytest.mark.parametrize(("shape", "part"), [((96, 8), (0, 24, 48)), ((1, 16, 6, 8), (1, 4, 8)), ((1, 1), None)])
def test_a_part_of_a_value(shape: tuple[int, ...], part: tuple[int, int, int] | None) -> None:
    assert RowCut(1, 2, 4).of(shape) == part


@pytest.mark.parametrize(
    ("cycles", "parts"),
    [((90, 89, 88.5), 2), ((90, 80, 79), 4), ((90, 80, 60), 8), ((80, 90, 60), 2), ((101, 60, 60), 1)],
)
def test_as_many_parts_as_gain(cycles: tuple[float, float, float], parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few where more gain little, none where the plan takes longer, whatever it takes in more parts."""
    module = two_layers(2)
    whole = products(module)
    taken = dict(zip((2, 4, 8), cycles))
    monkeypatch.setattr(row_parts, "_cycles", lambda each, _: taken.get(products(*each) // whole, 100))
    changed = run_pipeline(module, "row-parts", PassContext(target=find_target("bm1684x")))
    assert changed == (parts > 1)
    assert products(module) == parts * whole


def test_layers_that_are_alike_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of six layers of two kinds those up to the first of the second kind, and what they read and give is there."""
    net, (order, *_) = Net(), orders()
    x = net.input()
    for number in range(6):
        x = net.ordered(x, order)
        x = net.layer(net.layer(x)) if number % 3 == 1 else net.layer(x)
    module = net.b.outputs([net.ordered(x, order)], ["y"])
    planned: list[Module] = []
    monkeypatch.setattr(row_parts, "_cycles", lambda each, _: planned.extend(each) or 0)
    run_pipeline(module, "row-parts", PassContext(target=find_target("bm1684x")))
    first = planned[0]
    verify_module(first)
    assert products(first) * 8 == products(module) * 3
    assert [value.shape for value in first.main.returned] == [(ROWS, WIDTH)]
