"""Tables of few weights: how near they are, and which layers get them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nets import Net, random_inputs

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.palette import distinct, nearest, palette


def weights(seed: int, count: int, tail: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.standard_normal(count) * np.exp(tail * random.standard_normal(count))).astype(np.float16)


@given(seed=st.integers(0, 1000), count=st.integers(1, 5000), tail=st.floats(0, 2), size=st.sampled_from([2, 16, 256]))
def test_tables_are_short_hold_zero_and_serve_every_weight_best(seed: int, count: int, tail: float, size: int) -> None:
    given_weights = weights(seed, count, tail)
    table = palette(given_weights, size)
    assert len(table) <= size and 0 in table and (np.diff(table.astype(np.float64)) > 0).all()
    coded = nearest(given_weights, table)
    gaps = np.abs(given_weights.astype(np.float64)[:, None] - table.astype(np.float64))
    np.testing.assert_array_equal(np.abs(given_weights.astype(np.float64) - coded.astype(np.float64)), gaps.min(1))
    np.testing.assert_array_equal(nearest(coded, palette(coded, size)), coded)


def test_few_values_are_kept_and_zeros_have_no_sign() -> None:
    given_weights = np.array([[3, -0.0], [0, 3]], np.float16)
    values, counts = distinct(given_weights)
    assert values.tolist() == [0, 3] and counts.tolist() == [2, 2] and not np.signbit(values[0])
    coded = nearest(given_weights, palette(given_weights))
    assert coded.tolist() == [[3, 0], [0, 3]] and not np.signbit(coded).any()


def test_normal_weights_lose_little() -> None:
    """43.8 dB is what 256 levels can reach; evenly spaced ones reach 39 dB."""
    given_weights = weights(0, 200_000, 0)
    wide, coded = (a.astype(np.float64) for a in (given_weights, nearest(given_weights, palette(given_weights))))
    assert 10 * np.log10(np.square(wide).sum() / np.square(wide - coded).sum()) > 43


def net(n: Net) -> Module:
    """Two layers of one weight, a small one, and one whose weights are no constant."""
    x = n.input(2, 8, 6, 6)
    shared = n.w(8, 8, 3, 3)
    y = n.conv(n.conv(x, shared, pads=(1, 1, 1, 1)), shared, pads=(1, 1, 1, 1))
    y = n.deconv(y, n.w(8, 8, 3, 3))
    y = n.conv(y, n.w(8, 8, 1, 1))
    flat = n.reshape(y, shape=(2, 8 * 8 * 8))
    return n.done(
        n.matmul(flat, n.w(5, 8 * 8 * 8), n.w(5), transpose_right=True), n.matmul(flat, flat, transpose_right=True)
    )


def layer_weights(module: Module) -> dict[str, np.ndarray]:
    """Constant weights by layer."""
    layers = [op for op in module.main.ops if op.short_name in ("conv", "deconv", "matmul")]
    makers = {op.label: op.operands[1].op for op in layers}
    return {
        label: module.weights[maker.attributes["key"]]
        for label, maker in makers.items()
        if maker is not None and maker.short_name == "weight"
    }


def test_large_constant_weights_come_from_tables() -> None:
    module = net(Net())
    inputs = random_inputs(module)
    before, exact = run_module(module, inputs), layer_weights(module)
    context = PassContext()
    assert run_pipeline(module, "palettize", context, verify_each=True)
    assert not run_pipeline(module, "palettize", PassContext())
    sizes = []
    for op in module.main.ops:
        constant = op.operands[1].op if op.short_name in ("conv", "deconv", "matmul") else None
        if constant is not None and constant.short_name == "weight":
            array = module.weights[constant.attributes["key"]]
            assert array.dtype == np.float32
            if array.size > 512:
                sizes.append(len(np.unique(array)))
    assert len(sizes) == 4 and max(sizes) <= 256
    for name, array in run_module(module, inputs).items():
        assert 0 < np.abs(array - before[name]).max() <= 0.05 * np.abs(before[name]).max()
    (note,) = context.notes
    coded = layer_weights(module)
    errors = {
        name: np.linalg.norm(array - coded[name]) / np.linalg.norm(array)
        for name, array in exact.items()
        if array.size > 512
    }
    assert len(errors) == 4
    worst = max(errors, key=errors.__getitem__)
    told = f"they differ most in '{worst}', by {errors[worst]:.2%} of their rms"
    assert note == f"weights of 4 layers come from tables of 256 numbers; {told}"


@pytest.mark.parametrize("factor", [1e6, 0.0])
def test_weights_that_no_table_helps_stay(factor: float) -> None:
    n = Net()
    module = n.done(n.conv(n.input(1, 64, 4, 4), n.constant((np.ones((64, 64, 1, 1)) * factor).astype(np.float32))))
    assert not run_pipeline(module, "palettize", PassContext())


def test_layers_of_the_host_keep_their_weights() -> None:
    from bmcompiler.target import find_target

    n = Net()
    x = n.input(1, 8, 12, 12)
    module = n.done(n.conv(n.conv(x, n.w(8, 8, 9, 9)), n.w(96, 8, 1, 1)))
    keys = [
        op.operands[1].op.attributes["key"] for op in module.main.ops if op.short_name == "conv" and op.operands[1].op
    ]
    assert run_pipeline(module, "palettize", PassContext(target=find_target("dv700")))
    found = [
        op.operands[1].op.attributes["key"] for op in module.main.ops if op.short_name == "conv" and op.operands[1].op
    ]
    assert found[0] == keys[0] and found[1] != keys[1]
