"""Weights and vectors per channel in global memory, in the order in which lanes hold them.

Channel c lies in lane c mod lanes, so that a lane holds every so many-th channel, one after the other. Channels of few
bytes are stored lane by lane: then each lane is loaded as one run, and not as many short ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts, Shape
from bmcompiler.backends.lanes.kernels.base import is_constant, item_bytes
from bmcompiler.chip import align_up
from bmcompiler.codegen.tiling import Buffer, Runs
from bmcompiler.ir import Value

Span = tuple[int, int]
_WORD = 4
"""Bytes at whose multiples a command finds weights and biases."""


def channel_buffer(
    chip: LaneFacts,
    constant: Value,
    layout: str,
    pack: Callable[[LaneBuild], Callable[[np.ndarray], np.ndarray]],
    dims: tuple[int, int],
    item: int,
    channels: tuple[int, int],
    shares: Sequence[Span] = (),
) -> Buffer:
    """Channels [c0, c1) of a packed constant, or of a computed value as it lies, compact in local memory.

    Args:
        layout, pack: see `Coefficients.place`; `pack` gets the build and packs all channels, which are the first axis.
        dims: (rows, columns) of elements of a channel. item: bytes of an element.
        shares: channels from the first one on that are loaded by a command each, whole rounds of lanes but for the
            last; none: all by one.
    """
    (c0, c1), row = channels, dims[0] * dims[1] * item
    shape = (1, c1 - c0, *dims)
    if not is_constant(constant):
        return _computed(chip, constant, shape, row, c0)
    if c1 - c0 > chip.lanes and row < chip.least_run:
        return _by_lanes(chip, constant, layout, pack, dims, item, channels)

    def load(build: LaneBuild, address: int) -> None:
        offset = build.coefficients.place(constant, layout, pack(build))
        for first, end in shares or [(0, c1 - c0)]:
            source, place = build.coefficient(offset + (c0 + first) * row), address + first // chip.lanes * row
            build.load_compact(source, (1, end - first, *dims), item, place)

    return Buffer(chip.compact_bytes(shape, item), "c", row * (c1 - c0), load, True, runs=Runs(1, c1 - c0))


def _computed(chip: LaneFacts, value: Value, shape: Shape, row: int, c0: int) -> Buffer:
    """Channels from c0 on of a value, `row` bytes each, one behind the other."""
    item = item_bytes(value)

    def load(build: LaneBuild, address: int) -> None:
        build.load_compact(build.source(value) + c0 * row, shape, item, address)

    nbytes, channels = row * shape[1], shape[1]
    return Buffer(chip.compact_bytes(shape, item), "c", nbytes, load, runs=Runs(1, channels), source=value)


def _by_lanes(
    chip: LaneFacts,
    constant: Value,
    layout: str,
    pack: Callable[[LaneBuild], Callable[[np.ndarray], np.ndarray]],
    dims: tuple[int, int],
    item: int,
    channels: tuple[int, int],
) -> Buffer:
    """See `channel_buffer`: the channels of a lane as one run."""
    (c0, c1), row, size = channels, dims[0] * dims[1] * item, dims[0] * dims[1]
    each, rest = divmod(c1 - c0, chip.lanes)
    if rest and (chip.lanes - rest) * row <= chip.command_bytes:
        each, rest = each + 1, 0  # zeros for what the last round does not have
    parts = [(0, rest, each + 1)] * bool(rest) + [(rest, chip.lanes - rest, each)]

    def load(build: LaneBuild, address: int) -> None:
        def packed(*constants: Any) -> np.ndarray:
            rows = by_lanes(chip, pack(build)(*constants), row, c0, c1)
            return np.concatenate([rows[first : first + count, :deep].reshape(-1) for first, count, deep in parts])

        start = build.coefficient(build.coefficients.place(constant, f"{layout} by lanes {c0} {c1}", packed))
        for first, count, deep in parts:
            build.load_compact(start, (1, count, deep, size), item, address, lane=first)
            start += count * deep * row

    of_lanes = (1, chip.lanes, -(-(c1 - c0) // chip.lanes), size)
    nbytes = sum(count * deep * row for _, count, deep in parts)
    runs = Runs(len(parts), chip.lanes)
    return Buffer(chip.compact_bytes(of_lanes, item), "c", nbytes, load, True, runs=runs, loads=len(parts))


class Joined(NamedTuple):
    """What is loaded at once; bias: bytes from the address of the weights to that of the bias, in each lane."""

    buffer: Buffer
    bias: int


def joined_buffer(
    chip: LaneFacts,
    weight: Value,
    bias: Value,
    layout: str,
    pack: Callable[[Any], Any],
    row: int,
    channels: Span,
    runs: tuple[int, int] = (0, 0),
) -> Joined:
    """Output channels [c0, c1) of packed weights, `row` bytes each, and of a bias: one run for each lane.

    Args:
        runs: (length, distance) in bytes of runs of weights. If the bias fits one more, what is between is not moved.
    """
    (c0, c1), item = channels, bias.type.numpy.itemsize
    lanes, deep = min(c1 - c0, chip.lanes), -(-(c1 - c0) // chip.lanes)
    first, second = align_up(deep * row, _WORD), align_up(deep * item, _WORD)
    if max(runs[0], second) < runs[1]:
        return _spaced(chip, weight, bias, layout, pack, row, channels, (max(runs[0], second), runs[1]))

    def packed(weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
        parts = (by_lanes(chip, pack(weights), row, c0, c1), by_lanes(chip, biases, item, c0, c1))
        whole = np.zeros((lanes, first + second), np.uint8)
        for place, part in zip((0, first), parts):
            whole[:, place : place + part[0].size] = part[:lanes].reshape(lanes, -1)
        return whole

    dims = (1, lanes, 1, (first + second) // _WORD)

    def load(build: LaneBuild, address: int) -> None:
        place = build.coefficients.place(weight, f"{layout} {row} {c0} {c1}", packed, bias)
        build.load_compact(build.coefficient(place), dims, _WORD, address)

    return Joined(Buffer(first + second, "c", _WORD * prod(dims), load, True, runs=Runs(1, lanes)), first)


def _spaced(
    chip: LaneFacts,
    weight: Value,
    bias: Value,
    layout: str,
    pack: Callable[[Any], Any],
    row: int,
    channels: Span,
    runs: tuple[int, int],
) -> Joined:
    """See `joined_buffer`: rows of bytes that lie apart in lanes."""
    (c0, c1), item, (width, step) = channels, bias.type.numpy.itemsize, runs
    lanes, first = min(c1 - c0, chip.lanes), -(-(c1 - c0) // chip.lanes) * row
    rows = first // step + 1

    def packed(weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
        whole = np.zeros((chip.lanes, rows * step), np.uint8)
        for place, part in (
            (0, by_lanes(chip, pack(weights), row, c0, c1)),
            (first, by_lanes(chip, biases, item, c0, c1)),
        ):
            flat = part.reshape(chip.lanes, -1)
            whole[:, place : place + flat.shape[1]] = flat
        return whole[:lanes].reshape(lanes, rows, step)[:, :, :width]

    def load(build: LaneBuild, address: int) -> None:
        place = build.coefficients.place(weight, f"{layout} {row} {c0} {c1} spaced", packed, bias)
        build.load_spaced(build.coefficient(place), (lanes, rows, width), step, address, 0)

    moved = Runs(lanes + 1, lanes)  # rows with gaps are no sections of a matrix
    return Joined(Buffer(rows * step, "c", lanes * rows * width, load, True, runs=moved), first)


def bias_buffer(chip: LaneFacts, bias: Value, c0: int, c1: int) -> Buffer:
    """The channels [c0, c1) of a bias as a compact vector."""
    item = bias.type.numpy.itemsize
    return channel_buffer(chip, bias, "plain", lambda build: np.asarray, (1, 1), item, (c0, c1))


def by_lanes(chip: LaneFacts, packed: np.ndarray, row: int, c0: int, c1: int) -> np.ndarray:
    """Channels [c0, c1) of `row` bytes each as (lanes, channels of a lane, row) bytes, zeros where there are none."""
    rows = np.ascontiguousarray(packed).reshape(-1).view(np.uint8).reshape(-1, row)[c0:c1]
    missing = -len(rows) % chip.lanes
    padded = np.pad(rows, [(0, missing), (0, 0)]) if missing else rows
    return np.ascontiguousarray(padded.reshape(-1, chip.lanes, row).swapaxes(0, 1))
