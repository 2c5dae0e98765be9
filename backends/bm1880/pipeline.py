"""The passes of the BM1880, in order."""

from __future__ import annotations

from bmcompiler.pipelines import GROUPS, IMPORT, SIMPLIFY, PassRow, Phase, PipelineTable, support

_COPIES = "copies the net for each part of a batch, so behind all that changes it"

PIPELINE = PipelineTable(
    IMPORT,
    SIMPLIFY,
    support("legalize"),
    Phase(
        "precision",
        PassRow("equalize", "changes the ranges of channels, which calibrate measures"),
        PassRow("calibrate{method=auto}", "all tensors that quantize meets exist"),
        PassRow("integer-weights", "finds the real weights from the thresholds of the table"),
        PassRow("quantize", "layers are whole, nothing is laid out"),
        PassRow("dead-code", "thresholds and weights of floats are read no more"),
    ),
    Phase(
        "layout",
        PassRow("split-deconv", "types are final; long-runs mends the permutes it leaves"),
        PassRow("split-images{level=1}", _COPIES, (1,)),
        PassRow("split-images", _COPIES, (2,)),
        PassRow("long-runs", "values are bytes, of which the moves of this chip are"),
        PassRow("common-subexpressions", "slices that long-runs takes of one value have one permute then"),
    ),
    GROUPS,
)
