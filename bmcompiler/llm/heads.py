"""The nets that choose a token by the scores of all: the best one, or what a host draws from (bm1684x-llm.md 2).

Scores are f32. Of equal ones the first is taken, NaN is no score. Where fewer tokens came before than there is room
for, a host repeats one of them.
"""

from __future__ import annotations

from math import inf

import numpy as np

from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ir.keys import WIDE
from bmcompiler.ops.builder import Builder

GREEDY, SAMPLE = "greedy_head", "sample_head"
CANDIDATES = 50
"""Tokens that a host draws from."""
ALWAYS = 5
"""Of them so many stay whatever `top_p` is."""
DROPPED = -1000.0
"""Score of those that `top_p` leaves out."""
_COLUMNS = 512
"""Scores of a row in which the best are searched; a power of two."""
_LANES = 64
"""What a vector is split over, as the chip does with the second axis."""
_LARGEST = 3.0e38
"""Scores are held between this and its negative, so that zero times a score is zero."""
_FAR = float(1 << 24)
"""More than any token, and still a number of f32 like all below it."""


def greedy_head(vocabulary: int) -> Module:
    """m_logits f32 (1, vocabulary) to token_id i32 (1, 1)."""
    b = Builder.new(GREEDY)
    return b.outputs([best_token(b, b.input("m_logits", TensorType((1, vocabulary), "f32")))], ["token_id"])


def best_token(b: Builder, scores: Value) -> Value:
    """The token, i32 (1, 1), with the highest of scores f32 (1, vocabulary)."""
    grid = _grid(b, scores)
    shape = [1, grid.shape[0], 1, grid.shape[1]]
    _, token = _highest(b, b.reshape(grid, shape=shape), b.reshape(_tokens(b, grid), shape=shape), 1)
    return b.cast(token, dtype="i32")


def sample_head(vocabulary: int, cache: int) -> Module:
    """Scores of all tokens and those that came before to the chances of 50, and which they are, the best first.

    x of a token that came before = x * penalty where x < 0, else x / penalty. Of the `top_k` best chances by
    softmax(x / temperature) those stay before which less than `top_p` has come, and the first five; they are
    softmaxed again. Behind `top_k` chances are 0.
    """
    b = Builder.new(SAMPLE)
    scores = b.input("m_logits", TensorType((1, vocabulary), "f32"))
    ids = b.input("input_ids", TensorType((1, cache), "i32"))
    penalty, temperature = (b.input(name, TensorType((1,), "f32")) for name in ("penalty", "temperature"))
    top_k, top_p = (b.input(name, TensorType((1,), kind)) for name, kind in (("top_k", "i32"), ("top_p", "f32")))
    grid = _penalised(b, _grid(b, scores), ids, penalty)
    best, tokens = _best(b, grid, min(CANDIDATES, vocabulary))
    chances = _kept(b, b.div(best, temperature), top_k, top_p)
    return b.outputs([chances, b.cast(tokens, dtype="i32")], ["Softmax1", "token_idx"])


def _grid(b: Builder, scores: Value) -> Value:
    """Scores (1, vocabulary) as numbers (rows, columns), the least where there is none; their tokens are `_tokens`."""
    vocabulary = scores.shape[1]
    rows = -(-vocabulary // _COLUMNS)
    if rows * _COLUMNS > vocabulary:
        rest = np.full((1, rows * _COLUMNS - vocabulary), -_LARGEST, np.float32)
        scores = _wide(b.concat(scores, b.weight(rest, "rest"), axis=1))
    scores = b.reshape(scores, shape=[rows, _COLUMNS])
    scores = _wide(b.where(b.compare(scores, scores, method="equal"), scores, _number(b, -_LARGEST)))
    return _wide(b.clip(scores, min=-_LARGEST, max=_LARGEST))


def _tokens(b: Builder, grid: Value) -> Value:
    """Which token each score of a grid belongs to, f32."""
    return b.weight(np.arange(grid.type.size, dtype=np.float32).reshape(grid.shape), "tokens")


def _penalised(b: Builder, grid: Value, ids: Value, penalty: Value) -> Value:
    """The scores of what came before, less likely.

    An id is a row and a column; how often each pair came is the product of both as ones among zeros.
    """
    rows, columns = grid.shape
    ids = b.cast(b.reshape(ids, shape=[1, ids.type.size]), dtype="f32")
    row = b.floor(b.mul(ids, _number(b, 1 / columns)))
    column = b.sub(ids, b.mul(row, _number(b, columns)))
    often = b.matmul(_ones(b, row, rows), _ones(b, column, columns), transpose_right=True)
    zero = _number(b, 0)
    lower = b.where(b.compare(grid, zero, method="less"), b.mul(grid, penalty), b.div(grid, penalty))
    return b.where(b.compare(often, zero, method="greater"), lower, grid)


def _ones(b: Builder, places: Value, size: int) -> Value:
    """1 (size, n) where a place of (1, n) is, else 0."""
    every = b.weight(np.arange(size, dtype=np.float32).reshape(size, 1), "places")
    return b.where(b.compare(every, places, method="equal"), _number(b, 1), _number(b, 0))


def _best(b: Builder, grid: Value, count: int) -> tuple[Value, Value]:
    """The highest scores (1, count) in order, and their tokens, f32; they are in as many rows with the best maxima."""
    (rows, columns), tokens = grid.shape, _tokens(b, grid)
    if rows > count:
        wide = [1, 1, 1, rows]
        peaks = b.reshape(b.reduce(grid, axes=[1], keepdims=True, method="max"), shape=wide)
        _, chosen = _highest(b, peaks, b.weight(np.arange(rows, dtype=np.float32).reshape(wide), "rows"), count)
        picked = _ones(b, chosen, rows)
        grid = b.matmul(b.permute(picked, order=[1, 0]), grid)
        firsts = b.mul(b.reshape(chosen, shape=[count, 1]), _number(b, columns))
        tokens = b.add(firsts, b.weight(np.arange(columns, dtype=np.float32).reshape(1, -1), "columns"))
    split = [1, _LANES, 1, grid.type.size // _LANES]
    return _highest(b, b.reshape(grid, shape=split), b.reshape(tokens, shape=split), count)


def _highest(b: Builder, scores: Value, tokens: Value, count: int) -> tuple[Value, Value]:
    """The `count` highest of scores (1, lanes, 1, n) in order, (1, count), the lowest token first, and their tokens."""
    found: list[tuple[Value, Value]] = []
    for place in range(count):
        peak = _extreme(b, scores, "max")
        token = _extreme(b, b.where(b.compare(scores, peak, method="equal"), tokens, _number(b, _FAR)), "min")
        if place + 1 < count:
            scores = b.where(b.compare(tokens, token, method="equal"), _number(b, -inf), scores)
        found.append((b.reshape(peak, shape=[1, 1]), b.reshape(token, shape=[1, 1])))
    peaks, chosen = zip(*found)
    return (b.concat(*peaks, axis=1), b.concat(*chosen, axis=1)) if count > 1 else found[0]


def _extreme(b: Builder, x: Value, method: str) -> Value:
    """Of all of (1, lanes, 1, n): in each lane first, whose results then are in one."""
    return b.reduce(b.reduce(x, axes=[3], keepdims=True, method=method), axes=[1], keepdims=True, method=method)


def _kept(b: Builder, scores: Value, top_k: Value, top_p: Value) -> Value:
    """Chances of scores (1, n) that descend, those of the rest 0."""
    count = scores.shape[1]
    places = b.weight(np.arange(count, dtype=np.float32).reshape(1, -1), "places")
    asked = b.compare(places, b.cast(top_k, dtype="f32"), method="less")
    scores = b.where(asked, scores, _number(b, -_LARGEST))
    up_to = b.matmul(b.softmax(scores, axis=1), b.weight(np.triu(np.ones((count, count), np.float32)), "sums"))
    likely = b.where(b.compare(up_to, top_p, method="less"), scores, _number(b, DROPPED))
    likely = b.where(b.compare(places, _number(b, ALWAYS), method="less"), scores, likely)
    return b.softmax(b.where(asked, likely, _number(b, -_LARGEST)), axis=1)


def _wide(x: Value) -> Value:
    """A value that stays in f32."""
    assert x.op is not None, "it was just made"
    x.op.attributes[WIDE] = True
    return x


def _number(b: Builder, value: float) -> Value:
    return b.weight(np.full(1, value, np.float32), "number")
