"""Element by element ops: operands that broadcast to the result's shape, and a recipe."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeGuard

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.kernels.base import LocalKernel, contents_of, dims4, is_activation, item_bytes
from bmcompiler.backends.lanes.kernels.functions.broadcast import (
    box_axes,
    box_offset,
    broadcast_view,
    is_dense,
    merged_axes,
    native_view,
)
from bmcompiler.backends.lanes.kernels.functions.repeated_rows import is_repeated, repeated_rows
from bmcompiler.backends.lanes.recipes import Plane, Recorder, Register, Steps, integers, powers
from bmcompiler.backends.lanes.recipes.halves import HALVES, ITEMS, UNITS
from bmcompiler.backends.lanes.recipes.words import NARROW, as_float, from_words, saturated, to_words
from bmcompiler.codegen.build import dense_strides, extents
from bmcompiler.codegen.groups.regions import four_axes, whole_box
from bmcompiler.codegen.pictures import reads_picture
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Contents, Runs, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Add, Binary, Div, Max, Min, Mod, Mul, Pow, Sub
from bmcompiler.target import OpT, rule

Recipe = Callable[..., Register]
_HALFWORDS = ("i16", "u16")
_WASTED = 8
"""How many times larger than a plane of scratch a bank may be that it has for itself."""


class ElementwiseKernel(LocalKernel[OpT]):
    """Base: `recipe` says what is computed, `shapes` how the operands lie against the result."""

    @rule("An operand must be an activation, not all of them constants")
    def some_activation(self, op: OpT) -> bool:
        return any(map(is_activation, op.operands))

    @rule("Operands and result must be of one type, {kernel.floats}")
    def known_types(self, op: OpT) -> bool:
        return self.one_float(*op.operands, op.result)

    @rule("Of 16-bit floats only sums, products and choices are computed")
    def known_steps(self, op: OpT) -> bool:
        return self.words(op) == "f32" or UNITS.issuperset(step.unit for step in self.steps(op).steps)

    @rule("Broadcasting must not need more than four axes")
    def few_axes(self, op: OpT) -> bool:
        return len(merged_axes(op.type.shape, self.shapes(op))) <= 4

    def recipe(self, op: OpT) -> tuple[Any, ...]:
        """(recipe, further arguments): called with one register per operand."""
        raise TypeError(f"{type(self).__name__} has no recipe")

    def shapes(self, op: OpT) -> tuple[tuple[int, ...], ...]:
        """Shape of each operand as it broadcasts to the result's."""
        return tuple(v.shape for v in op.operands)

    def tensors(self, op: OpT) -> dict[tuple[Value, tuple[int, ...]], int]:
        """What is loaded, and in which place: operands with their shapes, each once however often the op reads it."""
        return {tensor: place for place, tensor in enumerate(dict.fromkeys(zip(op.operands, self.shapes(op))))}

    @staticmethod
    def words(op: OpT) -> str:
        """The float type of the words of tiles; integers and conversions are computed in words of 32 bits."""
        found = {v.dtype for v in (*op.operands, *op.results)}
        return found.pop() if len(found) == 1 and found <= HALVES else "f32"

    def steps(self, op: OpT) -> Steps:
        """The recipe, recorded; with a command before it for what repeats and is read whole (`_spread`)."""
        recipe, *arguments = self.recipe(op)
        tensors, words = self.tensors(op), self.words(op)
        given = tuple(tensors[tensor] for tensor in zip(op.operands, self.shapes(op)))
        found = self.machine.recorded(recipe, len(tensors), *arguments, given=given, dtype=words)
        last = op.type.shape[-1:]
        again = tuple(s[-1:] != last and found.needs_default_layout(n) for n, s in zip(given, self.shapes(op)))
        if words != "f32" or not any(again):
            return found
        return self.machine.recorded(_spread, len(tensors), again, recipe, *arguments, given=given, dtype=words)

    def evaluate(self, op: OpT, *arrays: Array) -> Array:
        given = dict(zip(zip(op.operands, self.shapes(op)), arrays))
        shaped = [array.reshape(shape) for (_, shape), array in given.items()]
        if self.words(op) != "f32":
            return self.steps(op).evaluate(*shaped).reshape(op.type.shape)
        words = map(to_words, shaped)
        return from_words(self.steps(op).evaluate(*words).reshape(op.type.shape), op.type.numpy)

    def grid(self, op: OpT) -> tuple[Axis, ...]:
        item = ITEMS[self.words(op)]
        return self.machine.elementwise_grid(self._view(op)[0], item)

    def views_result(self, op: OpT) -> bool:
        return True

    def _view(self, op: OpT) -> tuple[Shape, tuple[Strides, ...]]:
        steps = self.steps(op).cycles((1, 1, 1, 1))
        return broadcast_view(
            self.machine, op.type.shape, self.shapes(op), ITEMS[self.words(op)], steps, self.is_made(op)
        )

    def boxed(self, op: OpT, box: Box) -> TileWork | None:
        """Of pictures in their own axes, too, where another view takes fewer cycles: as layers behind have them."""
        found = super().boxed(op, box)
        asked = found is None and reads_picture(op)
        native = native_view(self.chip, op.type.shape, self.shapes(op)) if asked else None
        if native is None or not self.machine.takes(native[0], ITEMS[self.words(op)], box):
            return found
        work = self._seen_as(op, box, native)
        return work if self.fits(work) else None

    def work(self, op: OpT, box: Box) -> TileWork:
        return self._seen_as(op, box, self._view(op))

    def _seen_as(self, op: OpT, box: Box, seen: tuple[Shape, tuple[Strides, ...]]) -> TileWork:
        item = ITEMS[self.words(op)]
        view, strides = seen
        dims = extents(box)
        by_tensor = dict(zip(zip(op.operands, self.shapes(op)), strides))
        operands = [
            _operand(self.chip, v, view, by_tensor[v, shape], box, self.steps(op).needs_default_layout(i), item)
            for (v, shape), i in self.tensors(op).items()
        ]
        inputs, out = tuple(buffer for buffer, _ in operands), result_buffer(self.chip, op.result, view, box, item)
        steps, scratch = self._placed(op, dims, [each.lane_bytes for each in (*inputs, out)])

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            planes = [Plane(address, local) for address, (_, local) in zip(ins, operands)]
            steps.emit(build, dims, planes, outs[0], scratch)

        return TileWork(inputs, (out,), scratch, compute, steps.cycles(dims))

    def _placed(self, op: OpT, dims: Shape, used: list[int]) -> tuple[Steps, tuple[int, ...]]:
        """The steps of a tile and its scratch areas, which are as many for each tile of an op, some of them empty.

        Each area has a bank of its own where that is faster and leaves room.
        """
        steps, plane = self.steps(op), self.chip.aligned_bytes(dims, ITEMS[self.words(op)])
        spread, bank = steps.spread, self.chip.lmem_bank_size
        wide = (max(plane, bank),) * spread.registers
        fits = plane * _WASTED >= bank and sum((*used, *wide)) <= self.tiler.lane_bytes
        if fits and spread.cycles(dims) < steps.cycles(dims):
            return spread, wide
        return steps, (plane,) * steps.registers + (0,) * (spread.registers - steps.registers)


def _spread(m: Recorder, *given: Any) -> Register:
    """A recipe on whole tiles of what repeats along the last axis.

    Loaded as a tile that would arrive element by element: a number chosen for 1x12x128x128 took 4.3 M cycles.
    """
    registers = [x for x in given if isinstance(x, Register)]
    again, recipe, *arguments = given[len(registers) :]
    tiles = [m.or_(x, 0) if repeats else x for x, repeats in zip(registers, again)]
    made: Register = recipe(m, *tiles, *arguments)
    return made


def _operand(
    chip: LaneFacts, value: Value, view: Shape, strides: Strides, box: Box, whole: bool, word: int
) -> tuple[Buffer, Strides | None]:
    """How a tile of an operand is loaded into words of `word` bytes, and its local strides.

    What repeats along n, h or w is loaded once and read again and again by zero strides, unless the tile must be
    `whole`; along c every lane needs its own copy.
    """
    dims = extents(box)
    n, c, h, w = (1 if step == 0 and axis != 1 else size for axis, (size, step) in enumerate(zip(dims, strides)))
    loaded: Shape = dims if whole else (n, c, h, w)
    item = value.type.numpy.itemsize

    def load(build: LaneBuild, address: int) -> None:
        start = build.source(value) + item * box_offset(strides, box)
        if word == 4:
            build.load_words(start, value.dtype, loaded, strides, address)
        else:
            build.load(start, loaded, strides, item, address)

    dense = is_dense(strides, view) and loaded == dims
    buffer = Buffer(
        chip.aligned_bytes(loaded, word),
        box_axes(chip, strides, view, word, whole),
        prod(loaded) * item,
        load,
        not is_activation(value),
        tile_contents(value, view, box, word) if dense else repeated(value, view, strides, box, loaded, word),
        Runs(1, loaded[0] * loaded[1]),
        source=value,
    )
    if loaded == dims:
        return buffer, None
    local = tuple(0 if a != b else s for a, b, s in zip(loaded, dims, chip.aligned_strides(loaded, item=word)))
    return buffer, local  # type: ignore[return-value]


def tile_contents(value: Value, view: Shape, box: Box, word: int) -> Contents | None:
    """What words of `word` bytes hold of a value; of halfwords the whole, a word each, in a layout of its own."""
    if item_bytes(value) == word:
        return contents_of(value, view, box)
    found = contents_of(value, view, box) if value.dtype in _HALFWORDS else None
    return None if found is None or found.box is not None else found._replace(layout=(found.layout, word))


def repeated(value: Value, view: Shape, strides: Strides, box: Box, loaded: Shape, word: int) -> Contents | None:
    """What a tile of `word`-byte elements holds of what repeats: a part of the operand, if the view has its axes.

    They are the operand's own, or its matrices and their rows.
    """
    if value.type.rank != 4 or item_bytes(value) != word:
        return None
    n, c, h, w = dims4(value)
    owns: tuple[Shape, ...] = (n, c, h, w), (n * c, h, 1, w)
    for own in owns:
        part = tuple((0, 1) if size == 1 else interval for size, interval in zip(own, box))
        axes = zip(own, view, strides, dense_strides(own))
        same = all(size == 1 or (size, step) == (whole, dense) for size, whole, step, dense in axes)
        if same and extents(part) == loaded:
            return contents_of(value, own, part)
    return None


def result_buffer(chip: LaneFacts, value: Value, view: Shape, box: Box, word: int = 4) -> Buffer:
    """A tile of words of `word` bytes to store as elements of the result, which is seen as `view`."""
    strides = dense_strides(view)
    dims, item = extents(box), value.type.numpy.itemsize

    def store(build: LaneBuild, address: int) -> None:
        target = build.neuron(value) + item * box_offset(strides, box)
        if word == 4:
            build.store_words(target, item, dims, strides, address)
        else:
            build.store(target, dims, strides, item, address)

    return Buffer(
        chip.aligned_bytes(dims, word),
        "nchw",
        prod(dims) * item,
        store,
        contents=tile_contents(value, view, box, word),
        runs=Runs(1, dims[0] * dims[1]),
    )


class BinaryKernel(ElementwiseKernel[Binary]):
    """add, sub, mul, max, min, pow with broadcasting, add with the activation it carries; div, also of integers."""

    ops: tuple[type[Binary], ...] = (Add, Sub, Mul, Div, Max, Min, Pow)

    def whole(self, op: Binary) -> TileWork | None:
        box = whole_box(four_axes(op.type.shape))
        return self.boxed(op, box) if self._repeats(op) else super().whole(op)

    def boxed(self, op: Binary, box: Box) -> TileWork | None:
        if not self._repeats(op):
            return super().boxed(op, box)
        found = repeated_rows(self.machine, op, box)
        return found if found is not None and self.fits(found) else None

    def _repeats(self, op: Binary) -> TypeGuard[Add]:
        """Whether whole tiles are rows of images beside a table of some of them."""
        if not isinstance(op, Add) or not op.type.is_float:
            return False
        return is_repeated(self.machine, op, self._view(op)[0], self.is_made(op))

    @rule("Operands and result must be of one type, {kernel.floats}, of div also i8, u8, i16, u16 or i32")
    def known_types(self, op: Binary) -> bool:
        values = (*op.operands, op.result)
        divided = isinstance(op, Div) and all(v.dtype in ("f32", "i32", *NARROW) for v in values)
        return divided or self.one_float(*values)

    def recipe(self, op: Binary) -> tuple[Any, ...]:
        if isinstance(op, Add):
            return _add, op.activation
        if isinstance(op, Div):
            return _divide, op.a.dtype
        return (_BINARY[type(op)],)


def _add(m: Recorder, a: Register, b: Register, activation: str) -> Register:
    total = m.add(a, b)
    if activation:
        total = m.max(total, 0.0)
    return m.min(total, 6.0) if activation == "relu6" else total


def _divide(m: Recorder, a: Register, b: Register, dtype: str) -> Register:
    """Quotients of integers are cut towards zero, and 0 for b = 0."""
    if dtype in ITEMS:
        return powers.quotient(m, a, b)
    if dtype == "i32":
        return integers.quotient(m, a, b)
    divisor = as_float(m, b, dtype)
    value = powers.quotient(m, as_float(m, a, dtype), divisor)
    return m.to_int(saturated(m, m.choose(m.abs(divisor), 0.0, value, 0.0), dtype))


class ModKernel(ElementwiseKernel[Mod]):
    """mod of floats and integers."""

    ops = (Mod,)

    @rule("Operands must be f32, i8, u8, i16, u16 or i32")
    def known_types(self, op: Mod) -> bool:
        return op.a.dtype in ("f32", "i32", *NARROW)

    def recipe(self, op: Mod) -> tuple[Any, ...]:
        if op.a.dtype == "i32":
            return integers.rest, op.fmod
        return _mod, op.a.dtype, op.fmod


def _mod(m: Recorder, a: Register, b: Register, dtype: str, fmod: bool) -> Register:
    divisor = as_float(m, b, dtype)
    rest = powers.remainder(m, as_float(m, a, dtype), divisor, fmod)
    if dtype == "f32":
        return rest
    return m.to_int(m.choose(m.abs(divisor), 0.0, rest, 0.0))


_BINARY: dict[type[TensorOp], Recipe] = {
    Sub: Recorder.sub,
    Mul: Recorder.mul,
    Max: Recorder.max,
    Min: Recorder.min,
    Pow: powers.power,
}
