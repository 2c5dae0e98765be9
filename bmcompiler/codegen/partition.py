"""Splitting a net into runs of device ops and runs of CPU ops, in program order."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.codegen.memory import is_view, root_of
from bmcompiler.ir import Function, Operation, Value
from bmcompiler.ir.keys import PLACE_CPU, REFUSED, RETURN, WEIGHT
from bmcompiler.target import Target, unsupported_reason


@dataclass
class Segment:
    """Consecutive ops of one kind. `reasons` says for CPU ops why they are there."""

    device: bool
    ops: list[Operation]
    reasons: list[str]

    def steps(self) -> list[list[Operation]]:
        """Ops that run as one: a CPU subnet is one step, it reads all its inputs before it writes any result."""
        return [[op] for op in self.ops] if self.device else [self.ops]

    def outputs(self) -> list[Value]:
        """Results that are read outside, also through views."""
        members = set(self.ops)
        return [result for op in self.ops for result in op.results if _is_read_outside(result, members)]

    def only(self, ops: list[Operation]) -> Segment:
        """A segment of some of the ops."""
        reasons = dict(zip(self.ops, self.reasons))
        return Segment(self.device, ops, [reasons[op] for op in ops])

    def hidden(self) -> set[Value]:
        """Results of a CPU subnet that need no memory."""
        return set() if self.device else {r for op in self.ops for r in op.results}.difference(self.outputs())


def _is_read_outside(value: Value, members: set[Operation]) -> bool:
    return any(_is_read_outside(user.result, members) if is_view(user) else user not in members for user in value.users)


def cpu_reason(op: Operation, target: Target) -> str | None:
    """Why an op runs on the host CPU, None when the device runs it."""
    if PLACE_CPU in op.attributes:
        return str(op.attributes[PLACE_CPU])
    reason = unsupported_reason(target, op)
    return reason if reason is None or REFUSED not in op.attributes else f"{reason}; {op.attributes[REFUSED]}"


def partition(function: Function, target: Target) -> list[Segment]:
    """Segments in program order; weights and reshapes (views) belong to no segment.

    1. an op with a "place.cpu" note, or one the target has no kernel for, goes to the CPU
    2. an op that needs nothing from a later CPU run may join an earlier device run: ops are taken in program order and
       device ops that do not depend on the open CPU run are placed before it, so that CPU runs are few
    """
    segments: list[Segment] = []
    for op in function.ops:
        if op.name in (WEIGHT, RETURN) or is_view(op):
            continue
        reason = cpu_reason(op, target)
        device = reason is None
        home = _home(segments, op, device)
        if home is None:
            home = Segment(device, [], [])
            segments.append(home)
        home.ops.append(op)
        home.reasons.append(reason or "")
    return segments


def _home(segments: list[Segment], op: Operation, device: bool) -> Segment | None:
    """The earliest-kind-matching segment the op can join without moving before its producers."""
    producers = {root_of(value).op for value in op.operands}
    for segment in reversed(segments):
        if segment.device == device:
            return segment
        if any(member in producers for member in segment.ops):
            return None
    return None
