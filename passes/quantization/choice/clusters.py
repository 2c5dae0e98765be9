"""Clusters: channels of the outputs of a net that are of one kind, whose errors are looked at together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from bmcompiler.numeric.arrays import Array, Doubles, Indices

Outputs = Mapping[str, Array]
_MOST_CHANNELS = 128
"""An axis with more positions than this holds places, or classes, rather than channels of different kinds."""
_ALIKE = 8.0
"""Channels whose spreads differ by less are of one kind."""
_LEAST = 0.01
"""Share of the energy of a cluster that counts as its signal at the least: a cluster may be almost constant."""
_TINY = 1e-30
_VALUES = 1 << 20
"""Values of an output that are looked at in a step, about: of larger ones some rows and columns."""


@dataclass(frozen=True)
class Cluster:
    """Channels of an output: their positions on `axis` (all of the output where there is none)."""

    output: str
    axis: int | None
    channels: Indices

    def of(self, array: Array) -> Array:
        """Its part of the output."""
        return array if self.axis is None else np.take(array, self.channels, self.axis)

    def __str__(self) -> str:
        if self.axis is None:
            return f"'{self.output}'"
        return f"'{self.output}' channels {', '.join(_runs(self.channels))}"


class Clusters:
    """The clusters of a net, told apart by its float outputs on samples.

    least: what lower numbers of an output are as good as, by name (`Decisions.least`).
    """

    def __init__(self, steps: Sequence[Outputs], least: Mapping[str, float] | None = None) -> None:
        self.least = least or {}
        steps = [self._bounded(step) for step in steps]
        self.clusters = [
            cluster
            for name in steps[0]
            if steps[0][name].dtype.kind == "f" and steps[0][name].size
            for cluster in _split(name, [np.nan_to_num(step[name]) for step in steps])
        ]
        self.signal = np.array([_signal([g.of(step[g.output]) for step in steps]) for g in self.clusters])

    def energies(self, found: Outputs, wanted: Outputs) -> Doubles:
        """Energy of the error of each cluster in one step, over that of the cluster's signal in a step: 1 is 100 %."""
        found, wanted = self._bounded(found), self._bounded(wanted)
        differences = {
            name: np.nan_to_num(found[name]) - np.nan_to_num(wanted[name]) for name in {g.output for g in self.clusters}
        }
        noise = [float(np.square(g.of(differences[g.output]), dtype=np.float64).sum()) for g in self.clusters]
        return np.array(noise) / self.signal

    def _bounded(self, outputs: Outputs) -> Outputs:
        low = {name: np.float32(self.least[name]) for name in self.least if name in outputs}
        return {**outputs, **{name: np.maximum(outputs[name], least) for name, least in low.items()}}


def looked_at(array: Array) -> Array:
    """An output, or every third, fifth, ... place of its long axes where it is large: nothing else is kept of it.

    Odd steps meet all phases of pixels that a net makes in blocks of two or four.
    """
    steps, left = [1] * array.ndim, list(array.shape)
    while prod(left) > _VALUES and max(left) > 2 * _MOST_CHANNELS:
        longest = left.index(max(left))
        steps[longest] += 2
        left[longest] = array.shape[longest] // steps[longest]
    return array if prod(steps) == 1 else array[tuple(slice(None, None, step) for step in steps)].copy()


def _split(name: str, steps: Sequence[Array]) -> list[Cluster]:
    """Clusters of one output: channels of like spread, in the order of their spreads."""
    axis = _channel_axis(steps[0].shape)
    if axis is None:
        return [Cluster(name, None, np.arange(0))]
    rows = np.concatenate([np.moveaxis(step, axis, 0).reshape(step.shape[axis], -1) for step in steps], axis=1)
    rows = rows.astype(np.float64)
    spread = np.sqrt(np.square(rows - rows.mean(1, keepdims=True)).mean(1) + _LEAST * np.square(rows).mean(1)) + _TINY
    order = np.argsort(spread)
    cuts = np.flatnonzero(spread[order][1:] > _ALIKE * spread[order][:-1]) + 1
    return [Cluster(name, axis, np.sort(part)) for part in np.split(order, cuts)]


def _channel_axis(shape: tuple[int, ...]) -> int | None:
    """The axis of channels: the second of feature maps, the shorter one of rows; lists of classes have none."""
    if len(shape) == 4:
        axis = 1 if shape[1] <= shape[3] else 3
    elif len(shape) == 3:
        axis = 1 if shape[1] < shape[2] else 2
    else:
        return None
    return axis if 1 < shape[axis] <= _MOST_CHANNELS else None


def _signal(steps: Sequence[Array]) -> float:
    """Energy around the mean in a step."""
    values = np.stack([np.nan_to_num(step) for step in steps]).astype(np.float64)
    around, whole = np.square(values - values.mean()).sum(), np.square(values).sum()
    return float(max(around, _LEAST * whole, _TINY)) / len(steps)


def _runs(channels: Indices) -> list[str]:
    parts = np.split(channels, np.flatnonzero(np.diff(channels) > 1) + 1)
    return [str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts]
