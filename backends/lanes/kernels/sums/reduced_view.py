"""4-D views of tensors in which the reduced axes are h, or h and w."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import prod

from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.machine import LaneMachine

_COMMANDS = 8  # of a short reduction; long ones take more time for the same bytes


@dataclass(frozen=True)
class ReducedView:
    """How a dense tensor is reduced in local memory.

    Attributes:
        shape: (n, c, h, w).
        strides: of the tensor, in elements.
        out: strides of the dense reduced tensor, in elements; 0 along reduced axes.
        axes: reduced ones: (2,) or (2, 3).
    """

    shape: Shape
    strides: Strides
    out: Strides
    axes: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of elements that become one."""
        return prod(self.shape[axis] for axis in self.axes)

    @property
    def reduced(self) -> Shape:
        """Shape of the reduced tensor in this view."""
        n, c, _, w = self.shape
        return n, c, 1, 1 if 3 in self.axes else w


def reduced_view(machine: LaneMachine, shape: tuple[int, ...], axes: tuple[int, ...]) -> ReducedView | None:
    """The view for a reduction of `axes`; None where kept and reduced axes alternate too often.

    What the elements of one sum are and their order, row by row of (h, w), does not depend on the view that is chosen.
    """
    return machine.decided(_reduced_view, machine, shape, axes)


def _reduced_view(machine: LaneMachine, shape: tuple[int, ...], axes: tuple[int, ...]) -> ReducedView | None:
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
    changed = 2 * machine.cycles.local_copy(rows)
    return min((kept, *choices), key=lambda view: _cycles(machine.cycles, view) + changed * (view != kept))


def _cycles(timing: LaneCycles, view: ReducedView) -> int:
    """Rough cycles of some commands on the tensor and of loading and storing it: short runs fill the bus badly."""
    n, c, h, w = view.shape
    run, runs = (h * w, n * c) if view.strides[2] == w else (w, n * c * h)
    return _COMMANDS * timing.pass_cycles(view.shape) + timing.load(runs, 4 * run) + timing.store(runs, 4 * run)


def _choices(outer: int, count: int, inner: int) -> list[ReducedView]:
    """Views of (outer, count, inner): the lanes take `outer`, or a divisor of `inner`."""
    step = count * inner
    found = [ReducedView((1, outer, count, inner), (0, step, inner, 1), (0, inner, 0, 1), (2,))]
    for lanes in (d for d in range(1, min(inner, 4096) + 1) if inner % d == 0):
        w = inner // lanes
        found.append(ReducedView((outer, lanes, count, w), (step, w, inner, 1), (inner, w, 0, 1), (2,)))
    return found
