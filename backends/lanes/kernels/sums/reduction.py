"""What kernels along reduced axes share: the reduced axes whole in every tile, so that sums do not depend on tiling.

4-D views of tensors in which the reduced axes are h, or h and w. Short rows that are reduced lie in lanes as one run,
as they follow each other in global memory, and the execution units turn them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import LocalKernel, contents_of, is_activation
from bmcompiler.backends.lanes.kernels.functions.broadcast import box_offset, is_dense
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane, Steps
from bmcompiler.backends.lanes.recipes.recorder import REDUCED
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Contents, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.target import OpT, rule

_LEAST = 1 << 10
"""Elements below which commands that turn rows take longer than short runs."""
_SHORT = 16
"""Elements of rows that other ops leave in lanes; shorter ones are hardly worth it."""
_RISK = 16
"""Copies inside local memory that rows may take longer to move where other ops may leave them in lanes as they are."""
_TOGETHER = 16
"""Results that a lane makes at once, of fp32."""
_COMMANDS = 8  # of a short reduction; long ones take more time for the same bytes


@dataclass(frozen=True)
class ReducedView:
    """How a dense tensor is reduced in local memory.

    Attributes:
        shape: (n, c, h, w).
        strides: of the tensor, in elements.
        out: strides of the dense reduced tensor, in elements; 0 along reduced axes.
        axes: reduced ones: (2,) or (2, 3).
        folded: whether (h, w) are rows in lanes, of which the columns are reduced first: commands make several results
            of a lane at once.
    """

    shape: Shape
    strides: Strides
    out: Strides
    axes: tuple[int, ...]
    folded: bool = False

    @property
    def count(self) -> int:
        """Number of elements that become one."""
        return prod(self.shape[axis] for axis in self.axes)

    @property
    def reduced(self) -> Shape:
        """Shape of the reduced tensor in this view."""
        n, c, _, w = self.shape
        return n, c, 1, 1 if 3 in self.axes else w

    @property
    def turns(self) -> bool:
        """Whether lanes hold several rows that are reduced, one after the other."""
        return self.shape[3] > 1 and self.strides[2:] == (1, self.shape[2])

    def moved(self, dims: Shape) -> tuple[Shape, Strides]:
        """Shape and strides of a tile of such dims as it is loaded and stored."""
        n, c, h, w = dims
        return ((n, c, 1, h * w), (*self.strides[:2], 0, 1)) if self.turns else (dims, self.strides)

    def contents(self, value: Value, box: Box) -> Contents | None:
        """What a tile holds of a value: columns of one element are rows, as other ops see them."""
        n, c, h, w = self.shape
        if self.turns:
            return contents_of(value, (n, c, 1, h * w), (*box[:2], (0, 1), (h * box[3][0], h * box[3][1])))
        if not is_dense(self.strides, self.shape):
            return None
        if w == 1 or self.folded:
            return contents_of(value, (n, c, 1, h * w), (*box[:2], (0, 1), (box[2][0] * w, box[2][1] * w)))
        return contents_of(value, self.shape, box)


def reduced_view(
    machine: LaneMachine, shape: tuple[int, ...], axes: tuple[int, ...], folds: bool = False
) -> ReducedView | None:
    """The view for a reduction of `axes`; None where kept and reduced axes alternate too often.

    What the elements of one sum are and their order, row by row of (h, w), does not depend on the view that is chosen.

    Args: folds: whether rows that lie in lanes may be folded.
    """
    return machine.decided(_reduced_view, machine, shape, axes, folds)


def _reduced_view(
    machine: LaneMachine, shape: tuple[int, ...], axes: tuple[int, ...], folds: bool
) -> ReducedView | None:
    parts = [
        (is_reduced, prod(d for _, d in group))
        for is_reduced, group in groupby(
            ((i in axes, d) for i, d in enumerate(shape) if d > 1), key=lambda item: item[0]
        )
    ]
    kinds = "".join("R" if is_reduced else "K" for is_reduced, _ in parts)
    sizes = [size for _, size in parts]
    if kinds in ("RKR", "KRKR"):
        a, r, b, s = sizes if kinds == "KRKR" else [1, *sizes]
        return ReducedView((a, b, r, s), (r * b * s, s, b * s, 1), (b, 1, 0, 0), (2, 3))
    if kinds not in ("", "K", "R", "KR", "RK", "KRK"):
        return None
    outer = sizes.pop(0) if kinds.startswith("K") else 1
    count = sizes.pop(0) if sizes else 1
    inner = sizes.pop(0) if sizes else 1
    choices = _choices(outer, count, inner)
    rows = machine.rows_view(shape)
    if axes != (len(shape) - 1,) or rows is None:
        return min(choices, key=lambda view: (_cycles(machine.cycles, view), -view.shape[3]))
    images, lanes, _, _ = rows
    kept = ReducedView((images, lanes, count, 1), (lanes * count, count, 1, 1), (lanes, 1, 0, 0), (2,))
    width = min((d for d in range(1, count + 1) if count % d == 0), key=partial(_folded_taps, count))
    if folds and _folded_taps(count, width) < count:
        kept = replace(kept, shape=(images, lanes, count // width, width), axes=(2, 3), folded=True)
        kept = replace(kept, strides=(lanes * count, count, width, 1))
    copies = {view: _RISK if view.turns and count >= _SHORT else 2 for view in choices} | {kept: 0}
    copy = machine.cycles.local_copy(rows)
    return min(copies, key=lambda view: _cycles(machine.cycles, view) + copies[view] * copy)


def _folded_taps(count: int, width: int) -> int:
    """Of a row that is folded into rows of such a width, for each result of a lane."""
    return count // width * -(-width // _TOGETHER) + width


def _cycles(timing: LaneCycles, view: ReducedView) -> int:
    """Rough cycles of some commands on the tensor and of loading and storing it: short runs fill the bus badly."""
    n, c, h, w = view.shape
    run, runs = (h * w, n * c) if view.strides[2] == w or view.turns else (w, n * c * h)
    moved = timing.load(runs, 4 * run) + timing.store(runs, 4 * run)
    waits = view.turns * (timing.tile_cycles + 2 * timing.pass_cycles(view.shape))  # others wait for it
    return _COMMANDS * timing.pass_cycles(view.shape) + waits + moved


def _choices(outer: int, count: int, inner: int) -> list[ReducedView]:
    """Views of (outer, count, inner): the lanes take `outer`, or a divisor of `inner`; of rows a divisor of `outer`."""
    step = count * inner
    found = [ReducedView((1, outer, count, inner), (0, step, inner, 1), (0, inner, 0, 1), (2,))]
    for lanes in (d for d in range(1, min(inner, 4096) + 1) if inner % d == 0):
        w = inner // lanes
        found.append(ReducedView((outer, lanes, count, w), (step, w, inner, 1), (inner, w, 0, 1), (2,)))
    turns = inner == 1 < count and outer * count >= _LEAST
    for lanes in (d for d in range(1, min(outer, 4097)) if turns and outer % d == 0):
        w = outer // lanes
        found.append(ReducedView((1, lanes, count, w), (0, w * count, 1, count), (0, w, 0, 1), (2,)))
    return found


class ReductionKernel(LocalKernel[OpT]):
    """Base: `recipe` over a tile of the first operand, and over vectors along the reduced axes."""

    @rule("The first operand must be an activation")
    def data_is_activation(self, op: OpT) -> bool:
        return is_activation(op.operands[0])

    @rule("Operands and result must be f32")
    def known_types(self, op: OpT) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    @rule("Kept and reduced axes must not alternate more than kept, reduced, kept, reduced")
    def has_view(self, op: OpT) -> bool:
        return reduced_view(self.machine, op.operands[0].shape, self.axes(op)) is not None

    @rule("At most {kernel.chip.most_size} elements may be reduced along neighbouring axes")
    def countable(self, op: OpT) -> bool:
        view = self.view(op)
        return all(view.shape[axis] <= self.chip.most_size for axis in view.axes)

    def axes(self, op: OpT) -> tuple[int, ...]:
        """The reduced axes of the first operand."""
        raise TypeError(f"{type(self).__name__} says no axes")

    def recipe(self, op: OpT) -> tuple[Any, ...]:
        """(recipe, further arguments); registers: the tile, the further operands, and `index` if there is one."""
        raise TypeError(f"{type(self).__name__} has no recipe")

    def named(self, op: OpT) -> dict[str, Any]:
        """Further keyword arguments of the recipe."""
        return {}

    def folds(self, op: OpT) -> bool:
        """Whether the recipe only reduces all rows, and has no other use for their order."""
        return True

    indexed = False
    """Whether the recipe takes the numbers 0, 1, ... along the reduced axis."""

    def view(self, op: OpT) -> ReducedView:
        """How the operand is seen."""
        view = reduced_view(self.machine, op.operands[0].shape, self.axes(op), self.folds(op))
        assert view is not None, "`has_view` looked"
        return view

    def steps(self, op: OpT) -> Steps:
        """The recipe, recorded."""
        (recipe, *arguments), view = self.recipe(op), self.view(op)
        inputs = len(op.operands) + self.indexed
        return self.machine.recorded(recipe, inputs, *arguments, axes=view.axes, folded=view.folded, **self.named(op))

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def evaluate(self, op: OpT, *arrays: Array) -> Array:
        view, steps = self.view(op), self.steps(op)
        x, *vectors = arrays
        along = (1, 1, *view.shape[2:]) if view.folded else (1, 1, -1, 1)
        rows = [vector.reshape(along) for vector in vectors]
        if self.indexed:
            rows.append(_index(view).reshape(along))
        result = steps.evaluate(_seen(np.ascontiguousarray(x), view.shape, view.strides), *rows)
        out = np.empty(op.type.shape, op.type.numpy)
        small = steps.steps[-1].height == REDUCED
        _seen(out, view.reduced if small else view.shape, view.out if small else view.strides)[...] = result.view(
            out.dtype
        )
        return out

    def views_result(self, op: OpT) -> bool:
        view = self.view(op)
        return op.type.size == op.operands[0].type.size and is_dense(view.strides, view.shape)

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def grid(self, op: OpT) -> tuple[Axis, ...]:
        chip, view = self.chip, self.view(op)
        n, c, h, w = view.shape
        return (
            Axis(n, 1, chip.most_images),
            Axis(c, chip.lanes, chip.most_channels),
            Axis(h, cuts=False),
            Axis(w, 1, chip.most_size // (h if view.turns else 1), cuts=3 not in view.axes),
        )

    def work(self, op: OpT, box: Box) -> TileWork:
        view, steps, dims = self.view(op), self.steps(op), extents(box)
        _, c, h, w = dims
        vector: Shape = (1, min(c, self.chip.lanes), h, w if view.folded else 1)
        spread = (0, 0, *_along_rows(vector)[2:])
        inputs = [self._tile(op.operands[0], view, box), *(self._vector(v, vector) for v in op.operands[1:])]
        if self.indexed:
            inputs.append(self._index_buffer(view, vector))

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            planes = [Plane(address, spread) for address in ins[1:]]
            self.emit_steps(build, op, (steps, dims), [ins[0], outs[0]], planes, scratch)

        small = steps.steps[-1].height == REDUCED
        result = ReducedView(view.reduced, view.out, view.out, view.axes) if small else view
        return TileWork(
            tuple(inputs),
            (self._result(op.result, result, box),),
            self.scratch(op, steps, dims),
            compute,
            self.step_cycles(op, steps, dims),
        )

    def emit_steps(
        self, build: LaneBuild, op: OpT, of: tuple[Steps, Shape], ends: list[int], more: list[Plane], scratch: list[int]
    ) -> None:
        """The recipe `of` a tile of such dims between `ends`, source and result, with vectors as further operands.

        What is turned takes the place of the result until that is turned back; a smaller one does not have it.
        """
        (steps, dims), (source, result) = of, ends
        small = scratch[steps.registers : steps.registers + steps.small_registers]
        if not self.view(op).turns:
            return steps.emit(build, dims, [Plane(source), *more], result, scratch[: steps.registers], small)
        n, c, h, w = dims
        ends = [result, scratch[-1]] if steps.steps[-1].height != REDUCED else [scratch[-1], result]
        build.copy(self._by_columns(source, dims), Words(ends[0], dims))
        steps.emit(build, dims, [Plane(ends[0]), *more], ends[1], scratch[: steps.registers], small)
        if ends[1] != result:
            build.copy(self._by_columns(ends[1], (n, c, w, h)), Words(result, (n, c, w, h)))
        return None

    def scratch(self, op: OpT, steps: Steps, dims: Shape) -> tuple[int, ...]:
        """Bytes of what `emit_steps` needs."""
        view, (n, c, _, w) = self.view(op), dims
        kept = w if view.folded or 3 not in view.axes else 1
        whole, reduced = map(self.chip.aligned_bytes, (dims, (n, c, 1, kept)))
        return (whole,) * steps.registers + (reduced,) * steps.small_registers + (whole,) * view.turns

    def step_cycles(self, op: OpT, steps: Steps, dims: Shape) -> int:
        """Cycles of what `emit_steps` emits."""
        turns = self.view(op).turns * (1 + (steps.steps[-1].height != REDUCED))
        return steps.cycles(dims) + turns * self.machine.cycles.pass_cycles(dims)

    def _by_columns(self, address: int, dims: Shape) -> Words:
        """What lies column by column."""
        _, step, _, _ = self.chip.aligned_strides(dims)
        return Words(address, dims, (step, step, 1, dims[2]), within=self.chip.plane(address, dims))

    # -- buffers -------------------------------------------------------------------------------------------------------
    def _tile(self, value: Value, view: ReducedView, box: Box) -> Buffer:
        dims, strides = view.moved(extents(box))

        def load(build: LaneBuild, address: int) -> None:
            source = build.source(value) + 4 * box_offset(view.strides, box)
            build.load_words(source, value.dtype, dims, strides, address)

        kept = view.contents(value, box)
        return Buffer(self.chip.aligned_bytes(dims), "nchw", 4 * prod(dims), load, contents=kept)

    def _result(self, value: Value, view: ReducedView, box: Box) -> Buffer:
        """What `box` of the operand becomes, of a result that is seen as `view`."""
        part: Box = tuple((0, 1) if size == 1 else interval for size, interval in zip(view.shape, box))
        dims, strides = view.moved(extents(part))

        def store(build: LaneBuild, address: int) -> None:
            target = build.neuron(value) + 4 * box_offset(view.strides, box)
            build.store_words(target, 4, dims, strides, address)

        kept = view.contents(value, part)
        return Buffer(self.chip.aligned_bytes(dims), "nchw", 4 * prod(dims), store, contents=kept)

    def _vector(self, value: Value, shape: Shape) -> Buffer:
        """Values along the reduced axis, one copy in every lane."""

        def load(build: LaneBuild, address: int) -> None:
            build.load_words(build.source(value), value.dtype, shape, _along_rows(shape), address)

        return Buffer(self.chip.aligned_bytes(shape), "", 4 * prod(shape), load, not is_activation(value))

    def _index_buffer(self, view: ReducedView, shape: Shape) -> Buffer:
        def load(build: LaneBuild, address: int) -> None:
            source = build.coefficient(build.coefficients.constant(_index(view).tobytes()))
            build.load_words(source, "f32", shape, _along_rows(shape), address)

        return Buffer(self.chip.aligned_bytes(shape), "", 4 * prod(shape), load, True)


def _along_rows(vector: Shape) -> Strides:
    """Of values along the reduced axes, the same for all that is kept."""
    return (0, 0, vector[3], int(vector[3] > 1))


def _seen(array: Array, shape: Shape, strides: Strides) -> Array:
    return as_strided(array, shape, tuple(array.itemsize * step for step in strides))


def _index(view: ReducedView) -> Floats:
    return np.arange(view.count, dtype=np.float32)
