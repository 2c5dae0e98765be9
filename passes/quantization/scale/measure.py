"""How far integers are from floats on samples: of one layer, and of the outputs of a net."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmcompiler.interpreter import run_function
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.numeric import quant_modes
from bmcompiler.numeric.blas import one_blas_thread
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.nn import Conv, Matmul
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.scale.formats import format_of

Inputs = Mapping[str, NDArray[Any]]
_CHANNELS = 16
"""Output channels of a layer that are compared: they speak for the others."""
_TINY = 1e-30


class Reference:
    """The float net on some steps of samples, and the errors of layers on what they read there."""

    def __init__(self, module: Module, function: Function, steps: list[Inputs]) -> None:
        self.module, self.function, self.steps = module, function, steps
        self.outputs: list[dict[str, NDArray[Any]]] = []

    def layer_errors(self, built: Mapping[Operation, Mapping[str, tuple[Building[Any], TensorOp]]]) -> Errors:
        """Squared relative error of a layer's result in each mode, its operand rounded to that mode's format.

        `built`: for layers of the function, by mode, the integer op and the net it is in. One run of the float net.
        """
        totals: dict[Operation, dict[str, Any]] = {op: {} for op in built}
        uses = Counter(op.operands[0] for op in built)
        for inputs in self.steps:
            kept: dict[Value, NDArray[Any]] = {}
            left = Counter(uses)

            def observe(value: Value, array: NDArray[Any], kept: Any = kept, left: Any = left) -> None:
                if value in uses:
                    kept[value] = array
                op = value.op
                if op is not None and op in built:
                    source = op.operands[0]
                    compared = _compare(op, built[op], kept[source], array)
                    for mode, sums in compared.items():
                        totals[op][mode] = totals[op].get(mode, 0.0) + np.array(sums)
                    left[source] -= 1
                    if not left[source]:
                        del kept[source]

            self.outputs.append(run_function(self.module, self.function, inputs, observe))
        return {
            op: {mode: float(noise / max(signal, _TINY)) for mode, (noise, signal) in by_mode.items()}
            for op, by_mode in totals.items()
        }

    def output_error(self, low: Building[Any]) -> float:
        """The largest relative error (Euclidean) among the float outputs of an integer net with float inputs."""
        noise: dict[str, float] = {}
        signal: dict[str, float] = {}
        for inputs, wanted in zip(self.steps, self.outputs):
            for name, array in run_function(low.module, low.new, inputs).items():
                if array.dtype.kind == "f":
                    error = np.square(array - wanted[name], dtype=np.float64).sum()
                    noise[name] = noise.get(name, 0.0) + float(error)
                    signal[name] = signal.get(name, 0.0) + float(np.square(wanted[name], dtype=np.float64).sum())
        return max((float(np.sqrt(noise[name] / max(signal[name], _TINY))) for name in noise), default=0.0)


Errors = dict[Operation, dict[str, float]]


def _compare(
    op: Operation, built: Mapping[str, tuple[Building[Any], TensorOp]], x: NDArray[Any], exact: NDArray[Any]
) -> dict[str, tuple[float, float]]:
    """(energy of the difference, energy of the result) of some channels, by mode.

    x, exact: operand and result of `op` in float.
    """
    found: dict[str, tuple[float, float]] = {}
    for mode, (low, new) in built.items():
        source, result = format_of(new.operands[0]), format_of(new.result)
        codes = quant_modes.quantize_away(x, source.scale, source.dtype, source.zero_point)
        weight, *bias = (low.module.weights[cast(Weight, v.op).key] for v in new.operands[1:])
        wanted = np.maximum(exact, 0) if result.unsigned else exact  # a relu that follows may have moved into it
        axis = _channel_axis(new)
        if axis is not None:
            some = np.unique(np.linspace(0, weight.shape[axis] - 1, _CHANNELS).astype(int))
            weight, bias = np.take(weight, some, axis), [each[some] for each in bias]
            wanted = wanted[:, some] if op.short_name == "conv" else wanted[..., some]
        with one_blas_thread:
            got = quant_modes.dequantize(new.evaluate(codes, weight, *bias), result.scale, result.zero_point)
        found[mode] = float(np.square(got - wanted).sum()), float(np.square(wanted).sum())
    return found


def _channel_axis(op: TensorOp) -> int | None:
    """The axis of output channels in the weight, where a few of them can be computed alone."""
    if isinstance(op, Conv):
        return 0 if op.group == 1 else None
    if isinstance(op, Matmul) and op.right.type.rank == 2:
        return 0 if op.transpose_right else 1
    return None
