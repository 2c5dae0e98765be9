"""Which channels of which values may be scaled by a positive factor, and which have to be scaled together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.numeric.arrays import Floats, Indices
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.norm import LastAxesNorm, Scale
from bmcompiler.ops.modes import Products
from bmcompiler.ops.places.shape import Pad


@dataclass(frozen=True)
class Layer:
    """A layer whose weights can take factors per channel: ids of the channels that it reads, and of those it makes.

    matrix: |weights| as (groups, outputs, inputs), the largest of each tap; None for a normalisation, which makes its
    channels with factors and offsets that are never integers.
    """

    op: Operation
    reads: Indices
    makes: Indices
    matrix: Floats | None


class ChannelScales:
    """Channels of a function by number; those with one `root` share a factor. `root` of channel 0 stands for 1.

    Rules, by what reads and makes a value:
    1. conv, deconv, scale and inner products with constant weights take a factor per channel on either side.
    2. Homogeneous functions, sums of two values, and what only moves data hand factors on.
    3. A product with a second value of one number per channel (a gate) hands on those of the larger operand.
    4. layer_norm and rms_norm with constant factors make channels along the last axis; what they read stays as it is.
    5. All others, inputs and outputs of the net pin their values to 1.
    """

    def __init__(self, function: Function, constant: Callable[[Value], Floats | None]) -> None:
        self.constant = constant
        self.parents = [0]
        self.ids: dict[Value, tuple[int, Indices]] = {}
        self.layers: list[Layer] = []
        for value in function.arguments:
            self._pin(value)
        for op in function.ops[:-1]:
            if op.operands and not self._visit(op):
                for value in (*op.operands, *op.results):
                    self._pin(value)
        for value in function.returned:
            self._pin(value)

    def roots(self, ids: Indices) -> Indices:
        """The numbers of the factors of channels; 0 for those that stay."""
        return np.array([self._root(int(k)) for k in ids], np.intp)

    # -- ops that pass channels on -------------------------------------------------------------------------------------
    def _visit(self, op: Operation) -> bool:
        """Whether the op is known; then its channels are known."""
        name = op.short_name
        if not all(value.dtype == "f32" for value in (*op.operands, *op.results)):
            return False
        if isinstance(op, (Products, Scale)):
            return self._layer(op)
        if isinstance(op, LastAxesNorm):
            return self._norm(op)
        data = [value for value in op.operands if not is_weight(value)]
        if (isinstance(op, TensorOp) and op.homogeneous) or (isinstance(op, Pad) and not op.value):
            return len(data) == 1 and self._same(data[0], op.results[0])
        passing: Mapping[str, Callable[[Operation], bool]] = {
            "add": self._sum, "sub": self._sum, "mul": self._gate, "concat": self._concat, "reduce": self._mean,
            "reshape": self._reshape, "permute": self._permute,
        }  # fmt: skip
        passes = passing.get(name)
        return passes is not None and passes(op)

    def _layer(self, op: Operation) -> bool:
        weight = self.constant(op.operands[1])
        constant = all(is_weight(value) for value in op.operands[1:])
        if weight is None or not constant or op.attributes.get("activation", "") not in ("", "relu"):
            return False
        matrix = _matrix(op, np.abs(weight))
        rank = op.operands[0].type.rank
        axis = {"matmul": rank - 1, "scale": op.attributes.get("axis", 1) % rank}.get(op.short_name, 1)
        if matrix is None or op.attributes.get("transpose_left"):
            return False
        reads = self._of(op.operands[0], axis)
        if reads is None or reads.size != matrix.shape[0] * matrix.shape[2]:
            return False
        makes = self._new(op.results[0], axis)
        self.layers.append(Layer(op, reads, makes, matrix))
        return True

    def _norm(self, op: LastAxesNorm) -> bool:
        x, *vectors = op.operands
        width = x.shape[-1]
        if not all(is_weight(value) and value.shape == (width,) for value in vectors):
            return False
        self._pin(x)
        self.layers.append(Layer(op, np.zeros(width, np.intp), self._new(op.results[0], x.type.rank - 1), None))
        return True

    def _sum(self, op: Operation) -> bool:
        if op.attributes.get("activation", "") not in ("", "relu") or any(map(is_weight, op.operands)):
            return False
        if any(value.shape != op.results[0].shape for value in op.operands):
            return False
        return self._same(op.operands[0], op.results[0]) and self._same(op.operands[1], op.results[0])

    def _gate(self, op: Operation) -> bool:
        left, right = op.operands
        large, small = (left, right) if left.type.size >= right.type.size else (right, left)
        if large.shape != op.results[0].shape or small.shape == large.shape or is_weight(large):
            return False
        if not is_weight(small):
            self._pin(small)
        return self._same(large, op.results[0])

    def _concat(self, op: Operation) -> bool:
        axis = op.attributes.get("axis", 0) % op.results[0].type.rank
        parts = [None if is_weight(value) else self._of(value, axis) for value in op.operands]
        known = [part for part in parts if part is not None]
        if len(known) != len(parts):
            return False
        self.ids[op.results[0]] = axis, np.concatenate(known)
        return True

    def _mean(self, op: Operation) -> bool:
        fits = op.attributes.get("method") == "mean" and sorted(op.attributes.get("axes", ())) == [2, 3]
        return fits and op.operands[0].type.rank == 4 and self._same(op.operands[0], op.results[0])

    def _reshape(self, op: Operation) -> bool:
        """Channels on the last axis stay there; of maps to rows of features, each place of a channel is a feature."""
        before, after = op.operands[0].shape, op.results[0].shape
        last = self._of(op.operands[0], len(before) - 1)
        if last is not None and after and after[-1] == before[-1]:
            self.ids[op.results[0]] = len(after) - 1, last
            return True
        if len(before) != 4 or len(after) != 2 or before[0] != after[0]:
            return False
        ids = self._of(op.operands[0], 1)
        if ids is None:
            return False
        self.ids[op.results[0]] = 1, np.repeat(ids, prod(before[2:]))
        return True

    def _permute(self, op: Operation) -> bool:
        known = self.ids.get(op.operands[0])
        if known is None:
            return False
        self.ids[op.results[0]] = tuple(op.attributes["order"]).index(known[0]), known[1]
        return True

    # -- channels ------------------------------------------------------------------------------------------------------
    def _of(self, value: Value, axis: int) -> Indices | None:
        """The channels of a value along an axis, None where they are along another one."""
        if value not in self.ids:
            return None
        found, ids = self.ids[value]
        return ids if found == axis else None

    def _new(self, value: Value, axis: int) -> Indices:
        ids = np.arange(len(self.parents), len(self.parents) + value.shape[axis])
        self.parents += ids.tolist()
        self.ids[value] = axis, ids
        return ids

    def _same(self, source: Value, result: Value) -> bool:
        """Give a result the channels of a source, or join both."""
        if source not in self.ids:
            return False
        axis, ids = self.ids[source]
        if result.type.rank <= axis or result.shape[axis] != len(ids):
            return False  # a pad of the channels, say
        if result not in self.ids:
            self.ids[result] = axis, ids
            return True
        other, more = self.ids[result]
        if other != axis:
            return False
        for a, b in zip(ids, more):
            self._join(int(a), int(b))
        return True

    def _pin(self, value: Value) -> None:
        if is_weight(value) or not value.type.rank:
            return
        if value not in self.ids:
            axis = 1 if value.type.rank == 4 else value.type.rank - 1
            self.ids[value] = axis, np.zeros(value.shape[axis], np.intp)
        for k in self.ids[value][1]:
            self._join(int(k), 0)

    def _join(self, a: int, b: int) -> None:
        low, high = sorted((self._root(a), self._root(b)))
        self.parents[high] = low

    def _root(self, k: int) -> int:
        while self.parents[k] != k:
            self.parents[k] = self.parents[self.parents[k]]
            k = self.parents[k]
        return k


def _matrix(op: Operation, weight: Floats) -> Floats | None:
    """Weights as (groups, outputs of a group, inputs of a group), the largest of all taps."""
    groups = op.attributes.get("group", 1)
    if op.short_name == "scale":
        return weight.reshape(-1, 1, 1)
    if op.short_name == "matmul":
        if weight.ndim != 2:
            return None
        return (weight if op.attributes.get("transpose_right") else weight.T)[None]
    taps = weight.reshape(*weight.shape[:2], -1).max(axis=2, initial=0.0)
    if op.short_name == "conv":
        return taps.reshape(groups, -1, taps.shape[1])
    return taps.reshape(groups, -1, taps.shape[1]).transpose(0, 2, 1)
