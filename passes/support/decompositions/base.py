"""What a decomposition is, and the table of them.

    @legalizes("avg_pool")
    def border_means(op, draft):
        ...
        return draft.emit("scale", [...])

It drafts ops that compute what `op` computes, and returns the values that stand for its results; it returns None when
it has nothing to offer. It knows no target: a draft is used only where the target refuses the op and takes all ops of
the draft, or what other decompositions make of them. It is asked about floats, and about integers only where it is
declared for them: their rounding, saturation and zero points have to come out the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bmcompiler.ir import Module, TensorType, Value, type_of_array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passes.rewriting import make, producer, rebuild

if TYPE_CHECKING:
    import numpy as np


class Draft:
    """Ops that may take the place of `op`, by the decomposition called `name`. They are in no block yet."""

    def __init__(self, module: Module, op: TensorOp, name: str = "") -> None:
        self.module, self.op, self.name = module, op, name
        self.ops: list[TensorOp] = []
        self.beyond: str | None = None
        """What there would be too much of."""

    def too_many(self, number: int, most: int, what: str) -> bool:
        """Whether there would be more than `most`, which is the reason then why nothing stands for the op."""
        if number > most:
            self.beyond = f"{self.name.replace('_', ' ')}: {number:,} {what}, {most:,} at most"
        return number > most

    def emit(self, name: str, operands: Sequence[Value | None], **attributes: Any) -> Value:
        """Draft an op with one result; its type is inferred."""
        return self.add(make(name, operands, attributes, None, self.op.location)).result

    def several(self, name: str, operands: Sequence[Value | None], **attributes: Any) -> tuple[Value, ...]:
        """Draft an op with several results; their types are inferred."""
        return tuple(self.add(make(name, operands, attributes, None, self.op.location)).results)

    def like(self, operands: Sequence[Value | None], **changes: Any) -> Value:
        """Draft `op` on other operands, with some attributes changed and the element type that it gives."""
        new = rebuild(self.op, [value for value in operands if value is not None], **changes)
        for note in [name for name in new.attributes if "." in name]:
            del new.attributes[note]
        return self.add(new).result

    def add(self, op: TensorOp) -> TensorOp:
        """Take up an op that the decomposition made itself; returns it."""
        self.ops.append(op)
        return op

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """`x` in another shape; `x` itself when it has that shape; a constant stays one."""
        if x.shape == tuple(shape):
            return x
        array = self.constant(x)
        if array is not None:
            return self.weight(array.reshape(shape), "reshaped")
        return self.emit("reshape", [x], shape=tuple(shape))

    def weight(self, array: np.ndarray, what: str, type: TensorType | None = None) -> Value:
        """A new constant named after the layer and `what`."""
        key = self.module.weights.add(f"{self.op.label}.{what}", array)
        return self.add(make("weight", (), {"key": key}, [type or type_of_array(array)], self.op.location)).result

    def constant(self, value: Value | None) -> np.ndarray | None:
        """The array behind a weight, None for everything else."""
        weight = producer(value, Weight)
        return None if weight is None else self.module.weights.get(weight.key)

    def discard(self) -> None:
        """Forget all drafted ops and constants."""
        for op in reversed(self.ops):
            if isinstance(op, Weight):
                self.module.weights.pop(op.key, None)
            op.erase()
        self.ops = []


Made = Value | tuple[Value, ...] | None
"""What stands for the result, or for each of several; None: nothing to offer."""
Decomposition = Callable[[TensorOp, Draft], Made]
_Op = TypeVar("_Op", bound=TensorOp)
_Typed = Callable[[_Op, Draft], Made]

DECOMPOSITIONS: dict[type[TensorOp], list[Decomposition]] = {}
"""Class of an op -> its decompositions in the order they are tried."""
FOR_INTEGERS: set[Decomposition] = set()
"""Those that hold for integers as well."""
FLOATS_ONLY: set[Decomposition] = set()
"""Those whose ops lose too much as bytes."""
BYTES_ONLY: set[Decomposition] = set()
"""Those for chips of bytes alone: where floats have no kernel of an op, another reason than its kind is behind it."""
COARSE: set[Decomposition] = set()
"""Those for chips of bytes alone that cost much of what the host's floats keep, so only who asks for them gets them."""
WEIGHED: set[Decomposition] = set()
"""Those of which the one that takes the fewest cycles is used, whichever comes first."""
BROADCASTING: list[Decomposition] = []
"""Those of all ops that broadcast, tried after their own."""


def decompositions_of_kind(kind: type[TensorOp]) -> list[Decomposition]:
    """Those of ops of a class, in the order they are tried."""
    return [*DECOMPOSITIONS.get(kind, ()), *(BROADCASTING if kind.broadcasts else ())]


def decompositions_of(op: TensorOp) -> list[Decomposition]:
    """Those to try for an op, in this order."""
    found = decompositions_of_kind(type(op))
    if any(value.type.is_integer for value in (*op.operands[:1], *op.results)):
        return [each for each in found if each in FOR_INTEGERS]
    return found


def legalizes(
    *kinds: type[_Op],
    integers: bool = False,
    bytes_do: bool = True,
    floats_do: bool = True,
    coarse: bool = False,
    weighed: bool = False,
) -> Callable[[_Typed[_Op]], _Typed[_Op]]:
    """Declare a decomposition. Its name and docstring go into SUPPORTED_OPS.md.

    Args:
        integers: it holds for integers as well. bytes_do: its ops of floats may become ops of bytes. floats_do: they
            may stay floats. coarse: they may not, and as bytes they lose much that the host's floats keep.
            weighed: others that are weighed may stand for the op, too, and the target says what takes fewer cycles.
    """

    def register(function: _Typed[_Op]) -> _Typed[_Op]:
        if not bytes_do:
            FLOATS_ONLY.add(cast(Decomposition, function))
        if coarse:
            COARSE.add(cast(Decomposition, function))
        if coarse or not floats_do:
            BYTES_ONLY.add(cast(Decomposition, function))
        if weighed:
            WEIGHED.add(cast(Decomposition, function))
        if integers:
            FOR_INTEGERS.add(cast(Decomposition, function))
        for kind in kinds:
            DECOMPOSITIONS.setdefault(kind, []).append(
                cast(Decomposition, function)
            )  # it is tried on ops of its class only
        return function

    return register


def legalizes_broadcasting(function: Decomposition) -> Decomposition:
    """Declare a decomposition of all ops that broadcast (`TensorOp.broadcasts`), of any element type."""
    BROADCASTING.append(function)
    FOR_INTEGERS.add(function)
    return function
