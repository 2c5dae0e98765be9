"""Convolutions of few output channels make several rows of their result as channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bmcompiler.conditions import INTEGERS, NO_GROUPS, NO_LAYOUT, Condition
from bmcompiler.errors import UsageError
from bmcompiler.ir import Module, Rewriter, TensorType, Value
from bmcompiler.ir.copying import copy_module
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.places.bands import RegroupBands
from bmcompiler.ops.places.shape import Interleave
from bmcompiler.passes.drafts import cycles_saved, functions_behind, kind_of, savings, without_numbers
from bmcompiler.passes.layout.image_parts import least_cycles
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, make, on, producer, rebuild
from bmcompiler.passmanager import PassContext, PassResult
from bmcompiler.target import Target

if TYPE_CHECKING:
    import numpy as np

_ROWS = (2, 4)
"""Rows of a result that may become channels."""
_PITCHES = (1, 32, 64)
"""Multiples of which the channels of a row are made, to see whether the target then joins the rows faster."""
_MOST_KERNEL = 11
"""Rows of a kernel that all chips take."""
_KINDS = {"all": (True, False), "floats": (True,), "integers": (False,)}
"""Whether the results are floats."""


@dataclass(frozen=True)
class FillLanes(TargetPatternPass):
    """A conv of few output channels makes rows y*k .. y*k + k-1 of its result as k times the channels of row y.

    Chips with a channel per lane have lanes without work otherwise, in the conv and in the functions behind it.

    1. conv -> functions of one element : conv, with k times the row stride and a taller kernel -> functions ->
       interleave
    2. conv of an interleave of rows, its row stride a multiple of these : conv of what is interleaved
    3. conv of bands of such an interleave, these and the image multiples of its rows : conv of bands of what is
       interleaved
    4. conv of more channels than those of full rounds, of integers : conv of the full rounds, conv of the rest by rule
       1, with the functions behind them -> concat

    One group, no dilation, constant weights, no zero points of these or the input. It is done where the target says
    that it takes less time in local memory, by more than larger weights take to load. Products of zero are added; the
    others are the same. A chip may add them to
    other accumulators, so that float sums differ in their last bits: pipelines do floats at all levels, for the same
    bits at each.

    Attributes:
        kind: "floats", "integers" or "all": results of which convolutions.
        planned: whether all is left as it was where the target plans the net in no less time then: it has loads that
            transfers inside local memory wait for.
    """

    kind: str = "all"
    planned: bool = False

    name = "fill-lanes"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise UsageError(f"fill-lanes: kind is one of {', '.join(_KINDS)}, not '{self.kind}'")

    def needs(self) -> tuple[Condition, ...]:
        return (*self.requires, INTEGERS) if self.kind == "integers" else self.requires

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if not self.planned or ctx.target is None:
            return super().run(module, ctx)
        draft = copy_module(module)
        if not super().run(draft, ctx).modified:
            return PassResult(False)
        before, after = (_planned(ctx.target, each) for each in (module, draft))
        if before is None or after is None or after >= before:
            return PassResult(False)
        module.functions, module.weights = draft.functions, draft.weights
        return PassResult(True)

    @cached_property
    def seen(self) -> set[Value]:
        """Results of convolutions that were decided."""
        return set()

    def table(self) -> PatternTable:
        return on(Conv, self.of_phases, self.make_rows)

    def make_rows(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        weight, ends = self.constant(op.weight), [self.constant(value) for value in op.operands[2:]]
        if weight is None or any(end is None for end in ends) or not self._is_plain(op, weight):
            return False
        ops = [op, *functions_behind(op)]
        if op.result in self.seen:
            return False
        self.seen.add(op.result)
        best = self.target.once((FillLanes, "rows", *map(kind_of, ops)), lambda: self._best(ops))
        if best is None:
            return self._split(ops, weight, rewriter)
        rows, pitch = best
        kernel = self.weight(_taller(weight, rows, pitch, op.strides[0]), op.weight, op, rewriter, "weight")
        repeated = [
            self.weight(_repeated(end, rows, pitch), value, op, rewriter, "bias")
            for end, value in zip(ends, op.operands[2:])
            if end is not None
        ]
        made = _in_rows(ops, [kernel, *repeated], rows)
        self.seen.add(made[0].result)
        for old, new in zip([*ops, ops[-1]], made):
            rewriter.insert_before(ops[-1], new, old, is_part=new is not made[-1])
        rewriter.replace(ops[-1], made[-1].results)
        return True

    def _best(self, ops: Sequence[TensorOp]) -> tuple[int, int] | None:
        """Rows and the channels from one to the next, None to leave the ops."""
        conv, best, least = ops[0], None, 0
        assert isinstance(conv, Conv), "a draft begins with its convolution"
        choices, read = list(_choices(conv)), _constant_bytes(ops)
        loading: list[int] = []

        def drafts() -> Iterator[list[TensorOp]]:
            for choice in choices:
                draft = self._drafted(ops, *choice)
                loading.append(self.target.loading_cycles(_constant_bytes(draft) - read))
                yield draft

        for choice, cycles in zip(choices, savings(self.target, ops, drafts())):
            if cycles - loading[-1] > least:
                best, least = choice, cycles - loading[-1]
        return best

    @staticmethod
    def _drafted(ops: Sequence[TensorOp], rows: int, pitch: int) -> list[TensorOp]:
        """What rule 1 makes, with constants of which only shapes are known."""
        conv = ops[0]
        assert isinstance(conv, Conv), "a draft begins with its convolution"
        _, depth, height, width = conv.weight.shape
        size = height + (rows - 1) * conv.strides[0]
        weight = without_numbers(conv.weight, (rows * pitch, depth, size, width))
        ends = [without_numbers(end, (rows * pitch, *end.shape[1:])) for end in conv.operands[2:]]
        return _in_rows(ops, [weight, *ends], rows)

    def _split(self, ops: Sequence[TensorOp], weight: np.ndarray, rewriter: Rewriter) -> bool:
        """Rule 4; rule 1 follows for the rest."""
        conv, last = ops[0], ops[-1]
        assert isinstance(conv, Conv), "a draft begins with its convolution"
        rounds = len(weight) // _PITCHES[-1] * _PITCHES[-1]
        parts = ((rounds, len(weight)), (0, rounds))
        if conv.type.is_float or not 0 < rounds < len(weight):
            return False
        if not self.target.once((FillLanes, "split", *map(kind_of, ops)), lambda: self._saves_split(ops, rounds)):
            return False
        made = []
        for first, end in parts:
            arrays = ((value, self.constant(value)) for value in conv.operands[1:])
            constants = [
                self.weight(array[first:end], value, conv, rewriter, "weight")
                for value, array in arrays
                if array is not None
            ]
            part = _of_channels(ops, constants)
            for old, new in zip(ops, part):
                rewriter.insert_before(last, new, old, is_part=True)
            made.append(part[-1].results[0])
        self.seen.add(made[1])
        joined = make("concat", made[::-1], {"axis": 1})
        joined.results[0].type = last.results[0].type
        rewriter.replace_with(last, joined)
        return True

    def _saves_split(self, ops: Sequence[TensorOp], rounds: int) -> bool:
        """Whether it takes less time with the rest in rows."""
        conv = ops[0]
        assert isinstance(conv, Conv), "a draft begins with its convolution"

        def part(count: int) -> list[TensorOp]:
            return _of_channels(ops, [without_numbers(v, (count, *v.shape[1:])) for v in conv.operands[1:]])

        rest = part(conv.type.shape[1] - rounds)
        best = self._best(rest)
        made: list[TensorOp] = []
        if best is not None:
            whole, rows = part(rounds), self._drafted(rest, *best)
            joined = make("concat", [whole[-1].results[0], rows[-1].results[0]], {"axis": 1})
            made = [*whole, *rows, joined]
        saved = cycles_saved(self.target, ops, made) if made else 0
        for op in reversed(rest):
            op.drop_operands()
        return saved > 0

    def of_phases(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rules 2 and 3."""
        cut = producer(op.input, RegroupBands)
        phases, weight = producer(op.input if cut is None else cut.x, Interleave), self.constant(op.weight)
        if phases is None or weight is None or not self._is_plain(op, weight) or phases.scale[1] != 1:
            return False
        reading = _reading(op, weight, phases, cut)
        if reading is None:
            return False
        kernel, draft = reading
        old: list[TensorOp] = [op]
        for before in (phases,) if cut is None else (cut, phases):
            if len(before.result.uses) > 1:
                break
            old.append(before)
        if cycles_saved(self.target, old, draft(without_numbers(op.weight, kernel.shape))) <= 0:
            return False
        *others, made = draft(self.weight(kernel, op.weight, op, rewriter, "weight"))
        for new in others:
            rewriter.insert_before(op, new)
        self.seen.add(made.results[0])
        rewriter.insert_before(op, made, op)
        rewriter.replace(op, made.results)
        return True

    def _is_plain(self, op: Conv, weight: np.ndarray) -> bool:
        return op.type.is_float in _KINDS[self.kind] and _is_plain(op, weight)


def _planned(target: Target, module: Module) -> float | None:
    """Of parts of the batch, where `split-images` will find these quicker."""
    found = [least_cycles(function, target, 0) for function in module.functions]
    return None if None in found else sum(cycles for cycles in found if cycles is not None)


def _constant_bytes(ops: Sequence[TensorOp]) -> int:
    """Bytes of weights, biases and factors of a convolution and the functions behind it."""
    return sum(value.type.nbytes for op in ops for value in op.operands[1:])


def _is_plain(op: Conv, weight: np.ndarray) -> bool:
    import numpy as np

    if op.type.is_float and not np.isfinite(weight).all():
        return False  # an infinite weight makes NaN of zeros
    real = op.bias is not None and op.bias.type.is_float  # then zero points only tell what padding is
    plain = op.group == 1 and tuple(op.dilations) == (1, 1) and (real or not any(op.zero_points[:2]))
    return plain and PLACE_CPU not in op.attributes


def _choices(op: Conv) -> Iterator[tuple[int, int]]:
    """Rows, and channels from one to the next."""
    channels, height = op.type.shape[1:3]
    for rows in _ROWS:
        if height % rows == 0 and op.weight.shape[2] + (rows - 1) * op.strides[0] <= _MOST_KERNEL:
            yield from ((rows, pitch) for pitch in sorted({-(-channels // step) * step for step in _PITCHES}))


def _taller(weight: np.ndarray, rows: int, pitch: int, stride: int) -> np.ndarray:
    """The kernel that makes so many rows of the result as channels, each followed by zeros up to `pitch`."""
    import numpy as np

    channels, depth, height, width = weight.shape
    made = np.zeros((rows, pitch, depth, height + (rows - 1) * stride, width), weight.dtype)
    for row in range(rows):
        made[row, :channels, :, row * stride : row * stride + height] = weight
    return made.reshape(rows * pitch, *made.shape[2:])


def _reading(
    op: Conv, weight: np.ndarray, phases: Interleave, cut: RegroupBands | None
) -> tuple[np.ndarray, Callable[[Value], list[TensorOp]]] | None:
    """The kernel for rows as channels, and what makes the ops that read them with it; None where steps do not fit."""
    rows, height, hidden = phases.scale[0], phases.x.shape[2], 0
    if rows == 1 or op.strides[0] % rows:
        return None
    changed: dict[str, int] = {}
    if cut is not None:
        if cut.rows % rows or cut.height % rows:
            return None  # bands or the image end inside of a cell
        top, bottom = (-(-size // rows) for size in (cut.top, cut.bottom))
        changed = {"rows": cut.rows // rows, "height": cut.height // rows, "top": top, "bottom": bottom}
        height, hidden = top + changed["rows"] + bottom, top * rows - cut.top
    first, kernel = _of_rows(weight, rows, phases.x.shape[1] // rows, op.pads[0] - hidden)
    stride, taps = op.strides[0] // rows, kernel.shape[2]
    below = (op.type.shape[2] - 1) * stride + taps - height - first
    if below > 0 and below >= taps:
        return None

    def ops(weight: Value) -> list[TensorOp]:
        before = [] if cut is None else [rebuild(cut, [phases.x], **changed)]
        read = before[0].result if before else phases.x
        pads = (first, max(0, below), *op.pads[2:])
        made = op.clone([read, weight, *op.operands[2:]], strides=(stride, op.strides[1]), pads=pads)
        made.result.type = op.type
        return [*before, made]

    return kernel, ops


def _repeated(end: np.ndarray, rows: int, pitch: int) -> np.ndarray:
    """A bias or factors of each channel, for the channels of all rows."""
    import numpy as np

    made = np.zeros((rows, pitch, *end.shape[1:]), end.dtype)
    made[:, : len(end)] = end
    return made.reshape(rows * pitch, *end.shape[1:])


def _of_rows(weight: np.ndarray, rows: int, pitch: int, top: int) -> tuple[int, np.ndarray]:
    """Rows of padding above, and the kernel for an input whose rows y*rows + i are channels i*pitch ... of row y."""
    import numpy as np

    channels, depth, height, width = weight.shape
    places = [divmod(tap - top, rows) for tap in range(height)]
    first, last = places[0][0], places[-1][0]
    made = np.zeros((channels, rows, pitch, last - first + 1, width), weight.dtype)
    for tap, (place, row) in enumerate(places):
        made[:, row, :depth, place - first] = weight[:, :, tap]
    return -first, made.reshape(channels, rows * pitch, last - first + 1, width)


def _of_channels(ops: Sequence[TensorOp], constants: Sequence[Value]) -> list[TensorOp]:
    """The convolution with some of its output channels, and the functions behind it."""
    made: list[TensorOp] = []
    for old in ops:
        operands = [made[-1].results[0], *old.operands[1:]] if made else [old.operands[0], *constants]
        made.append(old.clone(operands))
        n, _, *size = old.type.shape
        made[-1].results[0].type = TensorType((n, constants[0].shape[0], *size), old.type.dtype, old.type.quant)
    return made


def _in_rows(ops: Sequence[TensorOp], constants: Sequence[Value], rows: int) -> list[TensorOp]:
    """The convolution, with other weights, bias and factors, the functions behind it and what joins the rows."""
    conv = ops[0]
    assert isinstance(conv, Conv), "a draft begins with its convolution"
    n, channels, height, width = conv.type.shape
    made: list[TensorOp] = [conv.clone([conv.input, *constants], strides=(conv.strides[0] * rows, conv.strides[1]))]
    for old, new_like in zip(ops, [None, *ops[1:]]):
        if new_like is not None:
            made.append(new_like.clone([made[-1].result, *new_like.operands[1:]]))
        made[-1].result.type = TensorType(
            (n, constants[0].shape[0], height // rows, width), old.type.dtype, old.type.quant
        )
    made.append(make("interleave", [made[-1].result], {"scale": (rows, 1), "channels": channels}))
    return made
