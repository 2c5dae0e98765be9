"""Matrix products whose constant stands on the left, or that read transposed operands."""

from __future__ import annotations

from math import prod

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.legalize_rules.base import Draft, legalizes


@legalizes("matmul")
def constant_left(op: TensorOp, draft: Draft) -> Value | None:
    """constant (M, K) times x (..., K, N): a 1x1 convolution over N positions of K channels."""
    weight = draft.constant(op.left)
    if weight is None or weight.ndim != 2 or op.bias is not None or op.right.type.rank < 2:
        return None
    kernels = draft.weight((weight.T if op.transpose_left else weight)[:, :, None, None].copy(), "weight")
    x = _swapped(op.right, draft) if op.transpose_right else op.right
    batch, (depth, columns) = prod(x.shape[:-2]), x.shape[-2:]
    product = draft.emit("conv", [draft.reshape(x, (batch, depth, 1, columns)), kernels])
    return draft.reshape(product, op.type.shape)


@legalizes("matmul")
def transposed_before(op: TensorOp, draft: Draft) -> Value | None:
    """A transposed left operand becomes a permute before the product."""
    if not op.transpose_left:
        return None
    left = _swapped(op.left, draft)
    return draft.emit("matmul", [left, *op.operands[1:]], transpose_right=op.transpose_right)


@legalizes("matmul")
def bias_after(op: TensorOp, draft: Draft) -> Value | None:
    """The bias of a product of two computed tensors is added afterwards."""
    if op.bias is None or draft.constant(op.right) is not None:
        return None
    modes = {"transpose_left": op.transpose_left, "transpose_right": op.transpose_right}
    return draft.emit("add", [draft.emit("matmul", op.operands[:2], **modes), op.bias])


def _swapped(x: Value, draft: Draft) -> Value:
    rank = x.type.rank
    return draft.emit("permute", [x], order=(*range(rank - 2), rank - 1, rank - 2))
