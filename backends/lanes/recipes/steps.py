"""Recorded recipes: what they compute bit for bit, how many planes they need, and their commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic, Words
from bmcompiler.backends.lanes.build import LaneCommands
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import LaneFacts, Shape
from bmcompiler.backends.lanes.operands import Immediate
from bmcompiler.backends.lanes.operands import Words as Tile
from bmcompiler.backends.lanes.recipes.emission import Emitter, Plane, window_geometry
from bmcompiler.backends.lanes.recipes.evaluation import Evaluator
from bmcompiler.backends.lanes.recipes.halves import ITEMS, HalfEvaluator
from bmcompiler.backends.lanes.recipes.recorder import COLUMNS, REDUCED, TILE, RecipeStep, Recorder, Register
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.errors import EncodingError
from bmcompiler.numeric.arrays import Floats, Int32s
from bmcompiler.numeric.blas import in_parallel

_BLOCK = 1 << 14  # elements whose registers stay in the cache


class RegisterPlace(NamedTuple):
    """Where a register lies: plane 0 is that of the result, plane k the scratch plane k - 1 of its kind.

    small: what a reduction left; all others get planes of a whole tile.
    """

    small: bool
    plane: int


@dataclass(frozen=True)
class Steps:
    """A straight-line program of commands over registers; the last step gives the result.

    Attributes:
        chip, arithmetic, timing: of the chip that it was recorded for.
        axes: what reductions run over: h (2), or h and w (2, 3); () when there are none.
        dtype: float type of inputs, registers and result; but for f32 there are only the units of `halves.UNITS`.
        apart: whether no step but what adds to a total writes where one of its operands lies, for more registers.
    """

    chip: LaneFacts
    arithmetic: Arithmetic
    timing: LaneCycles
    inputs: int
    steps: tuple[RecipeStep, ...]
    axes: tuple[int, ...] = ()
    dtype: str = "f32"
    apart: bool = False

    @property
    def item(self) -> int:
        """Bytes of the words of a tile."""
        return ITEMS[self.dtype]

    def evaluate(self, *arrays: Words) -> Floats:
        """The result as float32, bit for bit what the commands compute.

        Args:
            arrays: one per input, of 32-bit elements, broadcasting as numpy does; with reductions (N, C, H, W).
        """
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        run = (Evaluator if self.dtype == "f32" else HalfEvaluator)(self.arithmetic).run
        if self.axes or any(a.shape != shape for a in arrays):
            whole = shape if self.steps[-1].height == TILE else self.tile_shape(self.steps[-1], shape)
            with np.errstate(all="ignore"):
                return np.ascontiguousarray(np.broadcast_to(run(self.steps, arrays, self.axes), whole))
        flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        out = np.empty(flat[0].size, np.float32 if self.dtype == "f32" else flat[0].dtype)

        def block(first: int) -> None:
            part = slice(first, first + _BLOCK)
            with np.errstate(all="ignore"):  # holds for one thread
                out[part] = run(self.steps, [a[part] for a in flat], ())

        in_parallel([partial(block, first) for first in range(0, out.size, _BLOCK)])
        return out.reshape(shape)

    def integers(self, *arrays: Words) -> Int32s:
        """`evaluate` of a recipe whose result is an integer."""
        return self.evaluate(*arrays).view(np.int32)

    def tile_shape(self, step: RecipeStep, shape: Shape) -> Shape:
        """Shape of the result of `step` on tiles of `shape`."""
        return self._shape(step.height, shape)

    def _shape(self, height: int, shape: Shape) -> Shape:
        """Shape of what has this height on tiles of `shape`."""
        n, c, h, w = shape
        return n, c, abs(height) or h, 1 if height == REDUCED and 3 in self.axes else w

    @cached_property
    def spread(self) -> Steps:
        """The same `apart`."""
        return replace(self, apart=True)

    @property
    def registers(self) -> int:
        """Planes of a whole tile that the commands need besides inputs and result."""
        return max((place.plane for place in self._places if not place.small), default=0)

    @property
    def small_registers(self) -> int:
        """Planes of the size of a row of a tile that they need besides the result."""
        return max((place.plane for place in self._places if place.small), default=0)

    @cached_property
    def _places(self) -> tuple[RegisterPlace, ...]:
        """Where the result of each step goes: beside its operands where that takes no more planes."""
        least = self._placed({})
        if self.apart:
            return least
        beside = self._placed(_highest(least))
        return beside if _highest(beside) == _highest(least) else least

    def _placed(self, free: Mapping[bool, int]) -> tuple[RegisterPlace, ...]:
        """The first place that is free; if one up to `free`, by kind, is beside the operands, the first of these."""
        last_use = self._last_uses()
        last = self.steps[-1]
        end = self.inputs + len(self.steps) - 1
        in_place = last.in_place and not self.apart
        kept = set() if in_place else set(_read(last))
        taken: dict[RegisterPlace, int] = {}
        places: list[RegisterPlace] = []
        for number, step in enumerate(self.steps, self.inputs):
            ready = number if step.in_place and not self.apart else number - 1
            taken = {place: by for place, by in taken.items() if last_use[by] > ready}
            small = step.small
            may_be_result = small == last.small and step.height != COLUMNS and (number == end or number not in kept)
            first, read = 0 if may_be_result else 1, {places[n - self.inputs] for n in _read(step) if n >= self.inputs}
            most = 0 if number == end else free.get(small, 0)
            open_places = (RegisterPlace(small, plane) for plane in range(first, most + 1))
            place = next((place for place in open_places if place not in taken and place not in read), None)
            if place is None:
                place = next(p for p in (RegisterPlace(small, plane) for plane in count(first)) if p not in taken)
            if step.unit is Unit.MAC:
                place = self._place_of_total(step, number, places, last_use)
            taken[place] = number
            places.append(place)
        return tuple(places)

    def _place_of_total(
        self, step: RecipeStep, number: int, places: Sequence[RegisterPlace], last_use: Sequence[int]
    ) -> RegisterPlace:
        """That of what `step`, which gives register `number`, adds to."""
        total = step.sources[0]
        assert isinstance(total, Register), "a total is made by a step"
        if total.number < self.inputs or last_use[total.number] != number:
            raise EncodingError(f"register {total.number} is an input or read again after something was added to it")
        return places[total.number - self.inputs]

    def _last_uses(self) -> list[int]:
        """By register: the last one that is computed from it."""
        last_use = list(range(self.inputs + len(self.steps)))
        for number, step in enumerate(self.steps, self.inputs):
            for read in _read(step):
                last_use[read] = number
        return last_use

    def needs_default_layout(self, number: int) -> bool:
        """Whether a command without stride registers reads input `number`."""
        read = [s for step in self.steps if not step.unit.strided for s in step.sources if isinstance(s, Register)]
        return Register(number) in read  # an immediate of as many bits equals it

    def cycles(self, shape: Shape) -> int:
        """Cycles of the commands for a tile of `shape`."""
        total = 0
        for (height, steps, pair, in_place), commands in self._arithmetic.items():
            tile = self._shape(height, shape)
            total += commands * self.timing.pass_cycles(tile, self.item, steps, pair, in_place)
        for step in self._others:
            if step.unit.windowed:
                total += self._window_cycles(step, shape)
            elif step.unit is Unit.LOOKUP:
                total += self.timing.lookup(self.tile_shape(step, shape))
            else:
                n, c, h, w = self.tile_shape(step, shape)
                row = (n, c, 1, w)  # the first one is assigned, the others are combined with what is before them
                total += self.timing.pass_cycles(row) + (h - 1) * self.timing.pass_cycles(row, pair=step.unit.pairs)
        return total

    @cached_property
    def _arithmetic(self) -> Counter[tuple[int, int, bool, bool]]:
        """Commands that work on each element alone, by (height, and what `LaneCycles.pass_cycles` wants to know)."""
        found: Counter[tuple[int, int, bool, bool]] = Counter()
        for step, place in zip(self.steps, self._places):
            if step not in self._others:
                steps = self.timing.unit_steps(step.unit, step.terms)
                pair = step.unit.pairs and _tensors(step) == 2
                found[step.height, steps, pair, self._in_place(step, place)] += 1
        return found

    def _in_place(self, step: RecipeStep, place: RegisterPlace) -> bool:
        """Whether two of the result and the first two operands of a command begin at one place."""
        begins: list[object] = [(place, 0)]
        for source in step.sources[:2]:
            if not isinstance(source, Immediate):
                own = source.number - self.inputs
                begins.append((source.number if own < 0 else self._places[own], getattr(source, "first", 0)))
        return len(set(begins)) < len(begins)

    @cached_property
    def _others(self) -> list[RecipeStep]:
        """Windows, lookups and running totals."""
        return [step for step in self.steps if step.scan is not None or step.unit.windowed or step.unit is Unit.LOOKUP]

    def _window_cycles(self, step: RecipeStep, shape: Shape) -> int:
        (source,) = step.sources
        assert isinstance(source, Register), "windows are of registers"
        before, after = shape, self.tile_shape(step, shape)
        if source.number >= self.inputs:
            before = self.tile_shape(self.steps[source.number - self.inputs], shape)
        taps = window_geometry(step, before, after).taps
        return self.timing.window(after, taps, 1, sums=step.unit is Unit.WINDOW_SUM)

    def emit(
        self,
        build: LaneCommands,
        shape: Shape,
        inputs: Sequence[Plane | int],
        output: Plane | int,
        scratch: Sequence[int] = (),
        small: Sequence[int] = (),
    ) -> None:
        """Emit the commands for one tile of `shape`.

        Args:
            inputs: where they lie; a plain number is an address with the default layout. Zero strides broadcast.
            output: where the result goes; it must not overlap an input.
            scratch: addresses of `registers` planes of a tile; small: of `small_registers` planes of a row of it.

        Raises:
            EncodingError: too few scratch planes, or strides for a command that knows only the default layout.
        """
        if len(scratch) < self.registers or len(small) < self.small_registers:
            needed = f"{self.registers} scratch planes and {self.small_registers} small ones"
            raise EncodingError(f"the recipe needs {needed}, got {len(scratch)} and {len(small)}")
        planes = {kind: [output, *found] for kind, found in ((False, scratch), (True, small))}
        tiles = [self._tile(p, shape) for p in inputs]
        emitter = Emitter(build, self.chip)
        for step, place in zip(self.steps, self._places):
            target = self._tile(planes[place.small][place.plane], self.tile_shape(step, shape))
            emitter.emit(step, tiles, target)
            tiles.append(target)

    def _tile(self, place: Plane | int, shape: Shape) -> Tile:
        where = Plane(place) if isinstance(place, int) else place
        return Tile(where.address, shape, where.strides, item=self.item, dtype=self.dtype)


def record(
    chip: LaneFacts,
    arithmetic: Arithmetic,
    timing: LaneCycles,
    recipe: Callable[..., Register],
    inputs: int,
    *arguments: Any,
    axes: tuple[int, ...] = (),
    given: tuple[int, ...] = (),
    dtype: str = "f32",
    folded: bool = False,
    **named: Any,
) -> Steps:
    """The steps of `recipe(recorder, *registers, *arguments, **named)` with so many registers.

    Args: axes, dtype: see `Steps`. given: inputs by operand of the recipe, where one is given twice. folded: see
        `Recorder`.
    """
    recorder = Recorder(inputs, chip, folded)
    result = recipe(recorder, *map(Register, given or range(inputs)), *arguments, **named)
    last = recorder.steps[-1] if recorder.steps else None
    if last is None or last.unit is Unit.MAC or result.number != inputs + len(recorder.steps) - 1:
        recorder.copy(result)
    return Steps(chip, arithmetic, timing, inputs, tuple(recorder.steps), axes, dtype)


def _highest(places: Sequence[RegisterPlace]) -> dict[bool, int]:
    """The highest plane of each kind."""
    return {small: max((place.plane for place in places if place.small == small), default=0) for small in (False, True)}


def _read(step: RecipeStep) -> list[int]:
    """Numbers of the registers that it reads."""
    return [source.number for source in step.sources if not isinstance(source, Immediate)]


def _tensors(step: RecipeStep) -> int:
    """How many of its operands are tensors, a total that it adds to left out."""
    operands = step.sources[1:] if step.unit is Unit.MAC else step.sources
    return sum(not isinstance(source, Immediate) for source in operands)
