"""Ops whose forms, float and integer ones, are computed by different kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.target import OpT


def _of_form(name: str) -> Callable[..., Any]:
    """The method of the kernel that an op belongs to."""

    def call(self: FormsKernel[Any], op: Any, *more: Any) -> Any:
        return getattr(self.form(op), name)(op, *more)

    return call


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

    unsupported_reason = _of_form("unsupported_reason")
    evaluate = _of_form("evaluate")
    order_of_sums = _of_form("order_of_sums")
    emit = _of_form("emit")
    moving_cycles = _of_form("moving_cycles")
    estimate = _of_form("estimate")
    whole = _of_form("whole")
    boxed = _of_form("boxed")
    uses_local_memory = _of_form("uses_local_memory")
