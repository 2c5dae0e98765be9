"""Tensor types: shape, element type, and how integers stand for real numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# our name -> (MLIR spelling, numpy name, bytes)
DTYPES: dict[str, tuple[str, str, int]] = {
    "f64": ("f64", "float64", 8),
    "f32": ("f32", "float32", 4),
    "f16": ("f16", "float16", 2),
    "bf16": ("bf16", "bfloat16", 2),
    "i8": ("i8", "int8", 1),
    "u8": ("ui8", "uint8", 1),
    "i16": ("i16", "int16", 2),
    "u16": ("ui16", "uint16", 2),
    "i32": ("i32", "int32", 4),
    "u32": ("ui32", "uint32", 4),
    "i64": ("i64", "int64", 8),
    "u64": ("ui64", "uint64", 8),
    "bool": ("i1", "bool", 1),
}
FROM_MLIR = {mlir: ours for ours, (mlir, _, _) in DTYPES.items()}
FROM_NUMPY = {name: ours for ours, (_, name, _) in DTYPES.items()}
FLOAT_DTYPES = frozenset({"f64", "f32", "f16", "bf16"})
INTEGER_DTYPES = frozenset(DTYPES) - FLOAT_DTYPES - {"bool"}
_MAX_SIZE = 1 << 48
"""Elements of the largest tensor: beyond any device memory, and its size in bytes still fits 64 bits."""


def numpy_dtype(name: str) -> np.dtype:
    """The numpy type of one of `DTYPES`; bf16 is that of the package ml_dtypes."""
    import numpy as np

    if name == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(DTYPES[name][1])


@dataclass(frozen=True)
class Quant:
    """What an integer element means: real = (q - zero_point) * scale.

    Calibration tables speak of thresholds, the real magnitude that maps to 128 (bm1880.md 11.2):
    threshold = 128 * scale, exact both ways because 128 is a power of two.

    Per axis (`along`): each position of `axis` has its own of `scales`, and `scale` is the largest of them.
    """

    scale: float
    zero_point: int = 0
    scales: tuple[float, ...] = ()
    axis: int = 0

    def __post_init__(self) -> None:
        for scale in (self.scale, *self.scales):
            if not isfinite(scale):
                raise ValueError(f"the scale of a quantization must be finite, got {scale}")
        if self.axis and not self.scales:
            raise ValueError("an axis belongs to a quantization with a scale for each of its positions")
        if self.scales and self.scale != max(self.scales):
            raise ValueError(f"the scale of a quantization per axis is its largest, got {self.scale}")

    @staticmethod
    def along(axis: int, scales: Iterable[float], zero_point: int = 0) -> Quant:
        """A scale for each position of an axis. Raises ValueError without any."""
        each = tuple(map(float, scales))
        if not each:
            raise ValueError("a quantization per axis needs a scale for each position, got none")
        return Quant(max(each), zero_point, each, axis)

    @staticmethod
    def from_threshold(threshold: float) -> Quant:
        """The quantization of signed bytes whose 128 steps make up a threshold."""
        return Quant(float(threshold) / 128)

    @property
    def threshold(self) -> float:
        """128 steps: what calibration tables hold (bm1880.md 11.2)."""
        return self.scale * 128


@dataclass(frozen=True)
class TensorType:
    """`tensor<1x3x28x28xi8, {scale = 0.0078125}>`: a static shape, an element type, and optionally its quantization.

    With a scale per position of an axis: `tensor<2x3x1x1xi8, {axis = 0, scale = [0.5, 0.25]}>`.
    """

    shape: tuple[int, ...]
    dtype: str = "f32"
    quant: Quant | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        if self.dtype not in DTYPES:
            raise ValueError(f"unknown element type {self.dtype!r}; known: {', '.join(DTYPES)}")
        if min(self.shape, default=0) < 0:
            raise ValueError(f"negative dimension in shape {list(self.shape)}")
        if max(self.shape, default=0) > _MAX_SIZE or prod(self.shape) > _MAX_SIZE:
            raise ValueError(f"a tensor has at most 2**48 elements, got shape {list(self.shape)}")
        if self.quant is not None and self.quant.scales:
            self._check_axis(self.quant)

    def _check_axis(self, quant: Quant) -> None:
        if not 0 <= quant.axis < len(self.shape) or self.shape[quant.axis] != len(quant.scales):
            raise ValueError(
                f"{len(quant.scales)} scales along axis {quant.axis} do not fit a tensor of shape {list(self.shape)}"
            )

    @cached_property
    def numpy(self) -> np.dtype:
        """The element type as numpy knows it."""
        return numpy_dtype(self.dtype)

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
        return self.size * DTYPES[self.dtype][2]

    @property
    def is_float(self) -> bool:
        """Whether elements are reals."""
        return self.dtype in FLOAT_DTYPES

    @property
    def is_integer(self) -> bool:
        """Whether elements are integers; bool is neither."""
        return self.dtype in INTEGER_DTYPES

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """Element type and quantization in another shape; a scale per position needs its axis to keep its length."""
        return replace(self, shape=tuple(shape))

    def with_dtype(self, dtype: str, quant: Quant | None = None) -> TensorType:
        """The shape with another element type; no quantization unless given."""
        return TensorType(self.shape, dtype, quant)

    def __str__(self) -> str:
        from bmcompiler.ir.printer import format_type

        return format_type(self)


def type_of_array(array: np.ndarray) -> TensorType:
    """The type of a numpy array. Raises ValueError for element types that no tensor has (object, complex, str)."""
    name = FROM_NUMPY.get(array.dtype.name)
    if name is None:
        raise ValueError(f"arrays of {array.dtype} cannot become tensors")
    return TensorType(array.shape, name)
