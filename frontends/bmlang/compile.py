"""From a recorded program to a model file, and the check of what it computes against the references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler.api import compile_module
from bmcompiler.errors import RuntimeUseError, UnsupportedError, UsageError
from bmcompiler.frontends.bmlang.emit import Trace
from bmcompiler.frontends.bmlang.lowering import all_values, passes_of
from bmcompiler.frontends.bmlang.meanings.registry import Call, Meaning
from bmcompiler.frontends.bmlang.numbers import has_reals
from bmcompiler.frontends.bmlang.program import Program, current, need_data
from bmcompiler.frontends.bmlang.tensor import Tensor
from bmcompiler.frontends.bmlang.types import BmLangMode
from bmcompiler.interpreter import evaluate_op, run_module
from bmcompiler.ir import Module, TensorType, Value, copy_module
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.options import as_level
from bmcompiler.passmanager import PassContext, Pipeline, run_pipeline
from bmcompiler.plugins.registry import lookup
from bmcompiler.result import Result
from bmcompiler.target import LayerRow, Target, find_target

MODEL, INPUTS, OUTPUTS, IR = "compilation.bmodel", "input_ref_data.dat", "output_ref_data.dat", "compilation.mlir"
TOLERANCE = {"f32": 1e-4, "f16": 1e-2, "bf16": 8e-2}
"""How far floats of the chip may be from those of the operators, in units of the largest value of a tensor.

By the coarsest type in a program: some twenty roundings to 16 bits, of which half are 2**-11 and 2**-8.
"""
_LEVELS = (0, 1, 2)


class HostRows(list[LayerRow]):
    """Rows of ops on the host; printed, one line each: whose, what, which shape, why."""

    def __repr__(self) -> str:
        return "\n".join(f"{row.layer}: {row.kind} {list(row.shape)}: {row.reason}" for row in self) or "[]"


@dataclass
class Compilation:
    """A compiled program.

    Attributes:
        path: the model file. module: the IR as it was recorded. result: what the compiler says (rows, totals, notes).
        inputs, outputs: names in order. notes: sentences worth reading.
        errors: of a check, the largest difference of each output from its reference, in units of its largest value.
    """

    path: Path
    module: Module
    result: Result
    inputs: list[str]
    outputs: list[str]
    notes: list[str] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)

    @property
    def host(self) -> HostRows:
        """What the host computes, with the reason; the rest are commands of the chip."""
        return HostRows(row for row in self.result.rows if row.where == "cpu")

    def __repr__(self) -> str:
        counts = f"{len(self.inputs)} inputs, {len(self.outputs)} outputs, {len(self.host)} ops on the host"
        return f"<Compilation {self.path}: {counts}>"


def compile(
    net_name: str,
    opt_level: int = 2,
    dyn: bool = False,
    enable_profile: bool = False,
    *,
    outputs: Sequence[Tensor] | None = None,
) -> Compilation:
    """Compile what the current program has recorded and write `compilation.bmodel` into its folder.

    Args:
        net_name: name of the net in the model file.
        opt_level: 0 without overlap, 1 with residency, 2 with groups of layers.
        dyn: the vendor's switch for programs whose lengths depend on values. Results of such operators have room for
            the longest one and come with a count either way.
        enable_profile: also write `profile.json`, the report on layers, cycles and bytes.
        outputs: the tensors to return; those that no operator reads if not given.
    Raises UsageError in the mode COMPUTE_CPU or without outputs, UnsupportedError for a chip without public
    instructions and for operators that need constants they did not get.
    """
    return current().compile(net_name, opt_level, dyn, enable_profile, outputs=outputs)


def compile_with_check(
    net_name: str,
    inputs: Sequence[Tensor],
    refs: Sequence[Tensor],
    opt_level: int = 2,
    dyn: bool = False,
    enable_profile: bool = False,
) -> Compilation:
    """`compile`, and run the model in the simulator on the data of `inputs`; its outputs are `refs`.

    The simulator must give the bits that the IR says. Integers must equal the data of `refs`, which the mode BOTH has
    computed; floats may be 1e-4 of the largest value away. `input_ref_data.dat` and `output_ref_data.dat` hold the
    bytes of inputs and outputs in order. Raises RuntimeUseError where a result is wrong.
    """
    return current().compile_with_check(net_name, inputs, refs, opt_level, dyn, enable_profile)


# -- recorded programs -------------------------------------------------------------------------------------------------
def recorded_module(program: Program, name: str, outputs: Sequence[Tensor]) -> Module:
    """A copy of what a program has recorded. Raises UsageError for outputs it did not write."""
    values = []
    for tensor in outputs:
        value = program.recorded(tensor)
        if value is None:
            raise UsageError(f"{tensor!r} cannot be an output: no recorded operator wrote it")
        values.append(value)
    function = program.builder.function
    function.name = name
    names = [tensor.name for tensor in outputs]
    counted = {id(tensor.count): tensor for tensor in outputs if tensor.count is not None}
    taken: set[str] = set()
    function.input_names = _names([tensor.name for tensor in program.inputs], "input", taken, "an input")
    function.set_outputs(values, _output_names(outputs, names, counted, taken))
    try:
        return copy_module(program.builder.module)
    finally:
        function.ops[-1].erase()


def _names(given: Iterable[str | None], default: str, taken: set[str], what: str) -> list[str]:
    """Names, with numbered ones where there is none. Raises UsageError for a name that is there twice."""
    names = list(given)
    for name in names:
        if name is not None and name in taken:
            raise UsageError(f"'{name}' is the name of {what} and of another tensor", remedy="give each its own name")
        if name is not None:
            taken.add(name)
    found = []
    for name in names:
        number, own = 0, name or default
        while name is None and own in taken:
            number += 1
            own = f"{default}{number}"
        taken.add(own)
        found.append(own)
    return found


def _output_names(
    outputs: Sequence[Tensor], names: Sequence[str | None], counted: dict[int, Tensor], taken: set[str]
) -> list[str]:
    """Names of outputs; one that is an input too gets "_out", a count that of its tensor with "_count"."""
    own = [f"{name}_out" if name in taken else name for name in names]
    found = _names(
        [name if id(t) not in counted else None for t, name in zip(outputs, own)], "output", taken, "an output"
    )
    for index, tensor in enumerate(outputs):
        if id(tensor) in counted:
            base = found[next(i for i, other in enumerate(outputs) if other is counted[id(tensor)])]
            found[index] = f"{base}_count"
    return found


def _with_counts(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The outputs, each followed by its count if it has one."""
    found: list[Tensor] = []
    for tensor in outputs:
        for each in (tensor, tensor.count):
            if each is not None and each not in found:
                found.append(each)
    return found


def compile_program(
    program: Program, net_name: str, opt_level: int, dyn: bool, enable_profile: bool, outputs: Sequence[Tensor] | None
) -> Compilation:
    """See `compile`."""
    module = _checked_module(program, net_name, opt_level, program.leaves() if outputs is None else list(outputs))
    program.out_dir.mkdir(parents=True, exist_ok=True)
    path = program.out_dir / MODEL
    target = _target(program)
    result = compile_module(
        module,
        output=path,
        target=target.name,
        opt=as_level(opt_level),
        save_ir=program.out_dir / IR,
        pipeline=passes_of(module, target, opt_level),
    )
    if enable_profile:
        from bmcompiler.report import write_report

        write_report(result, program.out_dir / "profile.json")
    notes = [*result.notes, *_count_notes(program)]
    names = module.main.input_names, module.main.output_names
    return Compilation(path, module, result, list(names[0]), list(names[1]), notes)


def _checked_module(program: Program, name: str, level: int, outputs: list[Tensor]) -> Module:
    """The module to compile. Raises UsageError or UnsupportedError."""
    if not program.records:
        raise UsageError("nothing has been recorded in the mode COMPUTE_CPU", remedy="begin with COMPILE_TPU or BOTH")
    if level not in _LEVELS:
        raise UsageError(f"opt_level is 0, 1 or 2, got {level}")
    _target(program)
    if program.missing:
        raise UnsupportedError("; ".join(dict.fromkeys(program.missing)))
    if not program.inputs:
        raise UsageError("the program has no inputs: all that it computes is constant")
    if not outputs:
        raise UsageError("the program has no outputs: every tensor that an operator wrote is read by another one")
    module = recorded_module(program, name, _with_counts(outputs))
    ends = (*zip(module.main.input_names, module.main.arguments), *zip(module.main.output_names, module.main.returned))
    for end, value in ends:
        if not value.type.size:
            raise UsageError(f"'{end}' has shape {list(value.shape)}: a compiled program cannot take or give nothing")
    return module


def _target(program: Program) -> Target:
    """The compiler's target. Raises UnsupportedError where there is none."""
    if program.chip == "BM1682":
        raise UnsupportedError(
            "no instruction facts of the BM1682 are public, so nothing can be compiled for it",
            remedy="compute in the mode COMPUTE_CPU, or compile for the BM1684 or BM1684X",
        )
    return find_target(program.chip.lower())


def _count_notes(program: Program) -> list[str]:
    return [
        f"'{tensor.name or 'an output'}' has room for {value.shape[0]} entries; its count says how many there are"
        for tensor in program.leaves()
        if tensor.count is not None and (value := program.recorded(tensor)) is not None
    ]


# -- the check ---------------------------------------------------------------------------------------------------------
def compile_and_check(
    program: Program,
    net_name: str,
    inputs: Sequence[Tensor],
    refs: Sequence[Tensor],
    opt_level: int,
    dyn: bool,
    enable_profile: bool,
) -> Compilation:
    """See `compile_with_check`."""
    if program.mode != BmLangMode.BOTH:
        raise UsageError("compile_with_check compares with computed results", remedy="begin with the mode BOTH")
    if {id(tensor) for tensor in inputs} != {id(tensor) for tensor in program.inputs}:
        known = ", ".join(map(repr, program.inputs)) or "none"
        raise UsageError(f"the inputs must be those that operators have read: {known}")
    made = compile_program(program, net_name, opt_level, dyn, enable_profile, refs)
    given = {
        name: tensor.given if tensor.given is not None else need_data(tensor)
        for name, tensor in zip(made.inputs, program.inputs)
    }
    wanted = run_module(made.result.module, given, target=_target(program))
    session = lookup("bmcompiler.runtimes", "session", "runtime")(made.result.model)
    got = session.run({name: np.atleast_1d(array) for name, array in given.items()}, raw=True)  # as files have them
    _write(program.out_dir / INPUTS, [given[name] for name in made.inputs])
    _write(program.out_dir / OUTPUTS, [wanted[name] for name in made.outputs])
    for name in made.outputs:
        if got[name].dtype.kind == "u" and has_reals(wanted[name].dtype):  # bits of bf16
            got[name] = got[name].view(wanted[name].dtype)
        _need_bits(name, got[name].reshape(wanted[name].shape), wanted[name])
    tolerance = max(TOLERANCE.get(value.dtype, 0) for value in all_values(made.module))
    for name, tensor in zip(made.outputs, _with_counts(refs)):
        made.errors[name] = _need_close(name, got[name], need_data(tensor), tolerance)
    return made


def _write(path: Path, arrays: Sequence[Array]) -> None:
    path.write_bytes(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays))


def _need_bits(name: str, got: Array, wanted: Array) -> None:
    same = got.tobytes() == wanted.tobytes() or np.array_equal(got, wanted, equal_nan=has_reals(got.dtype))
    if not same:
        raise RuntimeUseError(f"output '{name}': the simulator differs from the IR in {(got != wanted).sum()} elements")


def _need_close(name: str, got: Array, wanted: Array, tolerance: float) -> float:
    """The error of an output against its reference, of which a counted result has the first rows only."""
    got = got[: len(wanted)] if got.ndim == wanted.ndim and wanted.ndim else got
    got = got.reshape(wanted.shape)
    if not has_reals(wanted.dtype):
        if not np.array_equal(got, wanted):
            halves = tolerance > TOLERANCE["f32"]
            raise RuntimeUseError(
                f"output '{name}' differs from its reference in {(got != wanted).sum()} elements",
                remedy="with arithmetic=Arithmetic.CHIP floats of 16 bits are rounded as on the chip"
                if halves
                else None,
            )
        return 0.0
    got, wanted = (array if array.dtype == np.float32 else array.astype(np.float64) for array in (got, wanted))
    finite = np.isfinite(wanted)
    if not np.array_equal(got[~finite], wanted[~finite], equal_nan=True):
        raise RuntimeUseError(f"output '{name}' differs from its reference where that is not finite")
    if not finite.any():
        return 0.0
    largest = max(float(np.abs(wanted[finite]).max()), float(np.finfo(np.float32).tiny))
    error = float(np.abs(got[finite].astype(np.float64) - wanted[finite]).max()) / largest
    if not error <= tolerance:
        raise RuntimeUseError(f"output '{name}' is {error:.3g} of its range away from its reference")
    return error


# -- the chip's arithmetic, operator by operator -----------------------------------------------------------------------
class _WithData(Trace):
    """Records, and knows the numbers of the inputs."""

    def __init__(self, label: str, builder: Builder) -> None:
        super().__init__(label, builder)
        self.arrays: dict[Value, Array] = {}

    def known(self, value: Value) -> Array | None:
        if value in self.arrays:
            return self.arrays[value]
        op = value.op
        if not isinstance(op, TensorOp) or op.opname == "weight":
            return super().known(value)
        arrays = [self.known(operand) for operand in op.operands]
        return evaluate_op(op, [array for array in arrays if array is not None])[value.index]


def chip_results(program: Program, function: Meaning, call: Call, label: str) -> list[tuple[Array, Array | None]]:
    """(result, count) of each output of an operator in the chip's arithmetic: what a program of it alone gives."""
    from bmcompiler.frontends.bmlang.operator import apply

    target = _target(program)
    builder = Builder.new("operator")
    emit = _WithData(label, builder)
    inputs: dict[str, Array] = {}
    values: dict[int, Value] = {}

    def value_of(tensor: Tensor) -> Value:
        if id(tensor) not in values:
            data = need_data(tensor)
            if tensor.constant:
                values[id(tensor)] = emit.const(data)
            else:
                name = f"input {len(inputs)}"
                assert tensor.dtype is not None, "a tensor with a value has a type"
                values[id(tensor)] = value = builder.input(name, TensorType(data.shape, tensor.dtype.ir))
                inputs[name] = emit.arrays[value] = data
        return values[id(tensor)]

    results = apply(emit, function, call, value_of)
    flat = [value for pair in results for value in pair if value is not None]
    module = builder.outputs(flat, [str(index) for index in range(len(flat))])
    passes = passes_of(module, target, 0) or target.pipeline(target.precisions[0], 0)
    run_pipeline(module, Pipeline.parse(passes), PassContext(target=target))
    arrays = iter(run_module(module, inputs, target=target).values())
    found: list[tuple[Any, Any]] = []
    for _, count in results:
        array = next(arrays)
        found.append((array, None if count is None else next(arrays)))
    return found
