"""Packed weights on chips and in types that have no product by them."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.numeric.packed_weights import dequantized, quantized
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.layers.weight_only import WeightOnlyMatmul
from bmcompiler.passes.support.dequantize_weights import DequantizeWeights
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target
from bmcompiler.testing import check_op

WEIGHTS = np.random.default_rng(0).normal(size=(40, 70)).astype(np.float32)
CHIPS = [
    (chip, precision) for chip in ("bm1880", "bm1684", "bm1684x", "dv700") for precision in find_target(chip).precisions
]


def make(b: Builder, x: object) -> object:
    packed = quantized(WEIGHTS, 4, 32, np.float32)
    operands = [b.weight(each, name) for each, name in zip(packed[:3], ("w", "s", "z")) if each is not None]
    return b.weight_only_matmul(x, *operands, bits=4, group_size=32)


@pytest.mark.parametrize("chip, precision", CHIPS)
def test_every_chip_and_type_computes_the_layer_on_the_device(chip: str, precision: str) -> None:
    checked = check_op(make, [(2, 70)], target=chip, quantize=precision, seeds=1, close=0.1, on_device=False)
    rows = [row for row in checked.result.rows if "matmul" in row.kind]
    assert rows and all(row.where == chip for row in rows)
    packed = [op for op in checked.result.module.walk() if isinstance(op, WeightOnlyMatmul)]
    assert bool(packed) == (chip == "bm1684x" and precision in ("f16", "bf16"))


@pytest.mark.parametrize("dtype, kind", [("f32", np.float32), ("f16", np.float16)])
def test_floats_are_those_that_the_op_multiplies_by(dtype: str, kind: type) -> None:
    b, packed = Builder.new("net"), quantized(WEIGHTS, 8, 0, kind)
    operands = [b.weight(each, name) for each, name in zip(packed[:3], ("w", "s", "z")) if each is not None]
    made = b.weight_only_matmul(b.input("x", TensorType((3, 70), dtype)), *operands, bits=8)
    module: Module = b.outputs([made], ["y"])
    x = {"x": np.random.default_rng(1).normal(size=(3, 70)).astype(kind)}
    before = run_module(module, x)["y"]
    assert DequantizeWeights().run(module, PassContext(target=find_target("bm1684"))).modified
    verify_module(module)
    (op,) = (op for op in module.walk() if isinstance(op, Matmul))
    assert np.array_equal(module.weights[op.right.op.attributes["key"]], dequantized(packed, 70, dtype))  # type: ignore
    np.testing.assert_allclose(run_module(module, x)["y"], before, rtol=2e-3, atol=2e-3)


def test_nothing_is_taken_apart_for_no_target() -> None:
    b = Builder.new("net")
    module = b.outputs([make(b, b.input("x", TensorType((2, 70))))], ["y"])  # type: ignore[list-item]
    assert not DequantizeWeights().run(module, PassContext()).modified
