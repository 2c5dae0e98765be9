"""Ways between the types of a net's inputs and outputs and those of its layers, cut as the layers beside them are."""

from __future__ import annotations

from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.pictures import is_picture
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ir import Operation
from bmcompiler.ir.keys import is_return
from bmcompiler.target import OpT


class BorderKernel(LocalKernel[OpT]):
    """Base: one operand, each element for itself.

    Any view of the elements is good, and the one that takes the fewest cycles is chosen. At the borders of a net parts
    of groups have the axes of the result as well: else large maps pass through global memory once more.
    """

    def view(self, op: OpT) -> Shape:
        """The tensors as feature maps, in the fewest cycles."""
        raise TypeError(f"{type(self).__name__} has no view")

    def widest(self, op: OpT) -> int:
        """Bytes of the larger elements: the units take as many at a time as they have of these."""
        raise TypeError(f"{type(self).__name__} has no elements")

    def seen_as(self, op: OpT, box: Box, view: Shape) -> TileWork:
        """The work of a box of a view."""
        raise TypeError(f"{type(self).__name__} has no work")

    def work(self, op: OpT, box: Box) -> TileWork:
        return self.seen_as(op, box, self.view(op))

    def boxed(self, op: OpT, box: Box) -> TileWork | None:
        found, shape = super().boxed(op, box), op.results[0].shape
        if found is not None or len(shape) != 4 or not _at_border(op) or not self.chip.fits_fields(shape):
            return found
        work = self.seen_as(op, box, shape) if self.machine.takes(shape, self.widest(op), box) else None
        return work if work is not None and self.fits(work) else None


def _at_border(op: Operation) -> bool:
    """Whether it reads what the net is given, or a picture made of that, or what it makes is only given back."""
    given = op.operands[0]
    return root_of(given).op is None or is_picture(given) or all(map(is_return, op.results[0].users))
