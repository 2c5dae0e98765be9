"""In which types a bundle computes and holds its weights, and linear layers in them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.ir import Value
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.llm.linear import LinearLayer
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.packed_weights import PackedWeights, quantized
from bmcompiler.ops.builder import Builder

FLOATS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Precision:
    """Types of a bundle.

    Attributes:
        dtype: "f32", "f16" or "bf16", of activations, caches and all weights that are not quantized.
        bits: 4 or 8 for the weights of a layer's products, None for `dtype`. Quantized checkpoints keep their own.
        head_bits: the same for the product that gives the logits.
        group_size: inputs with a scale and a zero point in common, 0 for all. symmetric: zero points in the middle.

    Raises UsageError.
    """

    dtype: str = "f16"
    bits: int | None = None
    head_bits: int | None = None
    group_size: int = 64
    symmetric: bool = False

    @property
    def name(self) -> str:
        """As the vendor's tools say it: w4f16, bf16."""
        return f"w{self.bits}{self.dtype}" if self.bits else self.dtype

    def __post_init__(self) -> None:
        if self.dtype not in FLOATS:
            raise UsageError(f"unknown type '{self.dtype}' of a language model", remedy=f"choose {', '.join(FLOATS)}")
        if self.bits not in (4, 8, None) or self.head_bits not in (4, 8, None):
            raise UsageError(f"weights have 4 or 8 bits or are floats, got {self.bits} and {self.head_bits}")
        if self.group_size < 0:
            raise UsageError(f"a group holds a positive number of inputs, or 0 for all, got {self.group_size}")


def in_precision(linear: LinearLayer, precision: Precision, bits: int | None, name: str) -> LinearLayer:
    """The layer as a bundle holds it: quantized to the nearest codes, or as floats or codes of the bundle's type.

    Raises UnsupportedError: a weight is not finite, or too large for the type.
    """
    dtype = numpy_dtype(precision.dtype)
    if isinstance(linear.weight, PackedWeights):
        return replace(linear, weight=linear.weight._replace(scale=linear.weight.scale.astype(dtype)))
    if bits is None:
        return replace(linear, weight=narrowed(linear.weight, precision.dtype, f"{name}.weight"))
    try:
        codes = quantized(linear.dense(), bits, precision.group_size, dtype, symmetric=precision.symmetric)
    except UnsupportedError as error:
        raise error.located(layer=name) from None
    return replace(linear, weight=codes)


def product(b: Builder, x: Value, linear: LinearLayer, dtype: str, name: str) -> Value:
    """x (..., K) by a layer, (..., N); the codes of quantized weights stay codes."""
    bias = None if linear.bias is None else b.weight(narrowed(linear.bias, dtype, f"{name}.bias"), f"{name}.bias")
    weight = linear.weight
    if not isinstance(weight, PackedWeights):
        values = [x, b.weight(weight, f"{name}.weight")]
        return b.matmul(*values, *([] if bias is None else [bias]), transpose_right=True)
    if linear.order is not None:
        order = b.weight(np.asarray(linear.order, np.int32), f"{name}.order")
        x = b.gather(x, order, axis=x.type.rank - 1)
    codes = [b.weight(weight.codes, f"{name}.codes"), b.weight(weight.scale, f"{name}.scale")]
    if weight.zero_point is not None:
        codes.append(b.weight(weight.zero_point, f"{name}.zero_point"))
    out = b.weight_only_matmul(x, *codes, bits=weight.bits, group_size=weight.group_size)
    return out if bias is None else b.add(out, bias)


def narrowed(values: Array, dtype: str, name: str) -> Array:
    """Floats in the type of a bundle. Raises UnsupportedError where finite ones are beyond it."""
    with np.errstate(over="ignore"):
        out = values.astype(numpy_dtype(dtype), copy=False)
    if dtype == "f16" and values.dtype != out.dtype and np.isinf(out).any() and not np.isinf(values).any():
        raise UnsupportedError(f"tensor '{name}' has values beyond f16", remedy="choose bf16")
    return out
