"""Recorded answers of the vendor's driver and packers, and small helpers (dv.md 8)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "dv_golden.npz"


@cache
def golden() -> dict[str, NDArray[Any]]:
    with np.load(GOLDEN, allow_pickle=False) as data:
        return dict(data)


@cache
def packed_cases() -> list[dict[str, Any]]:
    return json.loads(str(golden()["manifest"]))


def halves(values: Any) -> NDArray[np.uint16]:
    """The patterns of numbers."""
    return np.asarray(values, np.float16).view(np.uint16)
