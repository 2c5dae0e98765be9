"""Whole programs: outputs of every kind, CPU subnets, several programs in a model, random graphs."""

from __future__ import annotations

import numpy as np
import pytest
from chip_nets import QUANT, Net, check, check_op, compare, local_memory, random_inputs
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.errors import UnsupportedError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.runtime import Session


def test_outputs_may_be_inputs_views_and_listed_twice() -> None:
    net = Net([(2, 3, 4, 5), (70001,)])  # a prime: no command copies so many
    x, long = net.inputs
    y = net.b.relu(x)
    z = net.b.reshape(y, shape=(6, 20))
    check(net.module([x, y, z, y, net.b.reshape(x, shape=(120,)), net.b.maxs(z, value=3), long]))


def test_a_net_may_have_no_ops() -> None:
    net = Net([(1, 2, 3, 4)])
    compiled = check(net.module([net.inputs[0], net.b.reshape(net.inputs[0], shape=(24,))]))
    assert compiled.rows == []


def test_a_constant_output_is_refused() -> None:
    net = Net([(2, 3)])
    module = net.module([net.b.relu(net.inputs[0]), net.i8(3)])
    with pytest.raises(UnsupportedError, match="constant"):
        TARGET.compile([module], 2)


def test_unused_results_are_no_trouble() -> None:
    net = Net([(4, 6)])
    first, _, _ = net.b.split(net.b.relu(net.inputs[0]), axis=1, sizes=(1, 2, 3))
    net.b.mins(net.inputs[0], value=3)
    check(net.module([first]))


def test_float_layers_between_device_layers() -> None:
    """quantize and dequantize stand at the borders of a CPU subnet."""
    net = Net([(1, 8, 6, 6)])
    b = net.b
    x = b.conv(net.inputs[0], net.i8(8, 8, 3, 3), net.bias(8), pads=(1, 1, 1, 1), rshift=9, out=i8(1, 8, 6, 6))
    flat = b.reshape(b.dequantize(x), shape=(8, 36))
    soft = b.softmax(flat, axis=1)
    again = b.reshape(b.quantize(soft, out=i8(8, 36)), shape=(1, 8, 6, 6))
    last = b.relu(b.max(again, x))
    compiled = check(net.module([last, b.reshape(soft, shape=(288,)), again]))
    assert [row.where for row in compiled.rows] == ["bm1880", "cpu", "cpu", "cpu", "bm1880", "bm1880"]


def i8(*shape: int) -> TensorType:
    return TensorType(shape, "i8", QUANT)


def test_constants_behind_views_reach_the_cpu() -> None:
    net = Net([(2, 6)])
    b = net.b
    table = b.reshape(b.weight(np.arange(12, dtype=np.float32), "t"), shape=(2, 6))
    check(
        net.module(
            [b.add(b.dequantize(net.inputs[0]), table), b.max(net.inputs[0], b.reshape(net.i8(12), shape=(2, 6)))]
        )
    )


def test_inner_values_of_a_cpu_subnet_take_no_memory() -> None:
    net = Net([(1, 100000)])
    b = net.b
    x = b.dequantize(net.inputs[0])
    for _ in range(5):
        x = b.tanh(x)
    compiled = check(net.module([b.quantize(x, out=i8(1, 100000))]))
    assert compiled.totals["neuron memory"] <= 200100


def test_concat_is_free_where_its_operands_are_made_in_place() -> None:
    net = Net([(1, 4, 6, 6)])
    b = net.b
    left = b.conv(net.inputs[0], net.i8(8, 4, 1, 1), rshift=6, out=i8(1, 8, 6, 6))
    right = b.relu(b.conv(net.inputs[0], net.i8(5, 4, 3, 3), pads=(1, 1, 1, 1), rshift=8, out=i8(1, 5, 6, 6)))
    joined = b.concat(left, right, axis=1)
    nested = b.concat(joined, b.relu(right), axis=1)
    one, two = b.split(nested, axis=1, sizes=(9, 9))
    compiled = check(net.module([b.max(one, two)]))
    assert [row.commands for row in compiled.rows if row.kind in ("concat", "split")] == [0, 0, 0]


def test_concat_copies_what_it_must() -> None:
    net = Net([(1, 4), (1, 3)])
    b = net.b
    x, y = net.inputs
    r = b.relu(y)
    one = b.concat(x, r, r, axis=1)
    two = b.concat(r, b.mins(x, value=2), one, axis=1)
    check(net.module([two, r, b.concat(b.relu(x), b.relu(y), axis=1)]))


def test_several_programs_share_a_model() -> None:
    modules = []
    for batch in (1, 4, 2):
        net = Net([(batch, 3, 9, 9)], seed=5)
        x = net.b.conv(net.inputs[0], net.i8(6, 3, 3, 3), net.bias(6), rshift=8, out=i8(batch, 6, 7, 7))
        modules.append(net.module([net.b.softmax(net.b.dequantize(x), axis=1), x]))
    compiled = check(modules)
    (shared,) = compiled.model.weights
    other = Net([(3, 3, 9, 9)], seed=6)
    modules.append(
        other.module([other.b.conv(other.inputs[0], other.i8(6, 3, 3, 3), rshift=8, out=i8(3, 6, 7, 7))] * 2)
    )
    (larger,) = check(modules).model.weights
    assert bytes(larger).startswith(bytes(shared)) and len(larger) > len(shared)


def test_sessions_of_one_model_text_keep_their_own_weights() -> None:
    """Two models whose CPU subnets read alike but hold different constants."""
    sessions = []
    for value in (1.0, 2.0):
        net = Net([(1, 3)])
        factor = net.b.weight(np.full((1, 3), value, np.float32), "factor")
        module = net.module([net.b.mul(net.b.dequantize(net.inputs[0]), factor)])
        sessions.append((module, Session(TARGET.compile([module], 2).model)))
    for _ in range(2):
        for module, session in sessions:
            inputs = random_inputs(module)
            np.testing.assert_array_equal(session.run(inputs, raw=True)["y0"], run_module(module, inputs)["y0"])


class _Graph:
    """Draws ops on the 4-D values made so far."""

    def __init__(self, draw: st.DrawFn, net: Net) -> None:
        self.draw, self.net, self.values = draw, net, list(net.inputs)

    def pick(self) -> Value:
        return self.draw(st.sampled_from(self.values))

    def like(self, x: Value) -> Value:
        return self.draw(st.sampled_from([v for v in self.values if v.shape == x.shape]))

    def step(self) -> None:
        kind = self.draw(st.sampled_from(sorted(_STEPS)))
        made = _STEPS[kind](self, self.pick())
        self.values += made if isinstance(made, (list, tuple)) else [made]

    def conv(self, x: Value) -> Value:
        channels, kernel = self.draw(st.sampled_from([3, 8, 33])), self.draw(st.sampled_from([1, 3]))
        weight = self.net.i8(channels, x.shape[1], kernel, kernel)
        return self.net.b.conv(x, weight, self.net.bias(channels), pads=(kernel // 2,) * 4, rshift=8)

    def pool(self, x: Value) -> Value:
        side = min(2, *x.shape[2:])
        return self.net.b.max_pool(x, kernel=(side, side), strides=(1, side)) if side > 1 else self.net.b.relu(x)

    def concat(self, x: Value) -> Value:
        return self.net.b.concat(x, self.like(x), axis=self.draw(st.integers(0, 3))) if x.type.size < 4000 else x

    def split(self, x: Value) -> list[Value]:
        axis = self.draw(st.sampled_from([i for i in range(4) if x.shape[i] > 1] or [0]))
        if x.shape[axis] == 1:
            return [self.net.b.relu(x)]
        return list(self.net.b.split(x, axis=axis, sizes=(1, x.shape[axis] - 1)))

    def crop(self, x: Value) -> Value:
        starts = [self.draw(st.integers(0, d - 1)) for d in x.shape]
        return self.net.b.slice(x, starts=starts, ends=x.shape, steps=(1, 2, 1, 1))

    def reshape(self, x: Value) -> Value:
        return self.net.b.reshape(x, shape=(x.shape[0], x.shape[2], x.shape[1], x.shape[3]))

    def permute(self, x: Value) -> Value:
        return self.net.b.permute(x, order=self.draw(st.permutations(range(4))))

    def real(self, x: Value) -> Value:
        b = self.net.b
        typed = b.muls_shift(x, multiplier=1, rshift=0, out=TensorType(x.shape, "i8", QUANT))
        return b.quantize(b.tanh(b.dequantize(typed)), out=TensorType(x.shape, "i8", QUANT))


_STEPS = {
    "conv": _Graph.conv,
    "pool": _Graph.pool,
    "concat": _Graph.concat,
    "split": _Graph.split,
    "crop": _Graph.crop,
    "reshape": _Graph.reshape,
    "permute": _Graph.permute,
    "real": _Graph.real,
    "add": lambda g, x: g.net.b.mac_shift(x, g.like(x), multipliers=(64, -77), rshift=7),
    "mul": lambda g, x: g.net.b.mul_shift(x, g.like(x), rshift=6),
    "lut": lambda g, x: g.net.b.lut(x, g.net.i8(256)),
    "cpu": lambda g, x: g.net.b.adds_shift(x, value=5, rshift=1),
}


@st.composite
def graphs(draw: st.DrawFn) -> Module:
    """Nets of 1 to 12 random int8 ops on one or two inputs, with one to four outputs."""
    inputs = draw(st.lists(st.tuples(*(st.integers(1, 6) for _ in range(4))), min_size=1, max_size=2))
    net = Net(inputs, draw(st.integers(0, 9)))
    graph = _Graph(draw, net)
    for index in range(draw(st.integers(1, 12))):
        with net.b.at(f"layer{index}"):
            graph.step()
    return net.module(draw(st.lists(st.sampled_from(graph.values), min_size=1, max_size=4)))


@settings(max_examples=150, deadline=None)
@given(graphs(), st.sampled_from([2048, 65536]))
def test_random_graphs(module: Module, lanes: int) -> None:
    with local_memory(lanes):
        check(module)


def test_models_are_reproducible() -> None:
    models = []
    for _ in range(2):
        net = Net([(1, 8, 20, 20)], seed=3)
        x = net.b.conv(net.inputs[0], net.i8(40, 8, 3, 3), net.bias(40), rshift=8, out=i8(1, 40, 18, 18))
        models.append(TARGET.compile([net.module([net.b.softmax(net.b.dequantize(x), axis=1)])], 2).model)
    assert b"".join(models[0].parts()) == b"".join(models[1].parts())
    module = net.b.module
    compare([module], models[0])


def test_layers_report_what_they_move() -> None:
    compiled = check_op(lambda net, x: net.b.conv(x, net.i8(8, 3, 1, 1), rshift=5), (1, 3, 10, 10))
    (row,) = compiled.rows
    assert (row.layer, row.kind, row.shape, row.macs) == ("layer", "conv", (1, 8, 10, 10), 8 * 3 * 100)
    assert (row.loaded, row.stored, row.weights) == (300 + 24, 800, 24)
