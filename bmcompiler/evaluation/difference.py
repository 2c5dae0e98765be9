"""How far arrays are from references."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from bmcompiler.errors import RuntimeUseError


def difference(name: str, outputs: Mapping[str, ArrayLike], reference: ArrayLike) -> tuple[float, float, float, float]:
    """(share of equal elements, largest difference, relative Euclidean error, cosine) of one output.

    Raises RuntimeUseError for a name that is no output, and for a reference with another number of elements.
    """
    if name not in outputs:
        raise RuntimeUseError(f"the model has no output '{name}'", remedy=f"name arrays like: {', '.join(outputs)}")
    found, wanted = np.asarray(outputs[name]), np.asarray(reference)
    if found.size != wanted.size:
        shapes = f"{list(found.shape)} and {list(wanted.shape)}"
        raise RuntimeUseError(f"output '{name}' and its reference have shapes {shapes}")
    a, b = found.ravel().astype(np.float64), wanted.ravel().astype(np.float64)
    gap, size = a - b, float(np.linalg.norm(b)) or 1.0
    cosine = float(a @ b) / (float(np.linalg.norm(a)) * size or 1.0)
    return float((a == b).mean()), float(np.abs(gap).max(initial=0.0)), float(np.linalg.norm(gap)) / size, cosine
