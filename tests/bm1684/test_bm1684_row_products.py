"""Products of fp32 as convolutions: the bits of evaluation at all levels, planned cycles, which are taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bm1684_nets import BM1684, FULL, Net, check_op
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_cycles import check, computations

from bmcompiler.backends.bm1684.kernels import MatmulKernel
from bmcompiler.backends.bm1684.machine import Bm1684Arithmetic
from bmcompiler.backends.bm1684.row_products import RowMatmulKernel
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.backends.bm1684.timing_profile import TimingProfile
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Value
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import Target

Make = Callable[..., Value]


def _weighted(depth: int, columns: int, bias: bool = True, **more: Any) -> Make:
    shape = (columns, depth) if more.get("transpose_right") else (depth, columns)
    return lambda net, x: net.b.matmul(x, net.f32(*shape), net.f32(columns) if bias else None, **more)


def _pair(net: Net, a: Value, b: Value) -> Value:
    return net.b.matmul(a, b)


PRODUCTS: dict[str, tuple[Make, tuple[tuple[int, ...], ...]]] = {
    "rows of whole lanes": (_weighted(96, 48), ((128, 96),)),
    "rows with gaps between them": (_weighted(50, 33, activation="relu"), ((150, 50),)),
    "without a bias": (_weighted(48, 40, bias=False), ((70, 48),)),
    "half a pair": (_weighted(49, 32, bias=False), ((70, 49),)),
    "one input channel": (_weighted(1, 17), ((65, 1),)),
    "few rows and columns": (_weighted(7, 1), ((17, 7),)),
    "chunks": (_weighted(2100, 40), ((70, 2100),)),
    "chunks, the last with half a pair": (_weighted(3071, 40, activation="relu6"), ((130, 3071),)),
    "more input channels than a command has": (_weighted(5001, 40), ((70, 5001),)),
    "more rows than a command has": (_weighted(20, 3), ((4500, 20),)),
    "heads": (_pair, ((1, 3, 70, 50), (1, 3, 50, 24))),
    "heads, half a pair": (_pair, ((2, 3, 49, 49), (2, 3, 49, 32))),
    "one right matrix for several": (_pair, ((3, 2, 66, 40), (1, 2, 40, 33))),
    "one left matrix for several": (_pair, ((1, 2, 66, 41), (3, 2, 41, 33))),
    "a constant on the left": (lambda net, x: net.b.matmul(net.f32(20, 33), x), ((2, 33, 9),)),
}


def _op(make: Make, shapes: tuple[tuple[int, ...], ...]) -> Matmul:
    net = Net(list(shapes))
    op = make(net, *net.inputs).op
    assert isinstance(op, Matmul)
    return op


def _is_by_rows(op: Matmul, target: Target = TARGET) -> bool:
    forms = target.kernel_for(op)
    assert isinstance(forms, MatmulKernel)
    return isinstance(forms.form(op), RowMatmulKernel)


@pytest.mark.parametrize("lanes", [FULL, 24576])
@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", PRODUCTS)
def test_they_give_the_bits_of_evaluation(name: str, lanes: int, level: int) -> None:
    make, shapes = PRODUCTS[name]
    assert _is_by_rows(_op(make, shapes))
    if name.startswith("more input channels") and lanes != FULL:
        lanes = 65536
    check_op(make, *shapes, lanes=lanes, level=level)


@pytest.mark.parametrize("name", ["heads, half a pair", "half a pair"])
def test_what_completes_the_last_pair_is_nothing_that_lay_there(name: str) -> None:
    """The activation before a product leaves infinities in all of local memory."""
    make, shapes = PRODUCTS[name]

    def behind(net: Net, *given: Value) -> Value:
        x = net.b.mul(given[0], net.b.weight(np.full(given[0].shape, 1.0, np.float32), "ones"))
        return make(net, net.b.exp(net.b.sub(x, x)), *given[1:])

    check_op(behind, *shapes, level=2)


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@given(
    rows=st.integers(16, 200),
    depth=st.integers(1, 3000),
    columns=st.integers(1, 200),
    constant=st.booleans(),
    lanes=st.sampled_from([FULL, 65536]),
    level=st.sampled_from([0, 2]),
)
@settings(max_examples=15, deadline=None)
def test_their_cycles_are_planned(
    profile: str, rows: int, depth: int, columns: int, constant: bool, lanes: int, level: int
) -> None:
    net = Net([(rows, depth)] + [(depth, columns)] * (not constant))
    operand, bias = (net.f32(depth, columns), net.f32(columns)) if constant else (net.inputs[1], None)
    made = net.b.matmul(net.inputs[0], operand, bias)
    chip = BM1684.planner(TimingProfile.NAMED[profile])
    with chip.local_memory(lanes), computations() as found:
        chip.target.compile([net.module([made])], level)
    check(found, chip.target.profile)


@pytest.mark.parametrize(
    ("make", "shape", "by_rows"),
    [
        (_weighted(768, 768), (384, 768), True),
        (_weighted(3072, 768), (197, 3072), True),
        (_weighted(96, 288), (3136, 96), True),
        (_weighted(1280, 30), (1, 1280), True),
        (_weighted(1280, 33), (15, 1280), False),
        (_weighted(9000, 30), (1, 9000), False),
        (_weighted(383, 30), (15, 383), False),
        (_weighted(4096, 4096), (16, 4096), False),  # commands of matrices fill 64 lanes with their columns
        (_weighted(8192, 64), (64, 8192), True),
        (_weighted(12602, 20), (62, 12602), True),
        (_weighted(65535, 1), (64, 65535), True),
        (_weighted(65536, 1), (64, 65536), False),  # no command is so deep
        (_weighted(64, 30, transpose_right=True), (40, 64), False),
        (_weighted(40, 30, transpose_left=True), (40, 64), False),
    ],
)
def test_rows_lie_in_lanes_where_that_is_quicker(make: Make, shape: tuple[int, ...], by_rows: bool) -> None:
    assert _is_by_rows(_op(make, (shape,))) == by_rows


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@pytest.mark.parametrize("shapes", [shapes for _, shapes in PRODUCTS.values()])
def test_the_order_of_sums_asks_no_table_of_cycles(shapes: tuple[tuple[int, ...], ...], profile: str) -> None:
    op = _op(_pair, (shapes[0], (shapes[0][-1], 33)))
    target = TARGET.planner(TimingProfile.NAMED[profile])
    assert _is_by_rows(op, target) == (shapes[0][-2] >= 16 and shapes[0][-1] <= 8192)


def test_half_a_pair_takes_the_sign_off_a_sum_of_minus_zero() -> None:
    """The product of two paddings is +0, and is added to the accumulator of the other half."""
    arithmetic = TARGET.machine.arithmetic
    assert isinstance(arithmetic, Bm1684Arithmetic)
    tiny = np.float32(-1e-30)
    sums = arithmetic.row_product(np.full((1, 3), tiny), np.full((3, 1), -tiny))
    assert sums.tobytes() == np.zeros((1, 1), np.float32).tobytes()


def _attention() -> Module:
    net = Net([(2, 49, 64)])
    b, x = net.b, net.inputs[0]
    flat = [b.matmul(x, net.f32(64, 64), net.f32(64)) for _ in range(3)]
    query, key, value = (b.permute(b.reshape(each, shape=(2, 49, 4, 16)), order=(0, 2, 1, 3)) for each in flat)
    scores = b.softmax(b.matmul(query, b.permute(key, order=(0, 1, 3, 2))), axis=-1)
    mixed = b.reshape(b.permute(b.matmul(scores, value), order=(0, 2, 1, 3)), shape=(2, 49, 64))
    inner = b.relu(b.matmul(mixed, net.f32(64, 2500), net.f32(2500)))
    return net.module([b.matmul(inner, net.f32(2500, 64), net.f32(64))])


def test_all_levels_give_the_same_bits() -> None:
    given, found = {"x0": np.random.default_rng(1).standard_normal((2, 49, 64), np.float32)}, set()
    for level in (0, 1, 2):
        module = _attention()
        run_pipeline(module, TARGET.pipeline("f32", level), PassContext(target=TARGET))
        assert any(isinstance(op, Matmul) and _is_by_rows(op) for op in module.main.ops)
        found.add(run_module(module, given, target=TARGET)["y0"].tobytes())
    assert len(found) == 1
