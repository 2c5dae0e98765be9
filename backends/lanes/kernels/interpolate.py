"""Linear and cubic resizing in local memory: weighted sums of rows, then of columns (bm1684.md 6.4 mul and mac)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.build import Build, compact_bytes, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.fp32 import FloatArray, add, multiply
from bmcompiler.backends.bm1684.isa import Eu, StrideCode, Task
from bmcompiler.backends.bm1684.kernels.base import (
    MAX_CHANNELS,
    MAX_SIZE,
    LocalKernel,
    activation_in,
    activation_out,
    is_activation,
    pass_cycles,
    plane,
    sizes,
    strides,
)
from bmcompiler.backends.bm1684.layout import Shape, aligned_strides
from bmcompiler.codegen.runs import runs
from bmcompiler.codegen.strided_copy import Dim
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ops.base import TensorOp
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

    index: NDArray[np.int64]
    weight: FloatArray

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

    def apply(self, x: FloatArray, axis: int) -> FloatArray:
        """The weighted sums along an axis, in the order of the commands: the product of tap 0, then the others."""
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        weights = (self.weight[:, tap].reshape(shape) for tap in range(self.count))
        products = (multiply(x.take(self.index[:, tap], axis), weight) for tap, weight in enumerate(weights))
        return reduce(lambda total, one: add(one, total), products)


@dataclass(frozen=True)
class Plan:
    """A resize as one of feature maps (n, c, h, w): the operand's shape, and the axes that change."""

    source: Shape
    result: Shape
    taps: dict[int, Taps]


def plan_of(op: TensorOp) -> Plan:
    """The plan of a resize that moves nothing but its last two axes."""
    before = [(1, 1, *v.shape)[-2:] for v in (op.input, op.result)]
    images = prod(op.type.shape[:-2])
    n, c = (1, images) if images <= MAX_CHANNELS else (prod(op.type.shape[:-3]), op.type.shape[-3])
    taps = {}
    for axis in op.moving():
        index, weight = op.taps(axis)
        taps[axis - op.type.rank + 4] = Taps(index, weight.astype(np.float32))
    (sh, sw), (rh, rw) = before
    return Plan((n, c, sh, sw), (n, c, rh, rw), taps)


class InterpolateKernel(LocalKernel):
    """resize with mode linear or cubic: each tap is a product of strided rows (columns) with a vector of weights.

    The weights of an axis lie in every lane; results do not depend on the tiling.
    """

    @rule("Operand must be an f32 activation")
    def float_activation(self, op: TensorOp) -> bool:
        return op.input.dtype == "f32" and is_activation(op.input)

    @rule("Only the last two axes may be interpolated")
    def last_axes(self, op: TensorOp) -> bool:
        return all(axis >= op.type.rank - 2 for axis in op.moving())

    @rule("Cropping is only done to the nearest elements", got="coordinates")
    def whole_input(self, op: TensorOp) -> bool:
        return bool(op.coordinates != "tf_crop_and_resize")

    @rule(f"Rows and columns must have even distances: at most {MOST_COMMANDS} instructions", last=True)
    def few_strips(self, op: TensorOp) -> bool:
        axes = plan_of(op).taps.values()
        found = (strip for taps in axes for tap in range(taps.count) for strip in taps.strips(tap, 0, len(taps.index)))
        return sum(1 for _ in found) <= MOST_COMMANDS

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        n, c, h, w = plan_of(op).result
        return Axis(n, 1, MAX_SIZE), Axis(c, CHIP.lanes, MAX_CHANNELS), Axis(h, 1, MAX_SIZE), Axis(w, 1, MAX_SIZE)

    def evaluate(self, op: TensorOp, *arrays: Any) -> Any:
        """Rows, then columns, in the chip's arithmetic."""
        plan = plan_of(op)
        x = arrays[0].reshape(plan.source)
        for axis, taps in sorted(plan.taps.items()):
            x = taps.apply(x, axis)
        return x.reshape(op.type.shape)

    def work(self, op: TensorOp, box: Box) -> TileWork:
        plan = plan_of(op)
        moving = sorted(plan.taps)
        source = [*box]
        for axis in moving:
            source[axis] = plan.taps[axis].need(*box[axis])
        shapes = [extents(source)]
        for axis in moving:
            shapes.append(_with_axis(shapes[-1], axis, box[axis]))
        inputs = [activation_in(op.input, plan.source, tuple(source))]
        inputs += [weight_buffer(plan.taps[axis], box[axis], box[1], "nchw"[axis]) for axis in moving]

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            places = [ins[0], *scratch, outs[0]]
            for step, axis in enumerate(moving):
                emit_sums(
                    build,
                    plan.taps[axis],
                    axis,
                    box[axis],
                    (places[step], shapes[step]),
                    (places[step + 1], shapes[step + 1]),
                    ins[1 + step],
                )

        return TileWork(
            tuple(inputs),
            (activation_out(op.result, plan.result, box),),
            tuple(lane_bytes(shape) for shape in shapes[1:-1]),
            compute,
            sum(plan.taps[axis].count * pass_cycles(shape) for axis, shape in zip(moving, shapes[1:])),
        )


def _with_axis(shape: Shape, axis: int, interval: tuple[int, int]) -> Shape:
    n, c, h, w = (interval[1] - interval[0] if i == axis else size for i, size in enumerate(shape))
    return n, c, h, w


def weight_buffer(taps: Taps, interval: tuple[int, int], channels: tuple[int, int], axes: str) -> Buffer:
    """The weights of the results of an interval, tap after tap, in every lane that the channels use."""
    (lo, hi), lanes = interval, min(CHIP.lanes, channels[1] - channels[0])
    dims = (taps.count, lanes, hi - lo, 1)

    def load(build: Build, address: int) -> None:
        offset = build.coefficients.constant(np.ascontiguousarray(taps.weight.T).tobytes())
        by = (len(taps.weight), 0, 1, 1)
        build.load_compact(build.coefficient(offset + _WORD * lo), dims, _WORD, address, by)

    return Buffer(compact_bytes(dims), axes, _WORD * prod(dims), load, True)


def emit_sums(
    build: Build,
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
    by, to = aligned_strides(source[1]), aligned_strides(target[1])
    reads = [plane(*source), (weights, weights + _WORD * taps.count * length)]
    for tap in range(taps.count):
        for strip in taps.strips(tap, *interval):
            place = (weights + _WORD * (tap * length + strip.at), (0, 0, *_one(axis, 1)))
            build.tiu(
                [*reads, plane(*target)],
                [plane(*target)],
                tsk_typ=Task.TENSOR,
                tsk_eu_typ=Eu.MAC if tap else Eu.MUL,
                **sizes("res0", _with_axis(target[1], axis, (0, strip.count))),
                **_side("res0", target[0] + _WORD * strip.at * to[axis], to, axis, strip.step),
                **_side("opd0", source[0] + _WORD * (strip.source - first) * by[axis], by, axis, strip.source_step),
                **_side("opd1", *place, axis, strip.step),
            )


def _one(axis: int, step: int) -> tuple[int, int]:
    """Strides (h, w) of a vector along an axis."""
    return (step, 0) if axis == _ROWS else (0, step)


def _side(name: str, address: int, steps: Shape, axis: int, every: int) -> dict[str, int]:
    """Address and stride fields of an operand of which every so many elements along `axis` take part."""
    n, c, h, w = (step * every if i == axis else step for i, step in enumerate(steps))
    return {
        f"{name}_addr": local_address(address),
        f"short_{name}_str": StrideCode.EXPLICIT,
        **strides(name, (n, c, h, w)),
    }
