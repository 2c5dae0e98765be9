"""BatchNorm, Scale, Bias, LRN, Normalize."""

from __future__ import annotations

import numpy as np

from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer
from bmcompiler.ir import Value


@caffe_layer("BatchNorm")
def batch_norm(layer: Layer) -> Results:
    """(x - mean) / sqrt(variance + eps); both statistics are sums to be divided by blob 2 (0 where that is 0).

    Files of NVCaffe add blobs 3 and 4, a factor and an offset per channel.
    """
    p, x = layer.p.batch_norm_param, layer.only
    if p.HasField("use_global_stats") and not p.use_global_stats:
        raise layer.unsupported("normalizes with the statistics of the batch", "set use_global_stats: true")
    c = x.shape[1] if x.type.rank > 1 else 1
    extra = [(c,), (c,)] if p.scale_bias else []
    mean, variance, total, *affine = layer.weights((c,), (c,), (1,), *extra)
    factor = np.float32(0) if total[0] == 0 else np.float32(1) / total[0]
    gamma, beta = affine or (np.ones(c, np.float32), np.zeros(c, np.float32))
    parts = {"gamma": gamma, "beta": beta, "mean": mean * factor, "variance": variance * factor}
    return layer.b.batch_norm(x, *(layer.constant(array, name) for name, array in parts.items()), epsilon=float(p.eps))


@caffe_layer("Scale")
def scale(layer: Layer) -> Results:
    """x * factor (+ bias), the factor from weights or a second bottom, aligned with axes `axis` and following."""
    p, x = layer.p.scale_param, layer.x
    layer.expect_inputs(1, 2)
    axis = layer.axis(p.axis)
    if len(layer.inputs) == 2:
        factor = layer.inputs[1]
        bias = layer.weights(factor.shape)[0] if p.bias_term else None
        y = layer.b.mul(x, _aligned(layer, factor, axis))
        return y if bias is None else layer.b.add(y, _aligned(layer, layer.constant(bias, "bias"), axis))
    shape = _covered(layer, axis, p.num_axes)
    weights = layer.weights(shape, *([shape] if p.bias_term else []))
    named = [layer.constant(array, name) for array, name in zip(weights, ("weight", "bias"))]
    if len(shape) == 1:
        return layer.b.scale(x, *named, axis=axis)
    y = layer.b.mul(x, _aligned(layer, named[0], axis))
    return layer.b.add(y, _aligned(layer, named[1], axis)) if p.bias_term else y


@caffe_layer("Bias")
def bias(layer: Layer) -> Results:
    """x + bias, aligned as in Scale."""
    p, x = layer.p.bias_param, layer.x
    layer.expect_inputs(1, 2)
    axis = layer.axis(p.axis)
    if len(layer.inputs) == 2:
        addend = layer.inputs[1]
    else:
        addend = layer.constant(layer.weights(_covered(layer, axis, p.num_axes))[0], "bias")
    return layer.b.add(x, _aligned(layer, addend, axis))


@caffe_layer("LRN")
def lrn(layer: Layer) -> Results:
    """Across channels: x / (k + alpha / size * sum of squares)^beta. Within a channel: mean of squares, k = 1."""
    p, x = layer.p.lrn_param, layer.only
    size, alpha, beta, k = p.local_size, float(p.alpha), float(p.beta), float(p.k)
    if size % 2 == 0:
        raise layer.bad(f"local_size must be odd, got {size}")
    if p.norm_region == caffe_pb2.LRNParameter.ACROSS_CHANNELS:
        return layer.b.lrn(x, size=size, alpha=alpha, beta=beta, k=k)
    b, pad = layer.b, size // 2
    layer.image()
    layer.check_padding(x, pad, pad)
    mean = b.avg_pool(b.mul(x, x), kernel=(size, size), pads=(pad, pad, pad, pad), count_include_pad=pad > 0)
    base = layer.affine(mean, alpha, 1.0)
    return b.mul(x, b.pow(base, layer.scalar(-beta, base, "power")))


def _covered(layer: Layer, axis: int, count: int) -> tuple[int, ...]:
    """Dimensions of the input that `count` axes from `axis` on cover; -1 = all that follow."""
    shape = layer.x.shape
    end = len(shape) if count == -1 else axis + count
    if not axis <= end <= len(shape):
        raise layer.bad(f"num_axes {count} from axis {axis} does not fit {list(shape)}")
    return shape[axis:end]


def _aligned(layer: Layer, factor: Value, axis: int) -> Value:
    """`factor` with ones appended so that its first axis meets `axis` of the input."""
    x = layer.x
    axis = 0 if factor.type.rank == 0 else axis
    end = axis + factor.type.rank
    if end > x.type.rank or x.shape[axis:end] != factor.shape:
        raise layer.shape_error(f"{list(factor.shape)} does not match {list(x.shape)} from axis {axis} on")
    return layer.reshape(factor, (1,) * axis + factor.shape + (1,) * (x.type.rank - end))


@caffe_layer("Normalize")
def normalize(layer: Layer) -> Results:
    """factor * x / sqrt(sum of squares + eps), summed over channels, with across_spatial over the whole image."""
    p, x, b = layer.p.norm_param, layer.only, layer.b
    layer.image()
    count = 1 if p.channel_shared else x.shape[1]
    (factor,) = layer.weights((count,))
    unit = b.l2_normalize(x, axes=(1, 2, 3) if p.across_spatial else (1,), epsilon=float(p.eps))
    return b.scale(unit, layer.constant(np.broadcast_to(factor, (x.shape[1],)), "weight"))


@caffe_layer("MVN")
def mvn(layer: Layer) -> Results:
    """(x - mean) / (sqrt(variance) + eps) of each channel, or with across_channels of all channels together."""
    p, x = layer.p.mvn_param, layer.only
    if x.type.rank < 3 and not (p.across_channels and x.type.rank == 2):
        raise layer.shape_error(f"takes a blob with axes after the channels, got {list(x.shape)}")
    axes = range(1 if p.across_channels else 2, x.type.rank)
    return layer.b.mean_variance_norm(x, axes=list(axes), normalize_variance=p.normalize_variance, epsilon=float(p.eps))


@caffe_layer("BN")
def bn(layer: Layer) -> Results:
    """The segmentation branches' layer: slope * (x - mean) / sqrt(variance + eps) + bias.

    Blobs slope, bias, mean, variance; SegNet's files for inference (bn_mode: INFERENCE) hold the first two, with the
    statistics folded in.
    """
    p, x = layer.p.bn_param, layer.only
    layer.need_channels(x)
    blobs = layer.blobs or []
    folded = p.bn_mode == "INFERENCE" or len(blobs) == 2
    shape = (1, x.shape[1], 1, 1) if blobs and len(blobs[0].shape) == 4 else (x.shape[1],)
    slope, bias, *statistics = (blob.ravel() for blob in layer.weights(*[shape] * (2 if folded else 4)))
    if folded:
        return layer.b.scale(x, layer.constant(slope, "weight"), layer.constant(bias, "bias"))
    parts = zip((slope, bias, *statistics), ("gamma", "beta", "mean", "variance"))
    return layer.b.batch_norm(x, *(layer.constant(array, name) for array, name in parts), epsilon=float(p.eps))
