"""What kernels along reduced axes share: the reduced axes whole in every tile, so that sums do not depend on tiling.

4-D views of tensors in which the reduced axes are h, or h and w. Short rows that are reduced lie in lanes as one run,
as they follow each other in global memory, and the execution units turn them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation
from bmcompiler.backends.lanes.kernels.functions.broadcast import is_dense
from bmcompiler.backends.lanes.kernels.sums.reduced_view import Recipe, ReducedView, TileMove, is_seen, reduced_view
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane, Steps
from bmcompiler.backends.lanes.recipes.recorder import REDUCED
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.target import OpT, rule


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
        return is_seen(op.operands[0].shape, self.axes(op))

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

    def count(self, op: OpT) -> int:
        """Number of elements that become one."""
        return prod(op.operands[0].shape[axis] for axis in self.axes(op))

    def view(self, op: OpT) -> ReducedView:
        """How the operand is seen."""
        return reduced_view(self.machine, op.operands[0].shape, self.axes(op), self.recorded(op))

    def recorded(self, op: OpT) -> Recipe:
        """`recipe` with all its arguments."""
        recipe, *arguments = self.recipe(op)
        inputs = len(op.operands) + self.indexed
        return Recipe(recipe, inputs, tuple(arguments), tuple(self.named(op).items()), self.folds(op))

    def steps(self, op: OpT) -> Steps:
        """The recipe, recorded."""
        return self.recorded(op).steps(self.machine, self.view(op))

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def evaluate(self, op: OpT, *arrays: Array) -> Array:
        view, steps = self.view(op).undivided, self.steps(op)
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
        return op.type.size == op.operands[0].type.size and not view.shared and is_dense(view.strides, view.shape)

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
        result = ReducedView(view.reduced, view.out, view.out, view.axes, shared=view.shared) if small else view
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
        dims, _ = view.moved(extents(box))
        pieces = list(view.pieces(box, self.machine.cycles))

        def load(build: LaneBuild, address: int) -> None:
            for piece in pieces:
                build.load_part(build.source(value) + 4 * piece.start, piece.strides, self.local(piece, dims, address))

        return Buffer(
            self.chip.aligned_bytes(dims),
            "nchw",
            4 * prod(dims),
            load,
            contents=view.contents(value, box),
            runs=_all_runs(pieces),
            loads=len(pieces),
        )

    def _result(self, value: Value, view: ReducedView, box: Box) -> Buffer:
        """What `box` of the operand becomes, of a result that is seen as `view`."""
        part: Box = tuple((0, 1) if size == 1 else interval for size, interval in zip(view.shape, box))
        dims, _ = view.moved(extents(part))
        pieces = list(view.pieces(part))

        def store(build: LaneBuild, address: int) -> None:
            for piece in pieces:
                target = build.neuron(value) + 4 * piece.start
                build.store_part(target, piece.strides, self.local(piece, dims, address))

        kept, runs = view.contents(value, part), _all_runs(pieces)
        return Buffer(self.chip.aligned_bytes(dims), "nchw", 4 * prod(dims), store, contents=kept, runs=runs)

    def local(self, piece: TileMove, dims: Shape, address: int) -> Words:
        """Where a piece of a tile of such dims lies."""
        chip, (image, channel, row, word) = self.chip, self.chip.aligned_strides(dims)
        down, lane = divmod(piece.channel, chip.lanes)
        strides = (row, channel, 0, word) if piece.in_rows else (image, channel, row, word)
        place = address + 4 * (piece.image * image + down * channel)
        return Words(place, piece.sizes, strides, lane, chip.plane(address, dims))

    def _vector(self, value: Value, shape: Shape) -> Buffer:
        """Values along the reduced axis, one copy in every lane."""

        def load(build: LaneBuild, address: int) -> None:
            build.load_words(build.source(value), value.dtype, shape, _along_rows(shape), address)

        return Buffer(self.chip.aligned_bytes(shape), "", 4 * prod(shape), load, not is_activation(value))

    def _index_buffer(self, view: ReducedView, shape: Shape) -> Buffer:
        def load(build: LaneBuild, address: int) -> None:
            source = build.coefficient(build.coefficients.constant(_index(view).tobytes()))
            build.load_words(source, "f32", shape, _along_rows(shape), address)

        runs = Runs(shape[1], shape[1])
        return Buffer(self.chip.aligned_bytes(shape), "", 4 * prod(shape), load, True, runs=runs)


def _all_runs(pieces: Sequence[TileMove]) -> Runs:
    return Runs(sum(piece.runs.outer for piece in pieces), sum(piece.runs.lanes for piece in pieces))


def _along_rows(vector: Shape) -> Strides:
    """Of values along the reduced axes, the same for all that is kept."""
    return (0, 0, vector[3], int(vector[3] > 1))


def _seen(array: Array, shape: Shape, strides: Strides) -> Array:
    return as_strided(array, shape, tuple(array.itemsize * step for step in strides))


def _index(view: ReducedView) -> Floats:
    return np.arange(view.count, dtype=np.float32)
