"""Packed weights, their quantizer, and the product with them to the bit."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.errors import ShapeError, UnsupportedError, VerifyError
from bmcompiler.files.mlir import load_module, save_module
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.numeric.fused import fused_product
from bmcompiler.numeric.halves import BF16, FP16, Half
from bmcompiler.numeric.packed_weights import PackedWeights, dequantized, packed, product, quantized, unpacked
from bmcompiler.ops.builder import Builder

HALVES: dict[str, tuple[Half, type]] = {"f16": (FP16, np.float16), "bf16": (BF16, ml_dtypes.bfloat16)}


def weights(seed: int, n: int, k: int, bits: int, group: int, dtype: str, *, zero: bool = True) -> PackedWeights:
    """Any codes, zero points and scales; those of 4 bits have zero points beyond what codes reach, as GPTQ's may."""
    rng = np.random.default_rng(seed)
    shape = n, -(-k // (group or k))
    codes = packed(rng.integers(0, 2**bits, (n, k), np.uint8), bits)
    scale = (rng.uniform(0.5, 2, shape) * 2.0 ** rng.integers(-12, 2, shape)).astype(HALVES[dtype][1])
    points = rng.integers(0, 256 if bits == 8 else 200, shape, np.uint8)
    return PackedWeights(codes, scale, points if zero else None, bits, group)


def one_by_one(x: np.ndarray, given: PackedWeights, dtype: str) -> np.ndarray:
    """The formula as it stands, every weight and every group by itself."""
    half, kind = HALVES[dtype]
    depth = x.shape[1]
    codes, size = unpacked(given.codes, given.bits, depth), given.group_size or depth
    w = np.empty((len(codes), depth), np.float32)
    for n in range(len(codes)):
        for k in range(depth):
            zero = 2 ** (given.bits - 1) if given.zero_point is None else int(given.zero_point[n, k // size])
            v = int(codes[n, k]) - zero
            v = max(v, -128) if given.bits == 4 else v
            w[n, k] = kind(np.float32(kind(v)) * np.float32(given.scale[n, k // size]))
    groups = [min(32, depth - k) for k in range(0, depth, 32)]
    sums = fused_product(x.astype(np.float32).T.copy(), w.T.copy(), groups, np.zeros((1, 1), np.float32))
    return half.narrow(sums)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1000), st.integers(1, 3), st.integers(1, 9), st.integers(1, 150), st.sampled_from((4, 8)),
    st.sampled_from((0, 16, 32, 37, 64, 128)), st.sampled_from(("f16", "bf16")), st.booleans(),
)  # fmt: skip
def test_products_are_the_formula_to_the_bit(
    seed: int, m: int, n: int, k: int, bits: int, group: int, dtype: str, zero: bool
) -> None:
    given = weights(seed, n, k, bits, group, dtype, zero=zero)
    x = np.random.default_rng(seed).normal(size=(m, k)).astype(HALVES[dtype][1])
    assert np.array_equal(product(x, given, dtype), one_by_one(x, given, dtype))


def test_many_outputs_are_made_in_blocks_that_change_nothing() -> None:
    given = weights(3, 70, 40000, 4, 64, "f16")
    x = np.random.default_rng(3).normal(size=(2, 40000)).astype(np.float16)
    rows = [product(x, PackedWeights(c[None], s[None], z[None], 4, 64), "f16") for c, s, z in zip(*given[:3])]
    assert np.array_equal(product(x, given, "f16"), np.concatenate(rows, axis=1))


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 1000), st.integers(1, 70), st.sampled_from((4, 8)), st.sampled_from((0, 32, 64, 5)), st.booleans(),
    st.floats(-3, 3), st.floats(1e-3, 1e3),
)  # fmt: skip
def test_weights_are_quantized_to_the_nearest_step_and_zeros_stay(
    seed: int, k: int, bits: int, group: int, symmetric: bool, offset: float, size: float
) -> None:
    rng = np.random.default_rng(seed)
    w = ((rng.normal(size=(5, k)) + offset) * size).astype(np.float32)  # an offset gives groups of one sign
    w[:, rng.integers(k)] = 0
    w[4] = 0
    made = quantized(w, bits, group, np.float32, symmetric=symmetric)
    back = dequantized(made, k, "f32")
    step = np.repeat(made.scale, group or k, axis=1)[:, :k]
    # half a step, and as much again at the ends where the zero point was rounded away from the real one
    assert (np.abs(back - w) <= step * (0.5001 if symmetric else 1.0001)).all()
    assert (back[w == 0] == 0).all()
    assert (made.zero_point is None) == symmetric


def test_codes_of_groups_of_one_sign_use_all_steps_from_zero_on() -> None:
    w = np.linspace(5, 6, 64, dtype=np.float32)[None]
    made = quantized(w, 4, 64, np.float16)
    assert made.zero_point is not None and made.zero_point.item() == 0
    assert np.abs(dequantized(made, 64, "f16").astype(np.float32) - w).max() <= 6 / 15 / 2 + 1e-2


def test_what_no_scale_holds_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="infinite or NaN"):
        quantized(np.array([[np.nan, 1]], np.float32), 4, 0, np.float16)
    with pytest.raises(UnsupportedError, match="beyond float16"):
        quantized(np.array([[3e6, 1]], np.float32), 4, 0, np.float16)


@given(st.integers(0, 100), st.integers(0, 9), st.sampled_from((4, 8)))
def test_packed_codes_come_back(seed: int, k: int, bits: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 2**bits, (3, k), np.uint8)
    assert np.array_equal(unpacked(packed(codes, bits), bits, k), codes)


def net(given: PackedWeights, x: TensorType) -> Module:
    """One product by constants."""
    b = Builder.new("net")
    operands = [b.weight(each, name) for each, name in zip(given[:3], ("w", "scale", "zero")) if each is not None]
    made = b.weight_only_matmul(b.input("x", x), *operands, bits=given.bits, group_size=given.group_size)
    module = b.outputs([made], ["y"])
    verify_module(module)
    return module


def test_products_are_those_that_reach_the_results() -> None:
    ones = PackedWeights(packed(np.full((5, 7), 9, np.uint8), 4), np.ones((5, 2), np.float32), None, 4, 4)
    module = net(ones, TensorType((2, 3, 7)))
    made = run_module(module, {"x": np.ones((2, 3, 7), np.float32)})["y"]
    assert made.sum() == module.main.ops[-2].products() == 2 * 3 * 7 * 5


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("bits", [4, 8])
def test_text_and_weights_file_hold_packed_weights(tmp_path: Path, dtype: str, bits: int) -> None:
    given = weights(1, 70, 96, bits, 32, dtype)
    module = net(given, TensorType((2, 3, 96), dtype))
    save_module(module, tmp_path / "a.mlir")
    back = load_module(tmp_path / "a.mlir")
    save_module(back, tmp_path / "b.mlir")
    assert (tmp_path / "a.mlir").read_bytes() == (tmp_path / "b.mlir").read_bytes()
    x = np.random.default_rng(1).normal(size=(2, 3, 96)).astype(HALVES[dtype][1])
    made = run_module(back, {"x": x})["y"]
    assert made.dtype == x.dtype
    want = product(x.reshape(6, 96), given, dtype)
    assert np.array_equal(made.view(np.uint16).reshape(6, 70), want)


def test_operands_that_do_not_fit_are_named() -> None:
    given, x = weights(1, 4, 64, 4, 32, "f16"), TensorType((1, 64), "f16")
    with pytest.raises(VerifyError, match="bits must be 4 or 8"):
        net(given._replace(bits=3), x)
    with pytest.raises(ShapeError, match=r"codes for 65 inputs must have shape \[4, 33\]"):
        net(given, TensorType((1, 65), "f16"))
    with pytest.raises(ShapeError, match=r"scale must have shape \[4, 1\]"):
        net(given._replace(group_size=64), x)
    with pytest.raises(VerifyError, match="scale must have the type of x"):
        net(given, TensorType((1, 64), "bf16"))
