"""From IR to the commands of one program: what the code generators of all chips share.

A chip's code generator is a subclass that says how its commands are built, counted, and put into its model file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.bmodel.model import FORMATS, TensorInfo
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.cpu_segment import encode_segment
from bmcompiler.codegen.groups.ahead import settle
from bmcompiler.codegen.groups.emission import Part, emit_steps
from bmcompiler.codegen.groups.infos import group_infos
from bmcompiler.codegen.groups.slices import Stripe
from bmcompiler.codegen.groups.stripes import annotation, stripes_of
from bmcompiler.codegen.groups.structure import structure_of
from bmcompiler.codegen.groups.timeline import Clock, alone_cycles
from bmcompiler.codegen.kernels import DeviceKernel
from bmcompiler.codegen.memory import Hosts, parts_of_others, plan_memory, root_of
from bmcompiler.codegen.partition import Segment, partition
from bmcompiler.codegen.residency import Residency, Step, plan_residency, whole_stripes
from bmcompiler.codegen.rows import cpu_rows, device_row, joined_names, needs
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.ir import Module, Operation, TensorType, Value
from bmcompiler.ir.keys import IMAGE, is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.spelling import spelled
from bmcompiler.target import Compiled, GroupInfo, LayerRow, Target

B = TypeVar("B")
"""The chip's instruction builder, which its kernels emit through."""
T = TypeVar("T")
P = TypeVar("P", bound="Program[Any]")


class Program(ABC, Generic[B]):
    """Code generation of one function; what it makes is read from the subclass.

    Level 0 makes the plainest program: every command waits for the one before it. Level 1 moves data while the chip
    computes, follows groups of layers (`codegen.groups`), and keeps values in local memory between all ops
    (`codegen.residency`), whether there are groups or not: twice the batch has groups where a net fits no longer. Level
    2 also spares the copies of splits and concatenations whose parts are runs of the whole; level 1 only in nets that
    are computed in parts of their batch.

    Attributes:
        plan: where activations live; build: the builder of the chip.
        rows: facts of each op, in order. groups: what lies in local memory when.
        spans: which commands belong to which layer, per kind of command (`counts`).
    """

    neuron_align: ClassVar[int] = 64
    """Alignment of intermediate values in neuron memory, in bytes."""

    def __init__(self, module: Module, target: Target, coefficients: Coefficients, level: int = 2) -> None:
        self.module, self.function, self.target, self.coefficients = module, module.main, target, coefficients
        resident = target.resident_memory()
        self.resident_memory = None if resident is None else resident[0]
        self.copier = None if resident is None else resident[1]
        self.segments = partition(self.function, target)
        hidden = {value for segment in self.segments for value in self.without_memory(segment)}
        resides = level > 0 and self.resident_memory is not None
        self.joins = level > 1 or (level > 0 and any(IMAGE in op.attributes for op in self.function.ops))
        keeping = [i for i, segment in enumerate(self.segments) if segment.device and resides]
        self._structure = cache(lambda: structure_of(self.function))
        planned = {i: self._residency(self.segments[i]) for i in keeping}
        self.kept = {i: kept for i, kept in planned.items() if self._gains(self.segments[i], kept, level)}
        hidden.update(value for kept in self.kept.values() for value in kept.local_only)
        steps = [step for i in range(len(self.segments)) for step in self._memory_steps(i)]
        moving = [op for i, s in enumerate(self.segments) if s.device for op in self._moving(i)]
        self.plan = plan_memory(self.function, steps, self.neuron_align, self._hosts(moving), hidden)
        self.build = self.start(level)
        self.rows: list[LayerRow] = []
        self.groups: list[GroupInfo] = []
        self.spans: tuple[list[LayerSpan], ...] = tuple([] for _ in self.counts())
        for index, segment in enumerate(self.segments):
            if index in self.kept:
                self._device_keeping(segment, self.kept[index])
            elif segment.device:
                self._device(segment)
            else:
                self._cpu(segment, index)
        self._outputs()

    # -- what a chip defines -------------------------------------------------------------------------------------------
    @abstractmethod
    def start(self, level: int) -> B:
        """A builder for the program, whose plan is made."""

    @abstractmethod
    def counts(self) -> Sequence[int]:
        """How many commands there are so far, of each kind that is numbered by itself."""

    @abstractmethod
    def call_cpu(self, segment: Segment, parameters: bytes) -> None:
        """Let the host run a CPU subnet (`codegen.cpu_segment`) after all commands so far."""

    @abstractmethod
    def copy_output(self, value: Value, offset: int) -> None:
        """Copy a value to `offset` in neuron memory, where an output of the net is expected."""

    def without_memory(self, segment: Segment) -> set[Value]:
        """Results of a segment that need no neuron memory."""
        return segment.hidden()

    def end_of_device(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        """A run of device ops, which reads and writes these values of others, is complete. By default nothing."""

    # -- what a chip may use -------------------------------------------------------------------------------------------
    def input_tensors(self, make: Callable[[str, TensorType, int], T]) -> list[T]:
        """`make(name, type, offset)` of every input of the net."""
        function = self.function
        return [
            make(name, value.type, self.plan.offsets[value])
            for name, value in zip(function.input_names, function.arguments)
        ]

    def output_tensors(self, make: Callable[[str, TensorType, int], T]) -> list[T]:
        """`make(name, type, offset)` of every output of the net."""
        function = self.function
        return [
            make(name, value.type, offset)
            for name, value, offset in zip(function.output_names, function.returned, self.plan.outputs)
        ]

    # -- segments ------------------------------------------------------------------------------------------------------
    def _device(self, segment: Segment) -> None:
        for op in segment.ops:
            self._emit_alone(op)
        self.end_of_device(*borders(segment))

    def _emit_alone(self, op: Operation) -> None:
        assert isinstance(op, TensorOp), "the partition gives ops of ours"
        before = tuple(self.counts())
        try:
            moved = self._kernel(op).emit(op, self.build)
        except BMError as error:
            raise error.located(layer=op.label, kind=op.title) from None
        commands = self._name(op.label, op.title, before, needs(op))
        self.rows.append(device_row(op, self.target.name, moved, commands))

    def _device_keeping(self, segment: Segment, kept: Residency) -> None:
        """A run whose values may stay in local memory; what is loaded arrives while the steps before compute."""
        moved = {op: Moved() for op in segment.ops}
        commands = dict.fromkeys(segment.ops, 0)

        def part(number: int, emit: Part) -> None:
            step, before = kept.steps[number], tuple(self.counts())
            op = step.op
            try:
                emit(step, moved[op])
            except BMError as error:
                raise error.located(layer=op.label, kind=op.title) from None
            commands[op] += self._name(op.label, op.title, before, () if commands[op] else needs(op))

        emit_steps(self.build, kept.steps, self.copier, self._emit_step_alone, part)
        self.rows += [device_row(op, self.target.name, moved[op], commands[op]) for op in segment.ops]
        self.groups += group_infos(kept, len(self.groups))
        self.end_of_device(*borders(segment))

    def _emit_step_alone(self, step: Step, moved: Moved) -> None:
        moved.add(self._kernel(step.op).emit(step.op, self.build))

    def _memory_steps(self, index: int) -> list[list[Operation]]:
        """Ops whose reads and writes of global memory mix: those of a group with slices."""
        if index not in self.kept:
            return list(self.segments[index].steps())
        steps: dict[object, list[Operation]] = {}
        for step in self.kept[index].steps:
            key = step.group if max(step.slices) > 1 else step.op
            ops = steps.setdefault(key, [])
            ops += [] if step.op in ops else [step.op]
        return list(steps.values())

    def _moving(self, index: int) -> list[Operation]:
        """Device ops of a segment that are not computed in local memory as a whole."""
        if index not in self.kept:
            return self.segments[index].ops
        return [step.op for step in self.kept[index].steps if step.work is None]

    def _hosts(self, moving: Sequence[Operation]) -> Hosts:
        """Values that are made or read in their place in others, if these ops work in global memory."""
        return parts_of_others(self.function, moving, borders=self.target.free_borders) if self.joins else {}

    def _gains(self, segment: Segment, kept: Residency, level: int) -> bool:
        """Whether a run is computed as planned; by tiles, an op alone is loaded while it computes."""
        grouped = any(annotation(op) is not None for op in segment.ops)
        return level > 1 or grouped or bool(kept.local_only)

    def _residency(self, segment: Segment) -> Residency:
        """What stays in local memory during a run of device ops."""
        assert self.resident_memory is not None, "asked for on chips that have it"
        known = self.target.settled_plans.take(self._structure, segment.ops, annotation) if self.joins else None
        if known is not None:
            return known
        memory, hosts = self.resident_memory, self._hosts(self.function.ops)
        outside = {root_of(value) for value in segment.outputs()}

        def blocks(op: Operation) -> bool:
            return bool(self._kernel(op).uses_local_memory(op))

        def whole(op: Operation) -> TileWork | None:
            work: TileWork | None = self._kernel(op).whole(op)
            return work

        def part(op: Operation, box: Box) -> TileWork | None:
            work: TileWork | None = self._kernel(op).boxed(op, box)
            return work

        def alone(op: Operation) -> int:
            return alone_cycles(self._kernel(op), op, hosts, memory)

        def plans() -> Iterator[list[Stripe]]:
            if self.copier is not None:
                yield stripes_of(segment.ops, annotation, whole, part, outside.__contains__, self.copier.grain)
            yield whole_stripes(segment.ops, whole)

        for stripes in plans():
            found = plan_residency(stripes, blocks, outside.__contains__, memory, self.copier)
            if found is not None:
                times = Clock(found, alone, memory, self.copier)
                settle(found, times, blocks, memory)
                return found
        return Residency([Step(op, None) for op in segment.ops])

    def _kernel(self, op: Operation) -> Any:
        kernel = self.target.kernel_for(op)
        assert isinstance(kernel, DeviceKernel), "ops of the device have kernels"
        return kernel

    def _cpu(self, segment: Segment, index: int) -> None:
        def neuron_offset(value: Value) -> int:
            return self.plan.offsets[root_of(value)]

        def weight_offset(value: Value) -> int:
            return self.coefficients.place(value, "plain", lambda w: w)

        parameters = encode_segment(segment, f"cpu{index}", neuron_offset, weight_offset)
        before = tuple(self.counts())
        self.call_cpu(segment, parameters)
        self._name(*joined_names(segment), before)
        self.rows += cpu_rows(segment)

    def _outputs(self) -> None:
        """Outputs that live elsewhere (an input, or an output listed twice) get their copy."""
        before = tuple(self.counts())
        for value, offset in self.plan.copies:
            root = root_of(value)
            if root not in self.plan.offsets and not is_weight(root):
                raise UnsupportedError(
                    "an output of the net has no memory", remedy=f"leave it out with {spelled('outputs')}"
                )
            self.copy_output(value, offset)
        self._name("outputs", "copy", before)
        if self.plan.copies:
            self.end_of_device([value for value, _ in self.plan.copies], ())

    def _name(self, layer: str, kind: str, before: Sequence[int], needed: Sequence[int] = ()) -> int:
        """Note that the commands since `before` belong to a layer, and what it needs; returns their number."""
        after = self.counts()
        for spans, first, end in zip(self.spans, before, after):
            if end > first:
                spans.append(LayerSpan(layer, kind, first, end - first, *needed))
                needed = ()
        return sum(after) - sum(before)


def borders(segment: Segment) -> tuple[list[Value], list[Value]]:
    """(values that a segment reads from outside, values that are read outside)."""
    inside = {result for op in segment.ops for result in op.results}
    read = dict.fromkeys(value for op in segment.ops for value in op.operands)
    inputs = [value for value in read if root_of(value) not in inside and not is_weight(root_of(value))]
    return inputs, segment.outputs()


def compile_programs(modules: Sequence[Module], make: Callable[[Module, Coefficients], P]) -> tuple[list[P], Compiled]:
    """One program per module (input shape), and the rows of the first one. `make` is the code generator of the chip.

    They share one memory of coefficients, which is complete behind the last of them.
    """
    programs: list[P] = []
    for module in modules:
        before = programs[-1].coefficients if programs else None
        programs.append(make(module, Coefficients(module, before=before)))
    return programs, Compiled(None, programs[0].rows, groups=programs[0].groups or None)


def flat_pieces(size: int, row: int, rows: int) -> Iterator[tuple[int, int, int]]:
    """(offset, rows, bytes per row) of copies that cover `size` bytes, at most `rows` of `row` bytes at a time."""
    start = 0
    while start < size:
        count = min((size - start) // row, rows)
        piece = (count, row) if count else (1, size - start)
        yield start, *piece
        start += piece[0] * piece[1]


_NUMBER = {name: number for number, (name, _) in FORMATS.items()}


def tensor_info(name: str, type: TensorType, offset: int) -> TensorInfo:
    """Container entry of an input or output whose scale is a threshold.

    Raises UnsupportedError for element types that model files cannot name.
    """
    fmt = _NUMBER.get(str(type.numpy))
    if fmt is None:
        raise UnsupportedError(
            f"'{name}' has element type {type.dtype}, which no model file can hold", remedy="cast it to another type"
        )
    threshold = float(np.float32(type.quant.threshold)) if type.quant is not None else 0.0
    return TensorInfo(name, type.shape or (1,), fmt, offset, threshold)
