"""Layers that change height and width: Upsample, Interp."""

from __future__ import annotations

from math import prod

from bmcompiler.frontends.caffe.layer import MAX_ELEMENTS, Layer, Results, caffe_layer
from bmcompiler.ir import Value


@caffe_layer("Upsample")
def upsample(layer: Layer) -> Results:
    """One bottom: nearest neighbour by a whole factor. Two, as SegNet has it: each value goes where its mask says."""
    p = layer.p.upsample_param
    layer.expect_inputs(1, 2)
    layer.image()
    if len(layer.inputs) == 2:
        return _unpooled(layer)
    if p.HasField("scale_h") or p.HasField("scale_w"):
        return _enlarged(layer, p.scale_h or p.scale, p.scale_w or p.scale)
    factor = p.stride if p.HasField("stride") else p.scale
    return _enlarged(layer, p.stride_h or factor, p.stride_w or factor)


def _unpooled(layer: Layer) -> Value:
    """Size: upsample_h and upsample_w, else the factor (2 by default), one less where pad_out asks for it."""
    p, (x, mask) = layer.p.upsample_param, layer.inputs
    factor = p.scale if p.HasField("scale") else 2
    height = p.upsample_h or x.shape[2] * (p.scale_h or factor) - p.pad_out_h
    width = p.upsample_w or x.shape[3] * (p.scale_w or factor) - p.pad_out_w
    if min(height, width) < 1 or prod(x.shape[:2]) * height * width > MAX_ELEMENTS:
        raise layer.bad(f"cannot make planes of {height} x {width} from {list(x.shape)}")
    return layer.b.max_unpool(x, mask, size=(height, width))


@caffe_layer("Interp")
def interp(layer: Layer) -> Results:
    """Bilinear resizing in which the corner pixels meet; the size by height and width, or by factors.

    pad_beg and pad_end, 0 or negative, cut rows and columns off first (DeepLab and PSPNet branches).
    """
    p, x = layer.p.interp_param, layer.x
    layer.expect_inputs(1, 2)
    layer.image()
    if p.pad_beg > 0 or p.pad_end > 0:
        raise layer.unsupported(f"pads of {[p.pad_beg, p.pad_end]}; supported: 0 and negative ones, which crop")
    if p.pad_beg or p.pad_end:
        x = _cut(layer, x, -p.pad_beg, -p.pad_end)
    sizes = x.shape[2:]
    like = layer.image(layer.inputs[1]) if len(layer.inputs) == 2 else None
    height, width = (_interp_size(layer, d, out) for d, out in zip(sizes, like[2:] if like else (p.height, p.width)))
    if min(height, width) < 1 or prod(x.shape[:2]) * height * width > MAX_ELEMENTS:
        raise layer.bad(f"cannot resize {list(x.shape)} to {height} x {width}")
    if (height, width) == sizes:
        return x
    if sizes == (1, 1):
        return layer.b.upsample(x, scale=(height, width))
    scales = (1.0, 1.0, height / sizes[0], width / sizes[1])
    shape = (*x.shape[:2], height, width)
    return layer.b.resize(x, sizes=shape, scales=scales, mode="linear", coordinates="align_corners")


def _cut(layer: Layer, x: Value, before: int, after: int) -> Value:
    n, c, h, w = x.shape
    if min(h, w) <= before + after:
        raise layer.shape_error(f"pads of {[-before, -after]} leave nothing of {list(x.shape)}")
    return layer.b.slice(x, starts=(0, 0, before, before), ends=(n, c, h - after, w - after), steps=(1, 1, 1, 1))


def _interp_size(layer: Layer, size: int, wanted: int) -> int:
    """Factors go before a size, as in Caffe: (size - 1) / shrink + 1, then that and (that - 1) * (zoom - 1) more."""
    p = layer.p.interp_param
    shrink, zoom = p.HasField("shrink_factor"), p.HasField("zoom_factor")
    if (shrink and p.shrink_factor < 1) or (zoom and p.zoom_factor < 1):
        raise layer.bad(f"factors {[p.shrink_factor, p.zoom_factor]} must be positive")
    if wanted > 0 and not (shrink or zoom):
        return wanted
    if shrink:
        size = (size - 1) // p.shrink_factor + 1
    return size + (size - 1) * (p.zoom_factor - 1) if zoom else size


def _enlarged(layer: Layer, down: int, across: int) -> Value:
    x = layer.x
    if min(down, across) < 1 or prod(x.shape) * down * across > MAX_ELEMENTS:
        raise layer.bad(f"cannot enlarge {list(x.shape)} by {down} x {across}")
    return x if (down, across) == (1, 1) else layer.b.upsample(x, scale=(down, across))
