"""Ends of detectors as they are exported: the best of all places, boxes that no better one overlaps."""

from __future__ import annotations

import numpy as np

from .blocks import Net


def _scores_and_boxes(net: Net, classes: int) -> tuple[str, str, int]:
    """[n, places, classes] from 0 to 1, and corners [n, places, 4] of a map."""
    g = net.g
    x = net.conv(net.conv(net.conv(net.image(), net.width(8), 3, 2), net.width(12), 3, 2), net.width(16))
    h, w = g.shape(x)[2:]
    scores = net.conv(net.conv(x, net.width(12)), classes, 1, act="Sigmoid", norm=False)
    sizes = net.conv(net.conv(x, net.width(12)), 4, 1, act="Softplus", norm=False)
    scores, sizes = (
        g.add("Transpose", net.reshape(each, [0, count, -1]), perm=[0, 2, 1])
        for each, count in ((scores, classes), (sizes, 4))
    )
    middle = np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1).reshape(1, h * w, 2) + 0.5
    low, high = net.split(sizes, [2, 2], axis=2)
    low, high = g.add("Sub", g.constant(middle), low), g.add("Add", g.constant(middle), high)
    return scores, g.add("Concat", low, high, axis=2), h * w


def best_places(net: Net) -> list[str]:
    """The best scores of all classes and places, their classes and boxes (CenterNet, RT-DETR, YOLOv10)."""
    g, classes, n = net.g, net.pick(2, 5, 16), net.batch
    scores, boxes, places = _scores_and_boxes(net, classes)
    count = min(net.pick(5, 20, 100), places)
    if net.chance(0.5):
        scores, found = g.add("TopK", net.reshape(scores, [0, -1]), g.constant([count], int), results=2)
        kinds = g.add("Mod", found, g.constant(classes, int))
        found = g.add("Div", found, g.constant(classes, int))
    else:
        best = g.add("ReduceMax", scores, axes=[2], keepdims=0)
        _, found = g.add("TopK", best, g.constant([count], int), axis=1, results=2)
        wide = g.add("Expand", g.add("Unsqueeze", found, g.constant([2], int)), g.constant([n, count, classes], int))
        scores = g.add("GatherElements", scores, wide, axis=1)
        kinds = g.add("ArgMax", scores, axis=2, keepdims=0)
        scores = g.add("ReduceMax", scores, axes=[2], keepdims=0)
    wide = g.add("Expand", g.add("Unsqueeze", found, g.constant([2], int)), g.constant([n, count, 4], int))
    return [scores, kinds, g.add("GatherElements", boxes, wide, axis=1)]


def apart(net: Net) -> list[str]:
    """Boxes that no better box of their class overlaps, as many as there are, beside all boxes and scores."""
    g, classes = net.g, net.pick(1, 3)
    scores, boxes, _ = _scores_and_boxes(net, classes)
    scores = g.add("Transpose", scores, perm=[0, 2, 1])
    limits = g.constant(net.pick(3, 20), int), g.constant(net.pick(0.3, 0.6)), g.constant(net.pick(0.05, 0.4))
    return [g.add("NonMaxSuppression", boxes, scores, *limits), boxes, scores]


FAMILIES = (best_places, apart)
