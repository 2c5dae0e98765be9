"""Arrays by their elements, as signatures name them. Shapes are said where a name does not tell them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""Of any elements."""
IntArray = NDArray[Any]
"""Of integers of any width: which, their bounds or an argument say."""
Halves = NDArray[np.float16]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Int8s = NDArray[np.int8]
Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Bits16 = NDArray[np.uint16]
"""The bits of numbers of 16 bits."""
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
