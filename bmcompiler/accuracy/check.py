"""How far a quantized network is from float, seen while it is compiled: no network leaves without its error.

Both networks run between the pass that quantizes and those that lay things out: on the samples that were held back, if
there are enough of them, else on those of calibration; on all of them where that is quick. Layers of large nets are
looked at on fewer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bmcompiler.evaluation.confidence import SURE, share_at_least
from bmcompiler.evaluation.decisions import DECISIONS
from bmcompiler.inputs.source import Data
from bmcompiler.ir import Module
from bmcompiler.ir.copying import copy_module
from bmcompiler.passmanager import Pass, PassContext, Pipeline
from bmcompiler.spelling import spelled
from bmcompiler.target import Target
from bmcompiler.text import at_most

if TYPE_CHECKING:
    from bmcompiler.accuracy.pairs import Pair
    from bmcompiler.accuracy.statistics import LayerNumbers, Numbers, OutputNumbers

_PRODUCTS, _JUDGED = 4 << 30, 64 << 30
"""Multiply-accumulates of the samples whose layers are looked at together, at most, and of those that were held back
and judge outputs; but one sample is always taken."""
_OP = 1 << 20
"""Multiply-accumulates that take as long as the interpreter takes for any op."""
_BYTES = 1 << 28
"""Of the float outputs of all samples together, at most: they are kept until it is known what they decide."""
_WORST = 5
_FEW_CODES = 0.02
_VARIES = 2.0**-8
"""Part of a channel's largest magnitude that is no more than 8 bits, or a float of 16, tell apart."""
_LARGE_ERROR, _RUINED = 0.05, 0.5
"""Relative error of an output that is told: of one that decides nothing, and of any."""


@dataclass(frozen=True)
class OutputError:
    """Relative error of an output, and of its worst channel (axis 1)."""

    name: str
    error: float
    channel: int
    channel_error: float


@dataclass(frozen=True)
class Kept:
    """How many decisions of an output are those of float (of cosines, their sum), of how many, and what they are.

    least: share of those of other samples that are kept at least (`share_at_least`); None where samples are not unseen.
    """

    name: str
    kept: float
    of: int
    what: str
    least: float | None = None

    def __str__(self) -> str:
        return f"{self.kept / max(self.of, 1):.1%} of {self.of:,} {self.what}"


@dataclass(frozen=True)
class LayerError:
    """A layer that adds much error: signal to noise of its result in dB, share of codes used (None in float)."""

    layer: str
    op: str
    sqnr: float
    used_codes: float | None
    cause: str


@dataclass(frozen=True)
class Accuracy:
    """What was measured on so many samples; `warnings` are sentences with a remedy.

    unseen: whether neither calibration nor a choice has seen the samples. decisions: of the outputs that decide.
    at_most: error of the worst output on other samples (`larger_at_most`); None where nothing is said of them.
    """

    samples: int
    outputs: tuple[OutputError, ...]
    worst: tuple[LayerError, ...]
    warnings: tuple[str, ...]
    seconds: float
    decisions: tuple[Kept, ...] = ()
    unseen: bool = False
    at_most: float | None = None

    @property
    def on(self) -> str:
        """What it was measured on."""
        samples = f"{self.samples:,} sample{'s' if self.samples > 1 else ''}"
        return f"on {samples} held back from calibration" if self.unseen else f"on {samples} of calibration"

    def not_kept(self, error: float) -> list[str]:
        """The sentence that other samples may be further from float than was asked for, where they may."""
        if self.at_most is None or self.at_most <= error:
            return []
        least = max(int(1000 * error**2 / self.at_most), 1) / 10
        return [
            f"outputs of other samples may be {at_most(self.at_most)} from float (confidence {SURE:.0%}), "
            f"and {error * 100:.3g} % was asked for. Remedy: more samples, or {spelled('max_error', least)}"
        ]


class AccuracyCheck:
    """Called after every pass (`run_pipeline`); `found` is there once a network with samples has lost bits.

    held_back: samples that nobody else sees; None: those of calibration are taken.
    """

    def __init__(self, target: Target, ctx: PassContext, pipeline: Pipeline) -> None:
        self.target, self.ctx = target, ctx
        self.found: Accuracy | None = None
        self.held_back: Data | None = None
        self._real: Module | None = None
        lossy = [at for at, each in enumerate(pipeline) if each.loses_bits]
        if not lossy and target.rounds_floats and pipeline.passes:
            lossy = [len(pipeline.passes) - 1]
        self._before = pipeline.passes[lossy[0] - 1] if lossy and lossy[0] else None
        self._last = pipeline.passes[lossy[-1]] if lossy else None

    @property
    def measures(self) -> bool:
        """Whether a pass or the chip loses bits."""
        return self._last is not None

    def __call__(self, done: Pass, module: Module) -> None:
        if self.found is not None:
            return
        if done is self._before:
            self._real = copy_module(module)
        elif done is self._last and self._real is not None:
            from bmcompiler.accuracy.pairs import paired  # nothing of it in a net that stays float
            from bmcompiler.accuracy.statistics import measure
            from bmcompiler.accuracy.study import steps_of

            start = time.perf_counter()
            pair = paired(self._real, module, self.target)
            data = self.ctx.data if self.held_back is None else self.held_back
            unseen = self.held_back is not None
            looked = _affordable(self._real, _PRODUCTS)
            runs = _affordable(self._real, _JUDGED) if unseen else looked
            steps = list(steps_of(self._real.main, data, runs * _batch(self._real)))
            every = -(-len(steps) // looked)
            shown = self.ctx.progress(steps, "comparing with float", len(steps)) if self.ctx.progress else steps
            numbers = measure(pair, shown, self.ctx.decisions, lambda number: number % every == 0)
            self.found = _summed(pair, numbers, len(steps), start, unseen=unseen)
            self._real = None


def _affordable(module: Module, products: int) -> int:
    """Runs of so many products together, at least one."""
    each = sum(op.products() + _OP for op in module.main.ops)
    size = sum(value.type.size * 4 for value in module.main.returned)
    return max(1, min(products // max(1, each), _BYTES // max(1, size)))


def _batch(module: Module) -> int:
    """Samples of a run."""
    return max((value.shape[0] for value in module.main.arguments if value.shape), default=1)


def _summed(pair: Pair, numbers: Numbers, samples: int, start: float, *, unseen: bool) -> Accuracy:
    from bmcompiler.accuracy.causes import likely_cause

    outputs = tuple(
        OutputError(name, each.error, worst, float(each.channel_errors[worst]))
        for name, each in numbers.outputs.items()
        if each.signal is not None
        for worst in [int(np.argmax(each.channel_errors))]
    )
    worst = sorted(numbers.layers.values(), key=lambda row: -_added(pair, numbers, row))[:_WORST]
    layers = tuple(
        LayerError(row.layer.name, row.layer.kind, row.sqnr, row.used_codes, likely_cause(pair, row)) for row in worst
    )
    kept = tuple(
        Kept(name, count.kept, count.of, numbers.judge.said(name), least)
        for name, count in numbers.kept.items()
        for least in [share_at_least(numbers.counts[name]) if unseen else None]
    )
    warnings = tuple(_warnings(numbers, outputs, kept, pair.target))
    most = max((each.at_most for each in numbers.outputs.values() if each.signal is not None), default=0.0)
    said = most if unseen and samples > 1 and np.isfinite(most) and most > 0 else None
    return Accuracy(samples, outputs, layers, warnings, time.perf_counter() - start, kept, unseen, said)


def _added(pair: Pair, numbers: Numbers, row: LayerNumbers) -> float:
    """Squared relative error that the layer adds to that of what it reads."""
    twins = {layer.compiled: layer.name for layer in pair.layers}
    before = [numbers.layers[twins[value]].error for value in row.layer.reads if value in twins]
    return row.error**2 - max(before, default=0.0) ** 2


def _warnings(numbers: Numbers, outputs: tuple[OutputError, ...], kept: tuple[Kept, ...], target: Target) -> list[str]:
    """What a user must know.

    1. An output channel that is constant on the chip and not in float.
    2. A tensor that uses hardly any of its codes.
    3. Decisions of an output that are not those of float; of an output that decides nothing, that it is far from it.
    4. An output that is no number where float has one: its error is none either; or where float has none.
    """
    found = []
    ranks = "bmnet-accuracy ranks the layers that cause it"
    if any(row.used_codes is not None for row in numbers.layers.values()):
        nearer, wider = f"{spelled('max_error', 1)}; {ranks}", "a precision of wider range for that layer"
    elif "f32" in target.precisions:
        nearer, wider = f"{spelled('quantize', 'f32')}; {ranks}", spelled("quantize", "f32")
    else:
        nearer, wider = ranks, "scale the weights before that layer down"
    for name, each in numbers.outputs.items():
        dead = _constant_channels(each, numbers.judge.least.get(name))
        if dead:
            shown = ", ".join(map(str, dead[:5])) + (" and more" if len(dead) > 5 else "")
            found.append(
                f"output '{name}': channel {shown} is always the same on the chip, and not in float. "
                "Remedy: bmnet-accuracy names the layer; keep it in float"
            )
    for row in numbers.layers.values():
        used = row.used_codes
        if used is not None and used < _FEW_CODES and row.peak > 0 and row.varied:
            found.append(
                f"layer '{row.layer.name}' uses {used:.1%} of its codes. "
                f"Remedy: another {spelled('method')}, or samples that are like the real ones"
            )
    for decided in kept:
        if decided.of and decided.kept < DECISIONS * decided.of:
            found.append(f"output '{decided.name}' keeps {decided}. Remedy: {nearer}")
    deciding = {each.name for each in kept if each.of}
    for output in outputs:
        if not np.isfinite(output.error):
            layer = _first(numbers, lambda row: not np.isfinite(row.noise))
            found.append(
                f"output '{output.name}' holds NaN or infinity (first in layer '{layer}'), and numbers in float. "
                f"Remedy: {wider}"
            )
        elif numbers.outputs[output.name].undefined:
            layer = _first(numbers, lambda row: row.undefined)
            found.append(
                f"output '{output.name}' holds NaN or infinity (first in layer '{layer}'), as in float. "
                "Remedy: check that the data are prepared as the network expects (scaling, mean)"
            )
        elif output.error > (_RUINED if output.name in deciding else _LARGE_ERROR):
            found.append(f"output '{output.name}' is {output.error:.1%} from float. Remedy: {ranks}")
    return found


def _first(numbers: Numbers, wanted: Callable[[LayerNumbers], bool]) -> str:
    """The first layer of a kind, "" without any."""
    ops = (row.layer.real.op for row in numbers.layers.values() if wanted(row))
    return next((op.label for op in ops if op is not None), "")


def _constant_channels(numbers: OutputNumbers, least: float | None) -> list[int]:
    """least: what scores end at, if they do: one that stays there is a sure no."""
    if numbers.low is None or numbers.high is None or numbers.real_low is None or numbers.real_high is None:
        return []
    size = np.maximum(np.abs(numbers.real_high), np.abs(numbers.real_low))
    same, varied = numbers.low == numbers.high, numbers.real_high - numbers.real_low > _VARIES * size
    sure = numbers.high == least
    return np.flatnonzero(same & varied & ~sure & (numbers.values > 1)).tolist()
