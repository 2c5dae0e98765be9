"""FC commands, by the FC block or by CONV where there is none, and MAXIMIZER commands (dv.md 1.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.dv.arithmetic.accumulate import Accumulator, inner_product
from bmcompiler.backends.dv.arithmetic.stages import activate, to_half
from bmcompiler.backends.dv.driver.commands import Buf, FcCommand
from bmcompiler.backends.dv.driver.structs import MAXIMIZER_V0, Activation, FcActivation
from bmcompiler.backends.dv.formats.layout import from_whc8
from bmcompiler.backends.dv.formats.packing import unpack_fc
from bmcompiler.backends.dv.formats.packing_sizes import fc_size
from bmcompiler.errors import UnsupportedError
from bmcompiler.runtime.simulator.dv.conv import Memory, view

_ACTIVATIONS = {
    FcActivation.NONE: Activation.NONE,
    FcActivation.RELU: Activation.LEAKY_RELU,
    FcActivation.TANH: Activation.TANH,
    FcActivation.LEAKY_RELU: Activation.LEAKY_RELU,
    FcActivation.SIGMOID: Activation.SIGMOID,
}


class FcPlan:
    """An FC command; `by_conv` = the driver turns it into a 1x1 convolution and copies the weights at commit.

    As a convolution, ReLU takes over `actfunc_param` as its slope; the FC block has a ReLU without one.
    """

    def __init__(
        self, command: FcCommand, memory: Memory, accumulator: Accumulator = Accumulator.EXACT, by_conv: bool = True
    ) -> None:
        if command.actfunc not in _ACTIVATIONS or command.weight_fmt not in (0, 1):
            raise UnsupportedError(
                f"FC commands with actfunc {command.actfunc} and weight_fmt {command.weight_fmt} cannot be run: "
                "PReLU slopes have no place in packed FC weights"
            )
        self._command, self._accumulator = command, accumulator
        self._activation = _ACTIVATIONS[FcActivation(command.actfunc)]
        self._param = command.actfunc_param if by_conv or command.actfunc != FcActivation.RELU else 0
        size = fc_size(command.input_size, command.output_size, command.is_quantized)
        weights = view(memory, "weight_buf", command.weight_buf, size)
        self._weights = weights.copy() if by_conv else weights
        self._input = view(memory, "input_buf", command.input_buf, command.input_size, np.float16)
        self._output = view(memory, "output_buf", command.output_buf, command.output_size, np.float16)

    def run(self) -> None:
        """Execute the command once, on what is in memory now."""
        command = self._command
        found = unpack_fc(self._weights, command.input_size, command.output_size, command.is_quantized)
        weights, bias = found.weights.view(np.float16), found.bias.view(np.float16)
        values = inner_product(self._input.copy(), weights, bias, self._accumulator)
        self._output[:] = to_half(activate(values, self._activation, self._param))


class MaximizerPlan:
    """Index of the largest of the classes of every pixel; the lowest of equals."""

    def __init__(self, data: bytes, memory: Memory) -> None:
        command: Any = np.frombuffer(data, MAXIMIZER_V0)[0]
        self._w, self._h, self._classes = (int(command[name]) for name in ("width", "height", "nclass"))
        pixels = self._w * self._h
        source, target = (Buf(*command[name].tolist()) for name in ("input_buf", "output_buf"))
        self._input = view(memory, "input_buf", source, pixels * self._classes, np.float16)
        self._output = view(memory, "output_buf", target, pixels)

    def run(self) -> None:
        """Execute the command once, on what is in memory now."""
        scores = from_whc8(self._input, self._w, self._h, self._classes)
        self._output[:] = scores.argmax(2).reshape(-1)
