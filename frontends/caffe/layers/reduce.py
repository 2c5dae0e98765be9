"""Softmax, Reduction, ArgMax."""

from __future__ import annotations

from math import prod

from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer

_Param = caffe_pb2.ReductionParameter
_METHODS = {_Param.SUM: "sum", _Param.ASUM: "l1", _Param.SUMSQ: "sum_square", _Param.MEAN: "mean"}


@caffe_layer("Softmax")
def softmax(layer: Layer) -> Results:
    return layer.b.softmax(layer.only, axis=layer.axis(layer.p.softmax_param.axis))


@caffe_layer("Reduction")
def reduction(layer: Layer) -> Results:
    """coeff * reduction over all axes from `axis` on, which vanish."""
    p, x = layer.p.reduction_param, layer.only
    axes = range(layer.axis(p.axis), x.type.rank)
    y = layer.b.reduce(x, method=_METHODS[p.operation], axes=list(axes), keepdims=False)
    return layer.affine(y, p.coeff, 0)


@caffe_layer("ArgMax")
def argmax(layer: Layer) -> Results:
    """Index of the largest value, as float32: along `axis`, or over all but the batch. Of equal values the first."""
    p, x = layer.p.argmax_param, layer.only
    if p.out_max_val or p.top_k != 1:
        raise layer.unsupported("gives values or several indices; supported: top_k 1 with out_max_val false")
    if p.HasField("axis"):
        index = layer.b.arg(x, method="max", axis=layer.axis(p.axis))
    elif x.type.rank < 2:
        raise layer.shape_error(f"takes a blob with a batch axis, got {list(x.shape)}")
    else:
        flat = layer.reshape(x, (x.shape[0], prod(x.shape[1:])))
        index = layer.b.arg(flat, method="max", axis=1)
        index = layer.reshape(index, (x.shape[0], *[1] * max(2, x.type.rank - 1)))
    return layer.b.cast(index, dtype="f32")
