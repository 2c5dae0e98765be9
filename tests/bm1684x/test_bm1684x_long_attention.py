"""Attention whose scores exceed local memory, computed by rows of queries: the same bits, and no scores beside it."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684x_nets import BM1684X, Net, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.backends.lanes.kernels.base import LocalKernel
from bmcompiler.ir import Module, Operation, Value
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.schedule.group_layers import GroupLayers
from bmcompiler.passmanager import PassContext
from bmcompiler.target import Compiled

Shape = tuple[int, int, int, int]


def attention(net: Net, query: Value, key: Value, value: Value, mask: Value) -> Value:
    """Softmax in f32, products in f16, as `half-precision` leaves them."""

    def half(x: Value) -> Value:
        return net.b.cast(x, dtype="f16")

    low, values = half(mask), half(value)
    scores = net.b.matmul(half(query), half(key), transpose_right=True)
    masked = net.b.cast(net.b.add(scores, low), dtype="f32")
    return net.b.cast(net.b.matmul(half(net.b.softmax(masked, axis=3)), values), dtype="f32")


def module_of(shape: Shape) -> Module:
    batch, _, rows, _ = shape
    net = Net([shape, shape, shape, (batch, 1, 1, rows)])
    return net.module([attention(net, *net.inputs)])


def inner(module: Module) -> list[Operation]:
    """From the scores to what they mix."""
    ops = list(module.main.ops)
    products = [i for i, op in enumerate(ops) if op.short_name == "matmul"]
    return ops[products[0] : products[-1] + 1]


def features(compiled: Compiled) -> int:
    return sum(row.loaded + row.stored - row.weights for row in compiled.rows)


@pytest.mark.parametrize("shape", [(1, 4, 320, 24), (1, 6, 250, 16)])
def test_scores_stay_in_local_memory(shape: Shape) -> None:
    module = module_of(shape)
    borders = 4 * 4 * int(np.prod(shape)) + 4 * shape[0] * shape[2]
    with BM1684X.local_memory(1 << 15):
        alone = check(module)
        GroupLayers(2).run(module, PassContext(target=TARGET))
        groups = {(op.attributes.get(GROUP), str(op.attributes.get(SLICES))) for op in inner(module)}
        cut = check(module)
    assert len(groups) == 1
    assert groups.pop()[0] is not None
    scores = 2 * shape[0] * shape[1] * shape[2] ** 2
    assert features(alone) > borders + 2 * scores
    assert features(cut) <= 2.5 * borders, "what is as large as the queries may pass, the scores not"


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.sampled_from([3, 64, 100, 130, 192]), st.sampled_from([8, 40])),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 4), st.just(1)),
    st.integers(0, 3),
    st.sampled_from([1 << 13, 1 << 15, 1 << 18]),
)
def test_any_slices_give_the_same_bits(shape: Shape, slices: Shape, first: int, lanes: int) -> None:
    module = module_of(shape)
    for op in inner(module)[first:]:
        op.attributes[GROUP], op.attributes[SLICES] = 0, slices
    with BM1684X.local_memory(lanes):
        check(module)


def test_only_grids_that_view_the_result_have_its_rows() -> None:
    """Other grids may have the same sizes, of other axes."""
    net = Net([(1, 3, 64, 64)])
    (x,) = net.inputs
    for made, rows in ((net.b.softmax(x, axis=3), True), (net.b.max_pool(x, kernel=(1, 1)), False)):
        op = made.op
        assert isinstance(op, TensorOp)
        kernel = TARGET.kernel_for(op)
        assert isinstance(kernel, LocalKernel)
        found = kernel.in_grid(op, ((0, 1), (1, 3), (0, 64), (0, 64)), (3, 64, 1, 64))
        assert found == (((1, 3), (0, 64), (0, 1), (0, 64)) if rows else None)
