"""What kernels of the DV700 share: rounding to fp16, rules about operands, and ops that are runs of CONV commands.

Values of the IR are float32, values of the device fp16: every operand is rounded on its way in, and every result is an
fp16 number. So a value may pass between device and host any number of times without another change. The exception is
an op with the attribute `parts.UNROUNDED`: its result never leaves the run that its reader belongs to.

The contract. A `RunKernel` says what an op is as runs (`parts`) and how an op can become a stage of the run whose
result it reads (`joined`). Code generation does the rest: it joins ops into runs, chains runs through the unified
buffer, places weights and maps, and cuts all that into commands. A kernel with other commands than CONV defines `emit`
and `evaluate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bmcompiler.backends.dv.arithmetic.run_model import RunWeights, as_pixels, run_values
from bmcompiler.backends.dv.arithmetic.stages import to_half
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.checks import limits
from bmcompiler.backends.dv.driver.commands import ConvCommand, Run
from bmcompiler.backends.dv.driver.geometry import Extent, result
from bmcompiler.backends.dv.driver.structs import (
    MAX_INPUT_CHANNELS,
    MAX_INPUT_HEIGHT,
    MAX_INPUT_WIDTH,
    Activation,
    ConvEnable,
    OutputMode,
)
from bmcompiler.backends.dv.lowering.build import extent_of
from bmcompiler.backends.dv.lowering.parts import Filters, Part, bits, is_unrounded
from bmcompiler.codegen.kernels import DeviceKernel, is_constant
from bmcompiler.codegen.memory import root_of
from bmcompiler.errors import EncodingError, UnsupportedError
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array, Bits16, Halves
from bmcompiler.target import OpT, rule

_BLANK = Filters((), lambda: RunWeights(np.zeros(0, np.float16), np.zeros(0, np.float16)), "none")
ACTIVATIONS = {"": Activation.NONE, "relu": Activation.LEAKY_RELU, "relu6": Activation.RELU6}
"""By the attribute of ops; a leaky ReLU with slope 0 is the ReLU (dv.md 1.3)."""


class DvKernel(DeviceKernel[OpT]):
    """An op that becomes commands on WHC8 maps of fp16."""

    def maps(self, op: OpT) -> list[Value]:
        """Operands that are read as feature maps: the source of the first run, then the addend if there is one."""
        return [op.operands[0]]

    def refusal(self, op: OpT) -> str | None:
        """What the driver's own limits say of the command; asked when all rules hold."""
        return None

    def unsupported_reason(self, op: OpT) -> str | None:
        return super().unsupported_reason(op) or self.refusal(op)

    @rule("Operands and results must be f32 (they are rounded to fp16)")
    def computes_floats(self, op: OpT) -> bool:
        return all(value.dtype == "f32" for value in (*op.operands, *op.results))

    @rule("Feature maps must not be constants")
    def reads_activations(self, op: OpT) -> bool:
        return not any(is_constant(root_of(value)) for value in self.maps(op))

    @rule("Feature maps must be read in the shape they were computed in")
    def keeps_layouts(self, op: OpT) -> bool:
        """WHC8 orders elements by the shape of a map; inputs of the net are laid out as they are read."""
        return all(root_of(v).op is None or extent_of(v) == extent_of(root_of(v)) for v in self.maps(op))


class RunKernel(DvKernel[OpT]):
    """An op that is one run of a CONV command, or several, each of which reads the result of the one before.

    Subclasses define `parts`; those that can be a stage of another run also `joined` (and `keeps_bits`).
    """

    def parts(self, op: OpT) -> Sequence[Part]:
        """The runs of the op when no other op takes part; only the last one may have an addend."""
        raise TypeError(f"{type(self).__name__} has no runs")

    def joined(self, op: OpT, part: Part, through: Value) -> Part | None:
        """`part` with this op as a further stage, which then gives the op's result; None where that cannot be.

        The stages of a run come in this order: convolution or average pooling, addition, max pooling, activation.
        Device limits are not this method's matter: the command is checked afterwards.

        Args:
            part: a run whose only reader is this op.
            through: the operand that is the result of that run.
        """
        return None

    def keeps_bits(self, op: OpT) -> bool:
        """Whether the op gives the same fp16 numbers for an operand before and after it is rounded to fp16.

        Such an op joins freely. Any other joins only an op that is marked `UNROUNDED`, so that the IR tells where a
        value is rounded and `evaluate` follows.
        """
        return False

    def refusal(self, op: OpT) -> str | None:
        extent = extent_of(op.operands[0])
        for part in self.parts(op):
            reason = why_not(part, extent)
            if reason:
                return reason
            extent = result(extent, part.run)
        wanted = extent_of(op.results[0])
        return (
            None if extent == wanted else f"the device would make {extent.w} x {extent.h}, not {wanted.w} x {wanted.h}"
        )

    def evaluate(self, op: OpT, *arrays: Array) -> Array:
        given = dict(zip(op.operands, arrays))
        inside = next((value for value in op.operands if is_unrounded(value.op)), None)
        parts = self.parts(op) if inside is None else [self._stage(op, inside)]
        weights = [None if part.filters is None else part.filters.of(given) for part in parts]
        runs = [part.run for part in parts]
        addends = [None if part.addend is None else _samples(to_half(given[part.addend]), runs) for part in parts]
        x = _samples(to_half(arrays[0]) if inside is None else given[inside], runs)
        shape = op.results[0].shape
        out = np.empty(as_map(shape), np.float32)
        for index, result_map in enumerate(_samples(out, runs)):
            values = x[index]
            for number, (part, used, added) in enumerate(zip(parts, weights, addends), 1):
                values = run_values(part.run, values, used, None if added is None else added[index])
                values = values if number == len(parts) and is_unrounded(op) else to_half(values)
            result_map[...] = values
        return out.reshape(shape)

    def _stage(self, op: OpT, inside: Value) -> Part:
        """What the op adds to the run that has computed its operand `inside`. Raises UnsupportedError without such."""
        part = self.joined(op, Part(Run(m=extent_of(inside).c, conv_enable=ConvEnable.CONV), _BLANK), inside)
        if part is None:
            raise UnsupportedError(
                "reads a value that is marked to stay inside a run, but cannot be a part of that run"
            )
        return replace(part, run=replace(part.run, conv_enable=0))

    @rule("Feature maps must have 4 dimensions")
    def has_maps(self, op: OpT) -> bool:
        return all(len(value.shape) == 4 for value in (*self.maps(op), *op.results))

    @rule(f"Maps have at most {MAX_INPUT_WIDTH} columns, {MAX_INPUT_HEIGHT} rows and {MAX_INPUT_CHANNELS} channels")
    def fits_the_fields(self, op: OpT) -> bool:
        sizes = [extent_of(value) for value in (*self.maps(op), *op.results)]
        return all(e.w <= MAX_INPUT_WIDTH and e.h <= MAX_INPUT_HEIGHT and e.c <= MAX_INPUT_CHANNELS for e in sizes)


def _samples(array: Array, runs: Sequence[Run]) -> Array:
    """The [n][w][h][c] view of an array that the runs read, add or make."""
    return as_pixels(array.reshape(as_map(array.shape)).transpose(0, 3, 2, 1), runs)


def as_map(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """A shape with 4 dimensions: one of any other rank is a vector of channels per sample (`build.extent_of`)."""
    if len(shape) == 4:
        n, c, h, w = shape
        return n, c, h, w
    samples = shape[0] if shape else 1
    return samples, int(np.prod(shape[1:])), 1, 1


def command_of(part: Part, extent: Extent) -> ConvCommand:
    """A run alone in its command, without buffers."""
    mode = OutputMode.CONCAT if part.addend is None else OutputMode.ADD
    return ConvCommand(extent.w, extent.h, extent.c, (part.run,), output_mode=mode)


def why_not(part: Part, extent: Extent) -> str | None:
    """Why the driver would refuse a run alone in its command on a map of `extent`; None when it takes it."""
    command = command_of(part, extent)
    try:
        command.encode()
    except EncodingError as error:
        return error.reason
    refused = limits(command, CHIP)
    return None if refused is None else refused.text


def half_weights(array: Array) -> Halves:
    """Constants rounded to fp16. Raises UnsupportedError when one is beyond its range."""
    rounded = to_half(array)
    if not np.isfinite(rounded).all():
        raise UnsupportedError(
            "a weight or bias is beyond the range of fp16, 65504", remedy="scale the weights of the layer down"
        )
    return rounded


def patterns(array: Array) -> Bits16:
    """The 16-bit patterns of constants rounded to fp16."""
    return bits(half_weights(array))
