"""The passes of the BM1684X, in order."""

from __future__ import annotations

from bmcompiler.pipelines import GROUPS, IMPORT, SIMPLIFY, WRITTEN, PassRow, Phase, PipelineTable, support

HALVES, BYTES = ("f16", "bf16"), ("int8",)
MIXED = (*HALVES, WRITTEN)
FLOATS = ("f32", *MIXED)
NARROW = (*MIXED, *BYTES)
"""What has halves: in bytes layers that are quicker so."""
BEST = (2,)
_COPIES = "copies the net for each part of a batch, so behind all that changes it"

PIPELINE = PipelineTable(
    Phase(
        IMPORT.name,
        *IMPORT.rows,
        PassRow("fold-constants", "a bias of a layer that is a constant is one then", precisions=(WRITTEN,)),
        PassRow("widen-floats", "all that follows sees 16-bit floats where the chip has them", precisions=(WRITTEN,)),
    ),
    SIMPLIFY,
    support("legalize{form=same}", unpacked=("f32", *BYTES)),
    Phase(
        "precision",
        PassRow("fold-batch-norm{scores=true}", "for floats alone: encoders lose by it in bytes", precisions=FLOATS),
        PassRow("fuse-activation", "what an activation reads is no tensor with a threshold or a type of its own then"),
        PassRow("watch-ranges", "samples show in float what half-precision leaves so", precisions=("f16",)),
        PassRow(
            "watch-ranges{dtype=bf16}", "samples show in float what half-precision leaves so", precisions=("bf16",)
        ),
        PassRow(
            "half-precision{dtype=f16}", "layers are whole, and nothing is laid out for a type", precisions=("f16",)
        ),
        PassRow(
            "half-precision{dtype=bf16}", "layers are whole, and nothing is laid out for a type", precisions=("bf16",)
        ),
        PassRow("dequantize-weights", "types are final: what is left in f32 has no product by them", precisions=HALVES),
        PassRow("calibrate{method=auto}", "all tensors that quantize will meet exist", precisions=BYTES),
        PassRow("quantize{scheme=channel}", "layers are whole, and all floats are f32", precisions=BYTES),
        PassRow(
            "fold-batch-norm{scores=true}", "scales scores that quantize left in float, still in f32", precisions=BYTES
        ),
        PassRow("half-precision", "takes what quantize left in float", precisions=BYTES),
    ),
    Phase(
        "layout",
        PassRow("space-to-depth", "types are final; sums change order, so at all levels"),
        PassRow("split-heads", "types are final; transposed-products sees the keys alone"),
        PassRow("transposed-products", "types are final, and with them what the chip takes for a product"),
        PassRow("kept-heads", "keys are read as rows behind transposed-products", precisions=MIXED),
        PassRow(
            "window-products{floats=true}",
            "products are as they stay, and asked for their time; sums change order, so at all levels",
            precisions=FLOATS,
        ),
        PassRow("lane-bands", "types are final; sums change order, so at all levels", precisions=("f32",)),
        PassRow("fill-lanes{kind=floats}", "types are final; sums change order, so at all levels"),
        PassRow("join-groups", "sums change order, so at all levels"),
        PassRow("split-deconv", "takes the deconvolutions that are left; sums change order, so at all levels"),
        PassRow(
            "fill-lanes{kind=integers,planned=true}", "plans the whole net, whose floats are in place", BEST, BYTES
        ),
        PassRow("ordered-rows", "permutes of heads are in place, and have their time in local memory"),
        PassRow(
            "narrow-moves",
            "copies that ordered-rows makes gathers of are these; long-runs takes moves as they stay",
            precisions=NARROW,
        ),
        PassRow("few-axes", "moves are narrow; orders are kept of rows that are seen as rows", precisions=BYTES),
        PassRow("kept-orders", "gathers of ordered-rows stand where they are, behind casts that are narrow"),
        PassRow("dead-code", "plans count nothing that is not compiled"),
        PassRow("keep-phases", "moves the shuffles of split-deconv behind layers", BEST),
        PassRow("split-images{level=1}", _COPIES, (1,)),
        PassRow("split-images", _COPIES, BEST),
        PassRow("long-runs", "passes above know one permute for one, and make others"),
        PassRow("common-subexpressions", "slices that long-runs takes of one value have one permute then"),
        PassRow("row-parts", "gathers and moves are as they stay; image-rows takes the products of each part", BEST),
        PassRow("image-rows", "products and what reads them are as they stay", BEST, NARROW),
    ),
    GROUPS,
)
