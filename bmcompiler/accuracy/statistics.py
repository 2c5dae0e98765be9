"""Numbers of each layer over the samples: how far from float, which codes it uses, what is cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import log10, sqrt
from typing import Any

import numpy as np

from bmcompiler.accuracy.ends import cut_energy
from bmcompiler.accuracy.pairs import Layer, Pair, real_values
from bmcompiler.accuracy.steep import steep_energy
from bmcompiler.evaluation.confidence import larger_at_most, share_not_seen
from bmcompiler.evaluation.decisions import AUTO, Decisions, decisions
from bmcompiler.evaluation.measures import Count
from bmcompiler.interpreter import Observer, run_function
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import Judged
from bmcompiler.proof.sample import device_values

_TINY = 1e-30
_BYTES = ("i8", "u8")
_MASKED = 1e30
"""Magnitudes from which values mean "none": masks of attention hold the lowest float, and any low value will do."""
_WEAK = 0.01
"""A channel counts with at least this share of the output's mean magnitude: noise in what is always 0 is no loss."""


@dataclass
class LayerNumbers:
    """Sums over the samples for one layer.

    Attributes:
        signal, noise: energy of the float values, and of the difference. cut: the part of `noise` in values at the end
            of the range. peak: largest magnitude. undefined: whether float values were NaN or infinite.
        codes: how often each of 256 codes occurs, None where the tensor is no int8. channels: largest magnitude of
            each channel (axis 1).
        output_error: error at the outputs when this layer alone is quantized, None until it is measured.
    """

    layer: Layer
    signal: float = 0.0
    noise: float = 0.0
    cut: float = 0.0
    saturated: float = 0.0
    peak: float = 0.0
    samples: int = 0
    varied: bool = False
    undefined: bool = False
    codes: Array | None = None
    channels: Array | None = None
    output_error: float | None = None

    @property
    def sqnr(self) -> float:
        """Signal to quantization noise, dB; 99 where there is no noise."""
        return min(99.0, 10 * log10(max(max(self.signal, _TINY) / max(self.noise, _TINY), _TINY)))

    @property
    def error(self) -> float:
        """Relative error of the result, errors of the layers before included."""
        return sqrt(self.noise / max(self.signal, _TINY))

    @property
    def used_codes(self) -> float | None:
        """Share of the 256 codes that occur."""
        return None if self.codes is None else float((self.codes > 0).mean())

    @property
    def saturated_share(self) -> float:
        """Share of values at the ends of the range."""
        return self.saturated / max(self.samples, 1)

    def add(self, real: Array, found: Array) -> None:
        """One step of samples: float values and the numbers of the quantized tensor; without elements, nothing."""
        if not real.size:
            return
        type = self.layer.compiled.type
        magnitudes, values, numbers = np.abs(real), real, real_values(found, type).astype(np.float64)
        counted = magnitudes < _MASKED
        if not counted.all():
            self.undefined = self.undefined or not np.isfinite(real).all()
            values, numbers = (np.where(counted, each, 0) for each in (values, numbers))
        difference = numbers - values
        self.signal += float(np.square(values, dtype=np.float64).sum())
        self.noise += float(np.square(difference).sum())
        self.peak = max(self.peak, float(magnitudes.max()))
        self.samples += 1
        self.varied = self.varied or bool(real.max() > real.min())
        axes = tuple(i for i in range(real.ndim) if i != 1)
        peaks = magnitudes.max(axis=axes) if real.ndim > 1 else magnitudes
        self.channels = peaks if self.channels is None else np.maximum(self.channels, peaks)
        if type.dtype in _BYTES:
            low, high = (-128, 127) if type.dtype == "i8" else (0, 255)
            ends = (found == high) | ((found == low) & (low < 0))
            self.saturated += float(ends.mean())
            self.cut += float(np.square(difference[ends]).sum())
            counts = np.bincount((found.view(np.uint8) ^ np.uint8(-low)).ravel(), minlength=256)
            self.codes = counts if self.codes is None else self.codes + counts


@dataclass
class OutputNumbers:
    """Energy of an output and of its error, its range on the chip and in float, per channel (axis 1).

    `values`: how many each channel has. `undefined`: whether there were NaN or infinity in float, which count nothing.
    `steps`: energies of error and output in each step. `steep`: energy of error that a step may have (`steep_energy`).
    `cut`: energy that is cut off of a step of others (`cut_energy`).
    """

    signal: Array | None = None
    noise: Array | None = None
    low: Array | None = None
    high: Array | None = None
    real_low: Array | None = None
    real_high: Array | None = None
    values: int = 0
    undefined: bool = False
    steps: list[tuple[float, float]] = field(default_factory=list)
    steep: float | None = None
    cut: float = 0.0

    def add(self, wanted: Array, found: Array) -> None:
        """One step of samples; an output without elements has no error."""
        if not wanted.size:
            return
        if wanted.ndim < 2:
            wanted, found = wanted.reshape(1, -1), found.reshape(1, -1)
        there = np.isfinite(wanted)
        if not there.all():
            self.undefined = True
            wanted, found = (np.where(there, each, 0) for each in (wanted, found))
        axes = tuple(i for i in range(wanted.ndim) if i != 1)
        signal = np.square(wanted, dtype=np.float64).sum(axis=axes)
        noise = np.square(found.astype(np.float64) - wanted).sum(axis=axes)
        self.signal = signal if self.signal is None else self.signal + signal
        self.noise = noise if self.noise is None else self.noise + noise
        self.steps.append((float(noise.sum()), float(signal.sum())))
        self.values += wanted.size // max(1, wanted.shape[1])
        self.low, self.high = _widened(self.low, self.high, found, axes)
        self.real_low, self.real_high = _widened(self.real_low, self.real_high, wanted, axes)

    @property
    def error(self) -> float:
        """Relative error of the whole output (Euclidean)."""
        assert self.signal is not None, "errors are asked of floats alone"
        assert self.noise is not None, "errors are asked of floats alone"
        return float(np.sqrt(self.noise.sum() / max(self.signal.sum(), _TINY)))

    @property
    def at_most(self) -> float:
        """The error that other such samples have at most (`larger_at_most`); as many as may be steep, are.

        What integers cut off of others comes to it.
        """
        noise, signal = np.array(self.steps).T[:, :, None]
        mean = max(float(signal.mean()), _TINY)
        most = sqrt(self.error**2 * float(larger_at_most(noise, signal)[0]) + self.cut / mean)
        if self.steep is None:
            return most
        steep = share_not_seen(len(self.steps)) * self.steep / mean
        return max(most, sqrt(self.error**2 + steep))

    @property
    def channel_errors(self) -> Array:
        """Relative error of each channel; weak ones are measured by a share of the mean."""
        assert self.signal is not None, "errors are asked of floats alone"
        assert self.noise is not None, "errors are asked of floats alone"
        floor = _WEAK**2 * self.signal.mean()
        return np.sqrt(self.noise / np.maximum(np.maximum(self.signal, floor), _TINY))

    @property
    def balanced(self) -> float:
        """Root mean square of the errors of channels: one that is small counts like one that is large."""
        return float(np.sqrt(np.square(self.channel_errors).mean()))


def _widened(low: Array | None, high: Array | None, array: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    least, most = array.min(axis=axes), array.max(axis=axes)
    return (least if low is None else np.minimum(low, least)), (most if high is None else np.maximum(high, most))


@dataclass
class Numbers:
    """Of all layers by name, and of all outputs by name; how these are judged, and which decisions each step kept."""

    layers: dict[str, LayerNumbers]
    outputs: dict[str, OutputNumbers]
    judge: Decisions
    counts: dict[str, list[Count]]

    @property
    def kept(self) -> dict[str, Count]:
        """Decisions of all steps, by output."""
        return {name: sum(counts, Count()) for name, counts in self.counts.items()}


def measure(
    pair: Pair, steps: Iterable[Mapping[str, Array]], judged: Judged = AUTO, looks: Callable[[int], bool] | None = None
) -> Numbers:
    """Run both networks on steps of float inputs.

    Args:
        judged: as `decisions` takes it. looks: whether layers are looked at in a step, by its number; default: in all.
            Of the others outputs alone are.
    """
    wanted_outputs: list[dict[str, Array]] = []
    found_outputs: list[dict[str, Array]] = []
    rows = {layer.name: LayerNumbers(layer) for layer in pair.layers}
    outputs = {name: OutputNumbers() for name in pair.real.main.output_names}
    for number, inputs in enumerate(steps):
        looked = looks is None or looks(number)
        seen = float_values(pair, inputs) if looked else _float_outputs(pair, inputs)
        given = {
            name: device_values(inputs[name], argument.type)
            for name, argument in zip(pair.compiled.main.input_names, pair.compiled.main.arguments)
        }
        wanted = {row.layer.compiled: row for row in rows.values()} if looked else {}

        def observe(value: Value, array: Array, wanted: Any = wanted, seen: Any = seen) -> None:
            if value in wanted:
                wanted[value].add(seen[wanted[value].layer.real], array)

        found = run_function(pair.compiled, pair.compiled.main, given, observe, pair.target)
        for name, value, returned in zip(outputs, pair.real.main.returned, pair.compiled.main.returned):
            if value.type.is_float:
                found[name] = real_values(found[name], returned.type)
        wanted_outputs.append({name: seen[value] for name, value in zip(outputs, pair.real.main.returned)})
        found_outputs.append(found)
    judge = decisions(pair.real.main, wanted_outputs, judged)
    counts: dict[str, list[Count]] = {}
    for mine, theirs in zip(found_outputs, wanted_outputs):
        real, known = map(judge.bounded, (theirs, mine))
        for name, numbers in outputs.items():
            numbers.add(real[name], known[name])
        for name, count in judge.count(mine, theirs).items():
            counts.setdefault(name, []).append(count)
    errors = {
        row.layer.real: row.noise / (row.samples * row.layer.real.type.size) for row in rows.values() if row.samples
    }
    for name, value, returned in zip(outputs, pair.real.main.returned, pair.compiled.main.returned):
        outputs[name].steep = steep_energy(value, errors)
        if value.type.is_float:
            exact = [judge.bounded(each)[name] for each in wanted_outputs]
            outputs[name].cut = cut_energy(value, returned, exact)
    return Numbers(rows, outputs, judge, counts)


def float_values(pair: Pair, inputs: Mapping[str, Array]) -> dict[Value, Array]:
    """All values of the float network, outputs that are constants among them."""
    seen: dict[Value, Array] = {}
    return seen | _float_outputs(pair, inputs, seen.__setitem__)


def _float_outputs(pair: Pair, inputs: Mapping[str, Array], observer: Observer | None = None) -> dict[Value, Array]:
    """The values that the float network returns."""
    found = run_function(pair.real, pair.real.main, inputs, observer)
    return {value: found[name] for name, value in zip(pair.real.main.output_names, pair.real.main.returned)}
