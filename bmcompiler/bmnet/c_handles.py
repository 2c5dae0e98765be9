"""What the handles of BMNet for C stand for, and how Python calls the functions of a program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

import numpy as np

from bmcompiler.bmnet.builder import CaffeBuilder
from bmcompiler.bmnet.layer import CaffeLayer
from bmcompiler.bmnet.tensor_op import TensorOp, TGCustomizedParameter
from bmcompiler.capi.api import Api, Prototype, declared
from bmcompiler.capi.kinds import NULL, Fault, Kind, anything, integer, name, path, real, signed, text
from bmcompiler.capi.library import HANDLES
from bmcompiler.capi.said import refusals
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.numeric.arrays import Array, Floats


def _refuse(prototype: Prototype, parameter: str, fault: Fault) -> NoReturn:
    raise UsageError(f"{prototype.name}: {fault.of(parameter)}")


def _callback(c_type: str) -> Kind:
    return Kind(c_type, lambda value: NULL if value is None else None)


CALLBACKS = "layer_callback_t", "inst_callback_t", "cpu_callback_t"
BMNET_C = Api(
    declared(__file__, "c_functions.h"),
    {
        "int": signed("int", 32),
        "dim_t": integer("dim_t", 1, (1 << 31) - 1),
        "float": real(),
        "const char *": text(),
        "name_t": name("name_t"),
        "path_t": path(),
        "user_t": anything("user_t"),
        **{one: _callback(one) for one in CALLBACKS},
    },
    _refuse,
)


@BMNET_C.handle("builder_t")
@dataclass(eq=False)
class BuilderHandle:
    """A builder until it is destroyed. building: a call builds, whose callbacks may call, as may other threads."""

    builder: CaffeBuilder
    destroyed: bool = False
    building: bool = False

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "was destroyed" if self.destroyed else ""


class _WhileCalled:
    """A handle that is good while the program's function runs."""

    over = False

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "is of a call that is over" if self.over else ""


@BMNET_C.handle("op_t")
@dataclass(eq=False)
class OpHandle(_WhileCalled):
    """An op for the program.

    inputs, outputs: real values, for functions of the CPU. thresholds: of inputs and of outputs, for instructions.
    reason: why the callback fails, by the program. kept: texts that the program has addresses of.
    """

    op: TensorOp
    inputs: Sequence[Floats] = ()
    outputs: Sequence[Floats] = ()
    thresholds: tuple[Sequence[float], Sequence[float]] = ((), ())
    reason: str = ""
    kept: list[Any] = field(default_factory=list)


@BMNET_C.handle("layer_t")
@dataclass(eq=False)
class LayerHandle(_WhileCalled):
    """A layer of a Caffe net for the program."""

    layer: CaffeLayer
    kept: list[Any] = field(default_factory=list)


def call_program(function: int, what: str, user: int | None, op: OpHandle, *others: Any) -> None:
    """Call a function of the program with handles, which end with the call.

    Raises UnsupportedError when it says that it failed, or one of its calls was refused.
    """
    kinds = [ctypes.c_uint64] * (1 + len(others))
    address = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *kinds)(function)
    try:
        with refusals() as refused:
            code = address(user, *map(HANDLES.number, (op, *others)))
    finally:
        for one in (op, *others):
            if isinstance(one, _WhileCalled):
                one.over = True
    reason = next(iter(refused), op.reason)
    if code or reason:
        raise UnsupportedError(f"{what} of the program failed: {reason or f'returned {code}'}")


@dataclass(frozen=True)
class CpuLayer:
    """A function of the program as the CPU function of a custom layer: `int function(void *user, bmnet_op_t op)`."""

    sub_type: str
    address: int
    user: int | None

    def shaped(self, shapes: Sequence[Sequence[int]]) -> Callable[..., tuple[Array, ...]]:
        """The CPU function for results of these shapes."""
        return partial(self._run, shapes)

    def __call__(self, inputs: Sequence[Array], i32: Sequence[int], f32: Sequence[float]) -> tuple[Array, ...]:
        return self._run([np.shape(inputs[0])], inputs, i32, f32)

    def _run(
        self, shapes: Sequence[Sequence[int]], inputs: Sequence[Array], i32: Sequence[int], f32: Sequence[float]
    ) -> tuple[Array, ...]:
        given = [np.ascontiguousarray(one, np.float32) for one in inputs]
        made = [np.zeros(tuple(shape), np.float32) for shape in shapes]
        op = TensorOp([one.shape for one in given], shapes, TGCustomizedParameter(self.sub_type, i32, f32))
        call_program(self.address, f"the CPU function of layer '{self.sub_type}'", self.user, OpHandle(op, given, made))
        return tuple(made)
