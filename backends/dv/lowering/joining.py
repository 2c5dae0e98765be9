"""From ops to runs: which ops are stages of one run, and why others are not.

The pass `join-runs` and code generation walk over a run of device ops in the same way. The pass may join any op to the
run whose result it reads, and marks (`parts.UNROUNDED`) what is then no longer rounded to fp16. Code generation joins
what is marked and, as an optimisation that changes no bit, what `RunKernel.keeps_bits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bmcompiler.backends.dv.driver.geometry import Extent, result
from bmcompiler.backends.dv.kernels.base import RunKernel, why_not
from bmcompiler.backends.dv.lowering.build import extent_of
from bmcompiler.backends.dv.lowering.parts import Part, is_unrounded
from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import Operation, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import Kernel


@dataclass(frozen=True)
class Inner:
    """A map that no value of the IR names: the result of run `index` of an op that is several runs."""

    op: Operation
    index: int


Key = Value | Inner
"""What a map in device memory, or in the unified buffer, is called."""


@dataclass(eq=False)
class Node:
    """One run.

    Attributes:
        part: its fields, weights and addend.
        source, result: the maps that it reads and makes.
        before, after: their extents. samples: how many maps of each there are.
        ops: what it computes, in order.
        notes: why the first of `ops` is no stage of the run before it, and why the result leaves the unified buffer.
    """

    part: Part
    source: Key
    result: Key
    before: Extent
    after: Extent
    samples: int
    ops: list[TensorOp]
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The source layers."""
        return ", ".join(dict.fromkeys(op.label for op in self.ops))

    @property
    def kind(self) -> str:
        """The names of the ops, in order."""
        return "+".join(op.short_name for op in self.ops)

    def reads(self) -> Iterator[Key]:
        """The maps that must be in memory when the run begins, its source first."""
        yield self.source
        if self.part.addend is not None:
            yield self.part.addend


Unit = Node | Operation
"""A run, or an op with commands of its own."""
MayJoin = Callable[[TensorOp, RunKernel[Any], Node], bool]
"""Whether an op may join a run that it fits."""


def nodes_of(
    ops: Iterable[Operation], kernel_of: Callable[[Operation], Kernel[Any] | None], may_join: MayJoin
) -> list[Unit]:
    """The runs of consecutive device ops, each at the place of its last op.

    Raises UnsupportedError for an op that is marked as unrounded though its reader cannot join it.
    """
    units: dict[Unit, None] = {}
    made: dict[Value, Node] = {}
    for op in ops:
        kernel = kernel_of(op)
        if not isinstance(kernel, RunKernel) or not isinstance(op, TensorOp):
            units[op] = None
            continue
        node, why = _join(op, kernel, made, may_join)
        if node is None:
            alone = _alone(op, kernel)
            alone[0].notes += why
            units.update(dict.fromkeys(alone))
            made[op.results[0]] = alone[-1]
        else:
            del units[node]
            units[node] = None
            made[op.results[0]] = node
    for unit in units:
        last = unit.ops[-1] if isinstance(unit, Node) else unit
        if is_unrounded(last) and not isinstance(getattr(unit, "result", None), Inner):
            raise UnsupportedError("is marked to stay inside a run, but its reader cannot join it", layer=last.label)
    return list(units)


def _alone(op: TensorOp, kernel: RunKernel[Any]) -> list[Node]:
    """The runs of an op that joins no other."""
    parts = kernel.parts(op)
    source: Key = op.operands[0]
    extent = extent_of(op.operands[0])
    nodes = []
    for index, part in enumerate(parts):
        made: Key = op.results[0] if index + 1 == len(parts) else Inner(op, index)
        after = result(extent, part.run)
        nodes.append(Node(part, source, made, extent, after, op.results[0].shape[0], [op]))
        source, extent = made, after
    return nodes


def _join(
    op: TensorOp, kernel: RunKernel[Any], made: dict[Value, Node], may_join: MayJoin
) -> tuple[Node | None, list[str]]:
    """The run that `op` has joined, else why it has not: one sentence per run that it might have."""
    places = {value: place for place, value in enumerate(made)}
    candidates = [value for value in dict.fromkeys(op.operands) if value in made]
    candidates.sort(key=lambda value: (is_unrounded(value.op), places[value]), reverse=True)
    reasons = []
    for value in candidates:
        node = made[value]
        part = kernel.joined(op, node.part, value)
        if part is None:
            if type(kernel).joined is not RunKernel.joined:
                reasons.append(f"not in the run of {node.name}: no stage after {node.kind} does {op.short_name}")
            continue
        reason = _obstacle(op, node, value, part)
        if reason:
            reasons.append(f"not in the run of {node.name}: {reason}")
        elif may_join(op, kernel, node):
            node.part, node.result = part, op.results[0]
            node.after = result(node.before, part.run)
            node.ops.append(op)
            return node, []
    return None, reasons


def _obstacle(op: TensorOp, node: Node, value: Value, part: Part) -> str | None:
    readers = len(value.uses)
    if readers > 1:
        return f"its result has {readers} readers"
    refused = why_not(part, node.before)
    if refused:
        return refused
    made, wanted = result(node.before, part.run), extent_of(op.results[0])
    return None if made == wanted else f"together they would make {made.w} x {made.h}, not {wanted.w} x {wanted.h}"
