"""Layers of the SSD branch that make detections: PriorBox, DetectionOutput."""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import MAX_CONSTANT, Layer, Results, caffe_layer
from bmcompiler.numeric.arrays import Doubles

_SAME_RATIO = 1e-6
_CodeType = caffe_pb2.PriorBoxParameter.CodeType


@caffe_layer("PriorBox")
def prior_box(layer: Layer) -> Results:
    """Boxes around each cell of bottom 0 in fractions of the image (bottom 1), then variances: a constant (1, 2, P*4).

    Only shapes enter, so nothing is left to compute at run time.
    """
    p = layer.p.prior_box_param
    layer.expect_inputs(1, 2)
    for value in layer.inputs:
        layer.image(value)
    rows, columns = layer.x.shape[2:]
    image = _image_size(layer)
    sizes = _box_sizes(layer)
    if rows * columns * len(sizes) * 8 > MAX_CONSTANT:
        raise layer.shape_error(f"makes {rows} x {columns} x {len(sizes)} boxes, more than {MAX_CONSTANT // 8}")
    steps = _steps(layer, image, (rows, columns))
    middle = np.empty((rows, columns, 1, 2))
    middle[..., 0] = ((np.arange(columns) + p.offset) * steps[1])[None, :, None]
    middle[..., 1] = ((np.arange(rows) + p.offset) * steps[0])[:, None, None]
    extent = np.array([image[1], image[0]], np.float64)
    boxes = np.concatenate([(middle - sizes / 2) / extent, (middle + sizes / 2) / extent], axis=-1)
    if p.clip:
        boxes = boxes.clip(0, 1)
    variances = np.broadcast_to(np.array(_variances(layer)), boxes.shape)
    return layer.constant(np.stack([boxes.ravel(), variances.ravel()])[None], "priors")


def _image_size(layer: Layer) -> tuple[int, int]:
    """(height, width) of the image, from the settings or the second bottom."""
    p = layer.p.prior_box_param
    if p.HasField("img_size") and (p.HasField("img_h") or p.HasField("img_w")):
        raise layer.bad("states its image size both as img_size and as img_h/img_w")
    size = (p.img_size, p.img_size) if p.HasField("img_size") else (p.img_h, p.img_w)
    if all(size):
        return size
    layer.expect_inputs(2, 2)
    return layer.inputs[1].shape[2], layer.inputs[1].shape[3]


def _steps(layer: Layer, image: tuple[int, int], cells: tuple[int, ...]) -> tuple[float, float]:
    """Distance of neighbouring cells in pixels, down and across."""
    p = layer.p.prior_box_param
    if p.HasField("step") and (p.HasField("step_h") or p.HasField("step_w")):
        raise layer.bad("states its step both as step and as step_h/step_w")
    down, across = (p.step, p.step) if p.HasField("step") else (p.step_h, p.step_w)
    if not (down >= 0 and across >= 0 and math.isfinite(down + across)):
        raise layer.bad(f"step {[down, across]} must be positive")
    return (down, across) if down and across else (image[0] / cells[0], image[1] / cells[1])


def _box_sizes(layer: Layer) -> Doubles:
    """(width, height) in pixels of the boxes of one cell.

    Per min_size its square, the geometric mean with max_size, and one box per aspect ratio other than 1.
    """
    p = layer.p.prior_box_param
    if not p.min_size or not all(0 < s < math.inf for s in (*p.min_size, *p.max_size, *p.aspect_ratio)):
        raise layer.bad("needs one or more min_size; sizes and aspect ratios must be positive")
    if p.max_size and len(p.max_size) != len(p.min_size):
        raise layer.bad(f"has {len(p.min_size)} min_size and {len(p.max_size)} max_size")
    if any(high <= low for low, high in zip(p.min_size, p.max_size)):
        raise layer.bad(f"max_size {list(p.max_size)} must be larger than min_size {list(p.min_size)}")
    ratios = [1.0]
    for ratio in p.aspect_ratio:
        if not any(abs(ratio - known) < _SAME_RATIO for known in ratios):
            ratios += [ratio, 1 / ratio] if p.flip else [ratio]
    sizes = []
    for index, low in enumerate(p.min_size):
        sizes.append((low, low))
        if p.max_size:
            sizes.append((math.sqrt(low * p.max_size[index]),) * 2)
        sizes += [(low * math.sqrt(ratio), low / math.sqrt(ratio)) for ratio in ratios[1:]]
    return np.array(sizes, np.float64)


def _variances(layer: Layer) -> list[float]:
    given = list(layer.p.prior_box_param.variance) or [0.1]
    if len(given) not in (1, 4) or min(given) <= 0:
        raise layer.bad(f"needs 1 or 4 positive variances, got {given}")
    return given * 4 if len(given) == 1 else given


@caffe_layer("DetectionOutput")
def detection_output(layer: Layer) -> Results:
    """See the op: a fixed number of rows, unused ones with image -1."""
    p = layer.p.detection_output_param
    layer.expect_inputs(3, 3)
    location, confidence, priors = layer.inputs
    nms = _suppression(layer)
    if p.num_classes < 1:
        raise layer.bad("states no num_classes")
    if priors.type.rank != 3:
        raise layer.shape_error(f"takes priors of 3 axes (1, 2, boxes * 4), got {list(priors.shape)}")
    if p.HasField("confidence_threshold"):
        nms["confidence_threshold"] = float(p.confidence_threshold)
    flat = [layer.reshape(v, (v.shape[0], prod(v.shape[1:]))) for v in (location, confidence)]
    return layer.b.detection_output(
        *flat,
        priors,
        num_classes=p.num_classes,
        share_location=p.share_location,
        background_label_id=p.background_label_id,
        code_type=_CodeType.Name(p.code_type).lower(),
        variance_encoded_in_target=p.variance_encoded_in_target,
        keep_top_k=max(p.keep_top_k, -1),
        **nms,
    )


def _suppression(layer: Layer) -> dict[str, Any]:
    """Settings of the suppression, from nms_param or the fields that some branches put beside it."""
    p = layer.p.detection_output_param
    if p.HasField("nms_param"):
        threshold, eta = float(p.nms_param.nms_threshold), float(p.nms_param.eta)
        top_k = p.nms_param.top_k if p.nms_param.HasField("top_k") else -1
    else:
        threshold, eta = float(p.nms_threshold), 1.0
        top_k = p.top_k if p.HasField("top_k") else -1
    if not threshold >= 0 or not 0 < eta <= 1:
        raise layer.bad(f"nms_threshold {threshold:g} must not be negative, eta {eta:g} must lie in 0 .. 1")
    return {"nms_threshold": threshold, "eta": eta, "top_k": max(top_k, -1)}
