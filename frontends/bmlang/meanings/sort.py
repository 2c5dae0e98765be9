"""Sorting, suppression of boxes, and layers of the user's own (bmlang.md 4.10, 4.13)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.meanings.arrange import axis_of
from bmcompiler.frontends.bmlang.meanings.registry import Call, Counted, Results, meaning
from bmcompiler.frontends.bmlang.meanings.select import counted
from bmcompiler.ir import Value


@meaning("arg")
def arg(e: Emit, c: Call) -> Value:
    """The index of the first largest (or smallest) element."""
    x, p = c["tensor_i"], c["arg_param"]
    if p.method not in (0, 1):
        raise c.wrong(f"method must be 0 (largest) or 1 (smallest), got {p.method}")
    axis = axis_of(c, "axis", p.axis, x.type.rank)
    found = e.op("arg", e.cast(x, "f32"), method=("max", "min")[p.method], axis=axis)
    return e.cast(found, c.out)


@meaning("topk")
def topk(e: Emit, c: Call) -> Results:
    """The best k elements and their indices."""
    p = c["param"]
    axis = axis_of(c, "axis", p.axis, c["tensor_i"].type.rank)
    values, indices = e.results("top_k", c["tensor_i"], k=p.k, axis=axis, largest=p.descending)
    return values, e.cast(indices, c.outs[1].ir)


@meaning("sort", "argsort")
def sort(e: Emit, c: Call) -> Results:
    """All elements in order and their indices; equal ones stay in their order, whatever `stable` says."""
    x = c["tensor_i"]
    axis = axis_of(c, "dim", c["dim"], x.type.rank)
    values, indices = e.results("top_k", x, k=x.shape[axis], axis=axis, largest=c["descending"])
    chosen = e.cast(indices, c.outs[-1].ir)
    return chosen if c.name == "argsort" else (values, chosen)


@meaning("nms", "nms_v2")
def nms(e: Emit, c: Call) -> Counted:
    """Indices of the boxes that stay; equal scores keep the order of the boxes, whatever `stable` says."""
    boxes, scores = c["boxes"], c["scores"]
    if boxes.type.rank != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise c.wrong(f"boxes must be [N, 4] and scores [N], got {list(boxes.shape)} and {list(scores.shape)}")
    number = boxes.shape[0]
    options: dict[str, Any] = {"max_boxes": number}
    if c.name == "nms_v2":
        options["max_boxes"] = min(c["max_output_size"], number)
        least = np.float32(c["score_threshold"].value)
        options["score_threshold"] = float(np.nextafter(least, np.float32(-np.inf)))  # the op takes what is above
    overlap = c["threshold" if c.name == "nms" else "iou_threshold"].value
    rows = e.op(
        "non_max_suppression",
        e.reshape(boxes, (1, number, 4)),
        e.reshape(scores, (1, 1, number)),
        iou_threshold=float(overlap),
        **options,
    )
    length = rows.shape[0]
    column = e.op("slice", rows, starts=(0, 2), ends=(length, 3), steps=(1, 1))
    return counted(e, e.cast(e.reshape(column, (length,)), c.out))


@meaning("customed_ops")
def customed_ops(e: Emit, c: Call) -> Results:
    """A layer of the user's own."""
    p = c["param"]
    shapes = p.output_shapes or [shape for shape in c.shapes if shape is not None]
    if len(shapes) != len(c.outs):
        raise c.wrong(f"param.output_shapes has {len(shapes)} shapes for {len(c.outs)} outputs")
    results = e.results(
        "customized",
        *c["tensor_i"],
        sub_type=p.op_type,
        output_shapes=shapes,
        i32_params=p.i32_params,
        f32_params=p.f32_params,
    )
    return [e.cast(value, dtype.ir) for value, dtype in zip(results, c.outs)]
