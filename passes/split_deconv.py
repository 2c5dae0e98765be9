"""Transposed convolutions whose windows do not overlap, as convolutions of single pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bmcompiler.codegen.rows import macs
from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Module, Rewriter, TensorType, Value
from bmcompiler.ir.keys import MACS, PLACE_CPU
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.nn import Deconv
from bmcompiler.passes.drafts import cycles_saved, without_numbers
from bmcompiler.passes.rewriting import Rules, RuleTable, TargetPatternPass, TargetRules, inherit, make, on
from bmcompiler.target import Target

if TYPE_CHECKING:
    import numpy as np

_PITCHES = (1, 32, 64)
"""Multiples of which the channels of a phase are made, to see whether the target then joins the phases faster."""
_OF_DECONV = ("strides", "pads", "dilations", "group", "output_pads")
"""Attributes that the convolution does not take over."""


@dataclass(frozen=True)
class SplitDeconv(TargetPatternPass):
    """A deconv whose windows do not overlap becomes a 1x1 conv that makes each place of the window as channels.

    Chips that insert zeros between the pixels multiply by all of them; here every product counts.

    1. deconv, as large as its stride, no pads, one group, constant weights : conv 1x1 -> interleave
    2. channels that are all 0 stand between the phases where the target joins them faster then
    It is done where the target says that it takes less time in local memory. A phase has the products of one tap, in
    their order. So integers stay, and so do floats (but for the sign of a zero that a sum underflows to) of chips whose
    accumulators take turns by channels. Where they take turns by products, those with inserted zeros too, sums have
    other last bits, so the pass runs at all levels there.
    """

    name = "split-deconv"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def rules(self, module: Module, target: Target) -> Rules:
        return _SplitDeconv(module, target)


class _SplitDeconv(TargetRules):
    def table(self) -> RuleTable:
        return {**on(Deconv, self.split)}

    def split(self, op: Deconv, rewriter: Rewriter) -> bool:
        """Both rules."""
        import numpy as np

        weight = self.constant(op.weight)
        vectors = [(value, array) for value in op.operands[2:] if (array := self.constant(value)) is not None]
        known = weight is not None and len(vectors) == len(op.operands[2:])
        if weight is None or not known or not _is_apart(op) or PLACE_CPU in op.attributes:
            return False
        if op.type.is_float and not np.isfinite(weight).all():
            return False  # an infinite weight makes NaN of the zeros between the pixels
        pitch = self._best(op)
        if pitch is None:
            return False
        phases = weight.transpose(2, 3, 1, 0).reshape(_phases(op), weight.shape[1], -1)
        kernels = _spread(phases, pitch).reshape(-1, weight.shape[0], 1, 1)
        made = self.weight(kernels, op.weight, op, rewriter, "weight")
        per_phase = [
            self.weight(_of_phases(array, op, pitch), value, op, rewriter, "bias") if _per_channel(value, op) else value
            for value, array in vectors
        ]
        conv, joined = _ops(op, made, per_phase)
        if macs(conv) != macs(op):
            conv.attributes[MACS] = macs(op)  # zeros are no products of the net
        rewriter.insert_before(op, conv)
        rewriter.insert_before(op, inherit(joined, op))
        rewriter.replace(op, joined.results)
        return True

    def _best(self, op: Deconv) -> int | None:
        """Channels from a phase to the next, None to leave the op."""
        (depth, channels), best, most = op.weight.shape[:2], None, 0
        for pitch in sorted({-(-channels // step) * step for step in _PITCHES}):
            total = _phases(op) * pitch
            weight = without_numbers(op.weight, (total, depth, 1, 1))
            vectors = [
                without_numbers(value, (total, *value.type.shape[1:])) if _per_channel(value, op) else value
                for value in op.operands[2:]
            ]
            saved = cycles_saved(self.target, [op], _ops(op, weight, vectors))
            if saved > most:
                best, most = pitch, saved
        return best


def _phases(op: Deconv) -> int:
    return int(op.strides[0] * op.strides[1])


def _is_apart(op: Deconv) -> bool:
    """Whether each result is made of one pixel, and each pixel makes a block of results of its own."""
    plain = op.group == 1 and not any(op.pads) and not any(op.output_pads) and tuple(op.dilations) == (1, 1)
    if op.zero_points and op.mode != CHANNEL:
        return False  # the asymmetric mode rounds a conv in another way
    return plain and _phases(op) > 1 and tuple(op.weight.shape[2:]) == tuple(op.strides)


def _per_channel(value: Value, op: Deconv) -> bool:
    """Whether a constant, bias or factors, has a row for each output channel; factors can be one row for all."""
    return bool(value.type.shape[0] == op.weight.shape[1])


def _of_phases(rows: np.ndarray, op: Deconv, pitch: int) -> np.ndarray:
    """Rows of output channels, once for each phase."""
    import numpy as np

    spread = _spread(np.stack([rows] * _phases(op)), pitch)
    return spread.reshape(-1, *rows.shape[1:])


def _spread(phases: np.ndarray, pitch: int) -> np.ndarray:
    """(phases, channels, ...) with zeros up to `pitch` channels."""
    import numpy as np

    out = np.zeros((len(phases), pitch, *phases.shape[2:]), phases.dtype)
    out[:, : phases.shape[1]] = phases
    return out


def _ops(op: Deconv, weight: Value, vectors: Sequence[Value]) -> tuple[TensorOp, TensorOp]:
    """The convolution and what joins its phases."""
    attributes = {name: value for name, value in op.attributes.items() if name not in _OF_DECONV and "." not in name}
    n, _, h, w = op.input.shape
    type = TensorType((n, weight.shape[0], h, w), op.type.dtype, op.type.quant)
    conv = make("conv", [op.input, weight, *vectors], attributes, [type], op.location)
    joined = {"scale": op.strides, "channels": op.type.shape[1]}
    return conv, make("interleave", [conv.result], joined, location=op.location)
