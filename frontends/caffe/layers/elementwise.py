"""Eltwise, Axpy, Threshold, constants, and the layers that do nothing at inference."""

from __future__ import annotations

from functools import reduce
from math import prod

from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import MAX_CONSTANT, Layer, Results, caffe_layer
from bmcompiler.ir import Value
from bmcompiler.spelling import spelled

_Param = caffe_pb2.EltwiseParameter


@caffe_layer("Eltwise")
def eltwise(layer: Layer) -> Results:
    """PROD, SUM with an optional coefficient per bottom, or MAX of blobs of one shape."""
    p, first = layer.p.eltwise_param, layer.x
    layer.expect_inputs(2, None)
    for value in layer.inputs:
        if value.shape != first.shape:
            shapes = ", ".join(str(list(v.shape)) for v in layer.inputs)
            raise layer.shape_error(f"bottoms must have one shape, got {shapes}")
    if p.coeff and p.operation != _Param.SUM:
        raise layer.bad("coefficients are for SUM only")
    if p.operation == _Param.PROD:
        return reduce(layer.b.mul, layer.inputs)
    if p.operation == _Param.MAX:
        return reduce(layer.b.max, layer.inputs)
    coefficients = list(p.coeff) or [1.0] * len(layer.inputs)
    if len(coefficients) != len(layer.inputs):
        raise layer.bad(f"has {len(coefficients)} coefficients for {len(layer.inputs)} bottoms")
    total = layer.affine(first, coefficients[0], 0)
    for value, coefficient in zip(layer.inputs[1:], coefficients[1:]):
        if coefficient == -1:
            total = layer.b.sub(total, value)
        else:
            total = layer.b.add(total, layer.affine(value, coefficient, 0))
    return total


@caffe_layer("Axpy")
def axpy(layer: Layer) -> Results:
    """a * x + y with one factor of bottom 0 per channel of bottom 1 (squeeze-and-excitation nets)."""
    layer.expect_inputs(3, 3)
    factor, x, y = layer.inputs
    if x.shape != y.shape or x.type.rank < 2 or prod(factor.shape) != prod(x.shape[:2]):
        shapes = ", ".join(str(list(v.shape)) for v in layer.inputs)
        raise layer.shape_error(f"takes factors (N, C) and two blobs (N, C, ...) of one shape, got {shapes}")
    spread = layer.reshape(factor, (*x.shape[:2], *[1] * (x.type.rank - 2)))
    return layer.b.add(layer.b.mul(x, spread), y)


@caffe_layer("Threshold")
def threshold(layer: Layer) -> Results:
    """1 where x > threshold, else 0."""
    x = layer.only
    above = layer.b.compare(x, layer.scalar(layer.p.threshold_param.threshold, x, "threshold"), method="greater")
    return layer.b.cast(above, dtype="f32")


@caffe_layer("Parameter")
def parameter(layer: Layer) -> Results:
    """A trained blob as it is."""
    layer.expect_inputs(0, 0)
    shape = tuple(layer.p.parameter_param.shape.dim)
    if min(shape, default=1) < 1:
        raise layer.shape_error(f"shape {list(shape)} is not positive")
    return layer.constant(layer.weights(shape)[0], "value")


@caffe_layer("Dropout")
def dropout(layer: Layer) -> Results:
    """Scaled while training, so nothing at inference; the oldest files (scale_train: false) scale here instead."""
    p = layer.p.dropout_param
    return layer.only if p.scale_train else layer.affine(layer.only, 1 - p.dropout_ratio, 0)


@caffe_layer("Split")
def split(layer: Layer) -> Results:
    """One name per reader of a blob (Caffe inserts these itself): the same value under each."""
    return [layer.only] * len(layer.p.top)


@caffe_layer("DummyData")
def dummy_data(layer: Layer) -> Results:
    """Constants. Fillers other than `constant` are random, so their tops must be given as inputs instead."""
    p, tops = layer.p.dummy_data_param, len(layer.p.top)
    shapes = [tuple(s.dim) for s in p.shape] or list(zip(p.num, p.channels, p.height, p.width))
    if len(shapes) not in (1, tops) or len(p.data_filler) not in (0, 1, tops):
        raise layer.bad(f"has {len(shapes)} shapes and {len(p.data_filler)} fillers for {tops} tops")
    return [_filled(layer, i, shapes[min(i, len(shapes) - 1)]) for i in range(tops)]


def _filled(layer: Layer, index: int, shape: tuple[int, ...]) -> Value:
    import numpy as np

    fillers = layer.p.dummy_data_param.data_filler
    filler = fillers[min(index, len(fillers) - 1)] if fillers else caffe_pb2.FillerParameter()
    if filler.type != "constant":
        raise layer.unsupported(
            f"filler '{filler.type}' gives random values; supported: constant",
            f"give the shape of '{layer.p.top[index]}' with {spelled('shapes')} to make it an input",
        )
    count = 1
    for dim in shape:
        count *= dim
        if dim < 1 or count > MAX_CONSTANT:
            raise layer.shape_error(f"shape {list(shape)} is not positive or has more than {MAX_CONSTANT} elements")
    return layer.constant(np.full(shape, filler.value, np.float32), layer.p.top[index])
