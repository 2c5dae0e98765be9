"""Convolutions whose weights are computed: products of windows, or tap by tap where each channel has its own."""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.layers.nn import Conv, Deconv
from bmcompiler.passes.support.decompositions.base import Draft, legalizes

_MOST_TAPS = 256
"""Each is an op that reads the map again."""


@legalizes(Conv)
def windows_times_computed_weights(op: Conv, draft: Draft) -> Value | None:
    """Weights that are computed times the windows of the map, one slice of it per tap side by side."""
    if not _is_computed(op, draft) or _is_depthwise(op):
        return None
    (n, c), (o, depth, *size), groups = op.input.shape[:2], op.weight.shape, op.group
    places = prod(op.type.shape[2:])
    lead = ((n,) if n > 1 else ()) + ((groups,) if groups > 1 else ())
    parts = [draft.reshape(part, (*lead, c // groups, places)) for part in _taps(op, draft)]
    windows = parts[0] if len(parts) == 1 else draft.emit("concat", parts, axis=len(lead))
    weight = op.weight
    if len(parts) > 1 and depth > 1:  # windows have the channels of a tap together
        weight = draft.emit("permute", [weight], order=(0, 2, 3, 1))
    shape = (*(1 for _ in lead[1:]), groups, o // groups) if groups > 1 else (o,)
    weight = draft.reshape(weight, (*shape, prod(size) * depth))
    made = draft.reshape(draft.emit("matmul", [weight, windows]), op.type.shape)
    return _with_bias(op, made, draft)


@legalizes(Conv)
def taps_times_computed_weights(op: Conv, draft: Draft) -> Value | None:
    """A map per channel, weighed by a computed number for each tap and channel: sums of scaled slices."""
    if not _is_computed(op, draft) or not _is_depthwise(op):
        return None
    _, _, rows, columns = op.weight.shape
    total: Value | None = None
    for tap, part in enumerate(_taps(op, draft)):
        row, column = divmod(tap, columns)
        factor = op.weight
        if rows * columns > 1:
            starts, ends = (0, 0, row, column), (*op.weight.shape[:2], row + 1, column + 1)
            factor = draft.emit("slice", [factor], starts=starts, ends=ends, steps=(1, 1, 1, 1))
        scaled = draft.emit("mul", [part, draft.reshape(factor, (1, op.group, 1, 1))])
        total = scaled if total is None else draft.emit("add", [total, scaled])
    return None if total is None else _with_bias(op, total, draft)


@legalizes(Deconv)
def computed_weights_then_their_places(op: Deconv, draft: Draft) -> Value | None:
    """Each input channel times the computed numbers of all taps; a constant transposed convolution places them."""
    if not _is_computed(op, draft):
        return None
    (n, c, *size), (_, each, *taps), groups = op.input.shape, op.weight.shape, op.group
    rows, channels, count = each * prod(taps), each * groups, prod(taps)
    lead = ((n,) if n > 1 else ()) + ((groups,) if groups > 1 else ())
    x = draft.reshape(op.input, (*lead, c // groups, prod(size)))
    shape = (*(1 for _ in lead[1:]), groups, c // groups, rows) if groups > 1 else (c, rows)
    scaled = draft.emit("matmul", [draft.reshape(op.weight, shape), x], transpose_left=True)
    scaled = draft.reshape(scaled, (n, channels * count, *size))
    ones = np.tile(np.eye(count, dtype=np.float32), (channels, 1)).reshape(channels * count, 1, *taps)
    kept = {name: getattr(op, name) for name in ("strides", "pads", "dilations", "output_pads")}
    return draft.emit("deconv", [scaled, draft.weight(ones, "places"), op.bias], group=channels, **kept)


def _is_computed(op: Conv | Deconv, draft: Draft) -> bool:
    taps = prod(op.weight.shape[2:])
    return op.type.is_float and draft.constant(op.weight) is None and taps <= _MOST_TAPS


def _is_depthwise(op: Conv) -> bool:
    return bool(op.group == op.input.shape[1] == op.type.shape[1] > 1)


def _taps(op: Conv, draft: Draft) -> list[Value]:
    """What each tap of the kernel sees, row by row: maps of the result's height and width."""
    x = op.input
    if any(op.pads):
        x = draft.emit("pad", [x], pads=(0, 0, 0, 0, *op.pads), value=0.0)
    counts, found = op.type.shape[2:], []
    for row in range(op.weight.shape[2]):
        for column in range(op.weight.shape[3]):
            first = (row * op.dilations[0], column * op.dilations[1])
            last = [start + (count - 1) * step + 1 for start, count, step in zip(first, counts, op.strides)]
            starts, ends, steps = (0, 0, *first), (*x.shape[:2], *last), (1, 1, *op.strides)
            whole = ends == x.shape and not any(first) and op.strides == (1, 1)
            found.append(x if whole else draft.emit("slice", [x], starts=starts, ends=ends, steps=steps))
    return found


def _with_bias(op: Conv, x: Value, draft: Draft) -> Value:
    if op.bias is None:
        return x
    return draft.emit("add", [x, draft.reshape(op.bias, (1, op.bias.shape[0], 1, 1))])
