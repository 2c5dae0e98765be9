"""The op behind custom layers: a name, numbers and shapes; its meaning comes from a plugin."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import TensorType
from bmcompiler.ops.base import Floats, Ints, Kind, TensorOp, attr, operand, tensorop
from bmcompiler.registry import entry_points

CpuFunction = Callable[..., Any]
"""function(inputs: list of arrays, i32_params: tuple of int, f32_params: tuple of float) -> array or tuple of them."""

_functions: dict[str, CpuFunction] = {}
_GROUP = "bmcompiler.tensor_insts"
_state = {"loaded": False}


def _shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(value, (str, bytes)):
        raise TypeError
    return tuple(Ints.normalize(shape) for shape in value)


Shapes = Kind("list of shapes", _shapes)


def register_cpu_function(sub_type: str, function: CpuFunction) -> None:
    """Say what `customized` ops of this sub type compute on the host.

    The function gets (inputs, i32_params, f32_params) and returns one array per output, in the declared shapes. Called
    by a plugin's module, which the entry point group `bmcompiler.tensor_insts` names. Raises UnsupportedError when the
    sub type has another function already.
    """
    if _functions.setdefault(sub_type, function) is not function:
        raise UnsupportedError(f"custom layer '{sub_type}' has two CPU functions")


def cpu_function(sub_type: str) -> CpuFunction | None:
    """The registered function; plugins are loaded when none is known yet."""
    if sub_type not in _functions and not _state["loaded"]:
        _state["loaded"] = True
        for load in entry_points(_GROUP).values():
            load()
    return _functions.get(sub_type)


@tensorop("customized")
class Customized(TensorOp):
    """A layer that only a plugin understands (seed 000, BMNet Library).

    %y = "tensorop.customized"(%x) {f32_params = [0.1], output_shapes = [[1, 8]], sub_type = "my_relu"} : (...) -> ...

    One result per entry of output_shapes, of the first operand's element type unless stated. `evaluate` calls the CPU
    function registered for `sub_type` (see `register_cpu_function`).
    """

    ins = (operand("inputs", variadic=True),)
    attrs = (
        attr("sub_type", str),
        attr("output_shapes", Shapes),
        attr("i32_params", Ints, ()),
        attr("f32_params", Floats, ()),
    )
    free_dtype = True

    def infer(self) -> list[TensorType]:
        if not self.output_shapes or any(d < 1 for shape in self.output_shapes for d in shape):
            raise self.shape_error(f"needs output shapes with positive dimensions, got {list(self.output_shapes)}")
        dtype = self.operands[0].dtype if self.operands else "f32"
        return [TensorType(shape, dtype) for shape in self.output_shapes]

    def evaluate(self, *arrays: Any) -> Any:
        function = cpu_function(self.sub_type)
        if function is None:
            raise UnsupportedError(
                f"custom layer '{self.sub_type}' has no CPU function",
                layer=self.label,
                remedy=f"install the plugin that registers one (entry point group '{_GROUP}')",
            )
        out = function(list(arrays), self.i32_params, self.f32_params)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        if len(outs) != len(self.results):
            raise self.shape_error(f"its CPU function gave {len(outs)} outputs, declared {len(self.results)}")
        return tuple(self._result(np.asarray(array), index) for index, array in enumerate(outs))

    def _result(self, array: Any, index: int) -> Any:
        type = self.results[index].type
        if array.size != prod(type.shape):
            raise self.shape_error(f"its CPU function gave {list(array.shape)} for output {index}, declared {type}")
        return array.reshape(type.shape).astype(type.numpy, copy=False)
