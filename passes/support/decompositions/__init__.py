"""How ops that a target refuses become ops that it takes; importing the package fills `base.DECOMPOSITIONS`."""

from __future__ import annotations

from bmcompiler.passes.support.decompositions import (
    broadcast,
    computed_windows,
    convolution,
    detection,
    elementwise,
    layout,
    linear_maps,
    matrix,
    placing,
    pooling,
    products,
    ranking,
    recurrent,
    reduction,
    regions,
    resample,
    sampling,
    spectrum,
    statistics,
    suppression,
    whole_choices,
)
from bmcompiler.passes.support.decompositions.base import DECOMPOSITIONS, decompositions_of, decompositions_of_kind

__all__ = [
    "DECOMPOSITIONS", "broadcast", "computed_windows", "convolution", "decompositions_of", "decompositions_of_kind",
    "detection", "elementwise", "layout", "linear_maps", "matrix", "placing", "pooling", "products",
    "ranking", "recurrent", "reduction", "regions", "resample", "sampling", "spectrum", "statistics", "suppression",
    "whole_choices",
]  # fmt: skip
