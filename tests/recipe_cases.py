"""Recipes of one tile with the functions that they stand for: what every chip's own tests of recipes go through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.lanes.recipes import activations, exponential, powers, rounding, trigonometry
from bmcompiler.numeric.special import erf

Array = NDArray[Any]


class Case(NamedTuple):
    """A recipe of one tile, its exact function on float64, where it is tested, and how close it must be."""

    recipe: Callable[..., Any]
    exact: Callable[[Array], Array]
    low: float = -100.0
    high: float = 100.0
    arguments: tuple[float, ...] = ()
    relative: float = 2e-6
    absolute: float = 2e-6


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


CASES = {
    "exp": Case(exponential.exp, np.exp, -87, 88.7, relative=1e-6, absolute=0),
    "expm1": Case(exponential.expm1, np.expm1, -1, 1, relative=1e-6, absolute=0),
    "log": Case(exponential.log, np.log, 1e-30, 1e30),
    "log_near_1": Case(exponential.log, np.log, 0.9, 1.1, relative=1e-6, absolute=0),
    "sigmoid": Case(exponential.sigmoid, _sigmoid),
    "tanh": Case(exponential.tanh, np.tanh, -12, 12, absolute=0),
    "softplus": Case(exponential.softplus, _softplus),
    "sinh": Case(exponential.sinh, np.sinh, -85, 85, absolute=1e-6),
    "sinh_near_0": Case(exponential.sinh, np.sinh, -1e-2, 1e-2, absolute=0),
    "cosh": Case(exponential.cosh, np.cosh, -85, 85),
    "asinh": Case(exponential.asinh, np.arcsinh, -1e6, 1e6),
    "asinh_near_0": Case(exponential.asinh, np.arcsinh, -1, 1, absolute=0),
    "acosh": Case(exponential.acosh, np.arccosh, 1.0, 1e6),
    "atanh": Case(exponential.atanh, np.arctanh, -0.9999, 0.9999, relative=1e-5),
    "relu": Case(activations.relu, lambda x: np.maximum(x, 0), absolute=0),
    "clip": Case(activations.clip, lambda x: np.clip(x, -2, 6), arguments=(-2.0, 6.0), absolute=0),
    "leaky": Case(activations.prelu, lambda x: np.where(x > 0, x, 0.1 * x), arguments=(0.1,)),
    "elu": Case(activations.elu, lambda x: np.where(x > 0, x, 0.5 * np.expm1(np.minimum(x, 0))), arguments=(0.5,)),
    "selu": Case(
        activations.selu, lambda x: 1.05 * np.where(x > 0, x, 1.67 * np.expm1(np.minimum(x, 0))), arguments=(1.67, 1.05)
    ),
    "celu": Case(activations.celu, lambda x: np.maximum(x, 0) + 2 * np.expm1(np.minimum(x, 0) / 2), arguments=(2.0,)),
    "swish": Case(activations.swish, lambda x: x * _sigmoid(1.5 * x), arguments=(1.5,), absolute=1e-5),
    "mish": Case(activations.mish, lambda x: x * np.tanh(_softplus(x)), absolute=1e-5),
    "hard_sigmoid": Case(activations.hard_sigmoid, lambda x: np.clip(0.2 * x + 0.5, 0, 1), arguments=(0.2, 0.5)),
    "hard_swish": Case(activations.hard_swish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), absolute=1e-5),
    "softsign": Case(activations.softsign, lambda x: x / (1 + np.abs(x))),
    "thresholded": Case(activations.thresholded_relu, lambda x: np.where(x > 2, x, 0), arguments=(2.0,), absolute=0),
    "shrink": Case(
        activations.shrink,
        lambda x: np.where(x > 2, x - 0.5, np.where(x < -2, x + 0.5, 0)),
        arguments=(2.0, 0.5),
    ),
    "sign": Case(activations.sign, np.sign, absolute=0),
    "erf": Case(activations.erf, erf, -5, 5),
    "erf_near_0": Case(activations.erf, erf, -0.4, 0.4, absolute=0),
    "gelu": Case(activations.gelu, lambda x: x / 2 * (1 + erf(x / math.sqrt(2))), absolute=5e-6),
    "gelu_tanh": Case(
        activations.gelu_tanh,
        lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        absolute=5e-6,
    ),
    "sqrt": Case(powers.sqrt, np.sqrt, 0, 1e6, absolute=0),
    "reciprocal": Case(powers.reciprocal, lambda x: 1 / x, absolute=0),
    "floor": Case(rounding.floor, np.floor, absolute=0, relative=0),
    "ceil": Case(rounding.ceil, np.ceil, absolute=0, relative=0),
    "round": Case(rounding.round_even, np.rint, absolute=0, relative=0),
    "truncate": Case(rounding.truncate, np.trunc, absolute=0, relative=0),
    "sin": Case(trigonometry.sin, np.sin, -70, 70),
    "cos": Case(trigonometry.cos, np.cos, -70, 70),
    "tan": Case(trigonometry.tan, np.tan, -1.5, 1.5, relative=1e-5),
    "atan": Case(trigonometry.atan, np.arctan),
    "asin": Case(trigonometry.asin, np.arcsin, -1, 1, absolute=3e-6),
    "acos": Case(trigonometry.acos, np.arccos, -1, 1, absolute=3e-6),
}
