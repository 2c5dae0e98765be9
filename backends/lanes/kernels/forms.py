"""Ops whose forms, float and integer ones, are computed by different kernels."""

from __future__ import annotations

from typing import Any, ClassVar

from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.target import OpT


class FormsKernel(DeviceKernel[OpT]):
    """Asks `form` which of its kernels an op belongs to, and leaves the op to that one."""

    kinds: ClassVar[tuple[type[DeviceKernel[Any]], ...]] = ()
    """The classes of its kernels."""

    def __init__(self, machine: LaneMachine) -> None:
        super().__init__(machine)
        self.forms = tuple(kind(machine) for kind in self.kinds)

    def form(self, op: OpT) -> DeviceKernel[Any]:
        """The kernel of `forms` for this op: the first one for floats, the second for integers."""
        return self.forms[0 if op.operands[0].type.is_float else 1]

    def rules(self) -> list[str]:
        return list(dict.fromkeys(text for form in self.forms for text in form.rules()))

    def unsupported_reason(self, op: OpT) -> str | None:
        return self.form(op).unsupported_reason(op)

    def evaluate(self, op: OpT, *arrays: Any) -> Any:
        return self.form(op).evaluate(op, *arrays)

    def order_of_sums(self, op: OpT) -> str:
        return self.form(op).order_of_sums(op)

    def emit(self, op: OpT, build: Any) -> Moved:
        return self.form(op).emit(op, build)

    def moving_cycles(self, op: OpT) -> int | None:
        return self.form(op).moving_cycles(op)

    def estimate(self, op: OpT) -> int | None:
        return self.form(op).estimate(op)

    def whole(self, op: OpT) -> TileWork | None:
        return self.form(op).whole(op)

    def boxed(self, op: OpT, box: Box) -> TileWork | None:
        return self.form(op).boxed(op, box)

    def uses_local_memory(self, op: OpT) -> bool:
        return self.form(op).uses_local_memory(op)
