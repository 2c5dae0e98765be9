"""What the operators beside the vendor's 108 compute, as plain loops in Python's double numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from oracle_numbers import away, build, matrix_mul, sat

from bmcompiler.bmlang import DataType, ResizeMode, ResizeParam
from bmcompiler.frontends.bmlang.numbers import numpy_type

Args = dict[str, Any]
_A = -0.75
"""Of Keys' kernel."""


def softmax(args: Args, out: DataType) -> Any:
    x, axis = args["tensor_i"].astype(np.float64), args["axis"]

    def line(numbers: Any) -> Any:
        powers = [math.exp(each - max(numbers)) for each in numbers.tolist()]
        return np.array(powers) / math.fsum(powers)

    return np.apply_along_axis(line, axis, x).astype(numpy_type(out))


def layer_norm(args: Args, out: DataType) -> Any:
    x, *factors = args["tensor_i"]
    axis, epsilon = args["param"].axis % x.ndim, args["param"].epsilon

    def element(index: tuple[int, ...]) -> float:
        rest = [float(each) for each in x[index[:axis]].ravel()]
        mean = math.fsum(rest) / len(rest)
        variance = math.fsum((each - mean) ** 2 for each in rest) / len(rest)
        found = (float(x[index]) - mean) / math.sqrt(variance + epsilon)
        found = found * float(factors[0][index[axis:]]) if factors else found
        return found + (float(factors[1][index[axis:]]) if len(factors) > 1 else 0.0)

    return build(x.shape, out, element)


def batch_matmul(args: Args, out: DataType) -> Any:
    left, right, *bias = args["matrix_input"]
    left = left.swapaxes(-1, -2) if args["transpose_left"] else left
    right = right.swapaxes(-1, -2) if args["transpose_right"] else right
    leading = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left, right = (np.broadcast_to(each, (*leading, *each.shape[-2:])) for each in (left, right))
    found = [
        matrix_mul({"matrix_input": [left[index], right[index], *bias], "param": args["param"]}, out)
        for index in product(*map(range, leading))
    ]
    return np.array(found).reshape(*leading, left.shape[-2], right.shape[-1])


def taps(param: ResizeParam, have: int, want: int, index: int) -> Iterator[tuple[int, float]]:
    """(position, weight) of the elements that one of the result is made of."""
    if param.mode == ResizeMode.NEAREST:
        yield index * have // want, 1.0
        return
    place = (index + 0.5) * have / want - 0.5
    if param.align_corners:
        place = index * (have - 1) / (want - 1) if want > 1 else 0.0
    first, reach = math.floor(place), 2 if param.mode == ResizeMode.CUBIC else 1
    for position in range(first - reach + 1, first + reach + 1):
        x = abs(place - position)
        if reach == 1:
            weight = 1 - x
        elif x <= 1:
            weight = (_A + 2) * x**3 - (_A + 3) * x**2 + 1
        else:
            weight = _A * x**3 - 5 * _A * x**2 + 8 * _A * x - 4 * _A
        yield min(max(position, 0), have - 1), weight


def resize(args: Args, out: DataType) -> Any:
    x, size, param = args["tensor_i"], args["size"], args["param"]
    before = x.ndim - len(size)

    def element(index: tuple[int, ...]) -> Any:
        ways = [list(taps(param, have, want, at)) for have, want, at in zip(x.shape[before:], size, index[before:])]
        parts = []
        for way in product(*ways):
            place = (*index[:before], *(position for position, _ in way))
            parts.append(float(x[place]) * math.prod(weight for _, weight in way))
        total = math.fsum(parts)
        return sat(away(total), out) if out.is_integer else total

    return build((*x.shape[:before], *size), out, element)


CONVENIENT: dict[str, Callable[[Args, DataType], Any]] = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    "batch_matmul": batch_matmul,
    "resize": resize,
}
"""Operator -> (arguments by name with tensors as arrays, type of the result) -> result."""
