"""Sums of products over named axes, and the discrete Fourier transform."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.ops.base import FLOAT, Axis, TensorOp, attr, operand, tensorop, variadic_operand
from bmcompiler.ops.shared import need_axis, need_same_dtype, widened


@tensorop("einsum")
class Einsum(TensorOp):
    """Einstein summation in explicit form: one letter per axis of each operand, `->`, the letters of the result.

    out[result letters] = sum over all other letters of the product of the operands; floats, or exact integer sums that
    wrap around in their own element type.

    %y = "tensorop.einsum"(%a, %b) {equation = "bij,bjk->bik"} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>)
         -> tensor<2x3x5xf32>
    """

    inputs = variadic_operand()
    equation = attr(str)

    def infer(self) -> TensorType:
        left, arrow, result = self.equation.partition("->")
        terms = left.split(",")
        letters = set(left) - {","}
        if not arrow or not all(c.isascii() and c.isalpha() for c in letters) or len(terms) != len(self.operands):
            raise self.shape_error(f"equation '{self.equation}' does not fit {len(self.operands)} operands")
        sizes: dict[str, int] = {}
        for term, value in zip(terms, self.operands):
            if len(term) != value.type.rank:
                raise self.shape_error(f"'{term}' names {len(term)} axes of a tensor of shape {list(value.shape)}")
            for letter, size in zip(term, value.shape):
                if sizes.setdefault(letter, size) != size:
                    raise self.shape_error(f"axis '{letter}' has sizes {sizes[letter]} and {size}")
        if len(set(result)) != len(result) or not set(result) <= letters:
            raise self.shape_error(f"the result '{result}' of the equation names an axis twice or an unknown one")
        return TensorType(tuple(sizes[letter] for letter in result), self.operands[0].dtype)

    def evaluate(self, *arrays: np.ndarray) -> np.ndarray:
        out = np.einsum(self.equation, *widened(*arrays), optimize=len(arrays) > 1)
        return np.array(out, arrays[0].dtype)

    def check(self) -> None:
        need_same_dtype(self, [*self.operands, self.result])


@tensorop("dft")
class Dft(TensorOp):
    """Discrete Fourier transform along one axis; the last axis holds real parts, or (real, imaginary) pairs.

    out[k] = sum_n in[n] * exp(-2 pi i n k / length); the inverse has exp(+...) and a factor 1 / length. The input is
    cut or filled with zeros to `length` (0: its own). onesided gives the first length // 2 + 1 positions of a transform
    of reals; inverse and onesided take those and give `length` reals.

    %y = "tensorop.dft"(%x) {axis = 1, onesided = true} : (tensor<2x16x1xf32>) -> tensor<2x9x2xf32>
    """

    input = operand(elements=FLOAT)
    axis = attr(Axis)
    length = attr(int, 0)
    inverse = attr(bool, False)
    onesided = attr(bool, False)

    def infer(self) -> TensorType:
        shape = list(self.input.shape)
        axis = need_axis(self, self.axis, len(shape) - 1)
        if shape[-1] not in (1, 2) or (self.onesided and not self.inverse and shape[-1] != 1) or self.length < 0:
            raise self.shape_error(f"the last axis of {shape} must hold reals (1) or pairs (2), a one-sided one reals")
        size = self.points
        shape[axis] = size // 2 + 1 if self.onesided and not self.inverse else size
        return TensorType((*shape[:-1], 1 if self.onesided and self.inverse else 2), self.input.dtype)

    @property
    def points(self) -> int:
        """Length of the transform."""
        size = self.input.shape[self.axis]
        return self.length or (2 * (size - 1) if self.onesided and self.inverse else size)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        wide = x.astype(np.float64)
        signal = wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]
        if self.onesided:
            transform = np.fft.irfft if self.inverse else np.fft.rfft
        else:
            transform = np.fft.ifft if self.inverse else np.fft.fft
        out = transform(signal, self.points, axis=self.axis)
        parts = [out] if not np.iscomplexobj(out) else [out.real, out.imag]
        return np.stack(parts, axis=-1).astype(x.dtype)
