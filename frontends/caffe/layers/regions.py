"""Layers of two-stage detectors: Proposal, ROIPooling, PSROIPooling."""

from __future__ import annotations

import math

import numpy as np

from bmcompiler.frontends.caffe.layer import MAX_ELEMENTS, Layer, Results, caffe_layer
from bmcompiler.ir import Value

_DEFAULT_RATIOS = (0.5, 1.0, 2.0)
_DEFAULT_SCALES = (8.0, 16.0, 32.0)
_MAX_ROIS = 1 << 20


@caffe_layer("ROIPooling")
def roi_pooling(layer: Layer) -> Results:
    p = layer.p.roi_pooling_param
    size = (p.pooled_h, p.pooled_w)
    x, regions = _operands(layer, p.spatial_scale)
    if min(size) < 1 or regions.shape[0] * x.shape[1] * math.prod(size) > MAX_ELEMENTS:
        raise layer.bad(f"cannot pool {regions.shape[0]} regions into {list(size)} bins")
    return layer.b.roi_pool(x, regions, size=size, spatial_scale=float(p.spatial_scale))


@caffe_layer("PSROIPooling")
def ps_roi_pooling(layer: Layer) -> Results:
    p = layer.p.psroi_pooling_param
    x, regions = _operands(layer, p.spatial_scale)
    if p.group_size < 1 or p.output_dim * p.group_size**2 != x.shape[1]:
        raise layer.shape_error(f"{x.shape[1]} channels are not {p.output_dim} (output_dim) x {p.group_size}^2")
    return layer.b.ps_roi_pool(x, regions, group=p.group_size, spatial_scale=float(p.spatial_scale))


def _operands(layer: Layer, scale: float) -> tuple[Value, Value]:
    layer.expect_inputs(2, 2)
    x, regions = layer.inputs
    if x.type.rank != 4 or math.prod(regions.shape[1:]) != 5:
        raise layer.shape_error(f"takes (N, C, H, W) and regions (R, 5), got {list(x.shape)} and {list(regions.shape)}")
    if not 0 < scale < math.inf:
        raise layer.bad(f"spatial_scale must be positive, got {scale:g}")
    return x, layer.reshape(regions, (regions.shape[0], 5))


@caffe_layer("Proposal")
def proposal(layer: Layer) -> Results:
    """Bottoms: class probabilities, box deltas, facts about the image. Tops: regions, and maybe their scores."""
    p = layer.p.proposal_param
    layer.expect_inputs(3, 3)
    scores, deltas, image = layer.inputs
    if scores.type.rank != 4 or deltas.type.rank != 4:
        raise layer.shape_error(f"takes blobs of 4 axes, got {list(scores.shape)} and {list(deltas.shape)}")
    ratios, scales = list(p.ratio) or list(_DEFAULT_RATIOS), list(p.scale) or list(_DEFAULT_SCALES)
    if not all(0 < value < math.inf for value in (*ratios, *scales)) or not 0 < p.base_size <= 1 << 16:
        raise layer.bad("base_size, ratios and scales must be positive")
    if not 0 < p.post_nms_topn <= _MAX_ROIS or p.pre_nms_topn < 1 or not p.nms_thresh >= 0:
        counts = [p.pre_nms_topn, p.post_nms_topn]
        raise layer.bad(
            f"needs counts of 1 to {_MAX_ROIS} and a threshold of 0 or more, got {counts}, {p.nms_thresh:g}"
        )
    image_facts = layer.reshape(image, (image.shape[0], math.prod(image.shape[1:])))
    attributes = {
        "anchors": _anchors(p.base_size, ratios, scales),
        "feature_stride": p.feat_stride,
        "min_size": p.min_size,
        "pre_nms_count": p.pre_nms_topn,
        "post_nms_count": p.post_nms_topn,
        "nms_threshold": float(p.nms_thresh),
    }
    found = layer.b.create("proposal", [scores, deltas, image_facts], attributes).results
    return list(found[: max(1, len(layer.p.top))])


def _anchors(base: int, ratios: list[float], scales: list[float]) -> list[float]:
    """Boxes x0, y0, x1, y1 around the square of `base` pixels at the origin: whole sizes per ratio, times the scale."""
    middle, boxes = (base - 1) / 2, []
    for ratio in ratios:
        width = math.floor(math.sqrt(base * base / ratio) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in scales:
            across, down = (width * scale - 1) / 2, (height * scale - 1) / 2
            boxes += [middle - across, middle - down, middle + across, middle + down]
    return [float(np.float32(value)) for value in boxes]
