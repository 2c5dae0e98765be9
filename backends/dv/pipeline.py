"""The passes of the DV700, in order."""

from __future__ import annotations

from bmcompiler.pipelines import IMPORT, SIMPLIFY, PassRow, Phase, PipelineTable, support

PIPELINE = PipelineTable(
    IMPORT,
    SIMPLIFY,
    support("legalize{form=same}"),
    Phase(
        "precision",
        PassRow("fuse-activation", "a layer and the activation that its run ends in are one op from here on"),
        PassRow("watch-ranges{keeps=false}", "names what the chip's floats do not hold, as they are in float"),
        PassRow(
            "palettize", "scales and biases are in the weights, which have their last values", precisions=("int8",)
        ),
        PassRow("dead-code", "join-runs looks at nothing that is not compiled"),
    ),
    Phase(
        "schedule",
        PassRow("join-runs", "last: runs are made of the ops that are compiled"),
    ),
)
