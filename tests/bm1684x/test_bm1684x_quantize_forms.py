"""What kernels that quantize and dequantize take: each thing that they ask for, by itself."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.ir import Quant, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.target import find_target, unsupported_reason

SHAPE = (2, 3, 4, 5)
ONE, EACH = Quant(0.5), Quant(0.75, 0, (0.25, 0.5, 0.75), 1)


def refused(value: Value) -> bool:
    assert value.op is not None
    return unsupported_reason(find_target("bm1684x"), value.op) is not None


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16"])
def test_integers_with_one_scale_become_floats(dtype: str) -> None:
    b = Builder.new("net")
    kind = TensorType(SHAPE, dtype, ONE)
    assert not refused(b.dequantize(b.input("x", kind)))
    assert refused(b.dequantize(b.weight(np.ones(SHAPE, kind.numpy), "w", kind)))
    assert refused(b.dequantize(b.input("y", TensorType(SHAPE, dtype, EACH))))


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16"])
def test_floats_become_integers_with_one_scale(dtype: str) -> None:
    b = Builder.new("net")
    kind = TensorType(SHAPE, dtype, ONE)
    x = b.input("x", TensorType(SHAPE, "f32"))
    assert not refused(b.quantize(x, out=kind, rounding="away"))
    assert refused(b.quantize(x, out=kind, rounding="even"))
    assert refused(b.quantize(x, out=TensorType(SHAPE, dtype, EACH), rounding="away"))
    assert refused(b.quantize(b.weight(np.ones(SHAPE, np.float32), "w"), out=kind, rounding="away"))
