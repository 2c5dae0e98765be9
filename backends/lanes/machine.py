"""What the kernels of a lane chip are constructed with, made for one compilation.

It holds the facts of the chip, the cycles of one profile of the timing model, its arithmetic and its tiler, and keeps
what is decided by them. Nothing of it is exchanged: who plans with another profile makes another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from math import prod
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.cycles import LaneCycles, MatrixCycles
from bmcompiler.backends.lanes.facts import LaneFacts, Shape
from bmcompiler.backends.lanes.recipes.steps import Steps, record
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.kernels import activation_in, activation_out
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Tiler, TileWork
from bmcompiler.ir import Operation, Value

R = TypeVar("R")

_RISK = 8
"""Copies inside local memory that a transfer of short rows may take in place of one."""
_SHORT = 16
"""Elements of rows that are risked for it: shorter ones leave the units of their lanes without work, too."""
_SLOWER = 4
"""How many times the fewest cycles the shape of a feature map may take to be kept: its bytes take longer to move.

Small elements of a single image also leave slots of their words empty. Words that take less than the start of transfers
are kept in any case.
"""
_MOST = 1 << 14
"""Decisions that are kept."""


class LaneMachine:
    """One chip under one profile of its timing model.

    A chip without floats has no `arithmetic`, and no recipes. `halves`: arithmetic of 16-bit floats by element type.
    """

    def __init__(
        self,
        chip: LaneFacts,
        cycles: LaneCycles,
        arithmetic: Arithmetic | None = None,
        halves: Mapping[str, Arithmetic] | None = None,
    ) -> None:
        self.chip: Final = chip
        self.cycles: Final = cycles
        self._arithmetic: Final = arithmetic
        self._floats: Final = {} if arithmetic is None else {"f32": arithmetic, **(halves or {})}
        self._matrices: Final = cycles if isinstance(cycles, MatrixCycles) else None
        pace = cycles.bytes_per_cycle, cycles.tile_cycles
        self.tiler: Final = Tiler(chip.tile_bytes, chip.alignment, *pace, chip.lmem_bank_size, cycles.bus)
        self._decided: Final = lru_cache(_MOST)(_call)
        self._known: Final[dict[Hashable, object]] = {}
        self._of_ops: Final[WeakKeyDictionary[Operation, dict[Hashable, object]]] = WeakKeyDictionary()

    def decided(self, function: Callable[..., R], *arguments: object) -> R:
        """`function(*arguments)`, asked once; the arguments are hashable and say, with this machine, all."""
        found: R = self._decided(function, *arguments)
        return found

    def once(self, key: Hashable, decide: Callable[[], R]) -> R:
        """`decide()`, once for the same key, which stands for all that it looks at beside this machine."""
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = decide()
        found: R = self._known[key]  # type: ignore[assignment]
        return found

    def notes_of(self, op: Operation) -> dict[Hashable, Any]:
        """What kernels keep of an op as long as there is one."""
        return self._of_ops.setdefault(op, {})

    def recorded(self, recipe: Callable[..., Any], inputs: int, *arguments: Any, **named: Any) -> Steps:
        """The steps of a recipe (`recipes.record`)."""
        return self.decided(self._record, recipe, inputs, arguments, tuple(named.items()))

    def flat_view(self, shape: tuple[int, ...], item: int = 4, made: bool = False) -> Shape:
        """A 4-D shape with the same elements in the same order, good for element-wise work (`_flat_view`)."""
        return self.decided(self._flat_view, shape, item, made)

    @property
    def arithmetic(self) -> Arithmetic:
        """What the chip computes of floats."""
        if self._arithmetic is None:
            raise TypeError(f"{self.chip.name} has no float arithmetic")
        return self._arithmetic

    @property
    def float_types(self) -> tuple[str, ...]:
        """The float types that the chip computes, f32 first."""
        return tuple(self._floats)

    def arithmetic_of(self, dtype: str) -> Arithmetic:
        """What the chip computes of floats of a type of `float_types`."""
        return self._floats[dtype]

    @property
    def matrix_cycles(self) -> MatrixCycles:
        """What products of fp32 matrices take."""
        if self._matrices is None:
            raise TypeError(f"{self.chip.name} has no products of fp32 matrices")
        return self._matrices

    def _record(
        self, recipe: Callable[..., Any], inputs: int, arguments: tuple[Any, ...], by_name: tuple[tuple[str, Any], ...]
    ) -> Steps:
        named = dict(by_name)
        arithmetic = self.arithmetic_of(named.get("dtype", "f32"))
        return record(self.chip, arithmetic, self.cycles, recipe, inputs, *arguments, **named)

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def fits(self, work: TileWork) -> bool:
        """Whether the buffers of a tile fit local memory side by side."""
        used = (*(buffer.lane_bytes for buffer in (*work.inputs, *work.outputs)), *work.scratch)
        return sum(map(self.tiler.rounded, used)) <= self.tiler.lane_bytes

    def activation_in(self, value: Value, view: Shape, box: Box, axes: str = "nchw") -> Buffer:
        """A tile of an activation, or of a constant of that shape, to load, aligned."""
        item = value.type.numpy.itemsize
        return activation_in(value, view, box, axes, lane_bytes=self.chip.aligned_bytes(extents(box), item))

    def activation_out(self, value: Value, view: Shape, box: Box) -> Buffer:
        """A tile of a result to store, aligned."""
        item = value.type.numpy.itemsize
        return activation_out(value, view, box, lane_bytes=self.chip.aligned_bytes(extents(box), item))

    def elementwise_grid(self, view: Shape, item: int = 4) -> tuple[Axis, ...]:
        """Tiles of any size within the limits of one command; image tiles hold whole words."""
        chip, (n, c, h, w) = self.chip, view
        return (
            Axis(n, chip.image_slots(item), chip.most_images),
            Axis(c, chip.lanes, chip.most_channels),
            Axis(h, 1, chip.most_size),
            Axis(w, 1, chip.most_size),
        )

    def takes(self, view: Shape, item: int, box: Box) -> bool:
        """Whether one command on elements of `item` bytes takes a box of a view."""
        return all(
            hi - lo <= (axis.most or axis.size) and (lo % axis.step == 0 and (hi % axis.step == 0 or hi == axis.size))
            for axis, (lo, hi) in zip(self.elementwise_grid(view, item), box)
        )

    # -- views ---------------------------------------------------------------------------------------------------------
    def _flat_view(self, shape: tuple[int, ...], item: int, made: bool) -> Shape:
        """A 4-D shape with the same elements in the same order, good for element-wise work.

        4-D shapes stay unless they use the machine badly, rows of matrices where that pays. Others become (N, C, 1, W):
        N fills the slots of a word where the size allows, C is the divisor that takes the fewest cycles, and of these
        that whose runs load fastest, where elements are bytes. `made`: see `keeps`.
        """
        chip, pass_cycles, size = self.chip, self.cycles.pass_cycles, prod(shape)
        most = chip.image_slots(item)
        slots = next(s for s in (most, 2, 1) if s <= most and size % s == 0)
        rest = size // slots
        channels = range(1, min(rest, chip.most_channels) + 1)
        choices = [(slots, c, 1, rest // c) for c in channels if rest % c == 0 and rest // c <= chip.most_size]
        choices = choices or [self._square(slots, rest)]
        fewest = min(pass_cycles(dims, item) for dims in choices)
        quickest = (dims for dims in choices if pass_cycles(dims, item) == fewest)
        load = self.cycles.load
        flat = min(quickest, key=lambda dims: (load(dims[0] * dims[1], dims[3]), -dims[1]))
        if len(shape) == 4 and max(shape) <= chip.most_size:
            n, c, h, w = shape
            if pass_cycles((n, c, h, w), item) <= self.slowest(pass_cycles(flat, item), item):
                return n, c, h, w
        rows = self.rows_view(shape)
        return rows if rows is not None and self.keeps(rows, flat, item, made=made) else flat

    def rows_view(self, shape: tuple[int, ...]) -> Shape | None:
        """Rows of the last axis as channels, of 4-D shapes those of a matrix an image; None where no op wants them."""
        if not self.chip.rows_in_lanes or len(shape) < 2:
            return None
        *outer, rows, columns = shape
        view = (prod(outer), rows, 1, columns) if len(shape) == 4 else (1, prod(outer) * rows, 1, columns)
        return view if self.chip.fits_fields(view) else None

    def keeps(self, rows: Shape, other: Shape, item: int, steps: int = 1, made: bool = False) -> bool:
        """Whether so many commands on `rows` take no longer than on another shape that a transfer has to make of it.

        Rows that are shorter take longer to load, too. Where they are `made` by other ops of the net that is no loss
        unless those leave them elsewhere, which is risked only for little.
        """
        timing = self.cycles
        slower = steps * (timing.pass_cycles(rows, item) - timing.pass_cycles(other, item))
        waits = timing.load(rows[0] * rows[1], rows[3] * item) - timing.load(
            other[0] * other[1], prod(other[2:]) * item
        )
        copy = timing.local_copy(rows, item)
        risked = made and rows[3] >= _SHORT
        return slower <= copy and waits <= _RISK * copy if risked else slower + waits <= copy

    def slowest(self, fewest: int, item: int) -> int:
        """Cycles that the shape of a feature map may take to be kept, where the best shape takes `fewest`."""
        return max(self.cycles.tile_cycles * (item == 4), _SLOWER * self.chip.image_slots(item) * fewest)

    def _square(self, slots: int, size: int) -> Shape:
        """(slots, C, H, W) of `size` / slots elements with the largest C and W that their fields allow."""
        chip = self.chip
        c = next(d for d in range(min(size, chip.most_channels), 0, -1) if size % d == 0)
        w = next(d for d in range(min(size // c, chip.most_size), 0, -1) if size // c % d == 0)
        return slots, c, size // c // w, w


def _call(function: Callable[..., R], *arguments: object) -> R:
    return function(*arguments)
