"""Matrix products of bytes on the BM1684: the simulator equals the exact integer op, in all modes and element types."""

from __future__ import annotations

import pytest
from bm1684_nets import FULL, QUANT, Net, check, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from int_samples import Sums, sums

from bmcompiler.backends.bm1684.kernels import MatmulKernel
from bmcompiler.backends.bm1684.packed.int_matrix import IntMatrixKernel
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.layers.nn import Matmul

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
        turned_as = {"transpose_left": turns[0], "transpose_right": turns[1]}
        return net.b.matmul(x, weight, bias, kind.factors(net, n), out=out, **turned_as, **kind.modes)

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


@property_test
@given(
    st.sampled_from([((), ()), ((3,), ()), ((2, 3), (1, 1)), ((3,), (3,))]),
    st.tuples(SIZE, DEPTH, st.sampled_from([1, 16, 33, 130, 1100, 2600])),
    st.booleans(),
    st.booleans(),
    sums(("", "low")),
    LANES,
    SEED,
)
def test_matrices(
    leads: tuple[tuple[int, ...], tuple[int, ...]],
    sizes: tuple[int, int, int],
    transposed: bool,
    computed: bool,
    kind: Sums,
    lanes: int,
    seed: int,
) -> None:
    """The matrix instruction, also where a convolution is quicker, tiled by rows and columns."""
    (m, k, n), lead = sizes, leads[0]

    def make(net: Net, x: Value) -> Value:
        shape = (*leads[1], *turned(k, n, transposed and not computed))
        bias = kind.constant_bias(net, n)
        if computed:
            right = net.b.input("right", TensorType(shape, kind.weight, QUANT))
        else:
            right = net.integers(kind.weight, *shape)
        out = kind.out((*lead, m, n))
        return net.b.matmul(x, right, bias, transpose_right=transposed and not computed, out=out, **kind.modes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MatmulKernel, "form", _as_matrix)
        check_op(make, (*lead, m, k), dtype=kind.data, seed=seed, lanes=lanes)


def test_tiles_of_one_form_are_not_those_of_another() -> None:
    """As a matrix it fills local memory; the convolution, asked next, has tiles of its own."""
    check_op(lambda net, x: net.b.matmul(x, net.integers("i8", 4096, 1), rshift=0), (1, 4096), dtype="i8")


def _as_matrix(kernel: MatmulKernel, op: Matmul) -> object:
    _, _, other, matrices = kernel.forms
    return other if matrices.unsupported_reason(op) else matrices


def test_wide_results_are_matrices_and_few_rows_convolutions() -> None:
    """Channels of a convolution are stored byte by byte: 40 rows of 6625 columns took ten times as long."""
    forms = {}
    for rows, columns in ((40, 6625), (1, 100)):
        net = Net(((rows, 120),), 0, "i8")
        out = TensorType((rows, columns), "i8")
        y = net.b.matmul(net.inputs[0], net.integers("i8", 120, columns), out=out, mode="low", scale=0.003)
        check(net.module([y]))
        assert isinstance(y.op, Matmul)
        (kernel,) = (each for each in TARGET.kernels() if isinstance(each, MatmulKernel))
        forms[rows] = isinstance(kernel.form(y.op), IntMatrixKernel)
    assert forms == {40: True, 1: False}


def test_a_scale_above_one_needs_more_than_a_matrix_has() -> None:
    net = Net(((8, 20),), 0, "i8")
    y = net.b.matmul(net.inputs[0], net.integers("i8", 20, 9), out=TensorType((8, 9), "i8"), mode="low", scale=3.0)
    net.module([y])
    (kernel,) = (each for each in TARGET.kernels() if isinstance(each, MatmulKernel))
    assert "in mode low by a scale up to 1" in (kernel.forms[3].unsupported_reason(y.op) or "")
