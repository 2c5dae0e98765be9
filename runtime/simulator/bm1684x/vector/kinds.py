"""Element types of vector operands: precision and sign."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric import floats
from bmcompiler.runtime.simulator.bm1684x.operands import FLOATS, dtype_of

_FLOAT_TYPES = {Precision.FP32: floats.FP32, Precision.FP16: floats.FP16, Precision.BF16: floats.BF16}


class Kind(NamedTuple):
    """Type of the elements of an operand. Floats have no sign bit: theirs does not count."""

    precision: Precision
    signed: bool = True

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats."""
        return self.precision in FLOATS

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return ITEM_BYTES[self.precision]

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy type of elements in memory."""
        return dtype_of(self.precision, self.signed)

    @property
    def bits(self) -> np.dtype[Any]:
        """Unsigned type of the same size, for elements that are only moved."""
        return np.dtype(f"u{self.size}")

    @property
    def floats(self) -> floats.FloatType:
        """The arithmetic of a float type. Raises SimulatorError for integers."""
        if not self.is_float:
            raise SimulatorError(f"the command works on floats, not on {self}")
        return _FLOAT_TYPES[self.precision]

    def __str__(self) -> str:
        if self.is_float:
            return self.precision.name.lower()
        return ("" if self.signed else "u") + self.precision.name.lower()
