"""Products with packed weights: the bits of evaluation for any sizes, and the bus is never idle while they arrive."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from bm1684x_nets import BM1684X, FULL
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.numeric.packed_weights import PackedWeights, packed, quantized
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.layers.weight_only import WeightOnlyMatmul

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
BUS = 54
"""Bytes that strided loads move in a cycle."""


def drawn(seed: int, n: int, k: int, bits: int, group: int, dtype: str, zero: bool) -> PackedWeights:
    """Any codes, zero points and scales."""
    rng = np.random.default_rng(seed)
    shape = n, -(-k // (group or k))
    scale = (rng.uniform(0.5, 2, shape) * 2.0 ** rng.integers(-9, -3, shape)).astype(TYPES[dtype])
    points = rng.integers(0, 2**bits + (bits == 4) * 150, shape, np.uint8 if bits == 8 else np.int64).astype(np.uint8)
    codes = packed(rng.integers(0, 2**bits, (n, k), np.uint8), bits)
    return PackedWeights(codes, scale, points if zero else None, bits, group)


def product(given: PackedWeights, shape: tuple[int, ...], dtype: str) -> Module:
    """A net of one, f32 around it."""
    b = Builder.new("net")
    operands = [b.weight(each, name) for each, name in zip(given[:3], ("w", "scale", "zero")) if each is not None]
    x = b.input("x", TensorType(shape))
    x = x if dtype == "f32" else b.cast(x, dtype=dtype)
    made = b.weight_only_matmul(x, *operands, bits=given.bits, group_size=given.group_size)
    module = b.outputs([made if dtype == "f32" else b.cast(made, dtype="f32")], ["y"])
    verify_module(module)
    return module


def packed_weights(b: Builder, x: Value) -> Value:
    """A layer of 4 bits and one of 8, whose last groups are shorter."""
    for bits in (4, 8):
        given = quantized(normal(bits, 150, x.shape[-1]) / 10, bits, 64, np.float32)
        operands = [b.weight(each, name) for each, name in zip(given[:3], ("w", "scale", "zero")) if each is not None]
        x = b.weight_only_matmul(x, *operands, bits=bits, group_size=64)
    return x


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 1000), st.integers(1, 150), st.integers(1, 300), st.integers(1, 500), st.sampled_from((4, 8)),
    st.sampled_from((0, 16, 32, 37, 64, 128)), st.sampled_from(("f16", "bf16")), st.booleans(),
    st.sampled_from((FULL, FULL, 24576)), st.sampled_from((0, 2)),
)  # fmt: skip
@example(1, 1, 700, 1, 4, 0, "f16", True, FULL, 2)
@example(2, 1, 1, 129, 4, 64, "bf16", True, FULL, 2)
@example(3, 300, 150, 64, 8, 32, "f16", True, FULL, 2)
@example(4, 3, 70, 2500, 4, 37, "f16", True, FULL, 2)  # unpacked in two pieces
@example(5, 130, 3, 4200, 8, 0, "bf16", False, FULL, 2)
def test_programs_give_the_bits_of_evaluation(
    seed: int, m: int, n: int, k: int, bits: int, group: int, dtype: str, zero: bool, lanes: int, level: int
) -> None:
    module = product(drawn(seed, n, k, bits, group, dtype, zero), (1, m, k), dtype)
    with BM1684X.local_memory(lanes):
        BM1684X.check(module, inputs={"x": normal(seed, 1, m, k)}, level=level, device=lanes == FULL)


@pytest.mark.parametrize("rows", [1, 70, 190])
def test_many_shares_of_constants_take_turns(rows: int) -> None:
    module = product(drawn(1, 3000, 256, 4, 64, "f16", True), (rows, 256), "f16")
    (op,) = (op for op in module.walk() if isinstance(op, WeightOnlyMatmul))
    whole = TARGET.kernel_for(op).whole(op)  # type: ignore[union-attr]
    assert whole is not None and whole.stream is not None and len(whole.stream.steps) > 3
    BM1684X.check(module, inputs={"x": normal(1, rows, 256)})


def test_zeros_and_infinities_of_scales_are_those_of_the_chip() -> None:
    given = drawn(3, 70, 96, 4, 32, "f16", True)
    given.scale[:8, 0] = np.array([0, 6e-8, 1e-6, 6e4, np.inf, -np.inf, np.nan, -0.0], np.float16)
    BM1684X.check(product(given, (2, 96), "f16"), inputs={"x": normal(3, 2, 96)})


@pytest.mark.parametrize("n, k", [(4096, 4096), (11008, 4096), (4096, 11008), (8960, 1536), (151, 1536)])
def test_one_token_takes_the_time_of_its_weights(n: int, k: int) -> None:
    """Of a net of one product, the start and the end of everything with it; small ones have start and end only."""
    rng = np.random.default_rng(0)
    given = quantized(rng.normal(size=(n, k)).astype(np.float32), 4, 64, np.float32)
    result = bmcompiler.compile_module(product(given, (1, k), "f32"), target="bm1684x", quantize="f16", check="never")
    assert [row.reason for row in result.rows if row.where == "cpu"] == []
    analysis = analysis_of("bm1684x", result.model)
    assert analysis is not None
    moved = n * (given.codes.shape[1] + 3 * given.scale.shape[1])
    assert analysis.timing().cycles <= 1.03 * moved / BUS + (1500 if n < 1000 else 0)


def test_other_rows_change_no_bit_of_a_row() -> None:
    given = drawn(5, 200, 320, 4, 64, "bf16", True)
    x = normal(5, 77, 320)
    together = run_module(product(given, (77, 320), "bf16"), {"x": x}, target=TARGET)["y"]
    alone = run_module(product(given, (1, 320), "bf16"), {"x": x[40:41]}, target=TARGET)["y"]
    assert np.array_equal(together[40:41], alone)


def test_programs_of_other_numbers_of_rows_share_their_constants() -> None:
    given = drawn(6, 300, 256, 4, 64, "f16", True)
    stored = []
    for rows in (1, 200):
        compiled = TARGET.compile([product(given, (rows, 256), "f16")], 2)
        assert isinstance(compiled.model, Bm168xModel)
        stored.append(bytes(compiled.model.nets[0].stages[0].coefficients))
    assert stored[0] == stored[1]
