"""Permutations that transpose matrices, by lanes: each holds some rows or columns as one run, and turns them itself.

In global memory such a permutation moves single elements, each of which takes as long as a long run.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.moves.heads import heads_inside
from bmcompiler.backends.lanes.kernels.moves.layout import PermuteKernel
from bmcompiler.backends.lanes.kernels.moves.transposed_map import channels_first, channels_last
from bmcompiler.backends.lanes.kernels.moves.transposed_tiles import Matrices, Transposing, best_transposing
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.groups.stripes import readers_of
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.tiling import Buffer, Runs, TileWork
from bmcompiler.ir import Operation, Value
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.layers.nn import Conv, Matmul
from bmcompiler.ops.layers.norm import LayerNorm
from bmcompiler.ops.places.shape import Permute

_MOST_MATRICES = 32
_FASTER = 2
"""How many times faster lanes must be: what lies in them for other ops has to go."""


class _Part(NamedTuple):
    """Places `first` on of the long side of matrix `number`: so many lanes of `width` places."""

    number: int
    first: int
    lanes: int
    width: int


class TransposingKernel(PermuteKernel):
    """permute: one strided copy for up to four axes that stay apart, one per index of the others.

    Matrices are transposed in lanes where that is much faster than copies of single elements inside global memory.
    """

    def uses_local_memory(self, op: Permute) -> bool:
        return self._work(op) is not None or self._tiles(op) is not None

    def whole(self, op: Permute) -> TileWork | None:
        command = self._one_command(op, matrices_of(op))
        if command is not None and _is_between_lanes(op):
            return command
        return self._work(op) or command or heads_inside(self.machine, op) or channels_first(self.machine, op)

    def estimate(self, op: Permute) -> int | None:
        work, tiles = self._work(op), self._tiles(op)
        if work is not None:
            return self._cycles(work)
        return None if tiles is None else round(tiles.cycles())

    def moving_cycles(self, op: Permute) -> int | None:
        return self.estimate(op) or super().moving_cycles(op)

    def emit(self, op: Permute, build: Any) -> Moved:
        work, tiles = self._work(op), self._tiles(op)
        if work is None:
            return super().emit(op, build) if tiles is None else tiles.emit(build)
        (source,), (target,) = work.inputs, work.outputs
        end, scratch = self.machine.tiler.rounded(source.lane_bytes), []
        for size in work.scratch:
            scratch.append(end)
            end += self.machine.tiler.rounded(size)
        source.transfer(build, 0)
        work.compute(build, [0], [end], scratch)
        target.transfer(build, end)
        return Moved(source.nbytes, target.nbytes, 0, 1)

    def _work(self, op: Permute) -> TileWork | None:
        """The op as one tile; None where it is no transposition, does not fit, or is no faster so."""
        matrices = matrices_of(op)
        works = [self._one_command(op, matrices), self._by_lanes(op, matrices)]
        if self._moves(op):
            works.append(channels_last(self.machine, op))
        work = min((each for each in works if each is not None), key=self._cycles, default=None)
        if work is None:
            return None
        direct = self.machine.cycles.global_copy(op.type.size, item_bytes(op.result))
        return work if self._cycles(work) * _FASTER < direct else None

    def _tiles(self, op: Permute) -> Transposing | None:
        """Tiles, for what does not fit as a whole; None where copies inside global memory take hardly longer."""
        matrices = matrices_of(op)
        found = None if matrices is None else best_transposing(self.machine, op, matrices)
        direct = self.machine.cycles.global_copy(op.type.size, item_bytes(op.result))
        return found if found is not None and found.cycles() * _FASTER < direct else None

    def _one_command(self, op: Permute, matrices: Matrices | None) -> TileWork | None:
        """Each matrix an image whose rows are channels, which one command transposes, on chips that have it."""
        if not self.chip.transposes or matrices is None or not self._moves(op):
            return None
        number, rows, columns = matrices
        view, transposed = (number, rows, 1, columns), (number, columns, 1, rows)
        if not (self.chip.fits_fields(view) and self.chip.fits_fields(transposed)):
            return None
        item = item_bytes(op.result)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            build.transpose(Words(outs[0], transposed, item=item), Words(ins[0], view, item=item))

        before, after = (tuple((0, size) for size in shape) for shape in (view, transposed))
        inputs = (self.machine.activation_in(op.operands[0], view, before),)
        outputs = (self.machine.activation_out(op.result, transposed, after),)
        cycles = self.machine.cycles.pass_cycles(transposed, item)
        work = TileWork(inputs, outputs, (), compute, cycles)
        return work if self.machine.fits(work) else None

    def _moves(self, op: Permute) -> bool:
        """Whether commands move the elements one by one, and in local memory."""
        item = item_bytes(op.result)
        alone = self.chip.word_item(item) == item <= max(self.chip.word, self.chip.most_item)
        return alone and is_activation(op.operands[0])

    def _by_lanes(self, op: Permute, matrices: Matrices | None) -> TileWork | None:
        """Each lane turns some rows or columns; None where that does not fit."""
        if matrices is None or matrices.number > _MOST_MATRICES or not self._moves(op):
            return None
        x, item = op.operands[0], item_bytes(op.result)
        parts = list(_parts(matrices, self.chip.lanes))
        if matrices.short * parts[0].width > self.chip.most_size:
            return None
        places, size = [], 0
        for part in parts:
            places.append(size)
            size += self.chip.aligned_bytes((1, 1, part.width, matrices.short), item)
        runs = sum(part.lanes for part in parts)
        cut, whole = Runs(runs * matrices.short, runs * matrices.short), Runs(1, runs)
        if not matrices.is_wide:
            cut, whole = whole, cut

        def load(build: LaneBuild, address: int) -> None:
            for part, place in zip(parts, places):
                shape, strides, start = _side(matrices, part, matrices.is_wide)
                build.load(build.source(x) + item * start, shape, strides, item, address + place)

        def store(build: LaneBuild, address: int) -> None:
            for part, place in zip(parts, places):
                shape, strides, start = _side(matrices, part, not matrices.is_wide)
                build.store(build.neuron(op.result) + item * start, shape, strides, item, address + place)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            read, written = (ins[0], ins[0] + size), (outs[0], outs[0] + size)
            for part, place in zip(parts, places):
                transposed, by, to = _turn(self.chip.alignment, matrices, part, item)
                source = Words(ins[0] + place, transposed, by, within=read, item=item)
                build.copy(source, Words(outs[0] + place, transposed, to, within=written, item=item))

        cycles = sum(self.machine.cycles.pass_cycles((1, p.lanes, p.width, matrices.short), item) for p in parts)
        nbytes = op.type.nbytes
        inputs = (Buffer(size, "nchw", nbytes, load, runs=cut, loads=len(parts)),)
        work = TileWork(inputs, (Buffer(size, "nchw", nbytes, store, runs=whole),), (), compute, cycles)
        return work if self.machine.fits(work) else None

    def _cycles(self, work: TileWork) -> int:
        bus, rate = self.machine.tiler.bus, self.machine.tiler.bytes_per_cycle
        moved = bus.load(work.inputs[0]) + bus.store(work.outputs[0])
        return work.cycles + self.machine.cycles.tile_cycles + round(moved / rate)


def matrices_of(op: Permute) -> Matrices | None:
    """What a permutation transposes; None where it is another one."""
    shape, order = op.operands[0].shape, [axis for axis in op.order if op.operands[0].shape[axis] > 1]
    left = [axis for axis in range(len(shape)) if shape[axis] > 1]
    kept = 0
    while kept < len(order) and order[kept] == left[kept]:
        kept += 1
    transposed, rest = order[kept:], left[kept:]
    cuts = [cut for cut in range(1, len(rest)) if transposed == rest[cut:] + rest[:cut]]
    if not cuts:
        return None
    sizes = [shape[axis] for axis in rest]
    number = prod(shape[axis] for axis in left[:kept])
    return Matrices(number, prod(sizes[: cuts[0]]), prod(sizes[cuts[0] :]))


def _is_between_lanes(op: Permute) -> bool:
    """Whether what is read of one matrix is made, and what is made of it read, with its rows in lanes.

    Moved through global memory, short rows would take longer than lanes that turn longer runs.
    """
    maker = root_of(op.operands[0]).op
    while isinstance(maker, Cast):
        maker = root_of(maker.x).op
    readers = list(readers_of(op.result))
    for reader in readers:
        readers += readers_of(reader.result) if isinstance(reader, Cast) else ()
    matrices = matrices_of(op)
    assert matrices is not None, "a command transposes matrices"
    number, rows, columns = matrices
    return (
        number == 1
        and maker is not None
        and _has_in_lanes(maker.results[0], maker, rows)
        and any(_has_in_lanes(reader.operands[0], reader, columns) for reader in readers if reader.operands)
    )


def _has_in_lanes(value: Value, op: Operation, rows: int) -> bool:
    """Whether an op leaves or wants a value as so many rows in lanes: rows of its last axis, or a map's channels."""
    if isinstance(op, LayerNorm | Matmul):
        return value.type.rank > 1 and value.type.size == rows * value.shape[-1]
    return isinstance(op, Conv) and value.shape[:2] == (1, rows)


def _parts(matrices: Matrices, lanes: int) -> list[_Part]:
    """Each matrix in as many lanes as have equal shares, and what is left of it in one."""
    width = -(-matrices.long // lanes)
    full, rest = divmod(matrices.long, width)
    found = []
    for number in range(matrices.number):
        found.append(_Part(number, 0, full, width))
        if rest:
            found.append(_Part(number, full * width, 1, rest))
    return found


def _side(matrices: Matrices, part: _Part, strided: bool) -> tuple[Shape, Strides, int]:
    """(shape in lanes, strides in global memory, first element) of a side, whose places are runs or are `strided`."""
    start = part.number * matrices.long * matrices.short
    if strided:
        shape: Shape = (1, part.lanes, matrices.short, part.width)
        return shape, (0, part.width, matrices.long, 1), start + part.first
    run = part.width * matrices.short
    return (1, part.lanes, 1, run), (0, run, 0, 1), start + part.first * matrices.short


def _turn(alignment: int, matrices: Matrices, part: _Part, item: int) -> tuple[Shape, Strides, Strides]:
    """(shape, strides of the source, strides of the result) of the copy in each lane."""
    size = part.width * matrices.short
    step = -(-size * item // alignment) * alignment // item
    shape: Shape = (1, part.lanes, matrices.short, part.width)
    planes: Strides = (step, step, part.width, 1)
    runs: Strides = (step, step, 1, matrices.short)
    return (shape, planes, runs) if matrices.is_wide else (shape, runs, planes)
