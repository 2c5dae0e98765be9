"""Linear and cubic resizing in local memory: weighted sums of rows, then of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import pairwise, product
from math import prod

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.runs import runs
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.numeric.arrays import Array, Floats, Ints
from bmcompiler.ops.places.resample import Resize
from bmcompiler.target import rule

MOST_COMMANDS = 512
_WORD = 4
_ROWS, _COLUMNS = 2, 3
_ALONE = Dim(1, 0, 0)


@dataclass(frozen=True)
class Strip:
    """`count` positions of a result axis, `step` apart from `at` on; their sources lie `source_step` apart."""

    at: int
    source: int
    count: int
    step: int
    source_step: int


@dataclass(frozen=True)
class Taps:
    """One axis of a resize: for each result position the source positions and their weights, both (length, taps)."""

    index: Ints
    weight: Floats

    @property
    def count(self) -> int:
        """Neighbours that a result element has."""
        return self.index.shape[1]

    def need(self, lo: int, hi: int) -> tuple[int, int]:
        """Half-open interval of source positions that the results [lo, hi) read."""
        part = self.index[lo:hi]
        return int(part.min()), int(part.max()) + 1

    def strips(self, tap: int, lo: int, hi: int) -> Iterator[Strip]:
        """The results [lo, hi) as evenly spaced ones with evenly spaced sources; positions count from lo."""
        for run in runs(self.index[lo:hi, tap]):
            main = max(run.axes, key=lambda axis: axis.size, default=_ALONE)
            others = [axis for axis in run.axes if axis is not main]
            for steps in product(*(range(axis.size) for axis in others)):
                at = run.at + sum(i * axis.dst for i, axis in zip(steps, others))
                source = run.start + sum(i * axis.src for i, axis in zip(steps, others))
                yield Strip(at, source, main.size, main.dst, main.src)

    def apply(self, arithmetic: Arithmetic, x: Floats, axis: int) -> Floats:
        """The weighted sums along an axis, in the order of the commands: the product of tap 0, then the others."""
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        weights = (self.weight[:, tap].reshape(shape) for tap in range(self.count))
        products = (arithmetic.multiply(x.take(self.index[:, tap], axis), weight) for tap, weight in enumerate(weights))
        return reduce(lambda total, one: arithmetic.add(one, total), products)


@dataclass(frozen=True)
class Interpolation:
    """A resize as one of feature maps (n, c, h, w): the operand's shape, and the axes that change."""

    source: Shape
    result: Shape
    taps: dict[int, Taps]


def interpolation_of(op: Resize, most_channels: int) -> Interpolation:
    """The plan of a resize that moves nothing but its last two axes; most_channels: of a command."""
    before = [(1, 1, *v.shape)[-2:] for v in (op.input, op.result)]
    images = prod(op.type.shape[:-2])
    n, c = (1, images) if images <= most_channels else (prod(op.type.shape[:-3]), op.type.shape[-3])
    taps = {}
    for axis in op.moving():
        index, weight = op.taps(axis)
        taps[axis - op.type.rank + 4] = Taps(index, weight.astype(np.float32))
    (sh, sw), (rh, rw) = before
    return Interpolation((n, c, sh, sw), (n, c, rh, rw), taps)


class InterpolateKernel(LocalKernel[Resize]):
    """resize with mode linear or cubic: each tap is a product of strided rows (columns) with a vector of weights.

    The weights of an axis lie in every lane; results do not depend on the tiling.
    """

    @rule("Operand must be an f32 activation")
    def float_activation(self, op: Resize) -> bool:
        return op.input.dtype == "f32" and is_activation(op.input)

    @rule("Only the last two axes may be interpolated")
    def last_axes(self, op: Resize) -> bool:
        return all(axis >= op.type.rank - 2 for axis in op.moving())

    @rule("Cropping is only done to the nearest elements", got="coordinates")
    def whole_input(self, op: Resize) -> bool:
        return bool(op.coordinates != "tf_crop_and_resize")

    @rule(f"Rows and columns must have even distances: at most {MOST_COMMANDS} instructions", last=True)
    def few_strips(self, op: Resize) -> bool:
        axes = self.plan(op).taps.values()
        found = (strip for taps in axes for tap in range(taps.count) for strip in taps.strips(tap, 0, len(taps.index)))
        return sum(1 for _ in found) <= MOST_COMMANDS

    def plan(self, op: Resize) -> Interpolation:
        """The resize as one of feature maps."""
        return interpolation_of(op, self.chip.most_channels)

    def grid(self, op: Resize) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(self.plan(op).result)

    def evaluate(self, op: Resize, *arrays: Array) -> Array:
        plan = self.plan(op)
        x = arrays[0].reshape(plan.source)
        for axis, taps in sorted(plan.taps.items()):
            x = taps.apply(self.machine.arithmetic, x, axis)
        return x.reshape(op.type.shape)

    def work(self, op: Resize, box: Box) -> TileWork:
        plan = self.plan(op)
        moving = sorted(plan.taps)
        source = [*box]
        for axis in moving:
            source[axis] = plan.taps[axis].need(*box[axis])
        shapes = [extents(source)]
        for axis in moving:
            shapes.append(_with_axis(shapes[-1], axis, box[axis]))
        inputs = [self.machine.activation_in(op.input, plan.source, tuple(source))]
        inputs += [weight_buffer(self.chip, plan.taps[axis], box[axis], box[1], "nchw"[axis]) for axis in moving]

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            data, *weights = ins
            stages = pairwise(zip((data, *scratch, outs[0]), shapes))
            for axis, (before, after), factors in zip(moving, stages, weights):
                emit_sums(build, plan.taps[axis], axis, box[axis], before, after, factors)

        return TileWork(
            tuple(inputs),
            (self.machine.activation_out(op.result, plan.result, box),),
            tuple(self.chip.aligned_bytes(shape) for shape in shapes[1:-1]),
            compute,
            sum(self._cycles(plan.taps[axis], axis, box[axis], shape) for axis, shape in zip(moving, shapes[1:])),
        )

    def _cycles(self, taps: Taps, axis: int, interval: tuple[int, int], shape: Shape) -> int:
        counts = (count for tap in range(taps.count) for count in _strip_counts(taps, tap, *interval))
        return sum(self.machine.cycles.pass_cycles(_with_axis(shape, axis, (0, count)), pair=True) for count in counts)


def _strip_counts(taps: Taps, tap: int, lo: int, hi: int) -> tuple[int, ...]:
    """Positions of each strip; a search of tilings asks for the same again and again."""
    return _counts_of(np.ascontiguousarray(taps.index[lo:hi, tap]).tobytes())


@lru_cache(maxsize=4096)
def _counts_of(index: bytes) -> tuple[int, ...]:
    column = np.frombuffer(index, np.int64)[:, None]
    return tuple(strip.count for strip in Taps(column, column.astype(np.float32)).strips(0, 0, len(column)))


def _with_axis(shape: Shape, axis: int, interval: tuple[int, int]) -> Shape:
    n, c, h, w = (interval[1] - interval[0] if i == axis else size for i, size in enumerate(shape))
    return n, c, h, w


def weight_buffer(
    chip: LaneFacts, taps: Taps, interval: tuple[int, int], channels: tuple[int, int], axes: str
) -> Buffer:
    """The weights of the results of an interval, tap after tap, in every lane that the channels use."""
    (lo, hi), lanes = interval, min(chip.lanes, channels[1] - channels[0])
    dims = (taps.count, lanes, hi - lo, 1)

    def load(build: LaneBuild, address: int) -> None:
        offset = build.coefficients.constant(np.ascontiguousarray(taps.weight.T).tobytes())
        by = (len(taps.weight), 0, 1, 1)
        build.load_compact(build.coefficient(offset + _WORD * lo), dims, _WORD, address, by)

    return Buffer(chip.compact_bytes(dims), axes, _WORD * prod(dims), load, True)


def emit_sums(
    build: LaneBuild,
    taps: Taps,
    axis: int,
    interval: tuple[int, int],
    source: tuple[int, Shape],
    target: tuple[int, Shape],
    weights: int,
) -> None:
    """Emit the weighted sums along `axis` (2 or 3) of a local tensor (address, shape) into another.

    Args:
        interval: results to make; their sources begin with the first row (column) of `source`.
        weights: local address of those of `weight_buffer`.
    """
    first, _ = taps.need(*interval)
    length = interval[1] - interval[0]
    chip, (place, dims), (end, made) = build.chip, source, target
    by, to = chip.aligned_strides(dims), chip.aligned_strides(made)
    read, written = chip.plane(place, dims), chip.plane(end, made)
    weights_read = (weights, weights + _WORD * taps.count * length)
    for tap in range(taps.count):
        for strip in taps.strips(tap, *interval):
            shape = _with_axis(made, axis, (0, strip.count))
            build.weigh(
                Words(end + _WORD * strip.at * to[axis], shape, _every(to, axis, strip.step), within=written),
                Words(
                    place + _WORD * (strip.source - first) * by[axis],
                    shape,
                    _every(by, axis, strip.source_step),
                    within=read,
                ),
                Words(
                    weights + _WORD * (tap * length + strip.at),
                    shape,
                    _every((0, 0, axis == _ROWS, axis == _COLUMNS), axis, strip.step),
                    within=weights_read,
                ),
                add=tap > 0,
            )


def _every(steps: Strides, axis: int, every: int) -> Strides:
    """Strides of every so many elements along `axis`."""
    n, c, h, w = (step * every if i == axis else step for i, step in enumerate(steps))
    return n, c, h, w
