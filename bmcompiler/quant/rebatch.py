"""The same net for another batch size: calibration runs many samples per step."""

from __future__ import annotations

import numpy as np

from bmcompiler.errors import BMError
from bmcompiler.ir import Function, Operation, TensorType, Value
from bmcompiler.ops.base import Axes, Axis, TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.places.index import Trilu
from bmcompiler.ops.places.resample import Resize
from bmcompiler.ops.places.shape import Concat, Reshape, Slice


def rebatch(function: Function, batch: int, *, folded: bool = False, tokens: bool = False) -> Function | None:
    """A copy of `function` whose inputs hold `batch` samples, its types inferred again; it shares the module's weights.

    None when the net does not keep its samples apart on axis 0 (as far as shapes and axes tell), or when its inputs
    have different batches.

    Args:
        folded: reshapes may fold other axes into that of the samples, behind it, as heads and tokens.
        tokens: constants that concatenations put beside samples, the same beside each (a class token of each image),
            are made for the batch. The module gets them.
    """
    old = {value.shape[0] if value.shape else 0 for value in function.arguments}
    if len(old) != 1 or not next(iter(old)):
        return None
    (before,) = old
    copy = Function(function.name, [_scaled(v.type, before, batch) for v in function.arguments], function.input_names)
    values: dict[Value, Value] = dict(zip(function.arguments, copy.arguments))
    for op in function.ops[:-1]:
        new = _token(op, before, batch) if tokens else None
        new = new or _copy(op, [values[v] for v in op.operands], before, batch, folded)
        if new is None or not _fits(op, new, before, batch, any(_per_sample(values, v) for v in op.operands)):
            return None
        copy.body.append(new)
        values.update(zip(op.results, new.results))
    copy.set_outputs([values[v] for v in function.returned], function.output_names)
    return copy


def _per_sample(values: dict[Value, Value], value: Value) -> bool:
    return values[value].op is None or value.shape != values[value].shape


def _token(op: Operation, before: int, batch: int) -> TensorOp | None:
    """A constant that is the same for each sample, for another batch; None where it is none."""
    array = op.array if isinstance(op, Weight) else None
    if array is None or array.ndim < 2 or len(array) != before or (array != array[:1]).any():
        return None
    if not all(isinstance(user, Concat) and user.axis % array.ndim for user in op.results[0].users):
        return None
    module = op.enclosing
    assert module is not None, "its array is there"
    assert isinstance(op, Weight), "it has an array"
    key = f"{op.key}, batch {batch}"
    if key not in module.weights:
        module.weights[key] = np.repeat(array[:1], batch, 0)
    new = type(op)((), op.attributes | {"key": key}, [_scaled(op.results[0].type, before, batch)], op.location)
    return new


def _copy(op: Operation, operands: list[Value], before: int, batch: int, folded: bool) -> TensorOp | None:
    """`op` on rebatched operands, None when that cannot be right. No axis of a constant is changed."""
    if not isinstance(op, TensorOp):
        return None
    if not operands:
        return type(op)((), op.attributes, [r.type for r in op.results], op.location)
    if all(new.shape == old.shape for new, old in zip(operands, op.operands)):
        return type(op)(operands, op.attributes, [r.type for r in op.results], op.location)
    changes: dict[str, tuple[int, ...]] = {}
    if isinstance(op, Trilu) and op.x.type.rank == 2:  # a triangle over samples
        return None
    if isinstance(op, Reshape):
        first = op.shape[0] if op.shape else 0
        if first != before and (not folded or first < before or first % before):
            return None
        changes["shape"] = (first // before * batch, *op.shape[1:])
    if isinstance(op, Resize):
        if op.sizes[0] != op.input.shape[0]:
            return None
        changes["sizes"] = (operands[0].shape[0], *op.sizes[1:])
    if isinstance(op, Slice):
        if (op.starts[0], op.ends[0], op.steps[0]) != (0, op.operands[0].shape[0], 1):
            return None
        changes["ends"] = (operands[0].shape[0], *op.ends[1:])
    named = (name for name, spec in op.attrs.items() if spec.kind in (Axis, Axes) or name.endswith("_axis"))
    if any(_names_axis_0(op, name) for name in named):
        return None
    try:
        new = op.clone(operands, **changes)
    except BMError:
        return None
    for result, like in zip(new.results, op.results):
        result.type = TensorType(result.shape, like.dtype, like.type.quant)
    return new


def _names_axis_0(op: TensorOp, name: str) -> bool:
    """Whether an attribute names the axis of the samples: they would be mixed or reordered."""
    axes = getattr(op, name)
    rank = op.operands[0].type.rank
    return any(axis % max(rank, 1) == 0 for axis in (axes if isinstance(axes, tuple) else (axes,)))


def _fits(op: Operation, new: TensorOp, before: int, batch: int, per_sample: bool) -> bool:
    """Results that depend on the samples grew on axis 0 and nowhere else."""
    return not per_sample or all(
        b.type.rank > 0 and b.shape == (a.shape[0] // before * batch, *a.shape[1:])
        for a, b in zip(op.results, new.results)
    )


def _scaled(type: TensorType, before: int, batch: int) -> TensorType:
    return type.with_shape((type.shape[0] // before * batch, *type.shape[1:]))
