"""Products of fp32 as convolutions: the bits of those in sections of columns, planned cycles, which is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bm1684x_nets import BM1684X, FULL, Net, check_op
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_cycles import check, computations

from bmcompiler.backends.bm1684x.kernels.row_products import SingleMatmulKernel
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.codegen.groups.slices import slice_stripes
from bmcompiler.codegen.kernels import DeviceKernel
from bmcompiler.ir import Value
from bmcompiler.ops.layers.nn import Matmul

Make = Callable[..., Value]


def _weighted(depth: int, columns: int, bias: bool = True, **more: Any) -> Make:
    shape = (columns, depth) if more.get("transpose_right") else (depth, columns)
    return lambda net, x: net.b.matmul(x, net.f32(*shape), net.f32(columns) if bias else None, **more)


def _pair(**more: Any) -> Make:
    return lambda net, a, b: net.b.matmul(a, b, **more)


PRODUCTS: dict[str, tuple[Make, tuple[tuple[int, ...], ...]]] = {
    "rows of whole lanes": (_weighted(96, 48), ((128, 96),)),
    "rows with gaps between them": (_weighted(50, 33, activation="relu"), ((150, 50),)),
    "without a bias": (_weighted(48, 40, bias=False), ((70, 48),)),
    "weights that lie transposed": (_weighted(70, 65, transpose_right=True), ((130, 70),)),
    "chunks": (_weighted(2100, 40), ((70, 2100),)),
    "chunks of whole lanes": (_weighted(3072, 40), ((130, 3072),)),
    "chunks, transposed": (_weighted(2100, 70, transpose_right=True), ((70, 2100),)),
    "heads": (_pair(), ((1, 3, 70, 50), (1, 3, 50, 24))),
    "keys as they lie": (_pair(transpose_right=True), ((2, 3, 49, 32), (2, 3, 49, 32))),
    "one right matrix for several": (_pair(transpose_right=True), ((3, 2, 66, 40), (1, 2, 33, 40))),
}


def _op(make: Make, shapes: tuple[tuple[int, ...], ...]) -> Matmul:
    net = Net(list(shapes))
    op = make(net, *net.inputs).op
    assert isinstance(op, Matmul)
    return op


@pytest.mark.parametrize("lanes", [FULL, 24576])
@pytest.mark.parametrize("name", PRODUCTS)
def test_they_give_the_bits_of_evaluation(name: str, lanes: int) -> None:
    make, shapes = PRODUCTS[name]
    assert isinstance(TARGET.kernel_for(_op(make, shapes)).form(_op(make, shapes)), SingleMatmulKernel)  # type: ignore
    check_op(make, *shapes, lanes=lanes)


@given(
    rows=st.integers(30, 200),
    depth=st.integers(1, 3000),
    columns=st.integers(1, 200),
    kind=st.sampled_from(["constant", "activations", "transposed"]),
    lanes=st.sampled_from([FULL, 65536]),
    level=st.sampled_from([0, 2]),
)
@settings(max_examples=20, deadline=None)
def test_their_cycles_are_planned(rows: int, depth: int, columns: int, kind: str, lanes: int, level: int) -> None:
    right = (columns, depth) if kind == "transposed" else (depth, columns)
    net = Net([(rows, depth)] + [right] * (kind != "constant"))
    operand = net.f32(*right) if kind == "constant" else net.inputs[1]
    bias = net.f32(columns) if kind == "constant" else None
    made = net.b.matmul(net.inputs[0], operand, bias, transpose_right=kind == "transposed")
    with BM1684X.local_memory(lanes), computations() as found:
        TARGET.compile([net.module([made])], level)
    check(found)


@pytest.mark.parametrize(
    ("make", "shape", "by_rows"),
    [
        (_weighted(8192, 64), (64, 8192), True),
        (_weighted(25088, 64), (64, 25088), True),
        (_weighted(25088, 2), (1, 25088), True),  # columns are long runs
        (_weighted(44000, 64), (64, 44000), False),  # its smallest tiles do not fit local memory
        (_weighted(768, 768), (384, 768), True),
        (_weighted(3072, 768), (197, 3072), True),
        (_weighted(96, 288), (3136, 96), True),
        (_weighted(1280, 1000), (1, 1280), True),  # sections of 16 columns are loaded four times slower than rows
        (_weighted(4096, 4096), (1, 4096), False),  # deep ones as long runs of each lane
        (_weighted(40, 30, transpose_left=True), (40, 64), False),
    ],
)
def test_rows_lie_in_lanes_where_that_is_quicker(make: Make, shape: tuple[int, ...], by_rows: bool) -> None:
    op = _op(make, (shape,))
    assert isinstance(TARGET.kernel_for(op).form(op), SingleMatmulKernel) == by_rows  # type: ignore[union-attr]


@pytest.mark.parametrize("shape", [(1, 70, 3, 40), (5, 49, 3, 32), (4, 3, 66, 24), (2, 130, 2, 20)])
def test_cycles_of_cutting_rows_into_heads_are_planned(shape: tuple[int, ...]) -> None:
    """Of one image and of several, there and back."""
    net = Net([shape])
    (x,) = net.inputs
    there = net.b.permute(net.b.add(x, x), order=(0, 2, 1, 3))
    module = net.module([net.b.permute(net.b.relu(there), order=(0, 2, 1, 3))])
    with computations() as found:
        TARGET.compile([module], 2)
    check(found)
    check_op(lambda net, x: net.b.permute(net.b.add(x, x), order=(0, 2, 1, 3)), shape)


@pytest.mark.parametrize(("heads", "by_rows"), [(2, False), (8, True)])
def test_each_head_loads_a_right_matrix_of_its_own(heads: int, by_rows: bool) -> None:
    """For two small ones that takes longer than sections; lanes are full with eight."""
    op = _op(_pair(), ((1, heads, 4, 16), (1, heads, 16, 32)))
    assert isinstance(TARGET.kernel_for(op).form(op), SingleMatmulKernel) == by_rows  # type: ignore[union-attr]


@pytest.mark.parametrize("more", [{}, {"transpose_right": True}])
def test_parts_of_rows_share_a_constant_right_operand(more: dict[str, Any]) -> None:
    """It is loaded once for all rows that fit beside it, and once for those of each part of its columns."""
    op = _op(_weighted(96, 128, **more), ((1, 256, 96),))
    kernel = TARGET.kernel_for(op)
    assert isinstance(kernel, DeviceKernel)

    def weights(rows: int, columns: int) -> int:
        grain = (1, 1, 64, 64)
        slices = slice_stripes([op], (1, 1, rows, columns), kernel.boxed, lambda value: True, lambda value: grain)
        assert slices is not None
        return len({stripe.work.inputs[1].contents for part in slices for stripe in part if stripe.work})

    assert (weights(4, 1), weights(1, 2), weights(4, 2)) == (1, 2, 2)
