"""Fourier transforms, determinants and diagonals as products, sums and slices."""

from __future__ import annotations

from itertools import permutations
from math import prod

import numpy as np

from bmcompiler.ir import Block, TensorType, Value
from bmcompiler.ops.layers.contraction import Dft, Einsum
from bmcompiler.ops.places.order import Det
from bmcompiler.passes.rewriting import make
from bmcompiler.passes.support.decompositions.base import Draft, legalizes
from bmcompiler.passes.support.decompositions.reals import Reals

_MOST = 1 << 22
"""Elements of the constant matrix of a transform: 16 MB, a complex one of 1,024 points."""
_LARGEST = 4
"""Rows of a determinant that is written out."""


@legalizes(Dft, bytes_do=False)
def product_with_waves(op: Dft, draft: Draft) -> Value | None:
    """A transform is linear: each row, with its zeros or cut, is multiplied by a constant matrix of waves."""
    return _by_waves(op, Reals(draft, "a spectrum spans more than bytes hold"))


@legalizes(Dft, coarse=True)
def product_of_bytes_with_waves(op: Dft, draft: Draft) -> Value | None:
    """The same product, of which the largest lines of a spectrum are left."""
    return _by_waves(op, Reals(draft, None))


def _by_waves(op: Dft, real: Reals) -> Value | None:
    x, axis, rank = op.input, op.axis % op.input.type.rank, op.input.type.rank
    size, parts, points, pairs = x.shape[axis], x.shape[-1], op.type.shape[axis], op.type.shape[-1]
    if x.dtype != "f32" or size * parts * points * pairs > _MOST:
        return None
    order = [*(i for i in range(rank) if i not in (axis, rank - 1)), axis, rank - 1]
    rows = real.permute(x, order)
    kept = rows.shape[:-2]
    flat = real.reshape(rows, (prod(kept), size * parts))
    out = real("matmul", flat, real.draft.weight(_waves(op, size, parts), "waves"))
    back = [order.index(i) for i in range(rank)]
    return real.permute(real.reshape(out, (*kept, points, pairs)), back)


def _waves(op: Dft, size: int, parts: int) -> np.ndarray:
    """(numbers in, numbers out) of one row: what the op itself makes of unit vectors."""
    attributes = {"axis": 1, "length": op.points, "inverse": op.inverse, "onesided": op.onesided}
    unit = Value(TensorType((size * parts, size, parts), "f32"), Block(), 0)
    probe = make("dft", [unit], attributes)
    made = probe.evaluate(np.eye(size * parts, dtype=np.float32).reshape(unit.shape))
    return np.ascontiguousarray(made.reshape(size * parts, -1))


@legalizes(Det, bytes_do=False)
def written_out(op: Det, draft: Draft) -> Value | None:
    """The determinant of a small matrix: the sum of signed products of one element per row and column."""
    size, kept = op.x.shape[-1], op.x.shape[:-2]
    if not 1 <= size <= _LARGEST or op.x.dtype != "f32":
        return None
    real = Reals(draft, "products of many elements differ by less than bytes hold")
    flat = real.reshape(op.x, (prod(kept), size * size))
    cell = [real.span(flat, 1, i, i + 1) for i in range(size * size)]
    total: Value | None = None
    for columns in permutations(range(size)):
        term = cell[columns[0]]
        for row, column in enumerate(columns[1:], 1):
            term = real("mul", term, cell[row * size + column])
        swaps = sum(a > b for i, a in enumerate(columns) for b in columns[i + 1 :])
        total = term if total is None else real("sub" if swaps % 2 else "add", total, term)
    return None if total is None else real.reshape(total, kept)


@legalizes(Einsum, integers=True, bytes_do=False)
def diagonals_then_sums(op: Einsum, draft: Draft) -> Value | None:
    """An axis named twice is a slice of the two joined; then sums and a permute, of one operand."""
    term, result = op.equation.split("->")
    if len(op.operands) != 1:
        return None
    x, left = op.operands[0], term
    while len(set(left)) < len(left):
        letter = next(c for c in left if left.count(c) > 1)
        first, second = left.index(letter), left.rindex(letter)
        order = [*(i for i in range(len(left)) if i not in (first, second)), first, second]
        rows = draft.emit("permute", [x], order=tuple(order)) if order != sorted(order) else x
        kept, size = rows.shape[:-2], rows.shape[-1]
        flat, ends = draft.reshape(rows, (*kept, size * size)), (*kept, size * size)
        steps = (*(1 for _ in kept), size + 1)
        x = draft.emit("slice", [flat], starts=(0,) * len(ends), ends=ends, steps=steps)
        left = "".join(left[i] for i in order[:-1])
    summed = tuple(i for i, letter in enumerate(left) if letter not in result)
    if summed:
        if not x.type.is_float:
            return None
        x = draft.emit("reduce", [x], method="sum", axes=summed, keepdims=False)
        left = "".join(letter for letter in left if letter in result)
    turn = tuple(left.index(letter) for letter in result)
    return draft.emit("permute", [x], order=turn) if turn != tuple(sorted(turn)) else x
