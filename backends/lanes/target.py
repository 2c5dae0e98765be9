"""The base of targets with lanes: what passes ask of them follows from facts, kernels and the code generator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from bmcompiler.backends.lanes.facts import LaneFacts
from bmcompiler.backends.lanes.kernels.base import DeviceKernel as LaneKernel
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.groups.choose import choose_groups, planned_cycles
from bmcompiler.codegen.groups.regions import LocalCopier, whole_box
from bmcompiler.codegen.groups.structure import structure_of
from bmcompiler.codegen.kernels import DeviceKernel, contents_of, dims4
from bmcompiler.codegen.program import Program, compile_programs
from bmcompiler.codegen.rows import memory_totals
from bmcompiler.codegen.tiling import Tiler
from bmcompiler.ir import Function, Module, Operation
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import Compiled, Kernel, LayerGroup, Target

P = TypeVar("P", bound=Program[Any])


class LaneTarget(Target, Generic[P]):
    """A chip says its facts, machine, kernels, pipeline, code generator and model file, imported when needed."""

    facts: ClassVar[LaneFacts]

    @abstractmethod
    def new_machine(self) -> LaneMachine:
        """What kernels are constructed with, for `profile`."""

    @cached_property
    def machine(self) -> LaneMachine:
        """That of this planner alone."""
        return self.new_machine()

    @abstractmethod
    def copier(self) -> LocalCopier:
        """Copies in local memory."""

    @abstractmethod
    def program(self) -> Callable[[Module, Target, Coefficients, int], P]:
        """The code generator of one function."""

    @abstractmethod
    def model(self, name: str, programs: Sequence[P]) -> Any:
        """The model file with these programs (one per input shape) of the net `name`."""

    @abstractmethod
    def command_totals(self, program: P, model: Any) -> dict[str, int]:
        """What the summary says of the commands of a program, the first one of its model."""

    def make_kernel(self, kernel: type[Kernel[Any]]) -> Kernel[Any]:
        """Kernels derived from those for lanes take the machine."""
        return kernel(self.machine) if issubclass(kernel, LaneKernel) else kernel()

    def _taking(self, op: Operation) -> Kernel[Any] | None:
        """The kernel that runs this very op; rules say what its plans rely on."""
        kernel = self.kernel_for(op)
        return None if kernel is None or kernel.unsupported_reason(op) is not None else kernel

    def cycles(self, op: Operation) -> int | None:
        kernel = self._taking(op)
        return kernel.estimate(op) if isinstance(kernel, DeviceKernel) and isinstance(op, TensorOp) else None

    def moving_cycles(self, op: Operation) -> int | None:
        """Of copies inside global memory, or of tiles."""
        kernel = self._taking(op)
        return kernel.moving_cycles(op) if isinstance(kernel, LaneKernel) and isinstance(op, TensorOp) else None

    def local_cycles(self, op: Operation, parts: int = 1) -> int | None:
        """Estimated cycles of an op as one tile whose data is in local memory, or as several; None when it is none."""
        kernel = self._taking(op)
        if not isinstance(kernel, DeviceKernel) or not isinstance(op, TensorOp):
            return None
        if parts == 1:
            work = kernel.whole(op)
            return None if work is None else work.cycles
        *outer, height, width = op.type.shape
        if len(outer) != 2 or height < parts:
            return None
        rows = -(-height // parts)
        work = kernel.boxed(op, (*((0, size) for size in outer), (0, rows), (0, width)))
        return None if work is None else work.cycles * height // rows

    def relayout_cycles(self, op: Operation) -> int:
        """By the copy inside local memory, else out of it and back."""
        kernel, value = self._taking(op), op.operands[0]
        work = kernel.whole(op) if isinstance(kernel, DeviceKernel) and isinstance(op, TensorOp) else None
        wanted = work.inputs[0].contents if work is not None and work.inputs else None
        if wanted is None or value.type.rank != 4:
            return 0
        have = contents_of(value, dims4(value), whole_box(dims4(value)))
        if have is None or have == wanted:
            return 0
        copy = self.copier().copy(have, wanted) if have.box is None and wanted.box is None else None
        return 2 * self.loading_cycles(value.type.nbytes) if copy is None else self.copier().cycles(copy)

    def loading_cycles(self, nbytes: int) -> int:
        """By the bus of the chip."""
        return int(nbytes / self.machine.cycles.bytes_per_cycle)

    def image_slots(self, dtype: str) -> int:
        """Small integers share words of the chip."""
        return self.facts.image_slots(int(dtype[1:]) // 8) if dtype[0] in "iu" else 1

    def resident_memory(self) -> tuple[Tiler, LocalCopier]:
        return self.machine.tiler, self.copier()

    def layer_groups(self, function: Function, level: int) -> list[LayerGroup]:
        """Found once for functions that differ in the numbers of their weights alone."""
        key, ops = (level, structure_of(function)), function.ops
        if key not in self.found_groups:
            places = {op: place for place, op in enumerate(ops)}
            found = choose_groups(function, self, *self.resident_memory(), level)
            self.found_groups[key] = [([places[op] for op in group], slices) for group, slices in found]
        return [([ops[place] for place in group], slices) for group, slices in self.found_groups[key]]

    def planned_cycles(self, function: Function, level: int) -> float | None:
        return planned_cycles(function, self, *self.resident_memory(), level)

    def compile(self, modules: Sequence[Module], level: int) -> Compiled:
        generator = self.program()
        programs, compiled = compile_programs(modules, lambda module, pool: generator(module, self, pool, level))
        compiled.model = self.model(modules[0].main.name, programs)
        compiled.totals = {
            **memory_totals(programs[0].plan),
            "weight memory": programs[0].coefficients.size,
            **self.command_totals(programs[0], compiled.model),
        }
        return compiled
