"""Outputs beside those of another program, judged as users of tpu-mlir know it (vendor-cli.md 5.4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bmcompiler.errors import RuntimeUseError
from bmcompiler.text import without_types

_CLOSE, _NOTHING = 1e-3, 1e-8
"""Relative and absolute difference of two elements that count as the same."""


@dataclass(frozen=True)
class Similarity:
    """How alike an output and its reference are.

    Attributes:
        verdict: "equal" (every bit), "close" (each element within a thousandth), "similar" (above the tolerance) or
            "differs".
        cosine: of the angle between both. euclid: 1 - |a - b| / |(a + b) / 2|; both at most 1.
    """

    verdict: str
    cosine: float
    euclid: float


def similarity(found: ArrayLike, reference: ArrayLike, tolerance: tuple[float, float]) -> Similarity:
    """Two arrays of as many elements; `tolerance` is what cosine and euclid must exceed."""
    a, b = (np.asarray(each).ravel().astype(np.float64) for each in (found, reference))
    if np.array_equal(a, b, equal_nan=True):
        return Similarity("equal", 1.0, 1.0)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return Similarity("differs", 0.0, 0.0)
    lengths = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    cosine = float(a @ b) / lengths if lengths else 0.0
    middle = float(np.linalg.norm(a + b)) / 2
    euclid = 1 - float(np.linalg.norm(a - b)) / middle if middle else 0.0
    if np.allclose(a, b, rtol=_CLOSE, atol=_NOTHING):
        return Similarity("close", cosine, euclid)
    alike = cosine > tolerance[0] and euclid > tolerance[1]
    return Similarity("similar" if alike else "differs", cosine, euclid)


def compared(
    outputs: Mapping[str, ArrayLike], references: Mapping[str, ArrayLike], tolerance: tuple[float, float]
) -> dict[str, Similarity]:
    """Each output that the references name. Raises RuntimeUseError for another number of elements."""
    found = {}
    for output, name in named_outputs(outputs, references).items():
        shapes = [np.shape(each) for each in (outputs[output], references[name])]
        if np.size(outputs[output]) != np.size(references[name]):
            raise RuntimeUseError(f"output '{output}' and its reference have shapes {' and '.join(map(str, shapes))}")
        found[output] = similarity(outputs[output], references[name], tolerance)
    return found


def named_outputs(outputs: Iterable[str], references: Iterable[str]) -> dict[str, str]:
    """Output -> its name among the references, where it has one.

    tpu-mlir writes NAME_TYPE for what an ONNX network calls NAME. One array is the only output, whatever its name.

    Raises RuntimeUseError where no output has a name there.
    """
    names, there = list(outputs), list(references)
    if len(names) == len(there) == 1:
        return {names[0]: there[0]}
    found = {name: typed for name, typed in without_types(there).items() if name in names}
    found |= {name: name for name in names if name in there}
    if not found:
        raise RuntimeUseError(
            f"it holds none of the outputs {', '.join(names)}", remedy=f"name an array like one of them, not {there[0]}"
        )
    return found
