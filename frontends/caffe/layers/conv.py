"""Convolution, Deconvolution, Im2col, InnerProduct, Embed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import MAX_CONSTANT, Layer, Results, caffe_layer
from bmcompiler.ir import Value

_Param = caffe_pb2.ConvolutionParameter


@caffe_layer("Convolution")
def convolution(layer: Layer) -> Results:
    return _each_input(layer, lambda x: _conv(layer, x, layer.p.convolution_param.group))


@caffe_layer("DepthwiseConvolution", "ConvolutionDepthwise")
def depthwise_convolution(layer: Layer) -> Results:
    """The branches' own depthwise layers: one group per input channel, whatever `group` says."""
    return _each_input(layer, lambda x: _conv(layer, x, _image(layer, x)[1]))


@caffe_layer("Deconvolution")
def deconvolution(layer: Layer) -> Results:
    return _each_input(layer, lambda x: _conv(layer, x, layer.p.convolution_param.group, transposed=True))


@caffe_layer("InnerProduct")
def inner_product(layer: Layer) -> Results:
    """Axes from `axis` on are flattened; weights are (num_output, K), or (K, num_output) with `transpose`."""
    p, x = layer.p.inner_product_param, layer.only
    axis = layer.axis(p.axis)
    outer, k, n = x.shape[:axis], prod(x.shape[axis:]), _outputs(layer, p)
    shape = (k, n) if p.transpose else (n, k)
    weight, *bias = layer.weights(shape, *([(n,)] if p.bias_term else []))
    flat = layer.reshape(x, (prod(outer), k))
    operands = [flat, layer.constant(weight, "weight"), *(layer.constant(b, "bias") for b in bias)]
    return layer.reshape(layer.b.matmul(*operands, transpose_right=not p.transpose), (*outer, n))


@caffe_layer("Embed")
def embed(layer: Layer) -> Results:
    """Rows of the weights (input_dim, num_output) at the indices that the bottom holds, plus a bias."""
    p, n = layer.p.embed_param, _outputs(layer, layer.p.embed_param)
    if p.input_dim < 1:
        raise layer.bad("states no input_dim")
    weight, *bias = layer.weights((p.input_dim, n), *([(n,)] if p.bias_term else []))
    index = layer.b.cast(layer.only, dtype="i32")
    rows = layer.b.gather(layer.constant(weight, "weight"), index, axis=0)
    return layer.b.add(rows, layer.constant(bias[0], "bias")) if bias else rows


@caffe_layer("Im2col")
def im2col(layer: Layer) -> Results:
    """The taps of each window as channels (C, KH, KW): a convolution that picks one input value per output channel."""
    p, x = layer.p.convolution_param, layer.only
    channels, (kh, kw) = _image(layer, x)[1], window(layer, p, "kernel", None)
    taps = kh * kw
    if taps < 1 or channels * taps * taps > MAX_CONSTANT:
        raise layer.bad(f"cannot unfold windows of {kh} x {kw} over {channels} channels")
    weight = np.tile(np.eye(taps, dtype=np.float32), (channels, 1)).reshape(channels * taps, 1, kh, kw)
    return layer.b.conv(x, layer.constant(weight, "weight"), group=channels, **_geometry(layer, p, x))


def _each_input(layer: Layer, convert: Any) -> Results:
    """Convolutions take any number of bottoms and treat each alike."""
    layer.expect_inputs(1, None)
    return [convert(x) for x in layer.inputs]


def _conv(layer: Layer, x: Value, group: int, transposed: bool = False) -> Value:
    p = layer.p.convolution_param
    channels, outputs = _image(layer, x)[1], _outputs(layer, p)
    if group < 1 or channels % group or outputs % group:
        raise layer.shape_error(f"group {group} does not divide {channels} input and {outputs} output channels")
    shape = (channels, outputs // group) if transposed else (outputs, channels // group)
    kernel = window(layer, p, "kernel", None)
    weights = layer.weights((*shape, *kernel), *([(outputs,)] if p.bias_term else []))
    make = layer.b.deconv if transposed else layer.b.conv
    return make(x, *_constants(layer, weights), group=group, **_geometry(layer, p, x))


def _constants(layer: Layer, arrays: Sequence[Any]) -> list[Value]:
    return [layer.constant(array, suffix) for array, suffix in zip(arrays, ("weight", "bias"))]


def _geometry(layer: Layer, p: _Param, x: Value) -> dict[str, Any]:
    pad_h, pad_w = window(layer, p, "pad", 0)
    layer.check_padding(x, pad_h, pad_w)
    dilations = _pair(layer, "dilation", list(p.dilation), None, 1)
    if not p.dilation:
        hole_h, hole_w = (p.hole_h, p.hole_w) if p.HasField("hole_h") or p.HasField("hole_w") else (p.hole, p.hole)
        dilations = (hole_h, hole_w)
    strides = window(layer, p, "stride", 1)
    if min(*strides, *dilations) < 1:
        raise layer.bad(f"stride {list(strides)} and dilation {list(dilations)} must be positive")
    return {"strides": strides, "pads": (pad_h, pad_h, pad_w, pad_w), "dilations": dilations}


def window(layer: Layer, p: Any, name: str, default: int | None) -> tuple[int, int]:
    """(height, width) of kernel, pad or stride from the list field, the `_h`/`_w` fields, or the default.

    Raises FileFormatError when the setting is missing or stated in both ways.
    """
    listed = getattr(p, "kernel_size" if name == "kernel" else name)
    high, wide = f"{name}_h", f"{name}_w"
    apart = (getattr(p, high), getattr(p, wide)) if p.HasField(high) or p.HasField(wide) else None
    if isinstance(listed, int):  # pooling: one optional number instead of a list
        listed = [listed] if p.HasField("kernel_size" if name == "kernel" else name) else []
    return _pair(layer, name, list(listed), apart, default)


def _pair(
    layer: Layer, name: str, listed: list[int], apart: tuple[int, int] | None, default: int | None
) -> tuple[int, int]:
    if apart is not None:
        if any(listed):
            raise layer.bad(f"states its {name} both as a list and as {name}_h/{name}_w")
        return apart
    if len(listed) > 2:
        raise layer.unsupported(f"has a {name} of {len(listed)} axes; supported: 2-D (height, width)")
    if not listed:
        if default is None:
            raise layer.bad(f"states no {name} size")
        return default, default
    return listed[0], listed[-1]


def _outputs(layer: Layer, p: Any) -> int:
    if p.num_output < 1:
        raise layer.bad("states no num_output")
    return int(p.num_output)


def _image(layer: Layer, x: Value) -> tuple[int, ...]:
    shape = layer.image(x)
    if layer.p.convolution_param.axis not in (1, -3):
        raise layer.unsupported(f"axis {layer.p.convolution_param.axis}; supported: channels on axis 1")
    return shape
