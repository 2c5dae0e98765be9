"""Products with weights of 4 and 8 bits that have a scale and a zero point for each block of inputs."""

from __future__ import annotations

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ir.types import FROM_NUMPY
from bmcompiler.numeric.packed_weights import PackedWeights, groups_of, packed, row_bytes, unpacked
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.elements.linear_quant import DequantizeLinear
from bmcompiler.ops.places.shape import Permute

_BITS, _BYTES = (4, 8), ("i8", "u8")
_MIDDLE = {"i8": 128, "u8": 0}
"""What makes codes of 8 bits unsigned."""


@onnx_op("MatMulNBits", domain="com.microsoft")
def mat_mul_n_bits(node: Node, b: Builder) -> Value:
    """Weights (N, K) in blocks along K; of other zero points than bytes, and of groups in another order, as floats."""
    x, names, found = node.input(0), node.proto.input, weights_of(node)
    if isinstance(found, PackedWeights):
        weights = [b.weight(found.codes, names[1]), b.weight(found.scale, names[2])]
        weights += [] if found.zero_point is None else [b.weight(found.zero_point, names[3])]
        out = b.weight_only_matmul(_rows(b, x), *weights, bits=found.bits, group_size=found.group_size)
    else:
        out = b.matmul(_rows(b, x), b.weight(found, names[1]), transpose_right=True)
    out = b.add(out, node.input(5)) if node.has(5) else out
    return b.reshape(out, shape=(*x.shape[:-1], node.int("N"))) if out.type.rank != x.type.rank else out


def weights_of(node: Node) -> PackedWeights | np.ndarray:
    """The weights (N, K) of a MatMulNBits, as floats where zero points are no bytes or groups in another order.

    Raises UnsupportedError, FileFormatError, ShapeError.
    """
    node.ignore("accuracy_level")  # the least that sums must be computed in
    (depth, outputs), size, bits = (node.int("K"), node.int("N")), node.int("block_size"), node.int("bits", 4)
    if bits not in _BITS:
        raise UnsupportedError(f"weights of {bits} bits are not supported", remedy="quantize them to 4 or 8 bits")
    if min(depth, outputs, size) < 1:
        raise FileFormatError(f"K, N and block_size must be positive, got {depth}, {outputs}, {size}")
    blocks = groups_of(depth, size)
    codes = _sized(node, 1, (outputs, blocks * row_bytes(size, bits)))[:, : row_bytes(depth, bits)]
    scale, zero = _sized(node, 2, (outputs, blocks)), _zero_points(node, outputs, blocks, bits)
    place = _groups(node, depth, blocks, size)
    if place is None and (zero is None or zero.dtype == np.uint8):
        return PackedWeights(np.ascontiguousarray(codes), scale, zero, bits, size)
    place = np.arange(depth) // size if place is None else place
    exact = unpacked(codes, bits, depth).astype(np.float32)
    exact -= 2 ** (bits - 1) if zero is None else zero[:, place].astype(np.float32)
    return (exact * scale[:, place].astype(np.float32)).astype(scale.dtype)


def _rows(b: Builder, x: Value) -> Value:
    return x if x.type.rank > 1 else b.reshape(x, shape=(1, *x.shape))


def _sized(node: Node, index: int, shape: tuple[int, ...]) -> np.ndarray:
    """A constant that has these axes, or all its elements in one."""
    array = node.constant(index)
    if array.size != np.prod(shape):
        raise ShapeError(f"input {index} has shape {list(array.shape)}, which does not hold {list(shape)}")
    return array.reshape(shape)


def _zero_points(node: Node, outputs: int, blocks: int, bits: int) -> np.ndarray | None:
    """One per block: bytes, or floats where these are no bytes; None = the middle of the codes."""
    if not node.has(3):
        return None
    stated = node.constant(3)
    if stated.dtype == np.uint8:
        return np.ascontiguousarray(unpacked(_sized(node, 3, (outputs, row_bytes(blocks, bits))), bits, blocks))
    real = _sized(node, 3, (outputs, blocks))
    whole = (real >= 0) & (real < 2**bits) & (real == np.rint(real))
    return real.astype(np.uint8) if whole.all() else real


def _groups(node: Node, depth: int, blocks: int, size: int) -> np.ndarray | None:
    """The group of each weight, None where groups follow each other."""
    if not node.has(4):
        return None
    place = node.constant(4).reshape(-1)[:depth]
    if len(place) != depth or place.min() < 0 or place.max() >= blocks:
        raise FileFormatError(f"g_idx must name one of {blocks} groups for each of {depth} inputs")
    return None if np.array_equal(place, np.arange(depth) // size) else place


def by_packed(b: Builder, x: Value, right: Value, transposed: bool = False) -> Value | None:
    """x by a matrix that a dequantize_linear of constants makes in blocks along the depth; None for other matrices.

    `transposed`: its rows, not its columns, are what rows of x are multiplied with.
    """
    if isinstance(right.op, Permute) and right.op.order == (1, 0):
        right, transposed = right.op.operands[0], not transposed
    op = right.op
    if not isinstance(op, DequantizeLinear) or not op.in_blocks or op.axis != int(transposed):
        return None
    arrays = [b.module.weights[v.op.attributes["key"]] for v in op.operands if v.op is not None and v.op.name == WEIGHT]
    if len(arrays) < len(op.operands) or op.input.dtype not in _BYTES or x.dtype != right.dtype:
        return None
    arrays = [array if transposed else array.T for array in arrays]
    made = packed_blocks(arrays[0], arrays[1], arrays[2] if len(arrays) > 2 else None, op.block_size)
    names = [v.op.attributes["key"] for v in op.operands if v.op is not None]
    weights = [b.weight(made.codes, names[0]), b.weight(made.scale, names[1])]
    if made.zero_point is not None:
        weights.append(b.weight(made.zero_point, names[-1]))
    return b.weight_only_matmul(x, *weights, bits=made.bits, group_size=made.group_size)


def packed_blocks(codes: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, size: int) -> PackedWeights:
    """Weights (N, K) of codes of one byte, signed or not; of 4 bits where codes and zero points are of so few.

    Args:
        scale, zero: (N, G), of blocks of `size` along K, 0 for one block; no zero points are 0.
    """
    middle = _MIDDLE[FROM_NUMPY[codes.dtype.name]]
    wide = codes.astype(np.int16)
    points = np.zeros(scale.shape, np.int16) if zero is None else zero.astype(np.int16)
    low, bits = -8 if middle else 0, 8
    if low <= min(wide.min(), points.min()) and max(wide.max(), points.max()) < low + 16:
        middle, bits = -low, 4
    rows = packed((wide + middle).astype(np.uint8), bits)
    moved = (points + middle).astype(np.uint8)
    same = (moved == 2 ** (bits - 1)).all()
    return PackedWeights(rows, np.ascontiguousarray(scale), None if same else moved, bits, size)
