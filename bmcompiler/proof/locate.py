"""Where a wrong program goes wrong: the first op that differs, by programs of parts of the net.

1. Each op by itself, on the values that `evaluate` gives it, in program order; then each group of layers.
2. Where all of these are right, the fault lies in how they are put together: the shortest beginning of the net whose
   program is wrong is found by halving, and then what can be left out at its front.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bmcompiler.errors import WrongProgramError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Operation, Value, verify_module
from bmcompiler.ir.copying import extract
from bmcompiler.ir.keys import GROUP, WEIGHT
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.plugins.custom_layers import CUSTOMIZED
from bmcompiler.proof.compare import Wrong
from bmcompiler.spelling import spelled
from bmcompiler.target import Target

if TYPE_CHECKING:
    from bmcompiler.bmodel import BModel


@dataclass(frozen=True)
class Part:
    """A part of a net whose program is wrong: its IR, inputs, program (None: it was not the program), what differs."""

    module: Module
    inputs: Mapping[str, Array]
    model: BModel | None
    wrong: list[Wrong]


class _Search:
    def __init__(self, module: Module, target: Target, level: int, inputs: Mapping[str, Array]) -> None:
        self.module, self.target, self.level = module, target, level
        self.values: dict[Value, Array] = {}
        self.meaningless: Operation | None = None
        ops = [op for op in module.main.ops[:-1] if isinstance(op, TensorOp) and op.name != WEIGHT]
        try:
            run_module(module, inputs, self.values.__setitem__, target)
        # That evaluate fails is what was found: the op at which it did is wanted, in whichever way.
        except Exception:
            self.meaningless = next((op for op in ops if not self.values.keys() >= {*op.results}), None)
        self.ops = [op for op in ops if self.values.keys() >= {*op.results}]

    def first(self) -> tuple[Operation, Part] | None:
        """The first op that differs and the part that shows it; None where no part does."""
        if self.meaningless is not None:
            module, inputs = extract(self.module, [self.meaningless])
            given = {name: self.values[value] for name, value in inputs.items()}
            return self.meaningless, Part(module, given, None, [])
        for ops in self._units():
            part = self._wrong(ops)
            if part is not None:
                return ops[0], part
        return self._beginning()

    def _units(self) -> Iterator[Sequence[Operation]]:
        yield from ([op] for op in self.ops)
        groups: dict[int, list[Operation]] = {}
        for op in self.ops:
            if GROUP in op.attributes:
                groups.setdefault(op.attributes[GROUP], []).append(op)
        yield from (ops for ops in groups.values() if len(ops) > 1)

    def _beginning(self) -> tuple[Operation, Part] | None:
        """Rule 2."""
        right, end, part = 0, len(self.ops), self._wrong(self.ops)
        if part is None:
            return None
        while end - right > 1:
            middle = (right + end) // 2
            found = self._wrong(self.ops[:middle])
            right, end, part = (right, middle, found) if found is not None else (middle, end, part)
        start, size = 0, end // 2
        while size:
            found = self._wrong(self.ops[start + size : end]) if start + size < end else None
            if found is not None:
                start, part = start + size, found
            else:
                size //= 2
        return self.ops[end - 1], part

    def _wrong(self, ops: Sequence[Operation]) -> Part | None:
        """The part of a net that `ops` are, where its program is wrong; None where it is right or cannot be made."""
        from bmcompiler.proof.prove import difference, session_of

        try:
            module, inputs = extract(self.module, ops)
            verify_module(module)
            given = {name: self.values[value] for name, value in inputs.items()}
            model = self.target.compile([module], self.level).model
            wrong = difference(session_of(model), module, self.target, given)
        # What is looked for is an error of ours, and a part of a net may be no net: any failure means "not this one".
        except Exception:
            return None
        return Part(module, given, model, wrong) if wrong else None


def located(
    model: BModel,
    module: Module,
    target: Target,
    level: int,
    inputs: Mapping[str, Array],
    wrong: list[Wrong],
) -> WrongProgramError:
    """The error for a program that differs from its module on some inputs; names the first op that does, if found."""
    said = "; ".join(map(str, wrong))
    found = _Search(module, target, level, inputs).first()
    if found is None:
        error = WrongProgramError(f"{_WRONG}: {said} (no part of the network shows it by itself). {_OURS}")
        error.part = Part(module, inputs, model, wrong)
    else:
        op, part = found
        of_op = f"{'; '.join(map(str, part.wrong))}. Of the whole network, " if part.wrong else ""
        error = WrongProgramError(f"{_WRONG}: {of_op}{said}. {_whose(op, target)}", layer=op.label, kind=op.title)
        error.part = part
    error.remedy = (
        f"report it, with what {spelled('keep_bad')} keeps of it; meanwhile try another {spelled('opt')} "
        f"({spelled('check', 'never')} skips the proof)"
    )
    return error


def _whose(op: Operation, target: Target) -> str:
    """Who has to mend it: a plugin where the layer or its kernel is one's own."""
    if op.short_name == CUSTOMIZED:
        return f"This is an error of the plugin that brings '{op.title}', not of the network"
    owner = type(target.kernel_for(op)).__module__.partition(".")[0]
    if owner in ("bmcompiler", "builtins"):
        return _OURS
    return f"This is an error of the plugin '{owner}', whose kernel it is, not of the network"


_WRONG = "the program is not what the network means"
_OURS = "This is an error of bmcompiler, not of the network"
