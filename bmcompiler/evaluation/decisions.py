"""What a network's outputs decide, told from its structure and from float outputs on samples.

A norm hides decisions: 2 % of a detector's outputs may be a fifth of its objects. Each output is of a kind of `KINDS`,
the first that fits, and its kind says what is counted. An output of no kind decides nothing; its error alone counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.evaluation import measures
from bmcompiler.evaluation.measures import About, Count
from bmcompiler.evaluation.metrics import KEPT, OF, Values, find_function
from bmcompiler.ir import Function, Operation, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import LogSoftmax, Softmax
from bmcompiler.options import Judged

Outputs = Mapping[str, Array]
Measure = Callable[[Array, Array, About], Count]
AUTO, NORM = "auto", "norm"
DECISIONS = 0.99
"""Share of the decisions of an output that is kept, unless told otherwise."""
_SUM = 1e-3
"""How far from 1 the sum of probabilities may be, or the length of rows of length 1."""
_CERTAIN, _HALF = 0.5, 0.5
"""The threshold of scores, and the part of the largest that it is where none reaches it."""
_LEAST_ROW = 16
"""Elements that rows of length 1 have at the least: of a few, this is chance."""
_LETTERS, _WORDS = 8, 256
"""Classes that lists have at the least: alone, and beside other outputs, where few numbers may be of boxes."""
_DETECTION = 7
_NEVER = -8.0
"""A raw score whose sigmoid, 0.0003, is no as much as that of any below."""


@dataclass(frozen=True)
class Seen:
    """An output of the float network: what made it, but for ops that only move it, and what it was on samples."""

    maker: Operation | None
    moved: bool
    arrays: Sequence[Array]
    alone: bool
    """Whether no output of the net has scores of its own: then raw numbers are what is decided by."""
    sole: bool = False
    """Whether it is the only output."""
    tokens: bool = False
    """Whether any input is integers, as of text, and no picture or sound."""

    @property
    def name(self) -> str:
        """Of the op that made it."""
        return "" if self.maker is None else self.maker.short_name

    @property
    def of_map(self) -> bool:
        """Whether the op that made it gives more than one row of numbers of a sample."""
        return self.maker is not None and sum(n > 1 for n in self.maker.results[0].shape[1:]) > 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one step."""
        return self.arrays[0].shape

    @property
    def is_float(self) -> bool:
        """Whether it is real numbers."""
        return self.arrays[0].dtype.kind == "f"


@dataclass(frozen=True)
class Kind:
    """fits: what is known of an output if it is of this kind, else None. said: what is counted."""

    name: str
    fits: Callable[[Seen], About | None]
    measure: Measure
    said: str


@dataclass(frozen=True)
class Decided:
    """How one output is judged."""

    kind: Kind
    about: About

    def count(self, found: Array, wanted: Array) -> Count:
        """Decisions of one step; of an output without numbers, none."""
        mine, theirs = (np.nan_to_num(x.reshape(wanted.shape)) if x.dtype.kind == "f" else x for x in (found, wanted))
        return self.kind.measure(mine, theirs, self.about) if wanted.size else Count()


@dataclass(frozen=True)
class Decisions:
    """By output that decides anything, how it is judged; own: a function of the user's in place of that."""

    outputs: Mapping[str, Decided]
    own: Callable[[Outputs, Outputs], tuple[float, int]] | None = None
    own_name: str = ""

    def count(self, found: Outputs, wanted: Outputs) -> dict[str, Count]:
        """Decisions of one step, by output. Raises UsageError where a user's function raises, or gives other things."""
        if self.own is None:
            return self._counted(found, wanted)
        try:
            kept, of = self.own(found, wanted)
            return {self.own_name: Count(float(kept), int(of))}
        except Exception as error:  # whatever a function of the user's raises
            raise UsageError(
                f"function '{self.own_name}' raised {type(error).__name__}: {error}",
                remedy="correct the function: (outputs, float outputs) -> (kept, of)",
            ) from error

    def _counted(self, found: Outputs, wanted: Outputs) -> dict[str, Count]:
        return {name: each.count(found[name], wanted[name]) for name, each in self.outputs.items()}

    @property
    def least(self) -> dict[str, float]:
        """What lower scores are as good as, by output of raw scores."""
        return {name: each.about.least for name, each in self.outputs.items() if np.isfinite(each.about.least)}

    def bounded(self, outputs: Outputs) -> dict[str, Array]:
        """Outputs as errors in them count: scores below `least` are all the same."""
        least = self.least
        return {n: np.maximum(x, np.float32(least[n])) if n in least else x for n, x in outputs.items()}

    def said(self, name: str) -> str:
        """What is counted of an output."""
        return name if self.own is not None else self.outputs[name].kind.said


def decisions(function: Function, steps: Sequence[Outputs], judged: Judged = AUTO) -> Decisions:
    """How the outputs of a float network are judged.

    Args:
        steps: float outputs by name, of samples. judged: "auto", a name of `KINDS` for all outputs that it fits by
            shape, "norm" for none, or a function (outputs, float outputs) -> (kept, of), also as `module:function`.

    Raises UsageError for a kind that is none.
    """
    if checked_kind(judged) == NORM:
        return Decisions({})
    if callable(judged) or ":" in judged:
        own = judged if callable(judged) else find_function(judged)
        return Decisions({}, own, judged if isinstance(judged, str) else getattr(judged, "__name__", "decisions"))
    made = {name: maker_of(value) for name, value in zip(function.output_names, function.returned)}
    sole, tokens = len(made) == 1, not all(value.type.is_float for value in function.arguments)
    seen = {
        name: Seen(maker, moved, [step[name] for step in steps], True, sole, tokens)
        for name, (maker, moved) in made.items()
        if steps and name in steps[0] and steps[0][name].size
    }
    scored = {name for name, each in seen.items() if any(kind.fits(each) is not None for kind in KINDS[:_SURE])}
    found: dict[str, Decided] = {}
    for name, each in seen.items():
        own_kind = replace(each, alone=not scored)
        for kind in KINDS:
            about = kind.fits(own_kind) if judged == AUTO else _forced(kind, own_kind, judged)
            if about is not None:
                found[name] = Decided(kind, about)
                break
    return Decisions(found)


def per_sample(function: Function, found: Outputs, wanted: Outputs) -> Values:
    """Decisions of each sample, on axis 0: how many are kept, and of how many, by output."""
    named = {name: wanted[name] for name in found}
    shaped = {name: array.reshape(named[name].shape) for name, array in found.items()}
    judge = decisions(function, [named])
    values: Values = {}
    for k in range(len(next(iter(named.values())))):
        mine, theirs = ({name: x[k : k + 1] for name, x in each.items()} for each in (shaped, named))
        for name, count in judge.count(mine, theirs).items():
            values.setdefault(KEPT + name, []).append(count.kept)
            values.setdefault(OF + name, []).append(float(count.of))
    return values


def checked_kind(judged: Judged) -> Judged:
    """What outputs decide, as `decisions` takes it. Raises UsageError for a kind that is none."""
    if isinstance(judged, str) and ":" in judged:
        find_function(judged)
    elif isinstance(judged, str) and judged not in (known := (AUTO, *dict.fromkeys(each.name for each in KINDS), NORM)):
        remedy = f"use {', '.join(known)}, or module:function of your own"
        raise UsageError(f"'{judged}' is no kind of decisions", remedy=remedy)
    return judged


def maker_of(value: Value) -> tuple[Operation | None, bool]:
    """The op that an output comes from, past ops of one operand that only move it, and whether there are any."""
    op, moved = value.op, False
    while isinstance(op, TensorOp) and op.moves_only and len(op.operands) == 1:
        op, moved = op.operands[0].op, True
    return op, moved


def _forced(kind: Kind, seen: Seen, wanted: str) -> About | None:
    """What is known of an output of a kind that the user names: axis by shape, threshold and classes by samples."""
    if kind.name != wanted or (seen.is_float != (kind.name != "numbers")):
        return None
    fits = kind.fits(seen)
    axis = 1 if len(seen.shape) == 4 and kind.name == "classes" else -1
    return _scores(seen, About(axis)) if fits is None else fits


# -- what fits each kind -----------------------------------------------------------------------------------------------
def _numbers(seen: Seen) -> About | None:
    """Made by arg."""
    return _usual(seen, About(), seen.arrays) if seen.name == "arg" else None


def _probabilities(seen: Seen) -> About | None:
    """At least 0, and of sum 1 along an axis; or flat, and made by a softmax along one."""
    if not seen.is_float:
        return None
    if isinstance(seen.maker, Softmax) and seen.moved:
        shape = seen.maker.results[0].shape
        if len(shape) != len(seen.shape) and seen.maker.axis % len(shape) == len(shape) - 1:
            return _with_usual(seen, About(-1, shape=shape))
    for axis in (len(seen.shape) - 1, 1):
        if 0 < axis < len(seen.shape) and seen.shape[axis] > 1 and all(_sums_to_one(x, axis) for x in seen.arrays):
            return _with_usual(seen, About(axis))
    return None


def _logarithms(seen: Seen) -> About | None:
    """Made by a logarithm of a softmax."""
    if not isinstance(seen.maker, LogSoftmax) or seen.moved:
        return None
    return _with_usual(seen, About(seen.maker.axis))


def _strings(seen: Seen) -> About | None:
    """A list of classes along the last axis, of which most positions have the first or the last one (blank): CTC."""
    if not seen.sole or seen.tokens or len(seen.shape) != 3 or seen.shape[2] < _LETTERS:
        return None
    found = next((about for fits in (_probabilities, _logarithms, _logits) if (about := fits(seen)) is not None), None)
    blanks = (0, seen.shape[2] - 1)
    last = found is not None and found.axis in (-1, 2) and found.usual in blanks
    return About(2, usual=found.usual) if found is not None and last else None


def _detections(seen: Seen) -> About | None:
    """Made by detection_output."""
    fits = seen.name == "detection_output" and seen.shape[-1] == _DETECTION
    return _scores(seen, About(), [x[..., 2] for x in seen.arrays]) if fits else None


def _boxes(seen: Seen) -> About | None:
    """Rows of four numbers that are no scores and then only scores, on the last axis or on a shorter second one."""
    if not seen.is_float or len(seen.shape) != 3:
        return None
    axis = 1 if seen.shape[1] < seen.shape[2] else 2
    if seen.shape[axis] < 5 or seen.shape[3 - axis] <= seen.shape[axis]:
        return None
    boxes, scores = (np.concatenate([np.take(x, part, axis).ravel() for x in seen.arrays])
                     for part in (range(4), range(4, seen.shape[axis])))  # fmt: skip
    if not _within_one(scores) or _within_one(boxes) or scores.max(initial=0) <= 0:
        return None
    rows = [np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]) for x in seen.arrays]
    first = axis == 2 and rows[0].shape[1] > 5
    best = [x[:, 4] * x[:, 5:].max(1) if first else x[:, 4:].max(1) for x in rows]
    return _scores(seen, About(axis), best)


def _heat(seen: Seen) -> About | None:
    """Maps of sigmoids."""
    is_map = len(seen.shape) == 4 and min(seen.shape[2:]) > 2
    return _scores(seen, About()) if is_map and _is_sigmoid(seen.maker) else None


def _sigmoids(seen: Seen) -> About | None:
    """Other sigmoids."""
    return _scores(seen, About()) if seen.is_float and _is_sigmoid(seen.maker) else None


def _embedding(seen: Seen) -> About | None:
    """Rows of length 1."""
    if not seen.is_float or len(seen.shape) < 2 or seen.shape[-1] < _LEAST_ROW:
        return None
    sizes = np.concatenate([np.linalg.norm(x.reshape(-1, x.shape[-1]).astype(np.float64), axis=1) for x in seen.arrays])
    return About() if (np.abs(sizes - 1) < _SUM).all() else None


def _logits(seen: Seen) -> About | None:
    """What a layer gives without a softmax, where no other output has scores, and different samples have other bests.

    Rows of numbers from the last layer; lists of them if they may be letters, or words beside other outputs; maps that
    were made larger at the end.
    """
    shape = tuple(n for k, n in enumerate(seen.shape) if k < 2 or n > 1)
    if not seen.is_float or not seen.alone or len(shape) < 2:
        return None
    rank, layer = len(shape), isinstance(seen.maker, TensorOp) and seen.maker.affine
    rows = rank == 2 and layer and shape[1] > 1 and not seen.of_map
    letters = rank == 3 and layer and shape[2] >= (_LETTERS if seen.sole else _WORDS)
    maps = rank == 4 and seen.name in ("resize", "upsample", "deconv") and shape[1] > 1
    axis = 1 if rows or maps else len(seen.shape) - 1
    if not rows and not letters and not maps:
        return None
    best = np.concatenate([x.argmax(axis).ravel() for x in seen.arrays])
    return _with_usual(seen, About(axis)) if len(np.unique(best)) > 1 else None


def _anchors(seen: Seen) -> About | None:
    """A list of one raw number for each place of a map that a layer gives, some above 0, as before a sigmoid."""
    layer = isinstance(seen.maker, TensorOp) and seen.maker.affine
    fits = seen.is_float and seen.alone and layer and seen.of_map and len(seen.shape) > 1
    fits = fits and max(seen.shape[1:]) == prod(seen.shape[1:])
    return About(threshold=0, least=_NEVER) if fits and any((x > 0).any() for x in seen.arrays) else None


def _sums_to_one(array: Array, axis: int) -> bool:
    return array.min() >= -_SUM and bool((np.abs(array.sum(axis, dtype=np.float64) - 1) < _SUM).all())


def _within_one(array: Array) -> bool:
    return bool(array.min(initial=0) >= 0 and array.max(initial=0) <= 1)


def _is_sigmoid(op: Operation | None) -> bool:
    """Whether an op is a sigmoid, or joins or reshapes nothing but sigmoids."""
    if not isinstance(op, TensorOp):
        return False
    if op.short_name in ("concat", "reshape"):
        return all(_is_sigmoid(value.op) for value in op.operands)
    return op.short_name in ("sigmoid", "hard_sigmoid")


def _scores(seen: Seen, about: About, scores: Sequence[Array] | None = None) -> About:
    """With a threshold that some scores reach."""
    top = max(float(x.max(initial=0)) for x in scores or seen.arrays)
    return replace(about, threshold=_CERTAIN if top > _CERTAIN or top <= 0 else _HALF * top)


def _with_usual(seen: Seen, about: About) -> About:
    shaped = [x if about.shape is None else x.reshape(-1, *about.shape[1:]) for x in seen.arrays]
    return _usual(seen, about, [x.argmax(about.axis) for x in shaped])


def _usual(seen: Seen, about: About, numbers: Sequence[Array]) -> About:
    """With the class (background, blank) that more than half of the positions of each sample have, if there is one."""
    every = np.concatenate([x.ravel() for x in numbers])
    if prod(numbers[0].shape[1:]) <= 1:
        return about
    known, counts = np.unique(every, return_counts=True)
    most = int(counts.argmax())
    return replace(about, usual=int(known[most])) if len(known) > 1 and counts[most] > len(every) / 2 else about


KINDS = (
    Kind("numbers", _numbers, measures.numbers_kept, "numbers of classes"),
    Kind("strings", _strings, measures.letters_kept, "letters of strings"),
    Kind("classes", _probabilities, measures.classes_kept, "largest classes"),
    Kind("classes", _logarithms, measures.classes_kept, "largest classes"),
    Kind("detections", _detections, measures.detections_kept, "detections"),
    Kind("boxes", _boxes, measures.boxes_kept, "boxes over the threshold"),
    Kind("heat", _heat, measures.peaks_kept, "peaks over the threshold"),
    Kind("scores", _sigmoids, measures.sides_kept, "sides of the threshold"),
    Kind("embedding", _embedding, measures.cosines, "cosines"),
    Kind("classes", _logits, measures.classes_kept, "largest classes"),
    Kind("scores", _anchors, measures.found_kept, "scores above 0"),
)
_SURE = len(KINDS) - 2
"""Kinds that an output has whatever others are; raw numbers are classes only where there are none of these."""
