"""Matrix products on the BM1684: the simulator computes what the chip's arithmetic says, in every form of the op."""

from __future__ import annotations

import pytest
from bm1684_nets import FULL, Net, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.ir import Value

LANES = st.sampled_from([4096, 16384, FULL])
SIZE = st.one_of(st.integers(1, 9), st.sampled_from([31, 32, 33, 70]))
SEED = st.integers(0, 99)
property_test = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def turned(rows: int, columns: int, transposed: bool) -> tuple[int, int]:
    return (columns, rows) if transposed else (rows, columns)


@property_test
@given(
    st.sampled_from([(), (1,), (3,), (2, 3)]),
    st.tuples(SIZE, SIZE, SIZE),
    st.tuples(st.booleans(), st.booleans()),
    st.booleans(),
    st.sampled_from(["", "relu", "relu6"]),
    LANES,
    SEED,
)
def test_constant_right_operand(
    lead: tuple[int, ...],
    sizes: tuple[int, int, int],
    turns: tuple[bool, bool],
    bias: bool,
    activation: str,
    lanes: int,
    seed: int,
) -> None:
    m, k, n = sizes

    def make(net: Net, x: Value) -> Value:
        weight = net.f32(*turned(k, n, turns[1]))
        modes = {"transpose_left": turns[0], "transpose_right": turns[1], "activation": activation}
        return net.b.matmul(x, weight, net.f32(n) if bias else None, **modes)

    check_op(make, (*lead, *turned(m, k, turns[0])), seed=seed, lanes=lanes)


@property_test
@given(
    st.sampled_from([((), ()), ((3,), (3,)), ((2, 1), (3,)), ((1,), (2, 2)), ((2, 3), (1, 1))]),
    st.tuples(SIZE, SIZE, SIZE),
    st.tuples(st.booleans(), st.booleans()),
    LANES,
    SEED,
)
def test_two_activations(
    leads: tuple[tuple[int, ...], tuple[int, ...]],
    sizes: tuple[int, int, int],
    turns: tuple[bool, bool],
    lanes: int,
    seed: int,
) -> None:
    m, k, n = sizes
    shapes = (*leads[0], *turned(m, k, turns[0])), (*leads[1], *turned(k, n, turns[1]))
    check_op(
        lambda net, a, b: net.b.matmul(a, b, transpose_left=turns[0], transpose_right=turns[1]),
        *shapes,
        seed=seed,
        lanes=lanes,
    )


@pytest.mark.parametrize("depth", [2048, 2049, 5000])
@pytest.mark.parametrize("level", [0, 2])
def test_deep_products_add_up_chunks(depth: int, level: int) -> None:
    check_op(lambda net, x: net.b.matmul(x, net.f32(depth, 40), net.f32(40)), (3, depth), level=level)


def test_columns_are_cut_where_they_exceed_local_memory() -> None:
    check_op(lambda net, x: net.b.matmul(x, net.f32(1100, 5000), net.f32(5000), activation="relu"), (2, 1100))


def test_a_constant_left_operand() -> None:
    check_op(lambda net, x: net.b.matmul(net.f32(2, 5, 7), x), (2, 7, 9))
