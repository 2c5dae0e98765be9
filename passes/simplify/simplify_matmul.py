"""Matrix products in the forms that chips execute: two axes with a bias inside, or a 1x1 convolution."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter
from bmcompiler.ops.elements.elementwise import Add
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.ops.places.shape import Permute
from bmcompiler.passes.rewriting import PatternPass, PatternTable, activates, make, on, producer, rebuild, sole

_NHWC = (0, 2, 3, 1)


@dataclass(frozen=True)
class SimplifyMatmul(PatternPass):
    """Rewrite float matrix products with a constant right side.

    1. add of a matmul (read once, without an activation) and a constant of N numbers : bias of the matmul
    2. matmul(permute(x) to NHWC, weight)                        : permute(conv 1x1 of x)
    3. right side with leading axes of length 1                  : right side of two axes
    4. left side of three axes or more, right side of two        : matmul of two axes between reshapes
    5. matmul(permute(x) that swaps the last two axes)           : matmul of x with the other transpose_left
    """

    name = "simplify-matmul"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Add, self.bias),
            **on(Matmul, self.to_conv, self.squeeze_right, self.two_axes, self.transposed_left),
        }

    def bias(self, op: Add, rewriter: Rewriter) -> bool:
        """Rule 1."""
        for index in (0, 1):
            matmul, addend = sole(op.operands[index], Matmul), op.operands[1 - index]
            constant = self.constant(addend)
            if matmul is None or constant is None or not op.type.is_float or matmul.type.shape != op.type.shape:
                continue
            if activates(matmul):
                continue
            count = op.type.shape[-1]
            if constant.size != 1 and (constant.size != count or constant.shape[-1] != count):
                continue
            if matmul.bias is not None and self.constant(matmul.bias) is None:
                continue
            total = constant.ravel().repeat(count // constant.size)
            if matmul.bias is not None:
                total = total + self.constant(matmul.bias)
            value = self.weight(total, addend, op, rewriter, f"{op.label}.bias")
            fresh = rebuild(matmul, [*matmul.operands[:2], value], activation=op.activation)
            rewriter.replace_with(op, fresh)
            return True
        return False

    def to_conv(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 2."""
        permute, weight = producer(op.left, Permute), self.constant(op.right)
        if permute is None or tuple(permute.order) != _NHWC or weight is None or weight.ndim != 2:
            return False
        if op.transpose_left or not op.type.is_float:
            return False
        kernels = (weight if op.transpose_right else weight.T)[:, :, None, None]
        value = self.weight(kernels, op.right, op, rewriter, f"{op.label}.weight")
        conv = make("conv", [permute.operands[0], value, op.bias], {"activation": op.activation})
        rewriter.insert_before(op, conv, op)
        rewriter.replace_with(op, make("permute", [conv.result], {"order": _NHWC}, None, permute.location))
        return True

    def squeeze_right(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 3."""
        weight = self.constant(op.right)
        if weight is None or weight.ndim < 3 or prod(weight.shape[:-2]) != 1 or op.left.type.rank < weight.ndim:
            return False
        right = make("reshape", [op.right], {"shape": weight.shape[-2:]}, None, op.location)
        rewriter.insert_before(op, right)
        rewriter.replace_with(op, rebuild(op, [op.left, right.result, *op.operands[2:]]))
        return True

    def two_axes(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 4."""
        left, weight = op.left, self.constant(op.right)
        if weight is None or weight.ndim != 2 or left.type.rank < 3 or op.transpose_left:
            return False
        rows, depth = prod(left.shape[:-1]), left.shape[-1]
        flat = make("reshape", [left], {"shape": (rows, depth)}, None, op.location)
        product = rebuild(op, [flat.result, *op.operands[1:]])
        rewriter.insert_before(op, flat)
        rewriter.insert_before(op, product, op)
        rewriter.replace_with(op, make("reshape", [product.result], {"shape": op.type.shape}, None, op.location))
        return True

    def transposed_left(self, op: Matmul, rewriter: Rewriter) -> bool:
        """Rule 5."""
        permute = producer(op.left, Permute)
        if permute is None or not op.type.is_float:
            return False
        rank = permute.type.rank
        if tuple(permute.order) != (*range(rank - 2), rank - 1, rank - 2):
            return False
        fresh = rebuild(op, [permute.operands[0], *op.operands[1:]], transpose_left=not op.transpose_left)
        rewriter.replace_with(op, fresh, absorbed=[permute])
        return True
