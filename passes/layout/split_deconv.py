"""Transposed convolutions as convolutions that make the phases of their results as channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.errors import UsageError
from bmcompiler.ir import Rewriter, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv, Deconv
from bmcompiler.ops.places.shape import Interleave, Permute, Slice
from bmcompiler.passes.drafts import (
    cycles_in_lanes,
    cycles_in_memory,
    cycles_saved,
    kind_of,
    origin_of,
    without_numbers,
)
from bmcompiler.passes.layout.deconv_phases import Phases, phase_weights, ways
from bmcompiler.passes.layout.long_runs import moving_time
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on
from bmcompiler.target import unsupported_reason

if TYPE_CHECKING:
    import numpy as np

_PITCHES = (1, 32, 64)
"""Multiples of which the channels of a phase are made, to see whether the target then joins the phases faster."""
_KINDS = {"floats": (True,), "integers": (False,), "all": (True, False)}
"""Whether results are floats."""
_NEVER = 1 << 62
"""Cycles of what the target does not take."""
_OF_DECONV = ("strides", "pads", "dilations", "group", "output_pads")
"""Attributes that the convolution does not take over."""


@dataclass(frozen=True)
class SplitDeconv(TargetPatternPass):
    """A deconv becomes a conv of stride 1 that makes each place between the input pixels as channels.

    Chips that insert zeros between the pixels multiply by all of them; here every product counts.

    1. deconv, as large as its stride, no pads, one group, constant weights : conv 1x1 -> interleave
    2. the same with any window, pads and groups, no dilations, no zero points: conv of as many taps as inputs meet in a
       result, zeros on the channels of other groups -> interleave -> slice of the results that the deconv has
    3. channels that are all 0 stand between the phases where the target joins them faster then
    4. as 2, of groups for which zeros would be more work                    : conv of these groups -> reshape, groups
       are images -> interleave -> reshape -> slice
    5. any of these where the target has no interleave                       : reshape -> permute -> reshape instead

    It is done where the target says that it takes less time in local memory. A phase of rule 1 has the products of one
    tap, in their order. So integers stay, and so do floats (but for the sign of a zero that a sum underflows to) of
    chips whose accumulators take turns by channels. Where they take turns by products, those with inserted zeros too,
    and by rule 2 on every chip, sums have other last bits, so the pass takes floats at all levels.

    Attributes:
        kind: "floats", "integers" or "all": results of which deconvolutions.
    """

    kind: str = "all"

    name = "split-deconv"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise UsageError(f"split-deconv: kind is one of {', '.join(_KINDS)}, not '{self.kind}'")

    def table(self) -> PatternTable:
        return {**on(Deconv, self.split)}

    def split(self, op: Deconv, rewriter: Rewriter) -> bool:
        """All rules, on one deconvolution."""
        import numpy as np

        weight = self.constant(op.weight)
        vectors = [(value, array) for value in op.operands[2:] if (array := self.constant(value)) is not None]
        known = weight is not None and len(vectors) == len(op.operands[2:])
        if weight is None or not known or not _is_taken(op) or PLACE_CPU in op.attributes:
            return False
        if op.type.is_float not in _KINDS[self.kind]:
            return False
        if op.type.is_float and not np.isfinite(weight).all():
            return False  # an infinite weight makes NaN of the zeros between the pixels
        draft = self._best(op)
        if draft is None:
            return False
        phases = _spread(phase_weights(weight, draft.axes, op.group, draft.kept), draft.pitch)
        made = self.weight(phases.reshape(-1, *phases.shape[3:]), op.weight, op, rewriter, "weight")
        per_phase = [
            self.weight(_of_phases(array, op, draft), value, op, rewriter, "bias") if _per_channel(value, op) else value
            for value, array in vectors
        ]
        conv, *moved = draft.ops(made, per_phase)
        rewriter.replace_with(op, conv, *moved[:-1], moved[-1])
        return True

    def _best(self, op: Deconv) -> _Draft | None:
        """What takes the fewest cycles, None to leave the op."""
        drafts = list(self._drafts(op))

        def asked() -> int | None:
            most, best = max(((self._saved(draft), -at) for at, draft in enumerate(drafts)), default=(0, 0))
            return -best if most > 0 else None

        best = self.target.once((SplitDeconv, kind_of(op), origin_of(op.input)), asked)
        return None if best is None else drafts[best]

    def _drafts(self, op: Deconv) -> Iterator[_Draft]:
        """All ways; of those that are as good, the first is taken."""
        channels = op.type.shape[1]
        pitches = sorted({-(-channels // step) * step for step in _PITCHES})
        for axes in ways(op):
            drafts = [_Draft(op, axes, pitch) for pitch in pitches]
            if self._alone(op):
                drafts.append(_Draft(op, axes, channels // op.group, op.group))
            if not self._interleaves(drafts[0]):
                drafts = [replace(each, permutes=True) for each in drafts if each.is_dense]
            yield from drafts

    def _interleaves(self, draft: _Draft) -> bool:
        """Whether the target joins phases by itself."""
        made = draft.without_numbers()
        taken = all(unsupported_reason(self.target, op) is None for op in made if isinstance(op, Interleave))
        for each in reversed(made):
            each.drop_operands()
        return taken

    def _alone(self, op: Deconv) -> bool:
        """Whether the target computes group by group, from global memory to there."""
        return op.group > 1 and self.target.local_cycles(op) is None

    def _saved(self, draft: _Draft) -> float:
        """Cycles that a draft saves; rule 2 has more weights, and a slice of a map in memory."""
        op, made = draft.op, draft.without_numbers()
        conv, joined = (each for each in made if isinstance(each, Conv | Interleave | Permute))
        more = 0 if _is_apart(op) else self.target.loading_cycles(conv.operands[1].type.nbytes - op.weight.type.nbytes)
        for each in made:
            if isinstance(each, Slice):
                cycles = self.target.moving_cycles(each) if unsupported_reason(self.target, each) is None else None
                more += _NEVER if cycles is None else cycles + self.target.loading_cycles(op.type.nbytes)
        if isinstance(joined, Permute):
            before, after = self.target.cycles(op), cycles_in_memory(self.target, [conv])
            saved = 0 if before is None or after is None else before - after - moving_time(self.target, joined)
        elif self._alone(op):
            find = cycles_in_memory if draft.kept > 1 else cycles_in_lanes
            before, after = self.target.cycles(op), find(self.target, [conv, joined])
            saved = 0 if before is None or after is None else before - after
        else:
            saved = cycles_saved(self.target, [op], [conv, joined])
        for each in reversed(made):
            each.drop_operands()
        return saved - more


@dataclass(frozen=True)
class _Draft:
    """One way to write a deconv."""

    op: Deconv
    axes: Phases
    pitch: int
    """Channels from a phase to the next."""
    kept: int = 1
    """Groups of the convolution."""
    permutes: bool = False
    """Whether a permute joins the phases."""

    @property
    def is_dense(self) -> bool:
        """Whether no channels of zeros stand between the phases."""
        return self.pitch * self.kept == self.op.type.shape[1]

    def without_numbers(self) -> list[TensorOp]:
        """The ops with weights that have no numbers yet."""
        op, total = self.op, _phases(self.op) * self.pitch * self.kept
        depth, taps = op.input.shape[1] // self.kept, [axis.taps for axis in self.axes]
        vectors = [
            without_numbers(value, (total, *value.type.shape[1:])) if _per_channel(value, op) else value
            for value in op.operands[2:]
        ]
        return self.ops(without_numbers(op.weight, (total, depth, *taps)), vectors)

    def ops(self, weight: Value, vectors: Sequence[Value]) -> list[TensorOp]:
        """The convolution, what joins its phases, and what takes the results that there are."""
        op, cells = self.op, [axis.cells for axis in self.axes]
        images, channels = op.type.shape[:2]
        attributes = {
            name: value for name, value in op.attributes.items() if name not in _OF_DECONV and "." not in name
        }
        if any(pads := [pad for axis in self.axes for pad in axis.pads]):
            attributes["pads"] = tuple(pads)
        if self.kept > 1:
            attributes["group"] = self.kept
        type = TensorType((images, weight.shape[0], *cells), op.type.dtype, op.type.quant)
        made = [make("conv", [op.input, weight, *vectors], attributes, [type], op.location)]

        def add(name: str, **attributes: Any) -> None:
            made.append(make(name, [made[-1].result], attributes, location=op.location))

        if self.kept > 1:
            add("reshape", shape=(images * self.kept, weight.shape[0] // self.kept, *cells))
        if self.permutes:
            (down, across), (n, _, h, w), depth = op.strides, made[-1].result.shape, channels // self.kept
            add("reshape", shape=(n, down, across, depth, h, w))
            add("permute", order=(0, 3, 4, 1, 5, 2))
            add("reshape", shape=(n, depth, h * down, w * across))
        else:
            add("interleave", scale=op.strides, channels=channels // self.kept)
        if self.kept > 1:
            add("reshape", shape=(images, channels, *made[-1].result.shape[2:]))
        if not all(axis.is_whole for axis in self.axes):
            starts = (0, 0, *(axis.skip for axis in self.axes))
            ends = tuple(start + size for start, size in zip(starts, op.type.shape))
            add("slice", starts=starts, ends=ends, steps=(1,) * 4)
        return made


def _phases(op: Deconv) -> int:
    return int(op.strides[0] * op.strides[1])


def _is_taken(op: Deconv) -> bool:
    """Whether there are phases; of integers with zero points only results of one pixel each."""
    if op.zero_points and op.mode != CHANNEL:
        return False  # the asymmetric mode rounds a conv in another way
    if _phases(op) == 1 or tuple(op.dilations) != (1, 1):
        return False
    return op.type.is_float or not op.zero_points or _is_apart(op)


def _is_apart(op: Deconv) -> bool:
    """Whether each result is made of one pixel, and each pixel makes a block of results of its own."""
    plain = op.group == 1 and not any(op.pads) and not any(op.output_pads)
    return plain and tuple(op.weight.shape[2:]) == tuple(op.strides)


def _per_channel(value: Value, op: Deconv) -> bool:
    """Whether a constant, bias or factors, has a row for each output channel; factors can be one row for all."""
    return bool(value.type.shape[0] == op.type.shape[1])


def _of_phases(rows: np.ndarray, op: Deconv, draft: _Draft) -> np.ndarray:
    """Rows of output channels, once for each phase."""
    import numpy as np

    groups = rows.reshape(draft.kept, 1, -1, *rows.shape[1:])
    return _spread(np.repeat(groups, _phases(op), axis=1), draft.pitch).reshape(-1, *rows.shape[1:])


def _spread(phases: np.ndarray, pitch: int) -> np.ndarray:
    """(groups, phases, channels, ...) with zeros up to `pitch` channels."""
    import numpy as np

    out = np.zeros((*phases.shape[:2], pitch, *phases.shape[3:]), phases.dtype)
    out[:, :, : phases.shape[2]] = phases
    return out
