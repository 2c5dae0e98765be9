"""Constant folding: what a node computes from constants alone, in numpy with ONNX meaning.

Nodes that are not in this table are folded through their converter (`importer`). Results that would be absurdly large
are refused before they are allocated; broadcast results stay views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any, TypeVar

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.node import Node, axes_of, axis_of
from bmcompiler.frontends.onnx.padded import need_known_shape
from bmcompiler.frontends.onnx.registry import Tensor, load_converters
from bmcompiler.frontends.onnx.tensors import element_name, numpy_type
from bmcompiler.ir import Value

MAX_VIEW = 2**28
"""Elements of the largest constant that takes no memory of its own (one value, repeated)."""

MAX_GROWN = 2**22
"""Elements of the largest constant that is computed, unless its inputs are as large."""

Folder = Callable[[Node], Any]
_F = TypeVar("_F", bound=Folder)
_FOLDERS: dict[str, Folder] = {}
_STATIC = ("Shape", "Size", "EyeLike")  # constant even when their input is not


def folds(*types: str) -> Callable[[_F], _F]:
    """Register a function that computes these ops from constants; it returns an array, or a tuple, one per output."""

    def register(folder: _F) -> _F:
        _FOLDERS.update(dict.fromkeys(types, folder))
        return folder

    return register


def find_folder(domain: str, op_type: str, constant: bool) -> Folder | None:
    """The function that folds this node, when its inputs (all constant or not) allow it."""
    load_converters()
    return _FOLDERS.get(op_type) if not domain and (constant or op_type in _STATIC) else None


def fold(folder: Folder, node: Node) -> list[Tensor]:
    """Run it. Raises ShapeError when the node's inputs do not fit together."""
    try:
        with np.errstate(all="ignore"):
            result = folder(node)
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise ShapeError(f"its constant inputs do not fit ({error})") from None
    return [np.asarray(r) for r in (result if isinstance(result, (tuple, list)) else [result])]


def growth_limit(arrays: Sequence[np.ndarray]) -> int:
    """How many elements may be computed from these: MAX_GROWN, or as many as they really hold."""
    stored: list[int] = [prod(d for d, stride in zip(a.shape, a.strides) if stride) for a in arrays]
    return max(MAX_GROWN, sum(stored))


def check_size(shape: Sequence[int], most: int = MAX_VIEW) -> tuple[int, ...]:
    """Raises ShapeError for negative sizes and for shapes of more than `most` elements."""
    sizes = tuple(int(d) for d in shape)
    if any(d < 0 for d in sizes) or prod(sizes) > most or len(sizes) > 32:
        raise ShapeError(f"would make a constant of shape {list(sizes)[:40]}, which is not possible here")
    return sizes


def _small(node: Node) -> np.ndarray:
    """The only input, when copying it takes no more memory than its elements take already. Raises ShapeError."""
    x = node.constant(0)
    check_size(x.shape, growth_limit([x]))
    return x


def reshaped(shape: Sequence[int], wanted: Sequence[int], allow_zero: bool = False) -> tuple[int, ...]:
    """ONNX Reshape: 0 copies the input's dimension (unless `allow_zero`), one -1 takes the rest. Raises ShapeError."""
    if not allow_zero and any(d == 0 and i >= len(shape) for i, d in enumerate(wanted)):
        raise ShapeError(f"shape {list(wanted)} copies an axis that input {list(shape)} does not have")
    sizes = [shape[i] if d == 0 and not allow_zero else d for i, d in enumerate(wanted)]
    known, total = prod(d for d in sizes if d != -1), prod(shape)
    if sizes.count(-1) == 1 and known > 0 and total % known == 0:
        sizes[sizes.index(-1)] = total // known
    if any(d < 0 for d in sizes) or prod(sizes) != total:
        raise ShapeError(f"{list(shape)} cannot become {list(wanted)}")
    return tuple(sizes)


def expanded_dims(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Shape after Unsqueeze at `axes` of the result."""
    where = axes_of(axes, len(shape) + len(axes))
    rest = iter(shape)
    return tuple(1 if i in where else next(rest) for i in range(len(shape) + len(axes)))


def squeezed_dims(shape: Sequence[int], axes: Sequence[int] | None) -> tuple[int, ...]:
    """Shape after Squeeze; without axes every dimension of 1 goes. Raises ShapeError for a dimension other than 1."""
    where = [i for i, d in enumerate(shape) if d == 1] if axes is None else axes_of(axes, len(shape))
    if any(shape[i] != 1 for i in where):
        raise ShapeError(f"axes {list(where)} of {list(shape)} are not all 1, so they cannot be squeezed")
    return tuple(d for i, d in enumerate(shape) if i not in where)


def axes_argument(node: Node, since: int) -> tuple[int, ...] | None:
    """Axes as an input from opset `since` on, as an attribute before; None when absent."""
    if node.opset >= since:
        return node.constant_ints(1)
    return node.ints("axes") if node.has_attribute("axes") else None


# -- sources ------------------------------------------------------------------------
@folds("Constant")
def _constant(node: Node) -> Any:
    if node.has_attribute("value"):
        return node.array("value")
    for name, read, kind in (
        ("value_float", node.float, np.float32),
        ("value_floats", node.floats, np.float32),
        ("value_int", node.int, np.int64),
        ("value_ints", node.ints, np.int64),
    ):
        if node.has_attribute(name):
            return np.asarray(read(name), kind)
    raise UnsupportedError(f"a constant of {', '.join(node.unread) or 'no value'} is not supported")


@folds("ConstantOfShape")
def _constant_of_shape(node: Node) -> Any:
    value = node.array("value").reshape(-1) if node.has_attribute("value") else np.zeros(1, np.float32)
    if value.size != 1:
        raise FileFormatError("attribute 'value' must have one element")
    return np.broadcast_to(value[0], check_size(node.constant_ints(0) or ()))


@folds("Range")
def _range(node: Node) -> Any:
    start, limit, delta = (node.constant(i).reshape(-1)[0] for i in range(3))
    if not delta:
        raise ShapeError("a range with step 0 has no end")
    steps = (float(limit) - float(start)) / float(delta)
    count = check_size([max(0, ceil(steps))], MAX_GROWN)[0]
    return (start + np.arange(count) * delta).astype(start.dtype)


@folds("Shape")
def _shape(node: Node) -> Any:
    shape = _known_shape(node)
    start = node.int("start", 0)
    end = node.int("end", len(shape))
    return np.asarray(shape, np.int64)[slice(*slice(start, end).indices(len(shape)))]


@folds("Size")
def _size(node: Node) -> Any:
    return np.asarray(prod(_known_shape(node)), np.int64)


def _known_shape(node: Node) -> tuple[int, ...]:
    """Shape of the input. Raises UnsupportedError where its length depends on values."""
    tensor = node.tensor(0)
    if isinstance(tensor, Value):
        need_known_shape(tensor)
    return node.shape()


# -- arithmetic ---------------------------------------------------------------------
def _divide(a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind == "f":
        return a / b
    if not np.all(b):
        raise ShapeError("divides integers by zero")
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient).astype(a.dtype)


_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divide,
    "Pow": lambda a, b: np.power(a, b.astype(a.dtype) if b.dtype.kind == "f" else b).astype(a.dtype),
    "Max": np.maximum,
    "Min": np.minimum,
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
}
_UNARY: dict[str, Callable[[np.ndarray], Any]] = {
    "Neg": np.negative,
    "Abs": np.abs,
    "Sqrt": np.sqrt,
    "Exp": np.exp,
    "Log": np.log,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Sign": np.sign,
    "Not": np.logical_not,
    "Reciprocal": lambda x: (1 / x).astype(x.dtype),
}


@folds(*_BINARY)
def _binary(node: Node) -> Any:
    result = node.constant(0)
    for i in range(1, len(node)):
        other = node.constant(i)
        if result.dtype != other.dtype and node.type != "Pow":
            raise FileFormatError(f"inputs differ in element type: {result.dtype} and {other.dtype}")
        check_size(np.broadcast_shapes(result.shape, other.shape), growth_limit([result, other]))
        result = np.asarray(_BINARY[node.type](result, other))
    return result


@folds(*_UNARY)
def _unary(node: Node) -> Any:
    return _UNARY[node.type](_small(node))


@folds("Identity")
def _identity(node: Node) -> Any:
    return node.constant(0)


@folds("Mod")
def _mod(node: Node) -> Any:
    a, b = node.constant(0), node.constant(1)
    check_size(np.broadcast_shapes(a.shape, b.shape), growth_limit([a, b]))
    if a.dtype.kind in "iu" and not np.all(b):
        raise ShapeError("divides integers by zero")
    return np.fmod(a, b) if node.flag("fmod") else np.mod(a, b)


@folds("Where")
def _where(node: Node) -> Any:
    chosen = [node.constant(i) for i in range(3)]
    check_size(np.broadcast_shapes(*(c.shape for c in chosen)), growth_limit(chosen))
    return np.where(*chosen)


@folds("Cast")
def _cast(node: Node) -> Any:
    node.ignore("saturate", "round_mode")
    to = node.int("to")
    x = _small(node)
    try:
        return x.astype(numpy_type(to), copy=False)
    except UnsupportedError:
        raise UnsupportedError(f"cannot cast to element type {element_name(to)}") from None


# -- movement -----------------------------------------------------------------------
@folds("Gather")
def _gather(node: Node) -> Any:
    data, index = node.constant(0), node.constant(1)
    axis = axis_of(node.int("axis", 0), data.ndim)
    check_size(data.shape[:axis] + index.shape + data.shape[axis + 1 :], growth_limit([data]))
    if index.dtype.kind not in "iu":
        raise FileFormatError(f"indices must be integers, got {index.dtype}")
    return np.take(data, index, axis=axis)


@folds("Concat")
def _concat(node: Node) -> Any:
    arrays = [node.constant(i) for i in range(len(node))]
    check_size([sum(a.size for a in arrays)], growth_limit(arrays))
    axis = axis_of(node.int("axis", 1 if node.opset < 4 else None), arrays[0].ndim if arrays else 0)
    return np.concatenate(arrays, axis=axis, casting="no")


@folds("Reshape")
def _reshape(node: Node) -> Any:
    x = _small(node)
    return x.reshape(reshaped(x.shape, node.constant_ints(1) or (), node.flag("allowzero")))


@folds("Squeeze")
def _squeeze(node: Node) -> Any:
    x = _small(node)
    return x.reshape(squeezed_dims(x.shape, axes_argument(node, 13)))


@folds("Unsqueeze")
def _unsqueeze(node: Node) -> Any:
    x = _small(node)
    return x.reshape(expanded_dims(x.shape, axes_argument(node, 13) or ()))


@folds("Transpose")
def _transpose(node: Node) -> Any:
    x = node.constant(0)
    return x.transpose(node.ints("perm", tuple(reversed(range(x.ndim)))))


@folds("Expand")
def _expand(node: Node) -> Any:
    x, wanted = node.constant(0), node.constant_ints(1) or ()
    check_size(wanted)
    return np.broadcast_to(x, check_size(np.broadcast_shapes(x.shape, wanted)))


@folds("Tile")
def _tile(node: Node) -> Any:
    x, reps = node.constant(0), node.constant_ints(1) or ()
    if len(reps) != x.ndim:
        raise ShapeError(f"{len(reps)} repeats for {x.ndim} axes")
    check_size([d * r for d, r in zip(x.shape, reps)], MAX_GROWN)
    return np.tile(x, reps)
