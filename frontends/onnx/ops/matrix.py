"""Gemm, MatMul and Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.ops.packed_weights import by_packed
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder


@onnx_op("Gemm")
def gemm(node: Node, b: Builder) -> Value:
    """alpha * A' B' + beta * C. Constant factors go into constant operands, so the usual layer is one matmul."""
    alpha, beta = node.float("alpha", 1.0), node.float("beta", 1.0)
    left, turn_left, turn_right = node.input(0), node.flag("transA"), node.flag("transB")
    if node.rank(0) != 2 or node.rank(1) != 2:
        raise ShapeError(f"inputs must have 2 axes, got {list(node.shape(0))} and {list(node.shape(1))}")
    node.ignore("broadcast")
    names = node.proto.input
    right = node.input(1)
    if alpha != 1 and node.is_constant(1):
        matrix = node.constant(1)
        right, alpha = b.weight(matrix * matrix.dtype.type(alpha), names[1]), 1.0
    columns = right.shape[0 if turn_right else 1]
    bias = _bias(node, beta, columns) if alpha == 1 and node.is_constant(2) else None
    transposed = {"transpose_left": turn_left, "transpose_right": turn_right}
    if bias is not None:
        return b.matmul(left, right, b.weight(bias, names[2]), **transposed)
    out = None if turn_left else by_packed(b, left, right, turn_right)
    out = out or b.matmul(left, right, **transposed)
    if alpha != 1:
        out = b.mul(out, b.weight(_scalar(out, alpha), "alpha"))
    if node.has(2) and beta != 0:
        term = node.input(2)
        out = b.add(out, term if beta == 1 else b.mul(term, b.weight(_scalar(term, beta), "beta")))
    return out


def _scalar(like: Value, number: float) -> np.ndarray:
    return np.asarray(number, like.type.numpy)


def _bias(node: Node, beta: float, columns: int) -> np.ndarray | None:
    """beta * C as a vector of one value per column; None when C differs from row to row."""
    term = node.constant(2)
    if term.ndim > 2 or (term.ndim == 2 and term.shape[0] != 1) or (term.ndim and term.shape[-1] not in (1, columns)):
        return None
    scaled = term if beta == 1 else term * term.dtype.type(beta)
    return np.broadcast_to(scaled.reshape(-1), (columns,))


@onnx_op("MatMul")
def mat_mul(node: Node, b: Builder) -> Value:
    return product(b, node.input(0), node.input(1))


def product(b: Builder, left: Value, right: Value) -> Value:
    """Vectors become a row (left) or a column (right), and that axis goes again in the result."""
    drop_row, drop_column = left.type.rank == 1, right.type.rank == 1
    if 0 in (left.type.rank, right.type.rank):
        raise ShapeError("a matrix product needs operands with axes")
    if drop_row:
        left = b.reshape(left, shape=(1, *left.shape))
    if drop_column:
        right = b.reshape(right, shape=(*right.shape, 1))
    out = by_packed(b, left, right) or b.matmul(left, right)
    if drop_row or drop_column:
        *batch, rows, columns = out.shape
        kept = ([] if drop_row else [rows]) + ([] if drop_column else [columns])
        out = b.reshape(out, shape=(*batch, *kept))
    return out


# -- Einsum -------------------------------------------------------------------------
@onnx_op("Einsum", since=12)
def einsum(node: Node, b: Builder) -> Value:
    """Two operands: transposes around one matmul. One operand: a sum and a transpose. Others stay an einsum."""
    values = node.inputs()
    terms, result = _explicit(node.string("equation"), [v.type.rank for v in values])
    values, terms = _without_broadcast(b, values, terms)
    plain = all(len(set(term)) == len(term) for term in terms)
    if plain and len(values) == 1 and values[0].type.is_float:
        return _arranged(b, values[0], terms[0], result)
    if plain and len(values) == 2 and values[0].type.is_float and set(result) <= {*terms[0], *terms[1]}:
        return _as_matmul(b, values, terms, result)
    return b.einsum(*values, equation=f"{','.join(terms)}->{result}")


def _explicit(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Terms and result with one letter per axis. Raises FileFormatError.

    "..." becomes letters that the equation does not use; without "->" the result has the letters that occur once, in
    alphabetical order, after those of "...".
    """
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise FileFormatError(f"equation '{equation}' does not fit {len(ranks)} inputs")
    free = [letter for letter in ascii_letters if letter not in equation]
    extra = [rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks) if "..." in t]
    if min(extra, default=0) < 0 or len(free) < max(extra, default=0):
        raise FileFormatError(f"equation '{equation}' does not fit inputs of {list(ranks)} axes")
    rest = "".join(free[: max(extra, default=0)])
    if not arrow:
        named = left.replace("...", "").replace(",", "")
        result = ("..." if extra else "") + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    full = []
    for term, rank in zip(terms, ranks):
        count = rank - len(term.replace("...", ""))
        full.append(term.replace("...", rest[len(rest) - count :] if count > 0 else ""))
    return full, result.replace("...", rest)


def _without_broadcast(b: Builder, values: Sequence[Value], terms: Sequence[str]) -> tuple[list[Value], list[str]]:
    """Axes of 1 that stand for longer ones in another operand are dropped."""
    longest: dict[str, int] = {}
    for term, value in zip(terms, values):
        for letter, size in zip(term, value.shape):
            longest[letter] = max(size, longest.get(letter, 1))
    kept = [[(c, d) for c, d in zip(term, v.shape) if d == longest[c] or d != 1] for term, v in zip(terms, values)]
    shorter = [
        v if len(axes) == v.type.rank else b.reshape(v, shape=[d for _, d in axes]) for v, axes in zip(values, kept)
    ]
    return shorter, ["".join(c for c, _ in axes) for axes in kept]


def _arranged(b: Builder, x: Value, term: str, wanted: str) -> Value:
    """Sum over the axes that `wanted` lacks, and bring the others into its order."""
    gone = tuple(i for i, letter in enumerate(term) if letter not in wanted)
    if gone:
        x = b.reduce(x, method="sum", axes=gone, keepdims=False)
    left = [letter for letter in term if letter in wanted]
    if "".join(left) != wanted:
        x = b.permute(x, order=[left.index(letter) for letter in wanted])
    return x


def _as_matmul(b: Builder, values: Sequence[Value], terms: Sequence[str], result: str) -> Value:
    """Axes are shared and kept (batch), shared and summed (inner), or of one operand (rows, columns)."""
    sizes = {c: d for term, value in zip(terms, values) for c, d in zip(term, value.shape)}
    first, second = terms
    batch = "".join(c for c in result if c in first and c in second)
    inner = "".join(c for c in first if c in second and c not in result)
    rows = "".join(c for c in result if c in first and c not in second)
    columns = "".join(c for c in result if c in second and c not in first)

    def length(letters: str) -> int:
        return int(np.prod([sizes[c] for c in letters], dtype=np.int64))

    left = b.reshape(
        _arranged(b, values[0], first, batch + rows + inner), shape=(length(batch), length(rows), length(inner))
    )
    right = b.reshape(
        _arranged(b, values[1], second, batch + inner + columns), shape=(length(batch), length(inner), length(columns))
    )
    out = b.reshape(b.matmul(left, right), shape=[sizes[c] for c in batch + rows + columns])
    return _arranged(b, out, batch + rows + columns, result)
