"""Constants of a decoder that its graph holds as codes: what DequantizeLinear and GatherBlockQuantized read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bmcompiler.errors import ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.node import Node, axis_of
from bmcompiler.frontends.onnx.ops.packed_weights import packed_blocks
from bmcompiler.frontends.onnx.tensors import NARROW
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.packed_weights import PackedWeights, groups_of, unpacked

GATHERS = ("Gather", "GatherBlockQuantized")
"""Ops that take rows of a table."""


class Codes(NamedTuple):
    """(code - zero) * scale; each scale is of `size` codes along an axis, of one of all others.

    Attributes:
        codes: integers of one byte. scale, zero: with as many axes as the codes; zero is None where it is 0.
    """

    codes: Array
    scale: Array
    zero: Array | None
    axis: int
    size: int

    def floats(self) -> Array:
        """All elements, of the type of the scales."""
        whole = self.codes.astype(np.float32)
        if self.zero is not None:
            whole -= self._spread(self.zero).astype(np.float32)
        return (whole * self._spread(self.scale).astype(np.float32)).astype(self.scale.dtype)

    def _spread(self, parameter: Array) -> Array:
        if not self.size:
            return parameter
        return np.repeat(parameter, self.size, self.axis).take(range(self.codes.shape[self.axis]), self.axis)

    def matrix(self, transposed: bool) -> PackedWeights | None:
        """Weights (N, K), where each output has scales of blocks along K; None where it has others.

        transposed: codes are (N, K), else (K, N).
        """
        depth = int(transposed)
        if self.codes.ndim != 2 or not (self.axis == depth if self.size else self.scale.shape[depth] == 1):
            return None
        codes, scale, zero = self.codes, self.scale, self.zero
        if not self.size:  # one for each output, or for all
            shape = (codes.shape[0], 1) if transposed else (1, codes.shape[1])
            scale, zero = np.broadcast_to(scale, shape), None if zero is None else np.broadcast_to(zero, shape)
        if not transposed:
            codes, scale, zero = codes.T, scale.T, None if zero is None else zero.T
        return packed_blocks(codes, scale, zero, self.size)


def codes_of(node: Node) -> Codes:
    """Those of a DequantizeLinear of constants. Raises UnsupportedError, ShapeError."""
    codes, scale = _bytes(node.constant(0)), node.constant(1)
    zero = _bytes(node.constant(2)) if node.has(2) else None
    size = node.int("block_size", 0)
    axis = axis_of(node.int("axis", 1), codes.ndim) if scale.size > 1 else 0
    if not size:
        shape = [1] * codes.ndim
        if scale.size > 1:
            shape[axis] = codes.shape[axis]
        if scale.size not in (1, codes.shape[axis]):
            raise ShapeError(f"{scale.size} scales are none of {codes.shape[axis]} positions")
        scale, zero = scale.reshape(shape), None if zero is None else zero.reshape(shape)
    return _checked(Codes(codes, scale, zero, axis, size))


def _checked(found: Codes) -> Codes:
    """Whether blocks have a scale each. Raises ShapeError."""
    shape = list(found.codes.shape)
    if found.size:
        shape[found.axis] = groups_of(shape[found.axis], found.size)
    for each in (found.scale, found.zero):
        if found.size and each is not None and list(each.shape) != shape:
            raise ShapeError(f"scales and zero points of shape {list(each.shape)} should have {shape}")
    return found


def _bytes(array: Array) -> Array:
    wide = array.astype(NARROW.get(array.dtype.name, array.dtype))
    if wide.dtype not in (np.int8, np.uint8):
        raise UnsupportedError(f"codes of type {array.dtype} are not supported", remedy="quantize to 4 or 8 bits")
    return wide


def embedding_of(node: Node) -> Array:
    """The table (vocabulary, width) of a GatherBlockQuantized, as floats. Raises UnsupportedError, ShapeError."""
    bits, size, stored = node.int("bits", 4), node.int("block_size", 128), node.constant(0)
    if node.int("gather_axis", 0) or node.int("quantize_axis", 1) not in (1, -1) or stored.ndim != 2:
        raise UnsupportedError("a table of codes must be a matrix that has blocks along its rows")
    scale, packed = node.constant(2), stored.dtype == np.uint8
    if not packed:
        zero = _bytes(node.constant(3)) if node.has(3) else None
        return _checked(Codes(_bytes(stored), scale, zero, 1, size)).floats()
    width = stored.shape[1] * 8 // bits
    zero = unpacked(node.constant(3), bits, scale.shape[1]) if node.has(3) else None
    zero = np.full(scale.shape, 2 ** (bits - 1), np.uint8) if zero is None else zero
    return _checked(Codes(unpacked(stored, bits, width), scale, zero, 1, size)).floats()
