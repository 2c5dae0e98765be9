"""What rewrite passes share: a pass made of patterns, and constants as arrays.

What new ops carry of those whose place they take, the rewriter knows (`bmcompiler.ir.carrying`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from bmcompiler.ir import Module, Operation, Rewriter, TensorType, Value, apply_patterns, type_of_array
from bmcompiler.ir.carrying import locations
from bmcompiler.ir.keys import TENSOR_NAME
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target

if TYPE_CHECKING:
    import numpy as np

OpPattern = Callable[[TensorOp, Rewriter], bool]
"""Changes the IR through the rewriter and returns True, or changes nothing and returns False."""


PatternTable = Mapping[type[TensorOp], Sequence[OpPattern]]
"""Class of an op -> its patterns, tried in order; those of `TensorOp` are tried on every op after its own."""
_Op = TypeVar("_Op", bound=TensorOp)
_Other = TypeVar("_Other", bound=TensorOp)


def on(kind: type[_Op], *patterns: Callable[[_Op, Rewriter], bool]) -> dict[type[TensorOp], tuple[OpPattern, ...]]:
    """The entry of a table for one class of ops; the patterns know its operands and attributes."""
    return {kind: cast("tuple[OpPattern, ...]", patterns)}  # a table gives each pattern ops of its class only


def on_each(
    kinds: Iterable[type[_Op]], *patterns: Callable[[_Op, Rewriter], bool]
) -> dict[type[TensorOp], tuple[OpPattern, ...]]:
    """The entries for several classes; the patterns take what these have in common."""
    return {kind: entry for each in kinds for kind, entry in on(each, *patterns).items()}


class Patterns:
    """Rewrites of one module. Subclasses fill `table` with the patterns to try per class of ops."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def table(self) -> PatternTable:
        """The patterns, made of `on`."""
        raise TypeError(f"{type(self).__name__} has no table of patterns")

    def constant(self, value: Value | None) -> np.ndarray | None:
        """The array behind a weight, None for everything else."""
        weight = producer(value, Weight)
        return None if weight is None else self.module.weights.get(weight.key)

    def uniform(self, value: Value) -> float | None:
        """The number that all elements of a float constant equal, else None."""
        array = self.constant(value) if value.type.is_float else None
        if array is None or not array.size or (array != array.flat[0]).any():
            return None
        return float(array.flat[0])

    def weight(self, array: np.ndarray, like: Value | None, anchor: Operation, rewriter: Rewriter, name: str) -> Value:
        """A new constant before `anchor`, stored under the key of the constant `like` (made unique), else `name`."""
        import numpy as np

        array = np.ascontiguousarray(array)
        source = producer(like, Weight)
        key = self.module.weights.add(source.key if source is not None else name, array)
        location = source.location if source is not None else anchor.location
        op = make("weight", (), {"key": key}, [type_of_array(array)], location)
        rewriter.insert_before(anchor, op)
        return op.result


@dataclass(frozen=True)
class PatternPass(Pass, Patterns):
    """A pass of patterns that are applied until none fires; ops that nobody uses any more go with it.

    Patterns see the module as `self.module`, in a copy of the pass: what they remember ends with the run.
    """

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        patterns = copy(self)
        vars(patterns)["module"] = module
        return _apply(patterns)


@dataclass(frozen=True)
class TargetPatternPass(PatternPass):
    """A pass whose patterns ask the target; without one it changes nothing."""

    @property
    def target(self) -> Target:
        """The chip that the run is for."""
        return cast("Target", vars(self)["_target"])

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if ctx.target is None:
            return PassResult(False)
        patterns = copy(self)
        vars(patterns).update(module=module, _target=ctx.target)
        return _apply(patterns)


def _apply(patterns: Patterns) -> PassResult:
    table = patterns.table()
    general = table.get(TensorOp, ())
    of_class = {kind: (*own, *general) for kind, own in table.items() if kind is not TensorOp}

    def pattern(op: Operation, rewriter: Rewriter) -> bool:
        if not isinstance(op, TensorOp):
            return False
        for result in op.results:
            if result.uses:
                break
        else:
            rewriter.erase(op)
            return True
        return any(each(op, rewriter) for each in of_class.get(type(op), general))

    changed = False
    for function in patterns.module.functions:
        changed |= apply_patterns(function, [pattern])
    return PassResult(changed)


def activates(op: Operation) -> bool:
    """Whether an op applies an activation to its result, so that it is not the plain sum or product of its name."""
    return bool(op.attributes.get("activation"))


def declared(op: Operation) -> dict[str, Any]:
    """Attributes of an op without notes."""
    return {name: value for name, value in op.attributes.items() if "." not in name}


@overload
def producer(value: Value | None, kind: type[_Op], /) -> _Op | None: ...


@overload
def producer(value: Value | None, kind: type[_Op], other: type[_Other], /) -> _Op | _Other | None: ...


@overload
def producer(value: Value | None, *kinds: type[_Op]) -> _Op | None: ...


def producer(value: Value | None, *kinds: type[TensorOp]) -> TensorOp | None:
    """The op that makes `value` when it is of one of these classes."""
    op = value.op if value is not None else None
    return op if isinstance(op, kinds) else None


@overload
def sole(value: Value | None, kind: type[_Op], /) -> _Op | None: ...


@overload
def sole(value: Value | None, kind: type[_Op], other: type[_Other], /) -> _Op | _Other | None: ...


@overload
def sole(value: Value | None, *kinds: type[_Op]) -> _Op | None: ...


def sole(value: Value | None, *kinds: type[TensorOp]) -> TensorOp | None:
    """`producer` for a value that has exactly one use."""
    return producer(value, *kinds) if value is not None and len(value.uses) == 1 else None


def make(
    name: str,
    operands: Iterable[Value | None],
    attributes: Mapping[str, Any] | None = None,
    types: Sequence[TensorType] | None = None,
    location: Iterable[str] = (),
) -> TensorOp:
    """A new op that is in no block yet; trailing None operands are left out."""
    values = list(operands)
    while values and values[-1] is None:
        values.pop()
    return find_op(name)(cast("list[Value]", values), attributes, types, tuple(location))


def rebuild(op: _Op, operands: Sequence[Value], **changes: Any) -> _Op:
    """`op` on other operands: shapes follow, element types and quantization of the results stay."""
    fresh = op.clone(operands, **changes)
    for new, old in zip(fresh.results, op.results):
        new.type = TensorType(new.shape, old.dtype, old.type.quant)
    return fresh


def merge_into(op: _Op, before: TensorOp, rewriter: Rewriter, **changes: Any) -> bool:
    """Let `op`, with other attributes, do on what `before` reads what both did."""
    rewriter.replace_with(op, rebuild(op, before.operands, **changes))
    return True


def forward(op: TensorOp, value: Value, rewriter: Rewriter) -> bool:
    """Replace a single-result op by its unchanged operand; the op behind `value` stands for it, too. Always True."""
    source = value.op
    if isinstance(source, TensorOp) and not isinstance(source, Weight):
        source.location = locations(source, op)
    hand_name(op, value)
    rewriter.replace(op, [value])
    return True


def hand_name(op: TensorOp, value: Value) -> None:
    """Give the tensor name of a vanishing `op` to `value`, which holds the same elements, if that has none."""
    source = value.op
    if not isinstance(source, TensorOp) or isinstance(source, Weight) or len(source.results) != 1:
        return
    if TENSOR_NAME in op.attributes and TENSOR_NAME not in source.attributes:
        source.attributes[TENSOR_NAME] = op.attributes[TENSOR_NAME]


def same_elements(a: Value, b: Value) -> bool:
    """Whether two values have one element type and one quantization."""
    return (a.dtype, a.type.quant) == (b.dtype, b.type.quant)


def channel_axis(constant: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """The axis (1 or later) of `shape` along which a constant varies; 1 for a single number; None for anything else."""
    if len(shape) < 2 or len(constant) > len(shape):
        return None
    full = (1,) * (len(shape) - len(constant)) + constant
    wide = [axis for axis, d in enumerate(full) if d != 1]
    if not wide:
        return 1
    return wide[0] if len(wide) == 1 and wide[0] >= 1 else None
