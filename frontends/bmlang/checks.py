"""What a call must be like, by the table: chip, element types, constants, ranks and shapes. Messages come from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bmcompiler.errors import UsageError
from bmcompiler.frontends.bmlang.meanings.registry import Call
from bmcompiler.frontends.bmlang.rows import Row
from bmcompiler.frontends.bmlang.tensor import Scalar, Tensor
from bmcompiler.frontends.bmlang.types import ActiveType, DataType, MatrixMulParam, QCalMode
from bmcompiler.frontends.bmlang.typings import CONDITIONS, EVERY, HALVES, Form, accepted, of_variant, results
from bmcompiler.ir import Value

if TYPE_CHECKING:
    from bmcompiler.frontends.bmlang.program import Program

__all__ = [
    "EVERY", "PRODUCTS", "checked", "fits", "make_constant", "need_chip", "need_shapes", "need_types", "tensors",
    "variant",
]  # fmt: skip

PRODUCTS = ("matrix_mul", "batch_matmul")
_MODES = {
    QCalMode.LowPrecisionSymmetric: "low",
    QCalMode.HighPrecisionSymmetric: "high",
    QCalMode.HighPrecisionAsymmetric: "asymmetric",
}


def tensors(row: Row, given: Mapping[str, Any]) -> Iterator[Tensor]:
    """The tensors that a call reads."""
    for parameter in row.parameters:
        if parameter.kind == "T":
            yield given[parameter.name]
        elif parameter.kind == "Ts":
            yield from given[parameter.name]


def variant(row: Row, given: Mapping[str, Any], outs: Sequence[Tensor | None] = ()) -> str:
    """Which variant of an operator a call is: the mode of a product, the function of `active`."""
    if row.name == "active":
        return ActiveType(given["active_type"]).name
    if row.name in ("conv", "deconv", *PRODUCTS):
        return mode_of(row, given["param"], outs)
    return ""


def mode_of(row: Row, param: Any, outs: Sequence[Tensor | None] = ()) -> str:
    """The mode of an integer product; a matrix product without parameters keeps 16 bits if it shall (bmlang.md 4.1)."""
    wide = bool(outs) and outs[0] is not None and outs[0].dtype is not None and outs[0].dtype.bits == 16
    if row.name in PRODUCTS and param == MatrixMulParam() and wide:
        return "high"
    return _MODES[param.mode]


def need_chip(row: Row, chip: str) -> None:
    """Raise UsageError where a chip does not have the operator."""
    if not row.typing(chip):
        raise UsageError(f"{row.name} does not exist on {chip}")


def need_types(row: Row, given: Mapping[str, Any]) -> None:
    """Raise UsageError where a tensor that is read has no element type."""
    for name, tensor in _named(row, given, scalars=False):
        if tensor.dtype is None:
            raise UsageError(
                f"{name} has no element type yet", remedy="give it one, or let an operator write it before it is read"
            )


def fits(row: Row, given: Mapping[str, Any], outs: Sequence[Tensor | None], program: Program) -> bool:
    """Whether the element types are allowed."""
    return _results(row, given, outs, program) is not None


def checked(
    row: Row, given: Mapping[str, Any], outs: Sequence[Tensor | None], program: Program
) -> tuple[DataType, ...]:
    """The element types of the outputs. Raises UsageError for what the table does not allow."""
    if row.name == "constdata":
        return _constant_type(row, outs[0], program.chip)
    _need_constants(row, given)
    if row.name == "cast" and (outs[0] is None or outs[0].dtype is None):
        raise UsageError("tensor_o needs an element type", remedy="give an output with a type, or dtype=")
    found = _results(row, given, outs, program)
    if found is None:
        raise UsageError(_refusal(row, given, outs, program), remedy=_remedy(row, given, outs, program.chip))
    return found


def _types(row: Row, given: Mapping[str, Any]) -> tuple[DataType, ...]:
    """Element types of tensors and scalars in the order of the table."""
    found: list[Any] = []
    for parameter in row.typed:
        value = given[parameter.name]
        found += [each.dtype for each in value] if parameter.kind == "Ts" else [value.dtype]
    return tuple(found)


def _results(
    row: Row, given: Mapping[str, Any], outs: Sequence[Tensor | None], program: Program
) -> tuple[DataType, ...] | None:
    chosen = tuple(None if out is None else out.dtype for out in outs)
    return results(row.typing(program.chip), variant(row, given, outs), _types(row, given), chosen, program.relaxed)


def _named(row: Row, given: Mapping[str, Any], scalars: bool = True) -> Iterator[tuple[str, Tensor | Scalar]]:
    """Inputs with element types, as messages call them."""
    for parameter in row.typed:
        value = given[parameter.name]
        if parameter.kind == "S" and not scalars:
            continue
        if parameter.kind == "Ts":
            yield from ((f"{parameter.name}[{index}]", each) for index, each in enumerate(value))
        else:
            yield parameter.name, value


def _constant_type(row: Row, tensor: Tensor | None, chip: str) -> tuple[DataType, ...]:
    if tensor is None or tensor.dtype is None:
        raise UsageError("tensor needs an element type and data")
    if not accepted(row.typing(chip), "", (), (tensor.dtype,), False):
        raise UsageError(f"tensor is {tensor.dtype.name}; allowed: {_alternatives(row, chip, '')}")
    return (tensor.dtype,)


def make_constant(tensor: Tensor) -> None:
    """What `constdata` does. Raises UsageError for a tensor that an operator has read or written, or without data."""
    if tensor.given is None or tensor.used:
        raise UsageError("tensor needs data of set_data, and no operator may have read or written it")
    tensor.constant = True


# -- element types -----------------------------------------------------------------------------------------------------
def _alternatives(row: Row, chip: str, of: str) -> str:
    return "; ".join(map(str, of_variant(row.typing(chip), of)))


def _refusal(row: Row, given: Mapping[str, Any], outs: Sequence[Tensor | None], program: Program) -> str:
    """Which argument is wrong, and what is allowed."""
    named = [(name, each.dtype) for name, each in _named(row, given)]
    named += [(p.name, None if out is None else out.dtype) for p, out in zip(_repeated(row, outs), outs)]
    of = variant(row, given, outs)
    forms = of_variant(row.typing(program.chip), of)
    numbers = sorted({count for form in forms for count in range(1, 9) if form.places(count, len(outs))[0]})
    given_count = len(named) - len(outs)
    if given_count not in numbers and numbers and numbers[-1] < 8:
        return f"takes {' or '.join(map(str, numbers))} tensors, got {given_count}"
    at = max((_first_wrong(form, [dtype for _, dtype in named], len(outs)) for form in forms), default=0)
    allowed = _alternatives(row, program.chip, of)
    kind = f" ({of})" if of else ""
    if at < len(named):
        name, dtype = named[at]
        assert dtype is not None, "only types that somebody chose can be wrong"
        return f"{name} must not be {dtype.name}{kind}; allowed: {allowed}"
    broken = [CONDITIONS[form.condition].text for form in forms if form.condition]
    shown = ", ".join(f"{name} {dtype.name}" for name, dtype in named if dtype is not None)
    return f"{'; '.join(dict.fromkeys(broken)) or 'the number of tensors is wrong'}: got {shown}{kind}"


def _remedy(row: Row, given: Mapping[str, Any], outs: Sequence[Tensor | None], chip: str) -> str | None:
    """What to do about floats of a type that the chip, or the call, does not have."""
    inputs = {each.dtype for _, each in _named(row, given)}
    found = inputs | {out.dtype for out in outs if out is not None}
    if found.isdisjoint(HALVES):
        return "convert the data, array.astype(np.float32)" if DataType.DOUBLE in found else None
    if chip != "BM1684X":
        return "the BM1684X has FLOAT16 and BFLOAT16; for another chip convert the data, array.astype(np.float32)"
    floats = [dtype for dtype in found if dtype is not None and not dtype.is_integer]
    if len(floats) < 2:
        return None
    alone = {tensor.dtype for tensor in tensors(row, given) if tensor.dtype in floats}
    scalars = any(parameter.kind == "S" for parameter in row.parameters)
    return "a plain number has the type of the tensor" if scalars and len(alone) == 1 else "cast makes one type of them"


def _repeated(row: Row, outs: Sequence[Tensor | None]) -> list[Any]:
    """The output parameter of each output."""
    if row.outputs[0].kind == "Os":
        return [row.outputs[0]] * len(outs)
    return list(row.outputs)


def _first_wrong(form: Form, dtypes: Sequence[DataType | None], outputs: int) -> int:
    """Index of the first type that does not fit the places of a form; their number where all do."""
    taken, given = form.places(len(dtypes) - outputs, outputs)
    labels: dict[str, DataType] = {}
    for index, dtype in enumerate(dtypes):
        place = (*taken, *given)[index] if index < len(taken) + len(given) else None
        if dtype is None:
            continue
        if (
            place is None
            or dtype not in place.dtypes
            or (place.label and labels.setdefault(place.label, dtype) != dtype)
        ):
            return index
    return len(dtypes)


# -- constants and shapes ----------------------------------------------------------------------------------------------
def _need_constants(row: Row, given: Mapping[str, Any]) -> None:
    """Rules of the vendor about COEFF_TENSOR. Raises UsageError."""
    if row.name == "condition_select" and given["tensor_cond"].constant:
        raise UsageError("tensor_cond must not be a constant")
    if row.name == "select" and given["tensor_a"].constant and given["tensor_b"].constant:
        raise UsageError("only one of tensor_a and tensor_b may be a constant")
    for name in {"condition_select": ("tensor_sel0", "tensor_sel1"), "select": ("tensor_c", "tensor_d")}.get(
        row.name, ()
    ):
        tensor = given[name]
        if tensor.constant and tensor.shape is not None and _size(tensor.shape) != 1:
            raise UsageError(f"{name} is a constant and must have one element, got {list(tensor.shape)}")
    if row.name in PRODUCTS:
        param, inputs = given["param"], given["matrix_input"]
        integer = inputs[0].dtype is not None and inputs[0].dtype.is_integer
        if param.mode == QCalMode.HighPrecisionAsymmetric and integer and not inputs[1].constant:
            raise UsageError("matrix_input[1] must be a constant in HighPrecisionAsymmetric")


def _size(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def need_shapes(call: Call) -> None:
    """Equal ranks, and shapes that are equal or broadcast as the row allows. Raises ShapeError."""
    row = call.row
    if row.broadcast == "any":
        return
    names = [p.name for p in row.parameters if p.kind == "T"]
    shapes = [call[name].shape for name in names if isinstance(call[name], Value)]
    if len(shapes) < 2:
        return
    first, second = shapes[:2]
    shown = f"{names[0]} {list(first)} and {names[1]} {list(second)}"
    if len(first) != len(second):
        raise call.wrong(f"{shown} must have the same number of axes")
    if row.broadcast == "both":
        good = all(a == b or 1 in (a, b) for a, b in zip(first, second))
    elif row.broadcast == "second":
        good = all(b in (a, 1) for a, b in zip(first, second))
    elif row.broadcast == "leading":
        ones = next((axis for axis, size in enumerate(second) if size != 1), len(second))
        good = first[ones:] == second[ones:]
    else:
        good = first == second
    if not good:
        how = {"both": "be equal or 1", "second": "be equal, or 1 in the second", "leading": "be equal after leading 1"}
        raise call.wrong(f"the sizes of {shown} must {how.get(row.broadcast, 'be equal')} along every axis")
