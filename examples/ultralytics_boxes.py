"""Boxes of a detector as Ultralytics exports it: python examples/ultralytics_boxes.py [NET.onnx PICTURE [CHIP]]

`yolo export model=yolov8n.pt format=onnx` gives NET.onnx (YOLOv8, YOLO11): input `images`, RGB, letterboxed on gray,
0..1; output `output0` of 1 x (4 + classes) x cells: centre and size in pixels of the input, then a score for each
class. Without arguments a small network with the same input and head finds the red square of a drawn picture.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from PIL import Image

import bmcompiler
from bmcompiler.options import Preprocessing

SIZE, STRIDE, BINS, CLASSES = 64, 8, 16, 2
CELLS = SIZE // STRIDE


def boxes(output, least=0.25, overlap=0.45):
    """(4 + classes, cells) -> rows of left, top, right, bottom, score, class; the best of those that overlap."""
    centre, size, scores = output[:2], output[2:4], output[4:]
    rows = np.vstack([centre - size / 2, centre + size / 2, scores.max(0), scores.argmax(0)]).T
    rows = rows[rows[:, 4] > least]
    kept = []
    for row in rows[(-rows[:, 4]).argsort(kind="stable")]:
        if all(row[5] != other[5] or common(row, other) < overlap for other in kept):
            kept.append(row)
    return np.array(kept).reshape(-1, 6)


def common(a, b):
    """Intersection over union."""
    width, height = np.clip(np.minimum(a[2:4], b[2:4]) - np.maximum(a[:2], b[:2]), 0, None)
    both = width * height
    return both / (np.prod(a[2:4] - a[:2]) + np.prod(b[2:4] - b[:2]) - both)


def detect(net, picture, chip):
    """Compile for a chip, run the program on a picture; boxes in pixels of the picture."""
    trained = Preprocessing(letterbox=114, scale=1 / 255)
    session = bmcompiler.compile(net, target=chip, preprocess=trained).session()
    (output,) = session.run(session.images(picture)).values()
    found = boxes(output[0])
    with Image.open(picture) as opened:
        found[:, :4] = session.to_image(found[:, :4], opened.size[::-1])
    return found


def small_network():
    """One scale of the head behind one convolution: cells that are red are of class 0, their sides half a cell away."""
    weight = np.zeros((4 * BINS + CLASSES, 3, STRIDE, STRIDE), np.float32)
    weight[4 * BINS] = np.array([1, -1, -1], np.float32)[:, None, None] * 20 / STRIDE**2
    bias = np.full(len(weight), -30, np.float32)
    bias[: 4 * BINS].reshape(4, BINS)[:, :2] = 0  # distances: bins 0 and 1 alike
    bias[4 * BINS :] = -10
    grid = np.indices((CELLS, CELLS), np.float32)[::-1].reshape(1, 2, -1) + 0.5
    constants = {
        "weight": weight,
        "bias": bias,
        "cells": np.array([1, len(weight), CELLS**2]),
        "parts": np.array([4 * BINS, CLASSES]),
        "bins": np.array([1, 4, BINS, CELLS**2]),
        "dfl": np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1),
        "sides": np.array([1, 4, CELLS**2]),
        "two": np.array([2, 2]),
        "anchors": grid,
        "half": np.float32(0.5),
        "stride": np.float32(STRIDE),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["images", "weight", "bias"], ["maps"], strides=[STRIDE, STRIDE]),
        node("Reshape", ["maps", "cells"], ["rows"]),
        node("Split", ["rows", "parts"], ["distances", "logits"], axis=1),
        node("Reshape", ["distances", "bins"], ["by_side"]),
        node("Transpose", ["by_side"], ["by_bin"], perm=[0, 2, 1, 3]),
        node("Softmax", ["by_bin"], ["weights"], axis=1),
        node("Conv", ["weights", "dfl"], ["mean"]),
        node("Reshape", ["mean", "sides"], ["ltrb"]),
        node("Split", ["ltrb", "two"], ["lt", "rb"], axis=1),
        node("Sub", ["anchors", "lt"], ["first"]),
        node("Add", ["anchors", "rb"], ["last"]),
        node("Add", ["first", "last"], ["sum"]),
        node("Mul", ["sum", "half"], ["centre"]),
        node("Sub", ["last", "first"], ["size"]),
        node("Concat", ["centre", "size"], ["box"], axis=1),
        node("Mul", ["box", "stride"], ["pixels"]),
        node("Sigmoid", ["logits"], ["scores"]),
        node("Concat", ["pixels", "scores"], ["output0"], axis=1),
    ]
    ends = [
        helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, [1, 3, SIZE, SIZE]),
        helper.make_tensor_value_info("output0", onnx.TensorProto.FLOAT, [1, 4 + CLASSES, CELLS**2]),
    ]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def main(arguments):
    if arguments:
        found = detect(arguments[0], arguments[1], (arguments[2:] or ["bm1684x"])[0])
    else:
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder) / "picture.png"
            drawn = Image.new("RGB", (128, 96), "navy")
            drawn.paste("red", (32, 32, 48, 48))
            drawn.save(picture)
            found = detect(small_network(), picture, "bm1684x")
    for left, top, right, bottom, score, kind in found:
        print(f"class {kind:.0f} {score:.2f}: {left:.1f}, {top:.1f}, {right:.1f}, {bottom:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
