"""What the vector commands read and write: immediates as single elements, results computed from readers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

import numpy as np

from bmcompiler.backends.bm1684x.codes import Layout
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, Reader
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.memory import Shape
from bmcompiler.runtime.simulator.plan import Step

Code = TypeVar("Code", bound=IntEnum)


def code(codes: type[Code], ops: Operands, field: str, what: str) -> Code:
    """A field as a member of `codes`. Raises SimulatorError for others."""
    value = ops.fields[field]
    if value not in list(codes):
        raise SimulatorError(f"{what} {value} does not exist")
    return codes(value)


def kind_of(ops: Operands, name: str) -> Kind:
    """Precision and sign of an operand."""
    return Kind(ops.precision(name), ops.signed(name))


def element(ops: Operands, name: str, dtype: np.dtype[Any]) -> Array:
    """The low bits of an immediate, as an array of shape (1, 1, 1, 1)."""
    return ops.constant(name, dtype).reshape(1, 1, 1, 1)


def reader(
    ops: Operands, name: str, shape: Shape, dtype: np.dtype[Any], layout: int | Shape = Layout.ALIGNED
) -> Reader:
    """What reads an operand: a tensor of `shape`, or an immediate as (1, 1, 1, 1)."""
    if ops.is_constant(name):
        value = element(ops, name, dtype)
        return lambda: value
    return ops.reader(name, shape, dtype, layout)


def writer(
    ops: Operands,
    name: str,
    shape: Shape,
    dtype: np.dtype[Any],
    compute: Reader,
    layout: int | Shape = Layout.ALIGNED,
) -> Step:
    """A step that stores what `compute` gives, which may be smaller and is then repeated.

    All of it is read before anything is written, where `compute` gives a view of memory, too.
    """
    result = ops.result(name, shape, dtype, layout)
    in_pieces = result.tensor.view is None

    def run() -> None:
        values = compute()
        if in_pieces and values.base is not None:
            values = values.copy()
        result.write(values if values.shape == shape else np.broadcast_to(values, shape))

    return run
