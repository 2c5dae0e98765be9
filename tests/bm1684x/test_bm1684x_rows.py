"""Rows of matrices in local memory: products, softmax, norms and heads read there what the op before left."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684x_nets import FULL, Net, check, check_op
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684x.build import as_broadcasts
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.cycles import CycleTable
from bmcompiler.backends.bm1684x.instructions.transfers import Side, in_window
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.backends.bm1684x.timing_profile import PROFILE
from bmcompiler.ir import Value
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze
from bmcompiler.target import Compiled

property_test = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def attention(net: Net, x: Value, heads: int) -> Value:
    """Scores of the rows of each head, their softmax, and what they mix, joined again; then a norm."""
    _, rows, columns = x.shape
    cut = (1, rows, heads, columns // heads)

    def made() -> Value:
        rows_of_heads = net.b.reshape(net.b.matmul(x, net.f32(columns, columns)), shape=cut)
        return net.b.permute(rows_of_heads, order=(0, 2, 1, 3))

    scores = net.b.softmax(net.b.matmul(made(), made(), transpose_right=True), axis=3)
    mixed = net.b.permute(net.b.matmul(scores, made()), order=(0, 2, 1, 3))
    joined = net.b.reshape(mixed, shape=x.shape)
    return net.b.layer_norm(net.b.add(joined, x), net.f32(columns), net.f32(columns), axis=2)


def moved(compiled: Compiled) -> dict[str, int]:
    """Bytes of activations that ops of each kind load."""
    found: dict[str, int] = {}
    for row in compiled.rows:
        found[row.kind] = found.get(row.kind, 0) + row.loaded - row.weights
    return found


def test_a_mask_is_the_same_for_all_heads() -> None:
    """Which is loaded once then, however many heads are computed one after the other."""
    net = Net([(4, 1, 128, 128), (1, 1, 128, 128)])
    made = net.b.add(*(net.b.cast(x, dtype="f16") for x in net.inputs))
    kernel, op = TARGET.kernel_for(made.op), made.op
    assert kernel is not None
    works = [kernel.boxed(op, ((head, head + 1), (0, 1), (0, 128), (0, 128))) for head in range(2)]
    (first, second) = (work.inputs[1].contents for work in works if work is not None)
    assert first is not None and first == second


@property_test
@given(
    st.integers(1, 4), st.sampled_from([1, 5, 64, 65, 130]), st.integers(1, 4), st.sampled_from([FULL, 4096]), st.data()
)
def test_an_attention_has_the_bits_of_evaluation(
    heads: int, rows: int, size: int, lanes: int, data: st.DataObject
) -> None:
    columns = heads * size * 8
    seed = data.draw(st.integers(0, 99))
    check_op(lambda net, x: attention(net, x, heads), (1, rows, columns), seed=seed, lanes=lanes, close=1e-3)


def test_an_attention_loads_only_its_input_and_transposed_keys() -> None:
    net = Net([(1, 64, 128)])
    found = moved(check(net.module([attention(net, net.inputs[0], 2)])))
    keys = net.inputs[0].type.nbytes
    assert (found["softmax"], found["layer_norm"], found["permute"]) == (0, 0, 0)
    assert found["matmul"] <= 2 * keys


@property_test
@given(
    st.sampled_from(["f32", "i8", "i16"]),
    st.permutations([3, 70, 9]),
    st.booleans(),
)
def test_heads_of_what_is_in_local_memory(dtype: str, sizes: list[int], four: bool) -> None:
    def make(net: Net, x: Value) -> Value:
        order = (0, 2, 1, 3) if four else (1, 0, 2)
        return net.b.relu(net.b.permute(net.b.relu(x), order=order))

    check_op(make, (1, *sizes) if four else tuple(sizes), dtype=dtype)


@property_test
@given(
    st.sampled_from(["f32", "i8", "i16"]),
    st.tuples(st.integers(1, 40), st.integers(1, 140), st.integers(1, 70)),
    st.booleans(),
)
def test_matrices_are_transposed_by_one_command_in_local_memory(
    dtype: str, shape: tuple[int, int, int], between: bool
) -> None:
    def make(net: Net, x: Value) -> Value:
        transposed = net.b.permute(net.b.relu(x) if between else x, order=(0, 2, 1))
        return net.b.relu(transposed) if between else transposed

    check_op(make, shape, dtype=dtype)


def test_a_transposed_matrix_does_not_leave_local_memory() -> None:
    net = Net([(1, 96, 65)])
    transposed = net.b.permute(net.b.sqrt(net.inputs[0]), order=(0, 2, 1))
    assert moved(check(net.module([net.b.softmax(transposed, axis=2)]))) == {
        "sqrt": 4 * 96 * 65,
        "permute": 0,
        "softmax": 0,
    }


def test_functions_read_the_rows_that_products_leave() -> None:
    """No transfer inside local memory makes one layout of the other: but for input and output, all are of weights."""
    net = Net([(1, 64, 128)])
    x = net.b.cast(net.inputs[0], dtype="f16")
    weights = net.b.weight(np.ones((128, 96), np.float16), "w")
    made = net.b.gelu(net.b.cast(net.b.matmul(x, weights), dtype="f32"))
    compiled = check(net.module([net.b.layer_norm(made, net.f32(96), net.f32(96), axis=2)]))
    assert moved(compiled) == {"cast": 4 * 64 * 128, "gelu": 0, "matmul": 0, "layer_norm": 0}
    transfers = analyze(compiled.model).timing().engines[1].commands
    assert transfers == 5 + 1  # input, weights, factors and offsets, and the output; the end mark


@pytest.mark.parametrize(
    ("channels", "base", "commands"), [(2, 0, 1), (64, 0, 1), (65, 0, 2), (64, 3, 2), (200, 60, 5)]
)
def test_what_all_lanes_get_is_read_once_for_each_row_of_lanes(channels: int, base: int, commands: int) -> None:
    shape = (1, channels, 1, 40)
    source = Side(CHIP.global_base, shape, (0, 0, 0, 1))
    to = Side(in_window(base * CHIP.lmem_size), shape, (0, 48, 0, 1))
    found = as_broadcasts(CycleTable(PROFILE), to, source, 4)
    assert len(found) == commands
    assert sum(one.fields["dst_c"] for one in found) == channels


def test_repeated_rows_are_the_same_in_all_lanes() -> None:
    def make(net: Net, x: Value) -> Value:
        return net.b.mul(net.b.add(x, net.f32(1, 1, 1, 40)), net.f32(1, 1, 3, 1))

    check_op(make, (2, 130, 3, 40))
    check_op(lambda net, x: net.b.softmax(net.b.matmul(x, net.f32(20, 33), net.f32(33)), axis=1), (9, 20))
