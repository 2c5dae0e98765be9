"""Softmax, Reduction, ArgMax."""

from __future__ import annotations

from math import prod

from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer
from bmcompiler.ir import Value

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
    """Indices, as float32, of the top_k largest values in descending order: along `axis`, or over all but the batch.

    Of equal values Caffe takes the one of the higher index first, so the axis is searched in reverse. With out_max_val
    the values: instead of the indices along an axis, else after them, as (N, 2, top_k).
    """
    p, x = layer.p.argmax_param, layer.only
    if p.HasField("axis"):
        axis = layer.axis(p.axis)
    elif x.type.rank < 2:
        raise layer.shape_error(f"takes a blob with a batch axis, got {list(x.shape)}")
    else:
        axis, rank = 2, max(3, x.type.rank)
        x = layer.reshape(x, (x.shape[0], 1, prod(x.shape[1:]), *[1] * (rank - 3)))
    if not 1 <= p.top_k <= x.shape[axis]:
        raise layer.bad(f"top_k must be 1 to {x.shape[axis]}, got {p.top_k}")
    values, indices = _largest(layer, x, axis, p.top_k)
    if not p.out_max_val:
        return indices
    return values if p.HasField("axis") else layer.b.concat(indices, values, axis=1)


def _largest(layer: Layer, x: Value, axis: int, count: int) -> tuple[Value, Value]:
    """(values, indices) of the `count` largest along an axis, of equal ones the last first."""
    b, last = layer.b, x.shape[axis] - 1
    whole = range(x.type.rank)
    turned = b.slice(
        x,
        starts=[last if i == axis else 0 for i in whole],
        ends=[-1 if i == axis else x.shape[i] for i in whole],
        steps=[-1 if i == axis else 1 for i in whole],
    )
    if count == 1 and not layer.p.argmax_param.out_max_val:
        values, places = turned, b.arg(turned, method="max", axis=axis)
    else:
        values, places = b.create("top_k", [turned], {"k": count, "axis": axis}).results
    places = b.cast(places, dtype="f32")
    return values, b.sub(layer.scalar(last, places, "last"), places)
