"""A function that is one command: its row says what each field is made of, and where its tensors lie.

`form` makes the prototype out of the names of the parameters, since the library's names say their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple

from bmcompiler.backends.bm1684x.codes import Task
from bmcompiler.backends.bm1684x.instructions.operands import Command
from bmcompiler.backends.bm1684x.tpukernel.local import Layout, aligned, place
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Function, Rule
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4
from bmcompiler.instructions.isa import Format
from bmcompiler.instructions.order import Engine

Value = int | str | Callable[[Arguments], int]
"""A number, an argument ("left_rows", "output_dtype.precision"), or what is computed from several."""
Values = Mapping[str, Value]

_TYPES = {
    **dict.fromkeys(("kernel", "padding2", "stride", "dilation", "insert", "ins"), "const dim2 *"),
    **dict.fromkeys(
        ("has_bias", "result_add", "result_relu", "is_param_repeated", "fill_const", "saturation"), "bool "
    ),
    **dict.fromkeys(("rounding_mode", "dst_rounding_mode", "src_rounding_mode"), "rounding_mode_t "),
    **dict.fromkeys(("lshift", "rshift"), "unsigned char "),
    "padding": "const padding_t *",
    "shift": "char ",
    "C": "scalar_t ",
}
_ENDS = {
    "_addr": "local_addr_t ",
    "dtype": "data_type_t ",
    "shape": "const dim4 *",
    "_stride": "const dim4 *",
    "_val": "scalar_t ",
}


class Tensor(NamedTuple):
    """A tensor of a function, at `NAME_addr`.

    Attributes:
        shape: sizes n, c, h, w. dtype: the name of its type's parameter, or a type. layout: where no strides are given.
        when: the name of an argument without which the tensor is not there.
    """

    name: str
    shape: tuple[Value, Value, Value, Value]
    dtype: str | data_type_t
    layout: Layout = aligned
    when: str = ""

    def placed(self, a: Arguments) -> tuple[int, dim4, data_type_t]:
        """Its address, shape and type."""
        shape = dim4(*(resolved(a, size) for size in self.shape))
        dtype: data_type_t = getattr(a, self.dtype) if isinstance(self.dtype, str) else self.dtype
        return getattr(a, f"{self.name}_addr"), shape, dtype

    def check(self, a: Arguments) -> None:
        """Raises UsageError when it is not aligned, or does not fit into its lane."""
        if not self.when or getattr(a, self.when):
            place(self.name, *self.placed(a), a.get(f"{self.name}_stride"), layout=self.layout)


class Form(NamedTuple):
    """A command: its format, class, operation (`Value`) and fields, and the tensors that it reads and writes."""

    layout: Format
    task: Task
    unit: IntEnum | Callable[[Arguments], int]
    fields: Values
    tensors: tuple[Tensor, ...]

    def emit(self, k: Recorder, a: Arguments) -> None:
        """Add the command. Raises UsageError for a tensor that does not lie where it may."""
        for one in self.tensors:
            one.check(a)
        fields = {name: resolved(a, value) for name, value in self.fields.items()}
        fields |= {"tsk_typ": self.task, "tsk_eu_typ": resolved(a, self.unit)}
        k.add(Command(Engine.TIU, self.layout, fields))


def resolved(a: Arguments, value: Value) -> int:
    """The value for these arguments."""
    if isinstance(value, str):
        return int(attrgetter(value)(a))
    return int(value(a)) if callable(value) else int(value)


def form(name: str, parameters: str, formula: str, command: Form, *rules: Rule) -> Function:
    """The function `tpu_bdc_NAME` that is one command; its parameters by their names, or as in C where they are odd.

    `&x` stands for `x_addr`.
    """
    return Function(prototype(name, parameters), formula, command.emit, rules)


def prototype(name: str, parameters: str) -> str:
    """In C, of parameters whose names say their types, separated by spaces; `float:x` says the type of x."""
    return f"void tpu_bdc_{name}({', '.join(map(_parameter, parameters.split()))})"


def _parameter(word: str) -> str:
    c_type, _, name = word.rpartition(":")
    if c_type:
        return f"{c_type.replace('_', ' ') if c_type.startswith('unsigned') else c_type} {name}"
    name = f"{word[1:]}_addr" if word.startswith("&") else word
    if name in _TYPES:
        return _TYPES[name] + name
    return next((kind for end, kind in _ENDS.items() if name.endswith(end)), "int ") + name


def precisions(**names: str) -> Values:
    """`res0="output_dtype"`: the precision of the operand is that of the type."""
    return {f"{operand}_prec": f"{name}.precision" for operand, name in names.items()}


def signs(**names: str) -> Values:
    """`opd0="left_dtype"`: the sign bit of the operand is that of the type."""
    return {f"{operand}_sign": f"{name}.signed" for operand, name in names.items()}


def addresses(**names: str) -> Values:
    """`opd0="left"`: the operand lies at `left_addr`."""
    return {f"{operand}_addr": f"{name}_addr" for operand, name in names.items()}


def sizes(name: str, of: str = "shape", axes: str = "nchw") -> Values:
    """Sizes of an operand."""
    return {f"{name}_{axis}": f"{of}.{axis}" for axis in axes}


def constants(**names: Value) -> Values:
    """`opd0="C"`: the operand is a constant."""
    found: dict[str, Value] = {f"{operand}_addr": value for operand, value in names.items()}
    return found | {f"{operand}_const": 1 for operand in names}


def optional(operand: str, name: str, when: str) -> Values:
    """The operand lies at `NAME_addr` where the argument `when` is true, and is the constant 0 elsewhere."""
    address = f"{name}_addr"
    return {
        f"{operand}_const": lambda a: not getattr(a, when),
        f"{operand}_addr": lambda a: getattr(a, address) if getattr(a, when) else 0,
    }


def sign_of_sums(of: Callable[[Arguments], tuple[data_type_t, ...]]) -> Rule:
    """The sign of requantized sums: none behind a relu, else one if an operand, or the bias there is, has one."""

    def holds(a: Arguments) -> bool:
        types = (*of(a), *((a.bias_dtype,) if a.has_bias else ()))
        return bool(a.output_dtype.signed == (not a.result_relu and any(one.signed for one in types)))

    text = "output_dtype must be unsigned with result_relu; else signed if an operand is, and unsigned if none is"
    return Rule(text, holds)
