"""Matrix products of bytes on the BM1684: the simulator equals the exact integer op, in all modes and element types."""

from __future__ import annotations

from bm1684_nets import FULL, QUANT, Net, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from int_samples import Sums, sums

from bmcompiler.ir import TensorType, Value

LANES = st.sampled_from([4096, 16384, FULL])
SIZE = st.one_of(st.integers(1, 9), st.sampled_from([33, 64, 130]))
DEPTH = st.one_of(st.integers(1, 9), st.sampled_from([64, 67, 600, 4096]))
SEED = st.integers(0, 99)
property_test = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def turned(rows: int, columns: int, transposed: bool) -> tuple[int, int]:
    return (columns, rows) if transposed else (rows, columns)


@property_test
@given(
    st.sampled_from([((), ()), ((3,), ()), ((2, 3), (1, 1)), ((2, 1), (3,))]),
    st.tuples(SIZE, DEPTH, SIZE),
    st.tuples(st.booleans(), st.booleans()),
    sums(),
    LANES,
    SEED,
)
def test_constant_right_operand(
    leads: tuple[tuple[int, ...], tuple[int, ...]],
    sizes: tuple[int, int, int],
    turns: tuple[bool, bool],
    kind: Sums,
    lanes: int,
    seed: int,
) -> None:
    (m, k, n), lead = sizes, (2, 3) if leads == ((2, 1), (3,)) else leads[0]
    if kind.modes.get("mode") == "asymmetric":
        leads = leads[0], ()

    def make(net: Net, x: Value) -> Value:
        weight, bias = net.integers(kind.weight, *leads[1], *turned(k, n, turns[1])), kind.constant_bias(net, n)
        out = kind.out((*(lead if leads[1] else leads[0]), m, n))
        return net.b.matmul(x, weight, bias, transpose_left=turns[0], transpose_right=turns[1], out=out, **kind.modes)

    check_op(make, (*leads[0], *turned(m, k, turns[0])), dtype=kind.data, seed=seed, lanes=lanes)


@property_test
@given(
    st.sampled_from([((), ()), ((3,), (3,)), ((2, 1), (3,))]),
    st.tuples(SIZE, DEPTH, SIZE),
    st.tuples(st.booleans(), st.booleans()),
    sums(("", "low", "high")),
    LANES,
    SEED,
)
def test_two_activations(
    leads: tuple[tuple[int, ...], tuple[int, ...]],
    sizes: tuple[int, int, int],
    turns: tuple[bool, bool],
    kind: Sums,
    lanes: int,
    seed: int,
) -> None:
    (m, k, n), lead = sizes, (2, 3) if leads == ((2, 1), (3,)) else leads[0]

    def make(net: Net, a: Value) -> Value:
        b = net.b.input("right", TensorType((*leads[1], *turned(k, n, turns[1])), kind.weight, QUANT))
        bias = kind.constant_bias(net, n)
        out = kind.out((*lead, m, n))
        return net.b.matmul(a, b, bias, transpose_left=turns[0], transpose_right=turns[1], out=out, **kind.modes)

    check_op(make, (*leads[0], *turned(m, k, turns[0])), dtype=kind.data, seed=seed, lanes=lanes)
