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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.dv.build import DvBuild, extent_of
from bmcompiler.backends.dv.checks import limits
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.commands import ConvCommand
from bmcompiler.backends.dv.geometry import Extent, result
from bmcompiler.backends.dv.parts import Part, bits, is_unrounded, packed
from bmcompiler.backends.dv.run_model import run_result, run_values
from bmcompiler.backends.dv.stages import to_half
from bmcompiler.backends.dv.structs import (
    MAX_INPUT_CHANNELS,
    MAX_INPUT_HEIGHT,
    MAX_INPUT_WIDTH,
    Activation,
    OutputMode,
)
from bmcompiler.codegen.kernels import DeviceKernel, is_constant
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.schedule import Moved
from bmcompiler.errors import EncodingError, UnsupportedError
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import rule

ACTIVATIONS = {"": Activation.NONE, "relu": Activation.LEAKY_RELU, "relu6": Activation.RELU6}
"""By the attribute of ops; a leaky ReLU with slope 0 is the ReLU (dv.md 1.3)."""


class DvKernel(DeviceKernel):
    """An op that becomes commands on WHC8 maps of fp16."""

    def maps(self, op: TensorOp) -> list[Value]:
        """Operands that are read as feature maps: the source of the first run, then the addend if there is one."""
        return [op.operands[0]]

    def refusal(self, op: TensorOp) -> str | None:
        """What the driver's own limits say of the command; asked when all rules hold."""
        return None

    def unsupported_reason(self, op: TensorOp) -> str | None:
        return super().unsupported_reason(op) or self.refusal(op)

    @rule("Operands and results must be f32 (they are rounded to fp16)")
    def computes_floats(self, op: TensorOp) -> bool:
        return all(value.dtype == "f32" for value in (*op.operands, *op.results))

    @rule("Feature maps must not be constants")
    def reads_activations(self, op: TensorOp) -> bool:
        return not any(is_constant(root_of(value)) for value in self.maps(op))

    @rule("Feature maps must be read in the shape they were computed in")
    def keeps_layouts(self, op: TensorOp) -> bool:
        """WHC8 orders elements by the shape of a map; inputs of the net are laid out as they are read."""
        return all(root_of(v).op is None or extent_of(v) == extent_of(root_of(v)) for v in self.maps(op))


class RunKernel(DvKernel):
    """An op that is one run of a CONV command, or several, each of which reads the result of the one before.

    Subclasses define `parts`; those that can be a stage of another run also `joined` (and `keeps_bits`).
    """

    def parts(self, op: TensorOp) -> Sequence[Part]:
        """The runs of the op when no other op takes part; only the last one may have an addend."""
        raise TypeError(f"{type(self).__name__} has no runs")

    def joined(self, op: TensorOp, part: Part, through: Value) -> Part | None:
        """`part` with this op as a further stage, which then gives the op's result; None where that cannot be.

        The stages of a run come in this order: convolution or average pooling, addition, max pooling, activation.
        Device limits are not this method's matter: the command is checked afterwards.

        Args:
            part: a run whose only reader is this op.
            through: the operand that is the result of that run.
        """
        return None

    def keeps_bits(self, op: TensorOp) -> bool:
        """Whether the op gives the same fp16 numbers for an operand before and after it is rounded to fp16.

        Such an op joins freely. Any other joins only an op that is marked `UNROUNDED`, so that the IR tells where a
        value is rounded and `evaluate` follows.
        """
        return False

    def refusal(self, op: TensorOp) -> str | None:
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

    def emit(self, op: TensorOp, build: DvBuild) -> Moved:
        (part,) = self.parts(op)
        command, filters = command_of(part, extent_of(op.operands[0])), part.filters
        if filters is not None:
            first, *more = filters.values
            offset = build.coefficients.place(
                first, filters.layout, lambda *arrays: packed(part.run, filters.halves(*arrays)), *more
            )
            command = replace(command, runs=(replace(part.run, weight_buf=build.constants(offset)),))
        return build.conv(command, self.maps(op), op.results[0])

    def evaluate(self, op: TensorOp, *arrays: Any) -> Any:
        given = dict(zip(op.operands, arrays))
        parts = self.parts(op)
        steps = [(part, None if part.filters is None else part.filters.of(given)) for part in parts]
        addends = None if parts[-1].addend is None else to_half(given[parts[-1].addend])
        source = op.operands[0]
        x = arrays[0] if is_unrounded(source.op) else to_half(arrays[0])
        shape = op.results[0].shape
        out = np.empty(as_map(shape), np.float32)
        for index, sample in enumerate(x.reshape(as_map(x.shape))):
            values = sample.transpose(2, 1, 0)
            for part, weights in steps[:-1]:
                values = run_result(part.run, values, weights)
            part, weights = steps[-1]
            addend = None if addends is None else addends.reshape(as_map(addends.shape))[index].transpose(2, 1, 0)
            found = run_values(part.run, values, weights, addend)
            out[index] = (found if is_unrounded(op) else to_half(found)).transpose(2, 1, 0)
        return out.reshape(shape)

    @rule("Feature maps must have 4 dimensions")
    def has_maps(self, op: TensorOp) -> bool:
        return all(len(value.shape) == 4 for value in (*self.maps(op), *op.results))

    @rule(f"Maps have at most {MAX_INPUT_WIDTH} columns, {MAX_INPUT_HEIGHT} rows and {MAX_INPUT_CHANNELS} channels")
    def fits_the_fields(self, op: TensorOp) -> bool:
        sizes = [extent_of(value) for value in (*self.maps(op), *op.results)]
        return all(e.w <= MAX_INPUT_WIDTH and e.h <= MAX_INPUT_HEIGHT and e.c <= MAX_INPUT_CHANNELS for e in sizes)


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


def half_weights(array: NDArray[Any]) -> NDArray[np.float16]:
    """Constants rounded to fp16. Raises UnsupportedError when one is beyond its range."""
    rounded = to_half(array)
    if not np.isfinite(rounded).all():
        raise UnsupportedError(
            "a weight or bias is beyond the range of fp16, 65504", remedy="scale the weights of the layer down"
        )
    return rounded


def patterns(array: NDArray[Any]) -> NDArray[np.uint16]:
    """The 16-bit patterns of constants rounded to fp16."""
    return bits(half_weights(array))
