"""What code generators tell the compile summary: one row per layer, and memory totals."""

from __future__ import annotations

from collections.abc import Iterator

from bmcompiler.codegen.memory import MemoryPlan, root_of
from bmcompiler.codegen.partition import Segment
from bmcompiler.codegen.schedule import Moved
from bmcompiler.ir import Operation
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import LayerRow


def device_row(op: Operation, where: str, moved: Moved, commands: int) -> LayerRow:
    """Row of an op that became `commands` device commands."""
    inputs, outputs, parameters = _bytes(op)
    return LayerRow(
        op.label,
        op.title,
        where,
        op.results[0].shape,
        loaded=moved.loaded,
        stored=moved.stored,
        weights=moved.weights,
        commands=commands,
        tiles=moved.tiles,
        macs=op.macs(),
        inputs=inputs,
        outputs=outputs,
        parameters=parameters,
    )


def needs(op: Operation) -> tuple[int, int]:
    """(multiply-accumulates, bytes of operands and results) of the layer, as a model file says them."""
    return op.macs(), sum(_bytes(op))


def _bytes(op: Operation) -> tuple[int, int, int]:
    """Of activations that it reads, results, and weights; of what it picks elements from, no more than it picks."""
    outputs = sum(value.type.nbytes for value in op.results)
    picking = isinstance(op, TensorOp) and (op.moves_only or op.index_operands)
    read = {value: min(value.type.nbytes, outputs) if picking else value.type.nbytes for value in op.operands}
    parameters = sum(nbytes for value, nbytes in read.items() if is_weight(root_of(value)))
    return sum(read.values()) - parameters, outputs, parameters


def cpu_rows(segment: Segment) -> Iterator[LayerRow]:
    """Rows of the ops of a CPU subnet."""
    for op, reason in zip(segment.ops, segment.reasons):
        yield LayerRow(op.label, op.title, "cpu", op.results[0].shape, reason=reason)


def joined_names(segment: Segment) -> tuple[str, str]:
    """(layers, kinds) of a segment as a model file names them."""
    names = ", ".join(dict.fromkeys(op.label for op in segment.ops))
    return names, ", ".join(dict.fromkeys(op.title for op in segment.ops))


def memory_totals(plan: MemoryPlan) -> dict[str, int]:
    """Neuron memory for the summary, in bytes."""
    return {"neuron memory": plan.size, "neuron lower bound": plan.lower_bound}
