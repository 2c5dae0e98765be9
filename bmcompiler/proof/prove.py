"""The proof of a program: both executions of it on samples, and what a difference means.

One execution is the device's, command by command, the other that of `evaluate`, op by op on the final IR. What they
share is said in ARCHITECTURE.md.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bmcompiler.errors import BMError, RuntimeUseError, UnsupportedError, WrongProgramError
from bmcompiler.inputs.source import Data
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Value
from bmcompiler.ir.copying import copy_module
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.sampled import ONE_IN, sampled_sums
from bmcompiler.options import Check
from bmcompiler.plugins.registry import PluginError, entry_points, lookup
from bmcompiler.proof.compare import Wrong, compare
from bmcompiler.proof.cost import way_of
from bmcompiler.proof.sample import samples_of
from bmcompiler.spelling import spelled
from bmcompiler.target import Target, find_target

if TYPE_CHECKING:
    from bmcompiler.bmodel import BModel


_NOT_OURS = (MemoryError, RuntimeUseError, UnsupportedError, PluginError)


@dataclass(frozen=True)
class Proof:
    """What was proven of a model.

    Attributes:
        samples: how many runs each program was compared in; 0 where it was not.
        of_data: whether they were samples of the data; else they were drawn, at least for one program.
        programs: how many were compared. seconds: what it took. reason: why nothing was compared, "" where it was.
        one_row_in: of so many rows of float products one was added in the chip's order, by both; 1: all were.
        endless: outputs that held NaN or infinity in both executions, and the first layer that made one, by name.
        undefined: those of them that hold one in the network before the passes, too.
    """

    samples: int
    of_data: bool
    programs: int
    seconds: float
    reason: str = ""
    one_row_in: int = 1
    endless: Mapping[str, str] = field(default_factory=dict)
    undefined: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences with a remedy; where samples say how far a network is from float, that says more."""
        lost = [name for name in self.endless if name not in self.undefined]
        shown = [name for name in self.endless if name in self.undefined and self.of_data]
        wider = "a precision of wider range, or samples (data) that show whether real inputs do so"
        return (
            *(
                f"output '{name}' {self._says(name)} in the check, and numbers in float. Remedy: {wider}"
                for name in lost
            ),
            *(
                f"output '{name}' {self._says(name)} on the sample, as in float. Remedy: check that the data are "
                "prepared as the network expects (scaling, mean)"
                for name in shown
            ),
        )

    def _says(self, name: str) -> str:
        return f"holds NaN or infinity (first in layer '{self.endless[name]}')"

    def __str__(self) -> str:
        """What summaries say of it."""
        if not self.samples:
            return f"no: {self.reason}"
        samples = f"{self.samples:,} sample{'' if self.samples == 1 else 's'}"
        each = f" of each of {self.programs} programs" if self.programs > 1 else ""
        which = "" if self.of_data else " (drawn, not of the data)"
        rows = f"; of float sums, one row in {self.one_row_in} in the chip's order" if self.one_row_in > 1 else ""
        return f"{samples}{each}: program = evaluate, every bit{rows}{which}"


def proven(
    model: BModel,
    modules: Sequence[Module],
    target: Target,
    *,
    sources: Sequence[Callable[[], Module]],
    check: Check,
    data: Data | None,
    level: int,
    commands: int,
    spent: float,
) -> Proof:
    """Compare all programs of a model with the IR that they were made from.

    Args:
        modules: the final IR, one per program. sources: read the networks they were made from.
        check: see `ModuleOptions`.
        data: samples of the inputs, real values. level: of optimisation.
        commands: of all programs together, of which the time is expected. spent: seconds of the compilation so far.

    Raises:
        WrongProgramError: a program and its IR differ, or one of them cannot be run.
        BMError: a proof was asked for that cannot be made (a chip without a device, data that cannot be read).
    """
    sampled, reason = way_of(check, modules, commands, spent, target)
    reason = reason or _hindrance(target)
    if reason and (check in ("auto", "never")):
        return Proof(0, False, 0, 0.0, reason)
    if reason:
        raise UnsupportedError(f"the program cannot be checked: {reason}", remedy=f"pass {spelled('check', 'never')}")
    start = time.perf_counter()
    try:
        counts, of_data, sampled, endless, undefined = _compared(
            model, modules, sources, target, check, data, level, sampled
        )
    except _NOT_OURS as error:
        if check != "auto":
            raise
        reason = "not enough memory" if isinstance(error, MemoryError) else error.reason
        return Proof(0, False, 0, time.perf_counter() - start, reason)
    rows = ONE_IN if sampled else 1
    seconds = time.perf_counter() - start
    return Proof(min(counts), of_data, len(modules), seconds, one_row_in=rows, endless=endless, undefined=undefined)


def _hindrance(target: Target) -> str:
    if target.name not in entry_points("bmcompiler.devices"):
        return f"no simulator runs programs for {target.name}"
    return ""


def _compared(
    model: BModel,
    modules: Sequence[Module],
    sources: Sequence[Callable[[], Module]],
    target: Target,
    check: Check,
    data: Data | None,
    level: int,
    sampled: bool,
) -> tuple[list[int], bool, bool, dict[str, str], tuple[str, ...]]:
    """Samples of each program, whether all are of the data, whether float sums were sampled in any; see `Proof`.

    What differs in sampled sums is asked again with all of them: that decides.
    """
    wanted = check if isinstance(check, int) else 1
    counts, all_of_data, of_rows = [], True, False
    found, undefined = dict[str, str](), set[str]()
    ends = {(tuple(module.main.input_names), tuple(module.main.output_names)) for module in modules}
    own = len(ends) > 1  # nets of their own that share their weights
    whole, session = model, None if own else session_of(model)
    for index, (module, source) in enumerate(zip(modules, sources)):
        if own:
            model = whole.select(index)
            session = session_of(model)
        samples, of_data = samples_of(module.main, data, wanted)
        for inputs in samples:
            endless: set[str] = set()
            with sampled_sums(sampled):
                same = sampled and not difference(session, module, target, inputs, endless)
            if same:
                of_rows = True
            else:
                compare_or_raise(model, module, target, level, inputs, session, endless)
            if endless:
                layer = _first_endless(module, target, inputs)
                found = dict.fromkeys(sorted(endless), layer) | found
                undefined |= endless - numbers_of(source(), inputs, endless)
        counts.append(len(samples))
        all_of_data &= of_data
    return counts, all_of_data, of_rows, found, tuple(sorted(undefined))


def numbers_of(module: Module, inputs: Mapping[str, Array], asked: set[str]) -> set[str]:
    """Which outputs hold neither NaN nor infinity; all of them where a network takes inputs of other types."""
    types = dict(zip(module.main.input_names, (value.type for value in module.main.arguments)))
    if any(name not in types or types[name].numpy != array.dtype for name, array in inputs.items()):
        return asked
    return {name for name, array in run_module(module, inputs).items() if _all_numbers(array)}


def _first_endless(module: Module, target: Target, inputs: Mapping[str, Array]) -> str:
    """The first layer that makes NaN or infinity."""
    labels: list[str] = []

    def see(value: Value, array: Array) -> None:
        if not labels and value.op is not None and not _all_numbers(array):
            labels.append(value.op.label)

    run_module(module, inputs, see, target)
    return labels[0] if labels else ""


def _all_numbers(array: Array) -> bool:
    return array.dtype.kind in "iub" or bool(np.isfinite(array).all())


def prove_file(session: Any, module: Module, data: Data | None, raw: bool) -> bool:
    """Compare the program of a loaded file with its IR, on the first of the data or a drawn sample; was it of the data?

    Args:
        session: the file on its device. module: as `--save-ir` writes it. raw: the data are what the device holds.

    Raises:
        WrongProgramError: they differ. RuntimeUseError: the file has no program of such inputs, or differs and is not
            what the IR compiles to.
    """
    target, level = find_target(session.model.target), _level_of(session.model.producer)
    samples, of_data = samples_of(module.main, data, 1, raw)
    try:
        compare_or_raise(session.model, module, target, level, samples[0], session)
    except WrongProgramError:
        if _compiles_to(module, target, level, session.model):
            raise
        raise RuntimeUseError(
            f"this IR does not compile to the program of the file on the {target.name}: it is of another compilation "
            f"(chip, network, {spelled('opt')}, timing profile or version)",
            remedy=f"give the IR that {spelled('save_ir')} wrote when the file was made",
        ) from None
    return of_data


def _compiles_to(module: Module, target: Target, level: int, model: BModel) -> bool:
    """Whether IR compiles to a program of the model, with its weights."""

    def commands(of: BModel) -> str:
        lines: list[str] = target.disassemble(of).splitlines()
        return "\n".join(line for line in lines if not line.startswith("#"))

    try:
        own: BModel = target.compile([copy_module(module)], level).model
    except BMError:
        return False
    weights, known = ({bytes(each) for each in of.weight_sets} for of in (own, model))
    return weights <= known and commands(own) in commands(model)


def _level_of(producer: str) -> int:
    """The --opt that a model file says it was compiled with; parts of the net are compiled alike to find a fault."""
    found = re.search(r"\bopt ([012])\b", producer)
    return int(found[1]) if found else 2


def compare_or_raise(
    model: BModel,
    module: Module,
    target: Target,
    level: int,
    inputs: Mapping[str, Array],
    session: Any,
    endless: set[str] | None = None,
) -> None:
    """Raise WrongProgramError, with the first op that differs, unless a program gives what its IR means.

    endless: gets the names of outputs as `difference` says.
    """
    wrong = difference(session, module, target, inputs, endless)
    if wrong:
        from bmcompiler.proof.locate import located

        raise located(model, module, target, level, inputs, wrong)


def session_of(model: BModel) -> Any:
    """The model on the simulator of its chip. Raises BMError when it cannot be loaded."""
    return lookup("bmcompiler.runtimes", "session", "runtime")(model)


def _as_device(array: Array) -> Array:
    """Files hold no scalars, and bfloat16 numbers as the bits of integers."""
    array = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
    return array.reshape(array.shape or (1,))


def difference(
    session: Any, module: Module, target: Target, inputs: Mapping[str, Array], endless: set[str] | None = None
) -> list[Wrong]:
    """The outputs in which a program and its IR differ, on inputs as the device takes them.

    endless: gets the names of outputs that hold NaN or infinity.

    An execution that fails is a difference, too: whatever it raises is an error of ours. Not so what only says that
    the inputs do not fit, that there is no device, or that code of a plugin fails (`_NOT_OURS`).
    """
    given = {name: _as_device(array) for name, array in inputs.items()}
    what = "its meaning (evaluate) cannot be computed"
    try:
        wanted = run_module(module, inputs, target=target)
        what = "the program fails in the simulator"
        got = session.run(given, raw=True)
    except _NOT_OURS:
        raise
    except Exception as error:
        said = str(error) if isinstance(error, BMError) else f"{type(error).__name__}: {error}"
        return [Wrong("", 0, 0, note=f"{what}: {said}")]
    if endless is not None:
        endless.update(name for name, array in wanted.items() if not _all_numbers(array))
    return compare(got, wanted)
