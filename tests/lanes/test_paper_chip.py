"""The house of lane chips stands on nothing of a chip: kernels on one with other lanes, layouts and arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paper_chip import CHIP, MACHINE, Array, PaperBuild

from bmcompiler.backends.lanes.kernels.base import LocalKernel
from bmcompiler.backends.lanes.kernels.functions.activation import ChannelKernel, FunctionKernel
from bmcompiler.backends.lanes.kernels.functions.compare import CompareKernel, WhereKernel
from bmcompiler.backends.lanes.kernels.functions.convert import CastKernel
from bmcompiler.backends.lanes.kernels.functions.elementwise import BinaryKernel
from bmcompiler.backends.lanes.kernels.sums.norm import LastAxesNormKernel, LrnKernel
from bmcompiler.backends.lanes.kernels.sums.reduce import CumulateKernel, ReduceKernel
from bmcompiler.backends.lanes.kernels.sums.softmax import SoftmaxKernel
from bmcompiler.codegen.tiling import TileWork, boxes
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder

KINDS: tuple[type[LocalKernel[Any]], ...] = (
    FunctionKernel,
    ChannelKernel,
    BinaryKernel,
    CompareKernel,
    WhereKernel,
    CastKernel,
    SoftmaxKernel,
    LastAxesNormKernel,
    LrnKernel,
    ReduceKernel,
    CumulateKernel,
)
KERNELS = {op: kind(MACHINE) for kind in KINDS for op in kind.ops}
SHAPE = st.one_of(
    st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    st.sampled_from([(1, 13, 5, 7), (2, 3, 40, 60), (33, 17), (400,)]),
)
property_test = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
FUNCTIONS = ["sigmoid", "tanh", "relu", "exp", "erf", "sin", "floor", "softplus", "hard_swish"]
Make = Callable[..., Value]


def run(work: TileWork, build: PaperBuild) -> None:
    """Load, compute, store one tile; its areas lie one after the other."""
    at, places = 0, []
    for size in (*(b.lane_bytes for b in (*work.inputs, *work.outputs)), *work.scratch):
        places.append(at)
        at += MACHINE.tiler.rounded(size)
    assert at <= CHIP.lmem_size
    ins, rest = places[: len(work.inputs)], places[len(work.inputs) :]
    outs, scratch = rest[: len(work.outputs)], rest[len(work.outputs) :]
    for buffer, place in zip(work.inputs, ins):
        buffer.transfer(build, place)
    work.compute(build, ins, outs, scratch)
    for buffer, place in zip(work.outputs, outs):
        buffer.transfer(build, place)


def check(make: Make, *arrays: Array) -> None:
    """All tiles of an op on the chip against `evaluate` of its kernel, and that against the op's meaning."""
    b = Builder.new("net")
    dtypes = [{"f": "f32", "i": "i32", "u": "u8"}[a.dtype.kind] for a in arrays]
    inputs = [b.input(f"x{i}", TensorType(a.shape, dtype)) for i, (a, dtype) in enumerate(zip(arrays, dtypes))]
    op: Any = make(b, *inputs).op
    kernel = KERNELS[type(op)]
    assert kernel.unsupported_reason(op) is None
    result = np.zeros(op.type.shape, op.type.numpy)
    build = PaperBuild({**dict(zip(op.operands, arrays)), op.result: result})
    tiling = kernel.tiling(op)
    assert tiling is not None
    with np.errstate(all="ignore"):
        for box in boxes(kernel.grid(op), tiling):
            run(kernel.work(op, box), build)
        expected, meant = kernel.evaluate(op, *arrays), op.evaluate(*arrays)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_allclose(result, meant, rtol=2e-4, atol=2e-5)


def floats(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).uniform(-4, 4, shape).astype(np.float32)


@property_test
@given(SHAPE, st.sampled_from(FUNCTIONS), st.integers(0, 99))
def test_functions(shape: tuple[int, ...], name: str, seed: int) -> None:
    check(lambda b, x: getattr(b, name)(x), floats(seed, *shape))


@property_test
@given(SHAPE, st.data(), st.sampled_from(["add", "sub", "mul", "max", "min", "div"]), st.integers(0, 99))
def test_operands_that_broadcast(shape: tuple[int, ...], data: st.DataObject, name: str, seed: int) -> None:
    other = tuple(data.draw(st.sampled_from([1, size])) for size in shape)
    divisor = np.abs(floats(seed + 1, *other)) + np.float32(0.5)
    check(lambda b, x, y: getattr(b, name)(x, y), floats(seed, *shape), divisor)


@property_test
@given(SHAPE, st.data(), st.sampled_from(["sum", "mean", "max", "l2", "log_sum_exp"]), st.integers(0, 99))
def test_reductions(shape: tuple[int, ...], data: st.DataObject, method: str, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    check(lambda b, x: b.reduce(x, method=method, axes=(axis,), keepdims=False), np.abs(floats(seed, *shape)))


@pytest.mark.parametrize("shape", [(2, 19, 3, 4), (30, 50)])
def test_kernels_along_axes(shape: tuple[int, ...]) -> None:
    x, last = floats(1, *shape), shape[-1:]
    check(lambda b, x: b.softmax(x, axis=1), x)
    check(lambda b, x: b.cumulate(x, axis=1, method="sum", reverse=True), x)
    check(lambda b, x, s, o: b.layer_norm(x, s, o, axis=len(shape) - 1), x, floats(2, *last), floats(3, *last))
    check(lambda b, x, s: b.prelu(x, s, axis=1), x, floats(4, shape[1]))


def test_choices_and_integers() -> None:
    x, y = floats(5, 2, 11, 3), floats(6, 2, 11, 3)
    check(lambda b, x, y: b.compare(x, y, method="less_equal"), x, y)
    check(lambda b, x: b.cast(x, dtype="i32", truncate=True), 100 * x)
    check(lambda b, n: b.cast(n, dtype="f32"), np.arange(-(2**31), 2**31, 2**25 + 77, np.int64).astype(np.int32))
    check(lambda b, n: b.cast(n, dtype="f32"), np.arange(256).astype(np.uint8))


def test_channels_that_are_turned_in_local_memory() -> None:
    x = floats(7, 2, 11, 2, 4)
    b = Builder.new("net")
    op: Any = b.lrn(b.input("x", TensorType(x.shape, "f32")), size=5, alpha=1e-2, beta=0.75, k=1.0).op
    kernel, result = KERNELS[type(op)], np.zeros_like(x)
    work = kernel.whole(op)
    assert work is not None
    build = PaperBuild({op.operands[0]: x, op.result: result})
    with np.errstate(all="ignore"):
        run(work, build)
        np.testing.assert_array_equal(result, kernel.evaluate(op, x))
