"""Programs: the mode, the chip, and what has been recorded. Several may live side by side, each thread has its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from bmcompiler.errors import UsageError
from bmcompiler.frontends.bmlang.rows import CHIPS
from bmcompiler.frontends.bmlang.tensor import Tensor
from bmcompiler.frontends.bmlang.types import Arithmetic, BmLangMode
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.builder import Builder

if TYPE_CHECKING:
    from bmcompiler.frontends.bmlang.compile import Compilation

_BEGUN: ContextVar[tuple[Program, ...]] = ContextVar("bmlang programs", default=())
"""The programs of this thread that have not ended, the current one last."""


class Program:
    """What `init` begins. As a context manager it is the current program inside `with`, and the former one after it.

    Attributes:
        chip: one of `CHIPS`. out_dir: where compiled files go.
        relaxed: an unsigned result of an integer matrix product may come from signed inputs (bmlang.md 6, row 8).
        arithmetic: whose float arithmetic eager results have.
    """

    def __init__(
        self,
        mode: BmLangMode,
        chip: str = CHIPS[0],
        out_dir: str | Path = "",
        *,
        relaxed: bool = False,
        arithmetic: Arithmetic = Arithmetic.FRAMEWORK,
    ) -> None:
        if str(chip).upper() not in CHIPS:
            raise UsageError(f"BMLang knows no chip '{chip}'; known: {', '.join(CHIPS)}")
        self.chip = str(chip).upper()
        self.out_dir = Path(out_dir or "compilation")
        self.relaxed, self.arithmetic = relaxed, Arithmetic(arithmetic)
        self.missing: list[str] = []
        """Why what has been recorded cannot be compiled; empty where it can."""
        self.calls = 0
        self.single: dict[tuple[str, bytes, int], Value] = {}
        """Recorded constants of one element, by type, bytes and number of axes."""
        self.inputs: list[Tensor] = []
        """Tensors that the recorded function takes, in order of first use."""
        self._mode = BmLangMode.UNKNOWN_MODE
        self.set_mode(mode)
        self._builder = Builder.new("bmlang")
        self._values: WeakKeyDictionary[Tensor, Value] = WeakKeyDictionary()
        self._written: dict[Value, Tensor] = {}
        self._read: set[Value] = set()

    # -- modes ---------------------------------------------------------------------------------------------------------
    @property
    def mode(self) -> BmLangMode:
        """What operator calls do."""
        return self._mode

    @property
    def computes(self) -> bool:
        """Whether operators are evaluated at once."""
        return self._mode in (BmLangMode.COMPUTE_CPU, BmLangMode.BOTH)

    @property
    def records(self) -> bool:
        """Whether operators are recorded for the compiler."""
        return self._mode in (BmLangMode.COMPILE_TPU, BmLangMode.BOTH)

    def set_mode(self, mode: BmLangMode) -> None:
        """Change the mode. Raises UsageError after the first operator call: a program is in one mode throughout."""
        if mode not in tuple(BmLangMode)[:3]:
            raise UsageError(f"the mode is COMPUTE_CPU, COMPILE_TPU or BOTH, got {mode!r}")
        if self.calls and mode != self._mode:
            raise UsageError(
                "the mode cannot change after the first operator", remedy="begin another program with init"
            )
        self._mode = BmLangMode(mode)

    # -- recording -----------------------------------------------------------------------------------------------------
    @property
    def builder(self) -> Builder:
        """Appends to the recorded function."""
        return self._builder

    def value_of(self, tensor: Tensor) -> Value:
        """What an operator reads of a tensor: what another one wrote, a constant, or a new input of the program."""
        found = self._values.get(tensor)
        if found is not None:
            self._read.add(found)
            return found
        if tensor.dtype is None or tensor.shape is None:
            raise UsageError(f"{tensor!r} cannot be an input: its element type and shape are not known")
        if tensor.constant:
            value = self._builder.weight(need_data(tensor), tensor.name or "constant")
        else:
            value = self._builder.input(f"input {len(self.inputs)}", TensorType(tensor.shape, tensor.dtype.ir))
            self.inputs.append(tensor)
        self._values[tensor] = value
        return value

    def write(self, tensor: Tensor, value: Value) -> None:
        """Let a tensor stand for a value from now on."""
        self._values[tensor] = value
        self._written[value] = tensor

    def recorded(self, tensor: Tensor) -> Value | None:
        """The value a tensor stands for, None where nothing recorded it."""
        return self._values.get(tensor)

    def leaves(self) -> list[Tensor]:
        """Tensors that operators wrote and none read: the outputs of a program that names none."""
        return [
            tensor
            for value, tensor in self._written.items()
            if value not in self._read and self._values.get(tensor) is value
        ]

    def module(self, name: str, outputs: Sequence[Tensor]) -> Module:
        """A copy of what has been recorded, with these outputs. Raises UsageError for tensors it did not write."""
        from bmcompiler.frontends.bmlang.compile import recorded_module

        return recorded_module(self, name, outputs)

    # -- ends ----------------------------------------------------------------------------------------------------------
    def compile(
        self,
        net_name: str,
        opt_level: int = 2,
        dyn: bool = False,
        enable_profile: bool = False,
        *,
        outputs: Sequence[Tensor] | None = None,
    ) -> Compilation:
        """See `bmlang.compile`."""
        from bmcompiler.frontends.bmlang.compile import compile_program

        return compile_program(self, net_name, opt_level, dyn, enable_profile, outputs)

    def compile_with_check(
        self,
        net_name: str,
        inputs: Sequence[Tensor],
        refs: Sequence[Tensor],
        opt_level: int = 2,
        dyn: bool = False,
        enable_profile: bool = False,
    ) -> Compilation:
        """See `bmlang.compile_with_check`."""
        from bmcompiler.frontends.bmlang.compile import compile_and_check

        return compile_and_check(self, net_name, inputs, refs, opt_level, dyn, enable_profile)

    def deinit(self) -> None:
        """End the program in this thread: the one begun before it is the current one again."""
        begun = list(_BEGUN.get())
        if self in begun:
            del begun[len(begun) - 1 - begun[::-1].index(self)]
            _BEGUN.set(tuple(begun))

    def begin(self) -> None:
        """Make it the current program of this thread."""
        _BEGUN.set((*_BEGUN.get(), self))

    def __enter__(self) -> Program:
        if self not in _BEGUN.get()[-1:]:
            self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.deinit()


def init(
    mode: BmLangMode,
    chip: str = CHIPS[0],
    out_dir: str | Path = "",
    *,
    relaxed: bool = False,
    arithmetic: Arithmetic = Arithmetic.FRAMEWORK,
) -> Program:
    """Begin a program, which is the current one of this thread until `deinit`; usable in `with`.

    Args:
        mode: COMPUTE_CPU evaluates operators at once, COMPILE_TPU records them, BOTH does both.
        chip: whose rules hold. out_dir: for compiled files, "./compilation" if empty.
        relaxed: accept unsigned results of integer matrix products with signed inputs.
        arithmetic: FRAMEWORK, or CHIP for float results with the bits of the compiled program.
    """
    program = Program(mode, chip, out_dir, relaxed=relaxed, arithmetic=arithmetic)
    program.begin()
    return program


def current() -> Program:
    """The program of this thread. Raises UsageError where there is none."""
    begun = _BEGUN.get()
    if not begun:
        raise UsageError("there is no BMLang program", remedy="call bmlang.init(mode, chip) first")
    return begun[-1]


def set_mode(mode: BmLangMode) -> None:
    """Change the mode of the current program, before its first operator."""
    current().set_mode(mode)


def deinit() -> None:
    """End the current program. Nothing happens where there is none."""
    for program in _BEGUN.get()[-1:]:
        program.deinit()


def need_data(tensor: Tensor) -> Array:
    """The data of a tensor. Raises UsageError where it has none."""
    if tensor.array is None:
        raise UsageError(
            f"{tensor!r} has no data",
            remedy="set_data gives it some; an operator computes it in the modes COMPUTE_CPU and BOTH",
        )
    return tensor.array
