"""The base classes of kernels for lanes: constructed with the machine of their chip."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property
from math import prod
from typing import ClassVar

from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.codegen import kernels
from bmcompiler.codegen.groups.regions import RANK, four_axes, rows_of
from bmcompiler.codegen.kernels import contents_of, dims4, is_activation, is_constant
from bmcompiler.codegen.memory import is_view, root_of
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.target import OpT

__all__ = ["DeviceKernel", "LocalKernel", "contents_of", "dims4", "is_activation", "is_constant", "item_bytes"]


class DeviceKernel(kernels.DeviceKernel[OpT]):
    """A kernel of a lane chip. What its rules said of an op they say of all that are made and read alike.

    asks_readers: whether rules look at who reads the result; then they are asked each time.
    """

    asks_readers: ClassVar[bool] = False

    def __init__(self, machine: LaneMachine) -> None:
        self.machine, self.chip = machine, machine.chip

    def unsupported_reason(self, op: OpT) -> str | None:
        asked = None if self.asks_readers else _as_rules_see(op)
        if asked is None:
            return super().unsupported_reason(op)
        key = (self.machine.tiler.lane_bytes, asked)
        if key not in self._reasons:
            self._reasons[key] = super().unsupported_reason(op)
        return self._reasons[key]

    @cached_property
    def _reasons(self) -> dict[Hashable, str | None]:
        return {}

    def moving_cycles(self, op: OpT) -> int | None:
        """Estimated cycles of an op that only moves elements, between places in global memory; None = not known."""
        return self.estimate(op)

    @property
    def floats(self) -> str:
        """The float types of the chip, for rules."""
        return " or ".join(self.machine.float_types)

    def one_float(self, *values: Value) -> bool:
        """Whether all values are of one float type of the chip."""
        return values[0].dtype in self.machine.float_types and len({value.dtype for value in values}) == 1


class LocalKernel(kernels.LocalKernel[OpT], DeviceKernel[OpT]):
    """An op computed in local memory tile by tile."""

    def __init__(self, machine: LaneMachine) -> None:
        super().__init__(machine)
        self.tiler = machine.tiler

    def is_made(self, op: OpT) -> bool:
        """Whether other ops make operands, so that they may lie in local memory."""
        return any(is_activation(value) and root_of(value).op is not None for value in op.operands)

    def tiling_facts(self, op: OpT) -> Hashable:
        return self.chip.rows_in_lanes and self.is_made(op)

    def views_result(self, op: OpT) -> bool:
        """Whether the grid is a view of the dense result: then one of its sizes is its rows, in their order."""
        return False

    def in_grid(self, op: OpT, box: Box, sizes: tuple[int, ...]) -> Box | None:
        """Rows of matrices are boxes where they lie in lanes, too."""
        rows, own = self.machine.rows_view(op.type.shape), super().in_grid(op, box, sizes)
        if own is not None or rows is None or not self.views_result(op):
            return own
        alike = (*sizes[:2], prod(sizes[2:])) == (*rows[:2], rows[3])
        found = rows_of(four_axes(op.type.shape), box, parts=sizes[2] == 1) if alike else None
        return found and (*found, (0, sizes[2]), box[3] if sizes[2] == 1 else (0, sizes[3]))

    def fits(self, work: TileWork) -> bool:
        """Whether the buffers of a tile fit local memory side by side."""
        return self.machine.fits(work)


def _as_rules_see(op: Operation) -> Hashable:
    """An op and what makes its operands; None where that is not all that rules may look at, or too much to compare.

    Rules look through views, and through what works on rows of operands that are no maps.
    """
    sources: list[Hashable] = []
    for value in op.operands:
        made, quant = value.op, value.type.quant
        if made is not None and made.name != WEIGHT and (value.type.rank != RANK or is_view(made)):
            return None
        if quant is not None and quant.scales:
            return None
        sources.append((op.operands.index(value), value.type, made and (made.name, *_attributes(made))))
    return op.name, *sources, *(value.type for value in op.results), *_attributes(op)


def _attributes(op: Operation) -> Iterator[Hashable]:
    """With the types of values, as 1, 1.0 and True are equal; weights are the same whatever their numbers."""
    for name, value in op.attributes.items():
        if op.name != WEIGHT or name != "key":
            yield name, value.__class__, repr(value) if isinstance(value, (dict, list, tuple)) else value


def item_bytes(value: Value) -> int:
    """Bytes of an element."""
    return value.type.numpy.itemsize
