"""Layers of tokens, whose values have two or three axes, computed by rows: the same bits, and nothing beside them."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684x_nets import BM1684X, Net, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.ir import Module, Operation, Value
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.passes.schedule.group_layers import GroupLayers
from bmcompiler.passmanager import PassContext

FEW, SOME = 24, 40
"""Widths outside and inside of a layer."""


def half(net: Net, *shape: int) -> Value:
    return net.b.weight(net.rng.standard_normal(shape).astype(np.float16), "w")


def layer(net: Net, x: Value, dtype: str, width: int) -> Value:
    """Two products with a function between them, a residual, and a norm, as `half-precision` leaves them."""
    columns = x.shape[-1]

    def product(x: Value, *shape: int) -> Value:
        if dtype == "f32":
            return net.b.matmul(x, net.f32(*shape), net.f32(shape[-1]))
        return net.b.matmul(x, half(net, *shape), half(net, shape[-1]))

    def cast(x: Value, to: str) -> Value:
        return x if dtype == "f32" else net.b.cast(x, dtype=to)

    flat = net.b.reshape(x, shape=[x.type.size // columns, columns])
    inner = cast(net.b.gelu(cast(product(cast(flat, dtype), columns, width), "f32")), dtype)
    back = net.b.reshape(cast(product(inner, width, columns), "f32"), shape=x.shape)
    return net.b.layer_norm(net.b.add(back, x), net.f32(columns), net.f32(columns), axis=x.type.rank - 1)


def module_of(shape: tuple[int, ...], dtype: str, width: int = SOME) -> Module:
    net = Net([shape])
    return net.module([layer(net, net.inputs[0], dtype, width)])


def computed(module: Module) -> list[Operation]:
    return [op for op in module.main.ops if op.name.startswith("tensorop.") and op.short_name != "weight"]


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([(130, FEW), (1, 200, FEW), (2, 100, FEW), (3, 7, FEW), (2, 2, 65, FEW)]),
    st.sampled_from(["f16", "f32"]),
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 4), st.just(1)),
    st.integers(0, 4),
    st.sampled_from([1 << 13, 1 << 15, 1 << 18]),
)
def test_any_rows_give_the_same_bits(
    shape: tuple[int, ...], dtype: str, slices: tuple[int, int, int, int], first: int, lanes: int
) -> None:
    module = module_of(shape, dtype)
    for op in computed(module)[first:]:
        op.attributes[GROUP], op.attributes[SLICES] = 0, slices
    with BM1684X.local_memory(lanes):
        check(module)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([(130, FEW), (2, 70, FEW), (1, 1, 65, FEW), (2, 3, 20, FEW)]),
    st.sampled_from([64, 130, 200]),
    st.sampled_from(["f16", "f32"]),
    st.booleans(),
    st.tuples(st.integers(1, 2), st.just(1), st.integers(1, 3), st.integers(1, 4)),
)
def test_any_columns_of_a_product_give_the_same_bits(
    shape: tuple[int, ...], width: int, dtype: str, transposed: bool, slices: tuple[int, int, int, int]
) -> None:
    net = Net([shape])
    sizes = (width, FEW) if transposed else (FEW, width)
    right, bias = (net.f32(*each) if dtype == "f32" else half(net, *each) for each in (sizes, (width,)))
    x = net.inputs[0] if dtype == "f32" else net.b.cast(net.inputs[0], dtype=dtype)
    made = net.b.matmul(x, right, bias, transpose_right=transposed)
    assert made.op is not None
    made.op.attributes[GROUP], made.op.attributes[SLICES] = 0, slices
    check(net.module([made if dtype == "f32" else net.b.cast(made, dtype="f32")]))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_weights_are_multiplied_part_by_part(dtype: str) -> None:
    """Products, functions of them and sums with others are cut along their columns."""
    net = Net([(70, FEW)])
    x = net.inputs[0] if dtype == "f32" else net.b.cast(net.inputs[0], dtype=dtype)
    rights = [net.f32(FEW, 200) if dtype == "f32" else half(net, FEW, 200) for _ in range(2)]
    left, right = (net.b.matmul(x, each) for each in rights)
    made = net.b.mul(left, right) if dtype == "f32" else net.b.cast(net.b.mul(left, right), dtype="f32")
    module = net.module([made])
    for op in computed(module)[dtype != "f32" :]:
        op.attributes[GROUP], op.attributes[SLICES] = 0, (1, 1, 1, 3)
    assert {row.tiles for row in check(module).rows if row.kind in ("matmul", "mul")} == {3}


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([2, 4, 16, 17, 48, 49, 100, 197, 272]), st.integers(1, 130), st.booleans())
def test_rows_are_folded_as_evaluation_says(columns: int, rows: int, makes: bool) -> None:
    net = Net([(rows, FEW)])
    x = net.b.matmul(net.inputs[0], net.f32(FEW, columns)) if makes else net.b.tanh(net.inputs[0])
    norm = net.b.rms_norm(net.b.softmax(x, axis=1), net.f32(x.shape[1]), axis=1, epsilon=1e-6)
    means = net.b.reduce(x, axes=[1], method="mean")
    check(net.module([norm, means, net.b.arg(x, axis=1, method="max")]))


@pytest.mark.parametrize("shape", [(640, FEW), (1, 640, FEW), (2, 320, FEW)])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_what_is_between_products_stays_in_local_memory(shape: tuple[int, ...], dtype: str) -> None:
    module = module_of(shape, dtype, width=1000)
    (x,) = module.main.arguments
    with BM1684X.local_memory(1 << 16):
        GroupLayers(2).run(module, PassContext(target=TARGET))
        compiled = check(module)
    assert max(max(op.attributes.get(SLICES, [1])) for op in computed(module)) > 1
    moved = sum(row.loaded + row.stored - row.weights for row in compiled.rows)
    assert moved <= 3 * x.type.nbytes, "the input, twice where it is read as two, and the result"
