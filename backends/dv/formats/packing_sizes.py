"""Bytes of packed weights (dv.md 3.6)."""

from __future__ import annotations

MAX_PACKED_KERNEL = 7
MAP_BYTES = 512
BLOCK = 72  # elements: 12 rows of 6 columns
CHANNELS_OF_BLOCK = {1: 64, 3: 8, 5: 2, 7: 1}
"""Input channels that share a block, by the odd side of the kernel's square."""


def round_up(value: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-value // step) * step


def blocks(channels: int, side: int) -> int:
    """Blocks of one output channel. `side` is 1, 3, 5 or 7."""
    return -(-channels // CHANNELS_OF_BLOCK[side])


def _stream(channels: int, side: int, m: int, element: int, prelu: bool) -> int:
    vectors = 16 * -(-m // 8) * (2 if prelu else 1)
    return BLOCK * element * m * blocks(channels, side) + vectors


def conv_size(channels: int, kx: int, ky: int, m: int, quantized: bool, prelu: bool = False) -> int:
    """Bytes of the stream of a convolution; `channels` is 1 for depthwise ones. 0 for kernels above 7."""
    side = max(kx, ky) | 1
    if side not in CHANNELS_OF_BLOCK:
        return 0
    return round_up((MAP_BYTES if quantized else 0) + _stream(channels, side, m, 1 if quantized else 2, prelu), 16)


def dilated_size(channels: int, kx: int, ky: int, m: int, quantized: bool, prelu: bool = False) -> int:
    """Bytes of the weights of a dilated convolution: one padded 1x1 stream per tap. 0 for kernels > 7."""
    if max(kx, ky) > MAX_PACKED_KERNEL:
        return 0
    tap = round_up(_stream(channels, 1, m, 1 if quantized else 2, prelu), 16)
    return (MAP_BYTES if quantized else 0) + kx * ky * tap


def fc_size(inputs: int, outputs: int, quantized: bool) -> int:
    """Bytes of the weights and biases of a fully connected layer."""
    weights = (MAP_BYTES if quantized else 0) + inputs * outputs * (1 if quantized else 2)
    return round_up(weights, 16) + round_up(2 * outputs, 16)
