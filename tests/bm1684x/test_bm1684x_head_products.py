"""Products with keys and values as a cache has them: the bits of evaluation, and of products of what permutes moved."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from bm1684x_nets import BM1684X, FULL
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bmcompiler.analysis.profile import analysis_of
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.backends.lanes.kernels.sums.product import MOST_PRODUCTS
from bmcompiler.driver import compile_readers
from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.llm.groups import BundleOptions, module_options
from bmcompiler.ops.builder import Builder

BUS = 54
"""Bytes that strided loads move in a cycle."""


def product(sizes: tuple[int, int, int, int, int], width: int, dtype: str, transposed: bool) -> Module:
    """A net of one; sizes: (A, B, heads, rows, tokens)."""
    a, b, heads, rows, tokens = sizes
    net = Builder.new("net")
    left = net.input("left", TensorType((a, b, rows, width if transposed else tokens)))
    right = net.input("right", TensorType((1, tokens, heads, width)))
    if dtype != "f32":
        left, right = (net.cast(each, dtype=dtype) for each in (left, right))
    made = net.head_matmul(left, right, transpose_right=transposed)
    module = net.outputs([made if dtype == "f32" else net.cast(made, dtype="f32")], ["y"])
    verify_module(module)
    return module


def drawn(module: Module, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(size=value.shape).astype(np.float32)
        for name, value in zip(module.main.input_names, module.main.arguments)
    }


def test_as_many_products_as_may_be_are_made_inside_local_memory() -> None:
    for count in (MOST_PRODUCTS, MOST_PRODUCTS + 1):
        (op,) = (op for op in product((1, count, 1, 2, 3), 4, "f16", True).main.ops if op.name.endswith("head_matmul"))
        kernel = TARGET.kernel_for(op)
        work = kernel.whole(op)  # type: ignore[union-attr]
        assert (work is not None) == (count == MOST_PRODUCTS)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 4), st.booleans(), st.integers(1, 90), st.integers(1, 150), st.integers(1, 140),
    st.sampled_from(("f16", "bf16")), st.booleans(), st.sampled_from((FULL, FULL, 16384)), st.sampled_from((0, 2)),
)  # fmt: skip
@example(16, 1, True, 1, 513, 128, "f16", True, FULL, 2)
@example(16, 1, True, 1, 513, 128, "f16", False, 16384, 2)
@example(2, 6, True, 100, 70, 64, "bf16", False, FULL, 2)
def test_programs_give_the_bits_of_evaluation(
    a: int,
    b: int,
    grouped: bool,
    rows: int,
    tokens: int,
    width: int,
    dtype: str,
    transposed: bool,
    lanes: int,
    opt: int,
) -> None:
    module = product((a, b, a if grouped else a * b, rows, tokens), width, dtype, transposed)
    with BM1684X.local_memory(lanes):
        BM1684X.check(module, inputs=drawn(module), level=opt, device=lanes == FULL)


@pytest.mark.parametrize("transposed", [True, False])
def test_sums_are_those_of_a_product_of_permuted_heads(transposed: bool) -> None:
    module = product((2, 3, 2, 5, 70), 32, "f16", transposed)
    inputs = drawn(module)
    b = Builder.new("net")
    left, right = (b.cast(b.input(name, TensorType(x.shape)), dtype="f16") for name, x in inputs.items())
    heads = b.reshape(b.permute(right, order=[0, 2, 1, 3]), shape=[2, 1, 70, 32])
    made = b.cast(b.matmul(left, heads, transpose_right=transposed), dtype="f32")
    expected = run_module(b.outputs([made], ["y"]), inputs, target=TARGET)["y"]
    np.testing.assert_array_equal(run_module(module, inputs, target=TARGET)["y"], expected)
    np.testing.assert_allclose(run_module(module, inputs)["y"], expected, rtol=2e-3, atol=2e-3)


def test_heads_take_the_time_of_their_bytes() -> None:
    read = partial(product, (32, 1, 32, 1, 513), 128, "f32", True)
    result = compile_readers([read], module_options(BundleOptions(check="never"), "block_cache_0"))
    analysis = analysis_of("bm1684x", result.model)
    assert analysis is not None
    products = 32 * 516
    assert analysis.timing().cycles <= 1.02 * (2 * 513 * 32 * 128 / BUS + products)


@pytest.mark.parametrize(
    "left, right, wrong",
    [
        ((2, 3, 4, 5), (1, 7, 4, 5), "share"),
        ((2, 3, 4, 5), (1, 7, 2, 6), "columns, heads, 5"),
        ((2, 3, 4, 5), (2, 7, 2, 5), "columns, heads, 5"),
    ],
)
def test_heads_that_do_not_fit_are_a_sentence(left: tuple[int, ...], right: tuple[int, ...], wrong: str) -> None:
    b = Builder.new("net")
    queries, keys = b.input("q", TensorType(left)), b.input("k", TensorType(right))
    with pytest.raises(BMError, match=wrong):
        b.head_matmul(queries, keys, transpose_right=True)
