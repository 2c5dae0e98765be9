"""Rows that stay in the order of windows behind their attention: fewer gathers, with the same bits."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Function, Module, TensorType, Value, copy_module, verify_module
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.core import Weight
from bmcompiler.ops.places.index import Gather
from bmcompiler.passes.schedule import kept_orders
from bmcompiler.passes.schedule.kept_orders import KeptOrders
from bmcompiler.passmanager import PassContext, PassResult, run_pipeline
from bmcompiler.target import find_target

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "models"))
import swin
from transformers import real

ROWS, WIDTH = 784, 64


class Net:
    """Layers of rows in f32 whose attention, here a relu of all rows and a sum along them, reads them in an order."""

    def __init__(self) -> None:
        self.b, self.random = Builder.new("net"), np.random.default_rng(0)

    def weight(self, *shape: int) -> Value:
        return self.b.weight(self.random.standard_normal(shape, np.float32), "w")

    def ordered(self, x: Value, order: np.ndarray) -> Value:
        return self.b.gather(x, self.b.weight(order.astype(np.int32), "order"), axis=0)

    def mixed(self, x: Value) -> Value:
        """What no row by itself becomes."""
        windows = self.b.reshape(x, shape=(16, ROWS // 16, WIDTH))
        return self.b.reshape(self.b.softmax(windows, axis=1), shape=(ROWS, WIDTH))

    def layer(self, x: Value, order: np.ndarray, back: np.ndarray | None = None) -> Value:
        b = self.b
        norm = b.layer_norm(x, self.weight(WIDTH), self.weight(WIDTH), axis=1)
        part = self.mixed(self.ordered(norm, order))
        x = b.add(x, self.ordered(part, np.argsort(order) if back is None else back))
        inner = b.matmul(b.layer_norm(x, self.weight(WIDTH), axis=1), self.weight(WIDTH, 96), self.weight(96))
        return b.add(x, b.matmul(b.gelu(inner), self.weight(96, WIDTH)))

    def input(self) -> Value:
        return self.b.input("x", TensorType((ROWS, WIDTH)))


def orders(count: int) -> list[np.ndarray]:
    return [np.random.default_rng(seed).permutation(ROWS) for seed in range(count)]


def gathers(module: Module) -> int:
    return sum(op.short_name == "gather" for op in module.main.ops)


def left(module: Module) -> int:
    """Gathers that the pass leaves, which keeps every bit and the names of tensors."""
    given = {"x": np.random.default_rng(1).standard_normal((ROWS, WIDTH), np.float32)}
    before = run_module(module, given)
    context = PassContext(target=find_target("bm1684x"))
    run_pipeline(module, "kept-orders", context)
    run_pipeline(module, "common-subexpressions", context)
    verify_module(module)
    for name, after in run_module(module, given).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), after.view(np.uint8))
    assert not run_pipeline(module, "kept-orders", context)
    return gathers(module)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_layers_have_one_gather_each_and_one_for_all(count: int) -> None:
    net = Net()
    x = net.input()
    for order in orders(count):
        x = net.layer(x, order)
    module = net.b.outputs([net.mixed(x)], ["y"])
    assert gathers(module) == 2 * count and left(module) == count + 1


def test_layers_of_one_order_have_none_between() -> None:
    net, (order,) = Net(), orders(1)
    module = net.b.outputs([net.mixed(net.layer(net.layer(net.input(), order), order))], ["y"])
    assert left(module) == 2


def test_an_output_of_the_net_is_not_stored_twice_for_one_layer() -> None:
    """The rows of the last layer would be stored, read in their order and stored."""
    net, (order,) = Net(), orders(1)
    x = net.b.relu(net.mixed(net.input()))  # no input, whose rows are loaded anyway
    module = net.b.outputs([net.layer(x, order)], ["y"])
    assert left(module) == 2


def _repeats(order: np.ndarray) -> np.ndarray:
    return np.where(order == 1, 0, order)


@pytest.mark.parametrize("changed", [_repeats, lambda order: order[::-1]])
def test_other_ways_back_keep_every_bit(changed: Callable[[np.ndarray], np.ndarray]) -> None:
    net, (order,) = Net(), orders(1)
    module = net.b.outputs([net.mixed(net.layer(net.input(), order, changed(np.argsort(order))))], ["y"])
    left(module)


def test_what_mixes_rows_stays_in_its_order() -> None:
    net, (order,) = Net(), orders(1)
    b, x = net.b, net.input()
    part = net.ordered(net.mixed(net.ordered(x, order)), np.argsort(order))
    total = b.add(b.add(x, part), b.weight(np.ones((ROWS, 1), np.float32), "rows"))  # numbers of single rows
    module = b.outputs([net.mixed(total)], ["y"])
    assert left(module) == 2


def test_names_of_the_source_are_those_of_rows_in_its_order() -> None:
    net, (order,) = Net(), orders(1)
    x = net.layer(net.input(), order)
    assert x.op is not None
    x.op.attributes["source.tensor"] = "layer"
    module = net.b.outputs([net.mixed(x)], ["y"])
    before = _named(module)
    assert left(module) == 2
    np.testing.assert_array_equal(before, _named(module))


def _named(module: Module) -> np.ndarray:
    """The tensor "layer"."""
    found = {module.main.arguments[0]: np.random.default_rng(1).standard_normal((ROWS, WIDTH), np.float32)}
    for op in module.main.ops[:-1]:
        assert isinstance(op, TensorOp)
        arrays = [module.weights[op.key]] if isinstance(op, Weight) else []
        (result,) = op.results
        found[result] = arrays[0] if arrays else op.evaluate(*(found[x] for x in op.operands))
        if op.attributes.get("source.tensor") == "layer":
            return found[result]
    raise AssertionError("nothing has that name")


@pytest.mark.parametrize("gathered", [False, True])
def test_chains_longer_than_pythons_stack(gathered: bool) -> None:
    net, (order,) = Net(), orders(1)
    x = net.input()
    y = net.ordered(x, order)
    for _ in range(1500):
        y = net.b.relu(y)
    if gathered:
        y = net.mixed(net.ordered(y, np.argsort(order)))
    assert left(net.b.outputs([net.b.add(y, x)], ["y"])) <= 1 + gathered


def test_it_is_undone_where_the_plan_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all rows, and for those of one number of rows alone."""
    net, (order,) = Net(), orders(1)
    first = net.mixed(net.layer(net.layer(net.input(), order), order))
    few = order[order < ROWS // 2]
    y = net.b.input("z", TensorType((ROWS // 2, WIDTH)))
    for _ in range(2):
        inner = net.b.softmax(net.ordered(y, few), axis=0)
        y = net.b.add(y, net.ordered(inner, np.argsort(few)))
    module = net.b.outputs([first, net.b.softmax(y, axis=0)], ["a", "b"])
    before = _counted(module.main)

    def longer(size: int) -> None:
        """Each gather of as many rows that is left out is said to cost more than the others save."""

        def cycles(function: Function, *_: object) -> float:
            found = _counted(function)
            return float(sum(found.values()) - 3 * found[size])

        monkeypatch.setattr(kept_orders, "least_cycles", cycles)

    context = PassContext(find_target("bm1684x"))
    longer(ROWS)
    changed = copy_module(module)
    assert run_pipeline(changed, "kept-orders", context)
    after = _counted(changed.main)
    assert after[ROWS] == before[ROWS]
    assert after[ROWS // 2] < before[ROWS // 2]
    monkeypatch.setattr(kept_orders, "least_cycles", lambda function, *_: -sum(_counted(function).values()))
    assert not run_pipeline(module, "kept-orders", context)
    assert _counted(module.main) == before


def _counted(function: Function) -> Counter[int]:
    return Counter(op.type.shape[0] for op in function.ops if isinstance(op, Gather))


@pytest.mark.slow
def test_maps_that_do_not_stay_in_local_memory_take_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers of windows on 112 x 112 places, whose rows are stored between ops in either order."""
    net = swin.Swin("large", 112, swin.WIDTH, swin.HEADS[0])
    shape = (1, 112, 112, swin.WIDTH)
    model = net.model([real("map", shape)], **{swin.layers(net, "stage", "map", 2): shape})

    def cycles() -> float:
        result = bmcompiler.compile(model, target="bm1684x", quantize="f16", check="never")
        found = estimate(result)
        assert found is not None
        return found.cycles

    taken = cycles()
    monkeypatch.setattr(KeptOrders, "run", lambda *_: PassResult(False))
    assert taken <= cycles()
