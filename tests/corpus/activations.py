"""Activations in the nodes that exporters write: where ONNX has no node for one, or has it late, they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .blocks import Net

ACTIVATIONS = (
    *("Relu", "relu6", "hardswish", "swish", "LeakyRelu", "PRelu", "gelu", "quickgelu", "mish"),
    *("Elu", "Selu", "Tanh", "Sigmoid", "HardSigmoid"),
)


def written(net: Net, x: str, kind: str) -> str:
    """A function. A net writes each in one form throughout."""
    forms = _FORMS.get(kind)
    if forms is None:
        return net.g.add(kind, x)
    form = net.forms.setdefault(kind, net.count(0, len(forms) - 1))
    return forms[form](net, x)


def _up_to(net: Net, x: str, low: float, high: float) -> str:
    return net.g.add("Clip", x, net.g.constant(low), net.g.constant(high))


def _times(net: Net, x: str, factor: float) -> str:
    return net.g.add("Mul", x, net.g.constant(factor))


def _plus(net: Net, x: str, term: float) -> str:
    return net.g.add("Add", x, net.g.constant(term))


def _of_three(net: Net, x: str) -> str:
    return net.g.add("Mul", x, _up_to(net, _plus(net, x, 3), 0, 6))


def _gelu_erf(net: Net, x: str) -> str:
    g = net.g
    y = g.add("Div", x, g.constant(np.sqrt(2))) if net.exporter == "torch" else _times(net, x, 0.5**0.5)
    return _times(net, g.add("Mul", x, _plus(net, g.add("Erf", y), 1)), 0.5)


def _gelu_erf_halved(net: Net, x: str) -> str:
    y = net.g.add("Erf", net.g.add("Div", x, net.g.constant(np.sqrt(2))))
    return net.g.add("Mul", _times(net, x, 0.5), _plus(net, y, 1))


def _gelu_tanh(net: Net, x: str, cube: str) -> str:
    g = net.g
    y = g.add("Tanh", _times(net, g.add("Add", x, _times(net, cube, 0.044715)), np.sqrt(2 / np.pi)))
    return g.add("Mul", _times(net, x, 0.5), _plus(net, y, 1))


def _slopes(net: Net, x: str) -> str:
    ones = [1] * (net.g.values[x].ndim - 2)
    return net.g.constant(net.random.standard_normal((net.g.shape(x)[1], *ones)) * 0.3)


def _prelu_of_two(net: Net, x: str) -> str:
    """Keras: what is above 0, and a share of what is below."""
    g = net.g
    below = g.add("Relu", g.add("Neg", x))
    return g.add("Sub", g.add("Relu", x), g.add("Mul", _slopes(net, x), below))


_FORMS: dict[str, tuple[Callable[[Net, str], str], ...]] = {
    "relu6": (
        lambda net, x: _up_to(net, x, 0, 6),
        lambda net, x: net.g.add("Min", net.g.add("Relu", x), net.g.constant(6)),
    ),
    "hardswish": (
        lambda net, x: net.g.add("HardSwish", x),
        lambda net, x: net.g.add("Mul", x, net.g.add("HardSigmoid", x, alpha=1 / 6, beta=0.5)),
        lambda net, x: net.g.add("Div", _of_three(net, x), net.g.constant(6)),
        lambda net, x: _times(net, _of_three(net, x), 1 / 6),
        lambda net, x: net.g.add("Mul", x, _times(net, _up_to(net, _plus(net, x, 3), 0, 6), 1 / 6)),
    ),
    "swish": (
        lambda net, x: net.g.add("Mul", x, net.g.add("Sigmoid", x)),
        lambda net, x: net.g.add("Mul", net.g.add("Sigmoid", x), x),
    ),
    "quickgelu": (lambda net, x: net.g.add("Mul", x, net.g.add("Sigmoid", _times(net, x, 1.702))),),
    "mish": (
        lambda net, x: net.g.add("Mul", x, net.g.add("Tanh", net.g.add("Softplus", x))),
        lambda net, x: net.g.add(
            "Mul", x, net.g.add("Tanh", net.g.add("Log", _plus(net, net.g.add("Exp", _up_to(net, x, -60, 20)), 1)))
        ),
    ),
    "gelu": (
        _gelu_erf,
        _gelu_erf_halved,
        lambda net, x: _gelu_tanh(net, x, net.g.add("Pow", x, net.g.constant(3))),
        lambda net, x: _gelu_tanh(net, x, net.g.add("Mul", net.g.add("Mul", x, x), x)),
    ),
    "LeakyRelu": (
        lambda net, x: net.g.add("LeakyRelu", x, alpha=net.pick(0.01, 0.1, 0.2)),
        lambda net, x: net.g.add("Max", x, _times(net, x, 0.1)),
    ),
    "PRelu": (lambda net, x: net.g.add("PRelu", x, _slopes(net, x)), _prelu_of_two),
}
