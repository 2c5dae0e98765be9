"""Pooling."""

from __future__ import annotations

from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer
from bmcompiler.frontends.caffe.layers.conv import window

_Param = caffe_pb2.PoolingParameter


@caffe_layer("Pooling")
def pooling(layer: Layer) -> Results:
    """MAX and AVE. Sizes are rounded up unless the file says otherwise; AVE counts the padding, as Caffe does.

    Caffe drops a last window that begins in the trailing padding, but only where there is padding; without padding such
    a window (stride larger than kernel) would see nothing, and Caffe's result for it is undefined: rejected here.
    """
    p, x = layer.p.pooling_param, layer.only
    if len(layer.p.top) > 1:
        raise layer.unsupported(
            "has a second top (the mask of maxima)", "use nearest upsampling instead of unpooling, or a custom layer"
        )
    if p.pool == _Param.STOCHASTIC:
        raise layer.unsupported("stochastic pooling; supported: MAX, AVE")
    if x.type.rank != 4:
        raise layer.shape_error(f"takes a blob of 4 axes (N, C, H, W), got {list(x.shape)}")
    ceil = p.round_mode == _Param.CEIL if p.HasField("round_mode") else p.ceil_mode
    if p.global_pooling:
        kernel, strides, pads = x.shape[2:], (1, 1), (0, 0)
    else:
        kernel, strides, pads = (
            window(layer, p, "kernel", None),
            window(layer, p, "stride", 1),
            window(layer, p, "pad", 0),
        )
    layer.check_padding(x, *pads)
    if min(*kernel, *strides) < 1:
        raise layer.bad(f"kernel {list(kernel)} and stride {list(strides)} must be positive")
    if ceil and not any(pads):
        _check_last_window(layer, x.shape[2:], kernel, strides)
    geometry = {"kernel": kernel, "strides": strides, "pads": (pads[0], pads[0], pads[1], pads[1])}
    if p.pool == _Param.MAX:
        return layer.b.max_pool(x, ceil_mode=ceil, **geometry)
    return layer.b.avg_pool(x, ceil_mode=ceil, count_include_pad=any(pads), **geometry)


def _check_last_window(layer: Layer, sizes: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...]) -> None:
    for size, taps, stride in zip(sizes, kernel, strides):
        if -(-(size - taps) // stride) * stride >= size > 0:
            raise layer.unsupported(
                f"kernel {taps} with stride {stride} puts the last window outside of the {size} input elements",
                "set round_mode: FLOOR",
            )
