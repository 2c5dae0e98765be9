"""ONNX op my.layers.SortRows(x): each row (last axis) in ascending order. No chip sorts, so the host does it."""

from __future__ import annotations

import numpy as np

from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.custom_layers import register_cpu_function


@onnx_op("SortRows", domain="my.layers")
def convert(node: Node, b: Builder) -> Value:
    x = node.input(0)
    return b.customized(x, sub_type="SortRows", output_shapes=[x.shape])


@register_cpu_function("SortRows")
def sort_rows(inputs: list[np.ndarray], i32_params: tuple[int, ...], f32_params: tuple[float, ...]) -> np.ndarray:
    return np.sort(inputs[0], axis=-1)
