"""The contract between the compiler and a chip (backends/README.md, "A new chip").

A target is found by name through the entry point group `bmcompiler.targets`. It brings chip facts, kernels, and a way
to turn legal IR into a model file; passes, the tiler, reports and the driver know nothing else about a chip.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.ir import Function, Module, Operation
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.pipelines import PipelineTable
from bmcompiler.plugins.custom_layers import CUSTOMIZED, plugin_kernel
from bmcompiler.plugins.registry import as_declared, entry_points
from bmcompiler.spelling import spelled

if TYPE_CHECKING:
    from bmcompiler.bmnet.inst import TensorInst
    from bmcompiler.codegen.groups.regions import LocalCopier
    from bmcompiler.codegen.groups.settled import SettledPlans
    from bmcompiler.codegen.tiling import Tiler

R = TypeVar("R")
_Rule = TypeVar("_Rule", bound=Callable[..., bool])
TargetT = TypeVar("TargetT", bound="Target")
OpT = TypeVar("OpT", bound="TensorOp")
"""The class of the ops that a kernel runs."""


def rule(text: str, got: str = "", *, last: bool = False) -> Callable[[_Rule], _Rule]:
    """Mark a kernel method `(op) -> bool` as a support rule; `text` is the user's message and the manual's line.

    `got` names the attribute whose value the message shows; `last` rules may rely on all others. The text may name
    attributes of the kernel in braces: "{kernel.chip.lanes}".
    """

    def mark(method: _Rule) -> _Rule:
        method.rule_text, method.rule_got, method.rule_last = text, got, last  # type: ignore[attr-defined]
        return method

    return mark


class Kernel(Generic[OpT]):
    """How one chip runs one kind of TensorOp.

    Rules are checked in the order they are written, base classes first. What overrides one without being one takes it
    back.
    """

    ops: tuple[type[OpT], ...] = ()
    _rules: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        names: dict[str, None] = {}
        for base in reversed(cls.__mro__):
            names.update((name, None) for name, member in vars(base).items() if hasattr(member, "rule_text"))
        kept = (name for name in names if hasattr(getattr(cls, name), "rule_text"))
        cls._rules = tuple(sorted(kept, key=lambda name: bool(getattr(cls, name).rule_last)))

    def rules(self) -> list[str]:
        """The texts of all rules."""
        return [self._text(name) for name in self._rules]

    def _text(self, name: str) -> str:
        return str(getattr(self, name).rule_text).format(kernel=self)

    def unsupported_reason(self, op: OpT) -> str | None:
        """None when the kernel takes this op, else the text of the first rule that says no."""
        for name in self._rules:
            method = getattr(self, name)
            if not method(op):
                got = f": got {getattr(op, method.rule_got)}" if method.rule_got else ""
                return f"{self._text(name)}{got}"
        return None

    def evaluate(self, op: OpT, *arrays: Array) -> Any:
        """What the chip computes for `op`, bit for bit; overridden where that differs from the op's own meaning."""
        from bmcompiler.ops.bf16 import meaning

        return meaning(op, *arrays)

    def order_of_sums(self, op: OpT) -> str:
        """A name of the order in which `evaluate` adds, where sizes that a pass may cut (images) decide it, too."""
        return ""


@dataclass(frozen=True)
class LayerRow:
    """What the compile summary and reports say of one op.

    Attributes:
        layer: source layer name(s); kind: op name; where: target name, "cpu", or "alias" (no work at run time).
        shape: shape of the first result; reason: why the op is on the CPU, empty otherwise.
        loaded, stored: bytes moved between global and local memory; weights: bytes of coefficients among `loaded`.
        commands, tiles, macs: counts. note: what there is to know about how the device runs the layer.
        inputs, outputs, parameters: bytes of the activations it reads, of its results, and of its weights, each once
            and wherever they are.
    """

    layer: str
    kind: str
    where: str
    shape: tuple[int, ...]
    reason: str = ""
    loaded: int = 0
    stored: int = 0
    weights: int = 0
    commands: int = 0
    tiles: int = 0
    macs: int = 0
    note: str = ""
    inputs: int = 0
    outputs: int = 0
    parameters: int = 0


@dataclass(frozen=True)
class LiveRangeInfo:
    """Bytes of local memory in use during some steps of a device run.

    Attributes:
        label: layer whose weights, result or scratch area it is; kind: "weight", "value" or "scratch".
        first_step, last_step: steps of the run, counted over all its groups; a step computes one slice of one layer.
        address, lane_bytes: bytes within every lane.
    """

    label: str
    kind: str
    first_step: int
    last_step: int
    address: int
    lane_bytes: int


@dataclass(frozen=True)
class GroupInfo:
    """Layers that pass values on in local memory, whole or slice by slice, with what lies there meanwhile.

    Attributes:
        number: counts the groups of a program in order. layers: their names, in order.
        slices: how many parts the results are cut into along n, c, h and w.
        lane_bytes: the most bytes per lane in use at once. live_ranges: what is in use, by first step.
    """

    number: int
    layers: list[str]
    slices: tuple[int, ...]
    lane_bytes: int
    live_ranges: list[LiveRangeInfo]


@dataclass
class Compiled:
    """Result of code generation: the model object (see `bmcompiler.bmodel`) and facts for the summary.

    `totals` are bytes, or counts where the name ends in "commands"; `groups` are those of the first program, None from
    chips that have none.
    """

    model: Any
    rows: list[LayerRow] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)
    groups: list[GroupInfo] | None = None


LayerGroup = tuple[list[Operation], tuple[int, int, int, int]]
"""Ops that are computed together, and how many parts they are cut into along n, c, h and w."""
FoundGroups = dict[Hashable, list[tuple[list[int], tuple[int, int, int, int]]]]
"""Groups by what they depend on of a function: places of ops, and slices."""


class Target(ABC):
    """What a target plugin provides: an object of a subclass. All that has no default is the chip's to say."""

    name: str
    precisions: Sequence[str]
    """Values of --quantize it can compile, the default first."""
    exact_sums: bool = False
    """Sums of float products are exact, rounded once: no order is to be kept, which makes a proof quick."""
    rounds_floats: bool = False
    """Its floats have 16 bits whatever passes do: what it computes is compared with f32."""
    free_borders: bool = False
    """Its model files say of each input and output where it lies, in any order."""
    schemes: Sequence[str] = ("shift",)
    """What integers can mean to it: schemes of the pass quantize. By default scales are powers of two apart."""
    profile: Any = None
    """Of the timing model, by which it plans; None is the chip's own."""

    @property
    @abstractmethod
    def passes(self) -> PipelineTable:
        """The passes of all precisions and levels, with the reasons for their order."""

    @abstractmethod
    def kinds(self) -> Sequence[type[Kernel[Any]]]:
        """The classes of all kernels, in the order of the manual, which their rules are."""

    @abstractmethod
    def compile(self, modules: Sequence[Module], level: int) -> Compiled:
        """Legal IR (one module per input shape) to one model. Raises BMError."""

    @abstractmethod
    def disassemble(self, model: Any, net: int | None = None) -> str:
        """The commands of a model as text; of one net (input shape) when `net` is given."""

    # -- with a default ------------------------------------------------------------------------------------------------
    def planner(self: TargetT, profile: Any = None) -> TargetT:
        """This target for one compilation, which plans with a profile of the timing model, None = the chip's own.

        Nothing of it changes any more. Kernels and whatever is found out are its own: properties that are cached
        (`functools.cached_property`) are made anew.
        """
        own = copy(self)
        for name in [name for name in vars(own) if isinstance(getattr(type(own), name, None), cached_property)]:
            del vars(own)[name]
        own.profile = profile
        return own

    def once(self, key: Hashable, decide: Callable[[], R]) -> R:
        """`decide()`, once in a compilation for the same key, which stands for all that it looks at beside this target.

        A compilation runs the same passes on the net, and on each of the drafts among which it chooses.
        """
        if key not in self._decided:
            self._decided[key] = decide()
        found: R = self._decided[key]
        return found

    def pipeline(self, precision: str, level: int) -> str:
        """The passes for a precision and an optimisation level. Raises UsageError for a precision it does not have."""
        self.need_precision(precision)
        return self.passes.text(precision, level)

    def kernels(self) -> Sequence[Kernel[Any]]:
        """A kernel of each of `kinds`, made once for this planner."""
        return self._kernels

    def kernel_for(self, op: Operation) -> Kernel[Any] | None:
        """The kernel for the class of an op, None without one; its rules say whether it takes this very op.

        By default that of `kernels`, else that of a plugin, which may also serve custom layers that have one.
        """
        kernel = self._table.get(type(op))
        if kernel is not None and op.short_name != CUSTOMIZED:
            return kernel
        made, found = self._made, plugin_kernel(self.name, op)
        if found is None:
            return kernel
        if found not in made:
            made[found] = self.make_kernel(found)
        return made[found]

    def make_kernel(self, kernel: type[Kernel[Any]]) -> Kernel[Any]:
        """Construct a kernel, the target's or a plugin's; by default with nothing."""
        return kernel()

    def cycles(self, op: Operation) -> int | None:
        """What an op costs, None (the default) where the target does not say."""
        return None

    def local_cycles(self, op: Operation, parts: int = 1) -> int | None:
        """What an op costs when its data stays in local memory; None where the target does not say or it cannot be.

        parts: the rows of the result are made in so many equal parts.
        """
        return None

    def relayout_cycles(self, op: Operation) -> int:
        """What the first operand takes from the layout that convolutions leave to the one the op wants as a whole."""
        return 0

    def moving_cycles(self, op: Operation) -> int | None:
        """What an op that only moves elements costs from global memory to there; None where the target does not say."""
        return None

    def loading_cycles(self, nbytes: int) -> int:
        """What so many bytes take from global memory at best; 0 (the default) where the target does not say."""
        return 0

    def resident_memory(self) -> tuple[Tiler, LocalCopier] | None:
        """The local memory in which values may stay between ops, and copies there; None, the default: nothing stays."""
        return None

    def layer_groups(self, function: Function, level: int) -> list[LayerGroup]:
        """The groups of ops computed slice by slice, by default none. Level 0: none, 1: quickly found, 2: best."""
        return []

    @cached_property
    def found_groups(self) -> FoundGroups:
        """Where `layer_groups` may note what it finds, and look for it. Compilations of equal layers may share it."""
        return {}

    @cached_property
    def settled_plans(self) -> SettledPlans:
        """Plans that `layer_groups` made of runs in the groups it found, for code generation."""
        from bmcompiler.codegen.groups.settled import SettledPlans

        return SettledPlans()

    def planned_cycles(self, function: Function, level: int) -> float | None:
        """What the device takes of a function in the groups of a level; None (the default): the target does not say."""
        return None

    def image_slots(self, dtype: str) -> int:
        """How many images share the words of feature maps of an element type; by default 1."""
        return 1

    def describe(self, model: Any) -> list[str]:
        """Lines on the commands of a model, for people; by default none."""
        return []

    @property
    def custom_inst(self) -> type[TensorInst]:
        """Base class of the instruction classes of custom layers. By default raises UnsupportedError: it has none."""
        raise UnsupportedError(
            f"{self.name} has no instruction classes for custom layers", remedy="register a kernel instead"
        )

    def need_precision(self, precision: str) -> None:
        """Raise UsageError for a precision that is not among `precisions`."""
        if precision not in self.precisions:
            known = " and ".join(self.precisions) + ("" if len(self.precisions) > 1 else " only")
            remedy = f"use {spelled('quantize', *self.precisions)}"
            raise UsageError(f"{self.name} computes in {known}, not in {precision}", remedy=remedy)

    @cached_property
    def _kernels(self) -> Sequence[Kernel[Any]]:
        return tuple(map(self.make_kernel, self.kinds()))

    @cached_property
    def _table(self) -> Mapping[type[Operation], Kernel[Any]]:
        return kernel_table(self.kernels())

    @cached_property
    def _decided(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def _made(self) -> dict[type[Kernel[Any]], Kernel[Any]]:
        return {}


def unsupported_reason(target: Target, op: Operation) -> str | None:
    """None when the target runs this op itself, else one sentence without a full stop."""
    kernel = target.kernel_for(op)
    if kernel is None:
        return f"{target.name} has no kernel for '{op.title}'"
    return kernel.unsupported_reason(op) if isinstance(op, TensorOp) else None


def kernel_table(kernels: Iterable[Kernel[Any]]) -> Mapping[type[Operation], Kernel[Any]]:
    """Op class -> kernel. Raises ValueError when two kernels claim one op."""
    table: dict[type[Operation], Kernel[Any]] = {}
    for kernel in kernels:
        ops: tuple[type[TensorOp], ...] = kernel.ops
        for cls in ops:
            if cls in table:
                raise ValueError(f"two kernels for {cls.opname}")
            table[cls] = kernel
    return table


def find_target(name: str, profile: Any = None) -> Target:
    """A planner of the target called `name`, the caller's own (`Target.planner`).

    Raises:
        UnsupportedError: there is none, naming the known ones.
    """
    known, name = entry_points("bmcompiler.targets"), as_declared("bmcompiler.targets", name)
    if name not in known:
        raise UnsupportedError(f"no target is called '{name}'", remedy=f"choose one of: {', '.join(known)}")
    target: Target = known[name]()
    return target.planner(profile)
