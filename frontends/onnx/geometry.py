"""Windows, strides and paddings as ONNX states them, for convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.frontends.onnx.node import Node, choice

if TYPE_CHECKING:
    from bmcompiler.ir import Value
    from bmcompiler.ops.builder import Builder

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def spatial_axes(shape: Sequence[int]) -> int:
    """1, 2 or 3: the number of spatial axes. Raises UnsupportedError for any other number."""
    count = len(shape) - 2
    if count not in (1, 2, 3):
        raise UnsupportedError(f"input {list(shape)} has {count} spatial axes. Supported: 1, 2 and 3")
    return count


def per_axis(node: Node, name: str, count: int, default: Sequence[int], least: int = 1) -> tuple[int, ...]:
    """A list attribute with `count` entries of `least` or more. Raises FileFormatError."""
    values = node.ints(name, default)
    if len(values) != count or any(not least <= v < 2**31 for v in values):
        raise FileFormatError(f"attribute '{name}' must be {count} numbers of {least} or more, got {list(values)}")
    return values


def paddings(
    node: Node, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """(before, after) per spatial axis, from `pads` or `auto_pad`.

    SAME_UPPER and SAME_LOWER give ceil(size / stride) windows; the odd element goes after or before.
    """
    mode = choice("auto_pad", node.string("auto_pad", "NOTSET") or "NOTSET", AUTO_PADS)
    count = len(sizes)
    pads = per_axis(node, "pads", 2 * count, (0,) * (2 * count), least=0)
    if mode == "NOTSET":
        return list(zip(pads[:count], pads[count:]))
    if mode == "VALID":
        return [(0, 0)] * count
    result = []
    for size, taps, stride, dilation in zip(sizes, kernel, strides, dilations):
        total = max(0, (-(-size // stride) - 1) * stride + (taps - 1) * dilation + 1 - size)
        small, large = total // 2, total - total // 2
        result.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return result


# -- one spatial axis is computed as two, with height 1 -----------------------------
def pair(values: Sequence[int], fill: int) -> tuple[int, int]:
    """One entry per spatial axis as (height, width)."""
    return (fill, values[0]) if len(values) == 1 else (values[0], values[1])


def quad(pads: Sequence[tuple[int, int]]) -> tuple[int, int, int, int]:
    """(before, after) per spatial axis as top, bottom, left, right."""
    return (0, 0, *pads[0]) if len(pads) == 1 else (*pads[0], *pads[1])


def as_image(b: Builder, value: Value) -> Value:
    """(N, C, W) as (N, C, 1, W); four axes stay."""
    if value.type.rank != 3:
        return value
    n, c, w = value.shape
    return b.reshape(value, shape=(n, c, 1, w))


def like_input(b: Builder, value: Value, rank: int) -> Value:
    """Undo `as_image`: [n, c, 1, w] as [n, c, w] where the input had rank 3."""
    if rank != 3:
        return value
    n, c, _, w = value.shape
    return b.reshape(value, shape=(n, c, w))
