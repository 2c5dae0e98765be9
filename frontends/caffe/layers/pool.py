"""Pooling, SPP."""

from __future__ import annotations

from math import prod

from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer
from bmcompiler.frontends.caffe.layers.conv import window
from bmcompiler.ir import Value

_Param = caffe_pb2.PoolingParameter
_MAX_LEVELS = 16


@caffe_layer("Pooling")
def pooling(layer: Layer) -> Results:
    """MAX and AVE. Sizes are rounded up unless the file says otherwise; AVE counts the padding, as Caffe does.

    Caffe drops a last window that begins in the trailing padding, but only where there is padding; without padding such
    a window (stride larger than kernel) would see nothing, and Caffe's result for it is undefined: rejected here.
    A second top of MAX gets the positions y * W + x of the maxima, as float32.
    """
    p, x = layer.p.pooling_param, layer.only
    if p.pool == _Param.STOCHASTIC:
        raise layer.unsupported("stochastic pooling; supported: MAX, AVE")
    layer.image()
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
    geometry = {"kernel": kernel, "strides": strides, "pads": (pads[0], pads[0], pads[1], pads[1]), "ceil_mode": ceil}
    if p.pool == _Param.AVE:
        return layer.b.avg_pool(x, count_include_pad=any(pads), **geometry)
    pooled = layer.b.max_pool(x, **geometry)
    if len(layer.p.top) < 2:
        return pooled
    return [pooled, layer.b.cast(layer.b.max_pool_mask(x, **geometry), dtype="f32")]


@caffe_layer("SPP")
def spatial_pyramid(layer: Layer) -> Results:
    """1, 2 x 2, 4 x 4 ... poolings of the whole image, flattened one after the other."""
    layer.expect_inputs(1, 1)
    p = layer.p.spp_param
    if p.pool == caffe_pb2.SPPParameter.STOCHASTIC:
        raise layer.unsupported("stochastic pooling; supported: MAX, AVE")
    layer.image()
    if not 1 <= p.pyramid_height <= _MAX_LEVELS:
        raise layer.bad(f"pyramid_height must be 1 to {_MAX_LEVELS}, got {p.pyramid_height}")
    levels = [_pyramid_level(layer, 2**level) for level in range(p.pyramid_height)]
    flat = [layer.reshape(v, (v.shape[0], prod(v.shape[1:]))) for v in levels]
    return layer.b.concat(*flat, axis=1) if len(flat) > 1 else flat[0]


def _pyramid_level(layer: Layer, bins: int) -> Value:
    """`bins` windows along each axis that do not overlap; what is missing to a whole number is padded on both ends."""
    x = layer.x
    kernel = tuple(-(-d // bins) for d in x.shape[2:])
    pads = tuple((taps * bins - d + 1) // 2 for taps, d in zip(kernel, x.shape[2:]))
    if any(pad >= taps for pad, taps in zip(pads, kernel)):
        raise layer.shape_error(f"{list(x.shape[2:])} pixels cannot be pooled into {bins} x {bins} windows")
    geometry = {"kernel": kernel, "strides": kernel, "pads": (pads[0], pads[0], pads[1], pads[1]), "ceil_mode": True}
    if layer.p.spp_param.pool == caffe_pb2.SPPParameter.MAX:
        made = layer.b.max_pool(x, **geometry)
    else:
        made = layer.b.avg_pool(x, count_include_pad=any(pads), **geometry)
    return made


def _check_last_window(layer: Layer, sizes: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...]) -> None:
    for size, taps, stride in zip(sizes, kernel, strides):
        if -(-(size - taps) // stride) * stride >= size > 0:
            raise layer.unsupported(
                f"kernel {taps} with stride {stride} puts the last window outside of the {size} input elements",
                "set round_mode: FLOOR",
            )
