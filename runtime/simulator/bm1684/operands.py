"""Operands of TIU commands: where they lie, how 4N and 2N words hold their images, how results are rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.chip import aligned_strides, compact_strides, is_local, lane_offset, pixel_strides
from bmcompiler.backends.bm1684.isa import Precision, StrideCode
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric.arith import requantize
from bmcompiler.numeric.arrays import Array, IntArray
from bmcompiler.runtime.simulator.bm1684.memory import Memories
from bmcompiler.runtime.simulator.memory import Shape, Tensor

Reader = Callable[[], Array]

FP32 = np.dtype(np.float32)
WORD = np.dtype(np.int32)
_BITS = {Precision.INT8: 8, Precision.INT16: 16, Precision.INT32: 32, Precision.FP32: 32}


def integer_dtype(precision: int, signed: int) -> np.dtype[Any]:
    """numpy type of an integer operand. Raises SimulatorError for other precisions."""
    if precision not in _BITS or precision == Precision.FP32:
        raise SimulatorError(f"precision code {precision} is not an integer type the command can work on")
    return np.dtype(f"{'i' if signed else 'u'}{_BITS[Precision(precision)] // 8}")


def register_strides(fields: Fields, name: str) -> Shape:
    """The stride registers of an operand, in words; h and w are signed (bm1684.md 13.1)."""
    h, w = (value - ((value & 0x8000_0000) << 1) for value in (fields[f"{name}_h_str"], fields[f"{name}_w_str"]))
    return (fields[f"{name}_n_str"], fields[f"{name}_c_str"], h, w)


class Packed:
    """A feature map in words of `slots` images (4N, 2N or one): image slots * i + k is part k of word-image i."""

    def __init__(self, shape: Shape, dtype: np.dtype[Any], parts: list[Tensor]) -> None:
        self.shape, self.dtype, self.parts = shape, dtype, parts

    def read(self) -> Array:
        """The elements as (N, C, H, W); perhaps a view, so do not write to it."""
        if len(self.parts) == 1:
            return self.parts[0].read()
        dense = np.empty(self.shape, self.dtype)
        step = self._step
        for k, part in enumerate(self.parts):
            dense[k::step] = part.read()
        return dense

    def write(self, values: Array) -> None:
        """Store the images that exist; bytes of missing images keep their value (bm1684.md 4.2)."""
        step = self._step
        for k, part in enumerate(self.parts):
            part.write(values[k::step])

    @property
    def _step(self) -> int:
        return max(len(self.parts), 1)


class Operands:
    """The operands of one TIU command in `memories`; `fast` allows float sums in any order."""

    def __init__(self, memories: Memories, fields: Fields, fast: bool = False) -> None:
        self.memories, self.fields, self.fast = memories, fields, fast

    def size(self, name: str) -> Shape:
        """(n, c, h, w) as the size fields of `res0`, `opd0` or `opd1` say."""
        f = self.fields
        return (f[f"{name}_n"], f[f"{name}_c"], f[f"{name}_h"], f[f"{name}_w"])

    def lane(self, name: str) -> int:
        """Lane of channel 0. Raises SimulatorError for an address outside local memory."""
        address = self.fields[f"{name}_addr"]
        if not is_local(address):
            raise SimulatorError(f"address 0x{address:x} of {name} is not in local memory")
        return lane_offset(address)[0]

    def tensor(self, name: str, shape: Shape, strides: Shape, dtype: np.dtype[Any], at: int = 0) -> Tensor:
        """Elements `at` bytes after the operand's address; strides in bytes."""
        return self.memories.local_tensor(self.fields[f"{name}_addr"] + at, shape, strides, dtype)

    def precision(self, name: str) -> int:
        """Precision code of the operand."""
        return self.fields[f"opt_{name}_prec"]

    def is_float(self, name: str) -> bool:
        """Whether the operand is fp32."""
        return self.precision(name) == Precision.FP32

    def dtype(self, name: str) -> np.dtype[Any]:
        """numpy type of an operand (not of a result) from its precision and sign."""
        if self.is_float(name):
            return FP32
        return integer_dtype(self.precision(name), self.fields[f"opt_{name}_sign"])

    def word_strides(self, name: str, shape: Shape) -> Shape:
        """Strides in words of a feature map of word-images `shape`, by its stride code."""
        code = self.fields[f"short_{name}_str"]
        if code == StrideCode.EXPLICIT:
            return register_strides(self.fields, name)
        if code == StrideCode.ALIGNED:
            return aligned_strides(shape, self.lane(name))
        raise SimulatorError(f"stride code {code} has no meaning for {name} here")

    def packed(self, name: str, shape: Shape, dtype: np.dtype[Any], strides: Shape | None = None) -> Packed:
        """A feature map of N images, `dtype` being the type of one element.

        Args:
            strides: in words between word-images, channels, rows, columns; by default as the stride code says.
        """
        slots = 4 // dtype.itemsize
        n, *image = shape
        groups = (-(-n // slots), *image)
        words = strides or self.word_strides(name, groups)  # type: ignore[arg-type]
        steps = tuple(4 * stride for stride in words)
        return Packed(shape, dtype, self._parts(name, shape, steps, dtype, slots))  # type: ignore[arg-type]

    def pixels(self, name: str, shape: Shape, dtype: np.dtype[Any]) -> Packed:
        """An int16 result of a convolution: 8 bytes a pixel for four images (bm1684.md 4.2)."""
        n, *image = shape
        steps = pixel_strides((-(-n // 4), *image), self.lane(name))  # type: ignore[arg-type]
        return Packed(shape, dtype, self._parts(name, shape, steps, dtype, 4))

    def _parts(self, name: str, shape: Shape, steps: Shape, dtype: np.dtype[Any], slots: int) -> list[Tensor]:
        n, channels, height, width = shape
        return [
            self.tensor(name, (-(-(n - k) // slots), channels, height, width), steps, dtype, k * dtype.itemsize)
            for k in range(min(slots, n))
        ]

    def compact(self, name: str, shape: Shape, dtype: np.dtype[Any]) -> Tensor:
        """Weights, biases and per-channel vectors: no gaps between channels (bm1684.md 4.1)."""
        steps = tuple(dtype.itemsize * stride for stride in compact_strides(shape, self.lane(name)))
        return self.tensor(name, shape, steps, dtype)  # type: ignore[arg-type]

    def is_constant(self, name: str) -> bool:
        """Whether the operand is the immediate in its address field."""
        return bool(self.fields[f"opt_{name}_const"])

    def constant(self, name: str, dtype: np.dtype[Any] | None = None) -> Array:
        """The immediate as an array of shape (): its low bits taken as `dtype`, by default the operand's type."""
        bits = np.array([self.fields[f"{name}_addr"]], "<u4")
        return bits.view(dtype or self.dtype(name))[:1].reshape(())

    def unsigned_result(self, *present: str) -> bool:
        """Whether an int8 or int16 result of conv, depthwise or matrix is unsigned (bm1684.md 6.0.1)."""
        f = self.fields
        return bool(f["opt_relu"]) or not any(f[f"opt_{name}_sign"] for name in present)

    def requantizer(self, unsigned: bool) -> Callable[[IntArray], IntArray]:
        """Rounding right shift of 32-bit sums that wrapped, then saturation to the result's type."""
        bits = self.fields["opt_right_shift"]
        kind = _result_kind(self.precision("res0"), unsigned)
        return lambda sums: requantize(wrap32(sums), bits, kind)


def _result_kind(precision: int, unsigned: bool) -> str:
    return f"{'u' if unsigned else 'i'}{integer_dtype(precision, 1).itemsize * 8}"


def wrap32(sums: IntArray) -> IntArray:
    """Integers as the 32-bit accumulator holds them: it wraps silently (bm1684.md 6.0.1)."""
    return sums if sums.dtype.itemsize < 4 else sums.astype(np.int32, copy=False)
