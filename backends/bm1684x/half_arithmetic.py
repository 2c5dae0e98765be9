"""What the units of the BM1684X compute of fp16 and bf16 (bm1684x-cube.md 4 to 8, bm1684x-vector.md 4).

Arrays are those of the IR, float16 or bfloat16; every sum and product of the execution units is rounded to the type.
Sums of the cube are those of `bmcompiler.numeric.fused`, in fp32, and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.numeric import floats, halves
from bmcompiler.numeric.arrays import Array, Bits16, Floats, Mask
from bmcompiler.numeric.fused import GROUP, fused_product
from bmcompiler.numeric.half_products import half_product
from bmcompiler.numeric.narrowing import to_bf16, to_fp16

_GATHERED = 1 << 21  # values of the gathered columns of a convolution at a time


class HalfArithmetic:
    """One method per command on elements of one type; functions that only fp32 has are missing."""

    def __init__(self, dtype: str) -> None:
        self._dtype = numpy_dtype(dtype)
        self._from_single = {"f16": to_fp16, "bf16": to_bf16}[dtype]
        self._type, self._half = {"f16": (floats.FP16, halves.FP16), "bf16": (floats.BF16, halves.BF16)}[dtype]

    def add(self, a: Array, b: Array) -> Array:
        """a + b."""
        return self._stored(self._type.add(_bits(a), _bits(b)))

    def subtract(self, a: Array, b: Array) -> Array:
        """a - b."""
        return self._stored(self._type.subtract(_bits(a), _bits(b)))

    def multiply(self, a: Array, b: Array) -> Array:
        """a * b."""
        return self._stored(self._type.multiply(_bits(a), _bits(b)))

    def maximum(self, a: Array, b: Array) -> Array:
        """a > b ? a : b."""
        return self._stored(self._type.maximum(_bits(a), _bits(b)))

    def minimum(self, a: Array, b: Array) -> Array:
        """a <= b ? a : b."""
        return self._stored(self._type.minimum(_bits(b), _bits(a)))

    def greater(self, a: Array, b: Array) -> Mask:
        """a > b; false for NaN."""
        return self._type.greater(_bits(a), _bits(b))

    def widen(self, x: Array) -> Floats:
        """As fp32, exact but for denormals of bf16."""
        return self._half.widen(_bits(x))

    def cast_from(self, x: Floats) -> Array:
        """What a conversion from fp32 gives: denormals of fp32 count as 0."""
        return self._stored(self._from_single(x))

    def cast(self, x: Array) -> Floats:
        """As a conversion gives them in fp32."""
        return self._half.cast(_bits(x))

    def narrow(self, x: Floats) -> Array:
        """Rounded to nearest even."""
        return self._stored(self._half.narrow(x))

    def product(self, a: Array, b: Array, bias: Array | None = None, old: Array | None = None) -> Array:
        """Groups of 32 along the depth; a bias is added by the execution units."""
        left, right = self.widen(np.ascontiguousarray(a.T)), self.widen(np.ascontiguousarray(b))
        groups, start = _groups(len(right), 1), np.zeros((1, 1), np.float32)
        sums = self._stored(half_product(left, right, groups, start, self._half))
        return sums if bias is None else self.add(sums, bias)

    def single_product(self, a: Array, b: Array) -> Floats:
        """The same sums before they are rounded to the type."""
        left, right = self.widen(np.ascontiguousarray(a.T)), self.widen(np.ascontiguousarray(b))
        return fused_product(left, right, _groups(len(right), 1), np.zeros((1, 1), np.float32))

    def convolution(self, window: Window, x: Array, kernel: Array, bias: Floats | None) -> Array:
        """(N, C, H, W) by (O, C, KH, KW) with a bias of fp32: groups of 32 channels outermost, then row and column."""
        rows, image = self.widen(_grouped(kernel.transpose(1, 2, 3, 0))), self.widen(window.prepare(x))
        groups = _groups(kernel.shape[1], kernel.shape[2] * kernel.shape[3])
        start = np.zeros((1, 1), np.float32) if bias is None else bias[:, None]
        out = np.empty((len(x), len(kernel), *window.out), self._dtype)
        step = max(1, _GATHERED // (len(rows) * window.out[1]))
        for one, target in zip(image, out):
            taps = np.stack([tap[0] for tap in window.taps(one[None])], axis=1)
            taps = taps.reshape(len(one), *window.kernel, *window.out)
            for y in range(0, window.out[0], step):
                columns = _grouped(taps[:, :, :, y : y + step].reshape(*taps.shape[:3], -1))
                found = half_product(rows, columns, groups, start, self._half)
                target[:, y : y + step] = self._stored(found).reshape(len(kernel), -1, window.out[1])
        return out

    def depthwise(self, window: Window, x: Array, kernel: Array, bias: Array | None) -> Array:
        """(N, C, H, W) by (C, KH * KW): products in turn to two accumulators, of which the second has the bias."""
        zero = np.zeros(1, self._dtype)
        return self._in_turn(window, x, kernel, (zero, zero if bias is None else self.add(zero, bias)))

    def window_sums(self, window: Window, x: Array, weight: Floats) -> Array:
        """Accumulators begin at -0; the factor is rounded to the type."""
        empty = np.array([-0.0], np.float32).astype(self._dtype)
        return self._in_turn(window, x, weight.astype(self._dtype), (empty, empty))

    def _in_turn(self, window: Window, x: Array, kernel: Array, start: tuple[Array, Array]) -> Array:
        shape = (*x.shape[:2], *window.out)
        sums = [np.broadcast_to(value[:, None, None], shape) for value in start]
        for number, tap in enumerate(window.taps(window.prepare(x))):
            product = self.multiply(np.ascontiguousarray(tap), kernel[:, number, None, None])
            sums[number & 1] = self.add(sums[number & 1], product)
        return self.add(sums[0], sums[1])

    def window_largest(self, window: Window, x: Array, border: float) -> Array:
        """acc > v ? acc : v from the first element of the window on."""
        first, *others = window.taps(window.prepare(x, border))
        found = np.ascontiguousarray(first)
        for tap in others:
            found = np.where(self.greater(found, tap), found, tap)
        return found

    def missing(self, *arguments: Any) -> Any:
        """What only fp32 has; recipes of 16-bit types do not use it."""
        raise TypeError(f"{self._half.name} has no such function")

    divide = rsqrt = to_int = nearest_exponent = series = lookup = missing

    def _stored(self, bits: Bits16) -> Array:
        return np.ascontiguousarray(bits).view(self._dtype).reshape(np.shape(bits))


def _bits(x: Array) -> Bits16:
    return np.ascontiguousarray(x).view(np.uint16).reshape(np.shape(x))


def _groups(channels: int, taps: int) -> list[int]:
    """Sizes of the groups of products of one result: 32 channels of one tap each, then the remaining channels."""
    whole, rest = divmod(channels, GROUP)
    return [GROUP] * (whole * taps) + [rest] * (taps if rest else 0)


def _grouped(values: Array) -> Array:
    """(C, KH, KW, N) as (C * KH * KW, N) in the order of the groups."""
    channels, *_, count = values.shape
    split = channels // GROUP * GROUP
    full = values[:split].reshape(-1, GROUP, *values.shape[1:]).transpose(0, 2, 3, 1, 4)
    rest = values[split:].transpose(1, 2, 0, 3)
    return np.concatenate([full.reshape(-1, count), rest.reshape(-1, count)])


HALVES: dict[str, Arithmetic] = {name: HalfArithmetic(name) for name in ("f16", "bf16")}
