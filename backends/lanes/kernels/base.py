"""The base classes of kernels for lanes: constructed with the machine of their chip."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod

from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.codegen import kernels
from bmcompiler.codegen.groups.regions import rows_of
from bmcompiler.codegen.groups.slices import RANK
from bmcompiler.codegen.kernels import contents_of, dims4, is_activation, is_constant
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ir import Value
from bmcompiler.target import OpT

__all__ = ["DeviceKernel", "LocalKernel", "contents_of", "dims4", "is_activation", "is_constant", "item_bytes"]


class DeviceKernel(kernels.DeviceKernel[OpT]):
    """A kernel of a lane chip."""

    def __init__(self, machine: LaneMachine) -> None:
        self.machine, self.chip = machine, machine.chip

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
        if own is not None or rows is None or op.type.rank != RANK or not self.views_result(op):
            return own
        found = rows_of(op.type.shape, box) if (*sizes[:2], prod(sizes[2:])) == (*rows[:2], rows[3]) else None
        return found and (*found, (0, sizes[2]), (0, sizes[3]))

    def fits(self, work: TileWork) -> bool:
        """Whether the buffers of a tile fit local memory side by side."""
        return self.machine.fits(work)


def item_bytes(value: Value) -> int:
    """Bytes of an element."""
    return value.type.numpy.itemsize
