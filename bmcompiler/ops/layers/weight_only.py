"""Products with weights of few bits, which are unpacked where they are multiplied."""

from __future__ import annotations

from bmcompiler.ir import TensorType
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.numeric.arrays import Array, Bytes
from bmcompiler.numeric.packed_weights import TYPES, PackedWeights, dequantized, groups_of, product, row_bytes
from bmcompiler.ops.base import TensorOp, attr, operand, optional_operand, tensorop

_BITS = (4, 8)
_FLOATS = ("f32", *TYPES)


@tensorop("weight_only_matmul")
class WeightOnlyMatmul(TensorOp):
    """out[..., n] = sum_k x[..., k] * w[n, k] with w[n, k] = (code[n, k] - zero_point[n, k // g]) * scale[n, k // g].

    %y = "tensorop.weight_only_matmul"(%x, %w, %s, %z) {bits = 4, group_size = 64}
         : (tensor<1x1x256xf16>, tensor<96x128xui8>, tensor<96x4xf16>, tensor<96x4xui8>) -> tensor<1x1x96xf16>

    x: (..., K), two axes or more, f32, f16 or bf16; out has its type. weight: u8 codes, (N, ceil(K * bits / 8)), rows
    as `numeric.packed_weights.PackedWeights` has them: of 4 bits two in a byte, the even k in the low half. scale:
    (N, G) of the type of x, G = ceil(K / g). zero_point: u8 (N, G); absent it is 2**(bits - 1). group_size: g, any
    number from 1 on; the last group may be shorter; 0 is one group of all K. A bias is an `add` behind the op.

    To the bit, for f16 and bf16 (bm1684x-llm.md 7.1): v = code - zero_point, at least -128 for 4 bits; w = half(v *
    scale), the product in f32; acc = 0 in f32; for each 32 ascending k acc = acc + FUSED32(w * x) (bm1684x-cube.md 4);
    out = half(acc). K is never split, so that other rows of x change nothing. For f32 w and the sums are numpy's.
    `numeric.packed_weights.quantized` makes the operands from floats.
    """

    x = operand(elements=_FLOATS)
    weight = operand(2, elements=("u8",))
    scale = operand(2, elements=_FLOATS)
    zero_point = optional_operand(2, elements=("u8",))
    bits = attr(int)
    group_size = attr(int, 0)
    affine = True
    weight_operands = ("weight", "scale", "zero_point")

    def infer(self) -> TensorType:
        if self.x.type.rank < 2:
            raise self.shape_error(f"x needs 2 axes or more, got {list(self.x.shape)}")
        if self.bits not in _BITS:
            raise self.invalid(f"bits must be 4 or 8, got {self.bits}")
        if self.group_size < 0:
            raise self.invalid(f"group_size must be positive, or 0 for one group, got {self.group_size}")
        (*outer, depth), outputs = self.x.shape, self.weight.shape[0]
        if self.weight.shape[1] != row_bytes(depth, self.bits):
            wanted = [outputs, row_bytes(depth, self.bits)]
            raise self.shape_error(f"codes for {depth} inputs must have shape {wanted}, got {list(self.weight.shape)}")
        wanted = [outputs, groups_of(depth, self.group_size)]
        for name, value in (("scale", self.scale), ("zero_point", self.zero_point)):
            if value is not None and list(value.shape) != wanted:
                raise self.shape_error(f"{name} must have shape {wanted}, got {list(value.shape)}")
        return TensorType((*outer, outputs), self.x.dtype)

    def evaluate(self, x: Array, weight: Bytes, scale: Array, zero_point: Bytes | None = None) -> Array:
        dtype, packed = self.x.dtype, PackedWeights(weight, scale, zero_point, self.bits, self.group_size)
        rows = x.reshape(-1, x.shape[-1])
        if dtype not in TYPES:
            return (rows @ dequantized(packed, x.shape[-1], dtype).T).reshape(self.type.shape)
        return product(rows, packed, dtype).view(numpy_dtype(dtype)).reshape(self.type.shape)

    def check(self) -> None:
        if self.scale.dtype != self.x.dtype:
            raise self.invalid(f"scale must have the type of x, {self.x.dtype}, got {self.scale.dtype}")

    def products(self) -> int:
        return self.type.size * self.x.shape[-1]
