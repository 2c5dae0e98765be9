"""The passes of the BM1684, in order."""

from __future__ import annotations

from bmcompiler.pipelines import GROUPS, IMPORT, SIMPLIFY, PassRow, Phase, PipelineTable, support

FLOATS, BYTES = ("f32",), ("int8",)
BEST = (2,)
_COPIES = "copies the net for each part of a batch, so behind all that changes it"

PIPELINE = PipelineTable(
    IMPORT,
    SIMPLIFY,
    support("legalize{form=same}"),
    Phase(
        "precision",
        PassRow("fuse-activation", "what an activation reads is no tensor with a threshold of its own then"),
        PassRow("compose-convs", "multiplies weights of floats; sums change order, so at all levels"),
        PassRow("sigmoid-pairs", "its new layers and sigmoids are to get thresholds", precisions=BYTES),
        PassRow("equalize", "changes the ranges that calibrate measures", precisions=BYTES),
        # auto starts from mean squared error: best on the small regression outputs of MTCNN O-Net, and as good as kl
        # elsewhere (tests/bm1684/test_bm1684_networks_int8.py)
        PassRow("calibrate{method=auto}", "all tensors that quantize will meet exist", precisions=BYTES),
        PassRow("quantize{scheme=scale}", "layers are whole, and nothing is laid out for a type", precisions=BYTES),
        PassRow("merge-tables", "joins the tables that quantize made", precisions=BYTES),
    ),
    Phase(
        "layout",
        PassRow("space-to-depth", "types are final; sums change order, so at all levels"),
        PassRow("split-means", "takes what is float now; sums change order, so at all levels"),
        PassRow("small-quotients", "its floats hold integers: no thresholds, no other type"),
        PassRow("merge-shortcuts", "takes what is float now; rounds in other places, so at all levels"),
        PassRow("join-siblings", "joined channels may fill the lanes, which fill-lanes then leaves alone"),
        PassRow("lane-bands", "takes what is float now; sums change order, so at all levels"),
        PassRow("fill-lanes{kind=floats}", "takes what is float now; sums may change order, so at all levels"),
        PassRow("split-deconv{kind=floats}", "takes what is float now; sums change order, so at all levels"),
        PassRow("dead-code", "bands are cut of nothing that is not compiled", precisions=BYTES),
        PassRow("join-groups", "bits stay, so at the best level alone, as for all that follow", BEST),
        PassRow("join-upsamples", "joins maps while they are whole and small", BEST),
        PassRow("dead-code", "plans count nothing that is not compiled", precisions=FLOATS),
        PassRow("split-images{part=0.9,single=true}", "leaves single images to fill-image-slots", BEST, BYTES),
        PassRow("fill-image-slots", "maps have the channels they keep; now their rows become bands", BEST, BYTES),
        PassRow("move-bands", "moves the bands of fill-image-slots into floats", BEST, BYTES),
        PassRow("split-deconv{kind=integers}", "takes deconvolutions in bands, too", BEST, BYTES),
        PassRow("keep-phases", "moves the shuffles of split-deconv behind layers", BEST),
        PassRow("fill-lanes{kind=integers}", "takes rows of bands, too", BEST, BYTES),
        PassRow("window-products", "makes convolutions that no pass above is to cut", BEST, BYTES),
        PassRow("merge-reshapes", "window-products leaves reshapes behind each other", BEST, BYTES),
        PassRow("cut-inputs", "the convolution that reads an input has the rows it keeps", BEST, BYTES),
        PassRow("permute-parts", "parts of the result are as they stay", BEST, FLOATS),
        PassRow("split-images{level=1}", _COPIES, (1,)),
        PassRow("split-images{part=0.9,nearly=1.05}", _COPIES, BEST),
        PassRow("long-runs", "passes above know one permute for one, and make others"),
        PassRow("common-subexpressions", "slices that long-runs takes of one value have one permute then"),
    ),
    GROUPS,
)
