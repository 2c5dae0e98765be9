"""Operators as Python functions: arguments, checks by the table, and what a call does in each mode."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np

from bmcompiler.errors import BMError, UsageError
from bmcompiler.frontends.bmlang import checks, fields, types
from bmcompiler.frontends.bmlang.emit import Eager, Emit, NotConstantError, Trace
from bmcompiler.frontends.bmlang.meanings.registry import Call, Counted, Meaning, Results, meanings
from bmcompiler.frontends.bmlang.program import Program, current, need_data
from bmcompiler.frontends.bmlang.rows import SIGNATURE_KINDS, WANTED, Parameter, Row
from bmcompiler.frontends.bmlang.table import CONVENIENCES, TABLE
from bmcompiler.frontends.bmlang.tensor import Scalar, Tensor
from bmcompiler.frontends.bmlang.types import Arithmetic, DataType
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array


class Operator:
    """One of the 108 operators, or of the conveniences beside them.

    Arguments come in the vendor's order, `add(a, b, out)` or `pool(x, out, param)`, or with the outputs last, `pool(x,
    param, out)`; by position or by the vendor's names. Outputs that are left out are made. Either way the outputs are
    returned: one Tensor, or a tuple. `dtype=` chooses the element type of what is made, `name=` names the first.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        self.__name__ = self.__qualname__ = row.name
        self.__module__ = "bmcompiler.bmlang"
        self.__doc__ = f"{row.text[0].upper()}{row.text[1:]}. See docs/bmlang_operators.md."
        self.__signature__ = _signature(row)

    def __repr__(self) -> str:
        return f"<BMLang operator {self.row.name}{self.__signature__}>"

    def __call__(self, *arguments: Any, dtype: Any = None, name: str | None = None, **named: Any) -> Any:
        program = current()
        row = self.row
        try:
            given = _bound(row, arguments, named)
            outs = _outputs(row, given, dtype, name)
            checks.need_chip(row, program.chip)
            checks.need_types(row, given)
            given = _scalars(row, given, program, outs)
            found = checks.checked(row, given, outs, program)
            written = [Tensor() if out is None else out for out in outs]
            _run(program, row, given, written, found)
        except MemoryError:
            raise UsageError(f"{row.name} on {program.chip}: its result does not fit this machine's memory") from None
        except BMError as error:
            error.layer = None
            if not error.reason.startswith(f"{row.name} "):
                error.reason = f"{row.name} on {program.chip}: {error.reason}"
            raise
        return written[0] if len(written) == 1 and row.outputs[0].kind == "O" else tuple(written)


def _signature(row: Row) -> inspect.Signature:
    made = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found, optional = [], False
    for parameter in row.last:
        optional = optional or not parameter.required or parameter.is_output
        default = inspect.Parameter.empty if not optional else parameter.default
        kind = SIGNATURE_KINDS.get(parameter.kind, parameter.kind)
        found.append(inspect.Parameter(parameter.name, made, default=default, annotation=kind.removesuffix(", out")))
    return inspect.Signature(found)


# -- arguments ---------------------------------------------------------------------------------------------------------
def _is_output(parameter: Parameter, value: Any) -> bool:
    if parameter.kind == "O":
        return isinstance(value, Tensor)
    return _is_tensors(value)


def _bound(row: Row, arguments: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name. Raises UsageError."""
    order = row.parameters
    vendors = all(
        _is_output(parameter, value)
        for index, (parameter, value) in enumerate(zip(order, arguments))
        if parameter.is_output and row.last[index] is not parameter
    )
    order = order if vendors else row.last
    if len(arguments) > len(order):
        raise UsageError(f"{row.name} takes {len(order)} arguments, got {len(arguments)}")
    given = {parameter.name: value for parameter, value in zip(order, arguments)}
    for key, value in named.items():
        if key not in {parameter.name for parameter in order}:
            raise UsageError(f"{row.name} has no parameter '{key}'; it has {', '.join(p.name for p in order)}")
        if key in given:
            raise UsageError(f"{row.name} got '{key}' twice")
        given[key] = value
    for parameter in order:
        if parameter.name not in given:
            if parameter.required and not parameter.is_output:
                raise UsageError(f"{row.name} needs '{parameter.name}', {_wanted(parameter)}")
            given[parameter.name] = parameter.default
        elif not parameter.is_output:
            given[parameter.name] = _normal(row, parameter, given[parameter.name])
    return given


def _wanted(parameter: Parameter) -> str:
    article = "an" if parameter.kind[0] in "AE" else "a"
    return WANTED.get(parameter.kind, f"{article} {parameter.kind}")


def _normal(row: Row, parameter: Parameter, value: Any) -> Any:
    """An argument in the form that its kind has. Raises UsageError."""
    take = _FORMS.get(parameter.kind)
    found = take(value) if take is not None else _struct(parameter.kind, value)
    if found is None:
        raise _unfit(row, parameter, value)
    return found


def _unfit(row: Row, parameter: Parameter, value: Any) -> UsageError:
    """The error for an argument that is nothing of its kind."""
    remedy = None
    if parameter.kind in ("T", "O", "S") and isinstance(value, np.ndarray):
        remedy = "make a tensor of the array: Tensor(data=array)"
    elif parameter.kind == "T" and fields.real(value) is not None and f"{row.name}s" in TABLE:
        remedy = f"{row.name}s takes a number"
    elif parameter.kind == "S" and isinstance(value, Tensor) and row.name.removesuffix("s") in TABLE:
        remedy = f"{row.name.removesuffix('s')} takes two tensors"
    elif parameter.kind in ("Ts", "Os") and isinstance(value, Tensor):
        remedy = "put the tensor in a list"
    reason = f"{row.name} needs {parameter.name} to be {_wanted(parameter)}, got {fields.shown(value)}"
    return UsageError(reason, remedy=remedy)


_FORMS: dict[str, Callable[[Any], Any]] = {
    "T": lambda value: value if isinstance(value, Tensor) else None,
    "Ts": lambda value: tuple(value) if _is_tensors(value) else None,
    "S": lambda value: value if isinstance(value, Scalar) or fields.real(value) is not None else None,
    "int": fields.whole,
    "uint": fields.count,
    "bool": fields.flag,
    "ints": fields.wholes,
}


def _is_tensors(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(each, Tensor) for each in value)


def _struct(kind: str, value: Any) -> Any:
    """A parameter struct or a member of an enumeration, which may be given by its number."""
    wanted = getattr(types, kind)
    if issubclass(wanted, IntEnum):
        return fields.member(wanted, value)
    return value if isinstance(value, wanted) else None


def _outputs(row: Row, given: dict[str, Any], dtype: Any, name: str | None) -> list[Tensor | None]:
    """The outputs as the caller gave them, None for those to be made. Raises UsageError."""
    outs: list[Tensor | None] = []
    for parameter in row.outputs:
        value = given.pop(parameter.name)
        if value is None:
            outs += [None] * (1 if parameter.kind == "O" else _count(row, given))
        elif not _is_output(parameter, value):
            raise _unfit(row, parameter, value)
        else:
            outs += [value] if parameter.kind == "O" else list(value)
    written = [out for out in outs if out is not None]
    if len(set(written)) < len(written):
        raise UsageError(f"{row.name} cannot write two results to one tensor")
    for out in written:
        if out.constant and row.name != "constdata":
            raise UsageError(f"{row.name} cannot write {out!r}: it is a constant")
    if dtype is not None or name is not None:
        typed = len(outs) if row.outputs[0].kind == "Os" else 1
        for index in range(typed):
            if outs[index] is None:
                outs[index] = Tensor(name=None if index else name, dtype=dtype)
    return outs


def _count(row: Row, given: dict[str, Any]) -> int:
    """How many outputs a list of them has."""
    return int(given["num"]) if row.name == "split" else len(given["param"].output_shapes)


def _scalars(row: Row, given: dict[str, Any], program: Program, outs: Sequence[Tensor | None]) -> dict[str, Any]:
    """Plain numbers as Scalars, in the type of the first tensor where that is allowed."""
    plain = [p.name for p in row.parameters if p.kind == "S" and not isinstance(given[p.name], Scalar)]
    if not plain:
        return given
    first = next((x.dtype for x in checks.tensors(row, given) if x.dtype is not None), DataType.FLOAT32)
    if row.name == "number_like" and outs[0] is not None and outs[0].dtype is not None:
        first = outs[0].dtype
    for dtype in dict.fromkeys((first, DataType.FLOAT32, DataType.INT8, *checks.EVERY)):
        trial = dict(given)
        try:
            trial.update((name, Scalar(given[name], dtype)) for name in plain)
        except UsageError:
            continue
        if checks.fits(row, trial, outs, program):
            return trial
    zeros = [{**given, **{name: Scalar(0, dtype) for name in plain}} for dtype in checks.EVERY]
    allowed = [each[plain[0]].dtype.name for each in zeros if checks.fits(row, each, outs, program)]
    if allowed:
        numbers = ", ".join(f"{name} {given[name]:g}" for name in plain)
        raise UsageError(f"{numbers} is no {'|'.join(allowed)} number, as it must be beside {first.name}")
    return {**given, **{name: Scalar(given[name]) for name in plain}}


# -- calls -------------------------------------------------------------------------------------------------------------
def _run(
    program: Program, row: Row, given: dict[str, Any], outs: Sequence[Tensor], dtypes: tuple[DataType, ...]
) -> None:
    """Compute and record, as the mode says; the outputs take the results."""
    program.calls += 1
    if row.name == "constdata":
        checks.make_constant(outs[0])
        return
    inputs = list(checks.tensors(row, given))
    declared = tuple(None if out.used else out.shape for out in outs)
    label = next((out.name for out in outs if out.name), None) or f"{row.name}_{program.calls}"
    function = meanings()[row.name]
    call = Call(row, given, dtypes, tuple(out.shape for out in outs))
    results = _recorded(program, function, call, label, inputs) if program.records else None
    arrays = _computed(program, function, call, label) if program.computes else None
    for tensor in (*inputs, *outs):
        tensor.used = True
    _written(program, outs, dtypes, declared, results, arrays)


def _computed(program: Program, function: Meaning, call: Call, label: str) -> list[tuple[Array, Array | None]]:
    """(result, count) of each output, evaluated at once."""
    if program.arithmetic == Arithmetic.CHIP:
        from bmcompiler.frontends.bmlang.compile import chip_results

        return chip_results(program, function, call, label)
    emit = Eager(label)
    results = apply(emit, function, call, lambda tensor: emit.const(need_data(tensor)))
    return [(emit.known(value), None if count is None else emit.known(count)) for value, count in results]


def _recorded(
    program: Program, function: Meaning, call: Call, label: str, inputs: Sequence[Tensor]
) -> list[tuple[Value, Value | None]] | str:
    """(value, count) of each output in the recorded function, or why there is none."""
    for tensor in inputs:
        if tensor.missing:
            return tensor.missing
    try:
        return apply(Trace(label, program.builder, program.single), function, call, program.value_of)
    except NotConstantError as error:
        program.missing.append(str(error))
        return str(error)


def apply(emit: Emit, function: Meaning, call: Call, value_of: Any) -> list[tuple[Value, Value | None]]:
    """(value, count) of each output of an operator, made by an `Emit`; count where the length depends on values."""
    arguments = {
        name: value_of(value)
        if isinstance(value, Tensor)
        else [value_of(each) for each in value]
        if isinstance(value, tuple) and value and isinstance(value[0], Tensor)
        else value
        for name, value in call.arguments.items()
    }
    inner = replace(call, arguments=arguments)
    checks.need_shapes(inner)
    found = list(_pairs(function(emit, inner)))
    for value, _ in found:
        fields.need_size(value.shape)
    return found


def _pairs(results: Results) -> Iterator[tuple[Value, Value | None]]:
    if isinstance(results, Counted):
        yield results.value, results.length
    elif isinstance(results, Value):
        yield results, None
    else:
        for value in results:
            yield value, None


def _written(
    program: Program,
    outs: Sequence[Tensor],
    dtypes: tuple[DataType, ...],
    declared: Sequence[tuple[int, ...] | None],
    results: list[tuple[Value, Value | None]] | str | None,
    arrays: list[tuple[Array, Array | None]] | None,
) -> None:
    """The outputs take the results. Raises UsageError where a shape that was `declared` is another one."""
    for index, (out, dtype) in enumerate(zip(outs, dtypes)):
        array = size = None
        missing = results if isinstance(results, str) else ""
        shape: tuple[int, ...] | None = None
        if isinstance(results, list):
            value, count = results[index]
            shape = value.shape
            _need_declared(out, declared[index], shape)
            program.write(out, value)
        if arrays is not None:
            array, size = arrays[index]
            _need_declared(out, declared[index], array.shape)
            array = array if size is None else array[: int(size.ravel()[0])]
            shape = array.shape
        out.become(dtype, shape, array, missing)
        if isinstance(results, list) and results[index][1] is not None:
            out.count = Tensor(f"{out.name}_count") if out.name else Tensor()
            out.count.become(DataType.INT32, (1,), None if size is None else size.reshape(1))
            count = results[index][1]
            assert count is not None, "the line above looked"
            program.write(out.count, count)
        elif size is not None:
            out.count = Tensor()
            out.count.become(DataType.INT32, (1,), size.reshape(1))


def _need_declared(out: Tensor, declared: tuple[int, ...] | None, shape: tuple[int, ...]) -> None:
    if declared is not None and declared != shape:
        raise UsageError(
            f"{out!r} was declared with shape {list(declared)}, the result has {list(shape)}",
            remedy="declare that one, or none: it follows from the inputs",
        )


OPERATORS: dict[str, Operator] = {name: Operator(row) for name, row in {**TABLE, **CONVENIENCES}.items()}
"""Operator name -> function."""
