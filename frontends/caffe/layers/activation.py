"""Functions of one element."""

from __future__ import annotations

import math

from bmcompiler.frontends.caffe.layer import Converter, Layer, Results, caffe_layer


def _function(op: str) -> Converter:
    return lambda layer: layer.b.create(op, [layer.only]).result


for _type, _op in (("Sigmoid", "sigmoid"), ("TanH", "tanh"), ("AbsVal", "abs"), ("BNLL", "softplus")):
    caffe_layer(_type)(_function(_op))


@caffe_layer("ReLU")
def relu(layer: Layer) -> Results:
    slope = float(layer.p.relu_param.negative_slope)
    return layer.b.relu(layer.only) if slope == 0 else layer.b.leaky_relu(layer.only, slope=slope)


@caffe_layer("ReLU6")
def relu6(layer: Layer) -> Results:
    return layer.b.clip(layer.only, min=0.0, max=6.0)


@caffe_layer("Clip")
def clip(layer: Layer) -> Results:
    p = layer.p.clip_param
    if not (p.HasField("min") and p.HasField("max") and p.min <= p.max):
        raise layer.bad("needs clip_param { min max } with min <= max")
    return layer.b.clip(layer.only, min=float(p.min), max=float(p.max))


@caffe_layer("PReLU")
def prelu(layer: Layer) -> Results:
    x = layer.only
    layer.need_channels(x)
    (slope,) = layer.weights((1,) if layer.p.prelu_param.channel_shared else (x.shape[1],))
    return layer.b.prelu(x, layer.constant(slope, "slope"))


@caffe_layer("ELU")
def elu(layer: Layer) -> Results:
    return layer.b.elu(layer.only, alpha=float(layer.p.elu_param.alpha))


@caffe_layer("Swish")
def swish(layer: Layer) -> Results:
    x = layer.only
    gate = layer.b.sigmoid(layer.affine(x, float(layer.p.swish_param.beta), 0))
    return layer.b.mul(x, gate)


@caffe_layer("Mish")
def mish(layer: Layer) -> Results:
    """x * tanh(log(1 + exp(x)))."""
    return layer.b.mul(layer.only, layer.b.tanh(layer.b.softplus(layer.only)))


@caffe_layer("Power")
def power(layer: Layer) -> Results:
    """(shift + scale * x) ^ power; a square and a square root as such, which every chip has."""
    p = layer.p.power_param
    y = layer.affine(layer.only, float(p.scale), float(p.shift))
    if p.power == 1:
        return y
    if p.power == 2:
        return layer.b.mul(y, y)
    if p.power == 0.5:
        return layer.b.sqrt(y)
    return layer.b.pow(y, layer.scalar(p.power, y, "power"))


@caffe_layer("Exp")
def exp(layer: Layer) -> Results:
    """base ^ (shift + scale * x) as exp(ln(base) * (shift + scale * x)); base -1 stands for e."""
    p = layer.p.exp_param
    log_base = _log_base(layer, p.base)
    return layer.b.exp(layer.affine(layer.only, log_base * p.scale, log_base * p.shift))


@caffe_layer("Log")
def log(layer: Layer) -> Results:
    """log to `base` of (shift + scale * x); base -1 stands for e."""
    p = layer.p.log_param
    log_base = _log_base(layer, p.base)
    if log_base == 0:
        raise layer.bad("base 1 has no logarithm")
    y = layer.b.log(layer.affine(layer.only, float(p.scale), float(p.shift)))
    return layer.affine(y, 1 / log_base, 0)


def _log_base(layer: Layer, base: float) -> float:
    if base == -1:
        return 1.0
    if not base > 0 or math.isinf(base):
        raise layer.bad(f"base must be positive (or -1 for e), got {base:g}")
    return math.log(base)
