"""Channels of like range: factors that move from one layer into the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS, SOURCE_TYPES
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import STATED, is_weight
from bmcompiler.numeric.arrays import Array, Doubles, Floats, Mask
from bmcompiler.numeric.by_block import blocks, by_block
from bmcompiler.passes.precision.channel_scales import ChannelScales, Layer
from bmcompiler.passes.quantization.state import calibration_of
from bmcompiler.passes.rewriting import make
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.quant.data import some_steps

_ROUNDS = 12
_MOST = 2.0**7
"""The largest factor, and one over the smallest."""
_SAMPLES = 32
_TINY = 1e-12


@dataclass(frozen=True)
class Equalize(Pass):
    """Make channels alike, so that one scale per tensor serves them all; the float net computes the same.

    1. Where only layers and functions f with f(s * x) = s * f(x) lie between, a channel is multiplied by a factor in
       the layer that makes it and divided in those that read it (`channel_scales`; cross-layer equalization, Nagel et
       al. 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction"). The factors bring together
       what a channel needs in the layers that make it, in the values themselves, and in the layers that read it.
    2. Weights that only ever meet a channel that was 0 on all samples are cut to the range of the others of their
       layer: they would set its scale and change nothing.

    Both need samples. With a calibration table, and for models that state their scales, nothing is done: tables speak
    of the network as it is.
    """

    name = "equalize"
    requires = (SOURCE_TYPES, NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False
    dead: bool = field(default=True, metadata={"doc": "rule 2"})

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if ctx.table is not None and calibration_of(ctx).channels is None:
            return PassResult(False)
        changed = False
        for function in module.functions:
            if ctx.data is not None and STATED not in function.attributes:
                changed |= _Equalizer(module, function).run(ctx, self.dead)
        return PassResult(changed)


class _Equalizer:
    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        self.channels = ChannelScales(function, self._constant)
        self.layers = [
            Layer(each.op, self.channels.roots(each.reads), self.channels.roots(each.makes), each.matrix)
            for each in self.channels.layers
        ]

    def _constant(self, value: Value) -> Floats | None:
        return self.module.weights[value.op.attributes["key"]] if is_weight(value) and value.op is not None else None

    def _known(self, value: Value) -> Floats:
        """A constant of a layer, which `ChannelScales` took for having it."""
        found = self._constant(value)
        assert found is not None, "`ChannelScales` took it for a constant"
        return found

    def run(self, ctx: PassContext, dead: bool) -> bool:
        if not any(layer.reads.any() for layer in self.layers):
            return False  # no layer reads channels that another may scale: no run of the net finds a factor
        state = calibration_of(ctx)
        if state.channels is None:
            ranges = self._ranges(ctx)
            state.channels = self._factors(ranges), ranges == 0
        factors, silent = state.channels
        if len(factors) != len(self.channels.parents):
            return False  # another input shape made another net of it
        silent = silent & (np.arange(len(silent)) > 0)
        changed = False
        for layer in self.layers:
            changed |= self._rewrite(layer, factors, silent if dead else np.zeros_like(silent))
        return changed

    # -- what channels need ----------------------------------------------------------------------------------------
    def _ranges(self, ctx: PassContext) -> Doubles:
        """Largest magnitude of each factor's channels, over their values, each value relative to its largest."""
        steps = some_steps(self.function, ctx.data or {}, _SAMPLES)
        peaks: dict[Value, Doubles] = {}

        def observe(value: Value, array: Array) -> None:
            if value in self.channels.ids and value.type.is_float:
                axis = self.channels.ids[value][0]
                rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
                peak = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))
                peaks[value] = np.maximum(peaks.get(value, 0.0), np.nan_to_num(peak))

        for step in steps:
            run_function(self.module, self.function, step, observe)
        found = np.zeros(len(self.channels.parents))
        for value, peak in peaks.items():
            producer = value.op
            if producer is not None and len(value.uses) == 1 and value.users[0].short_name == "relu":
                continue  # what is below 0 there goes no further
            np.maximum.at(
                found, self.channels.roots(self.channels.ids[value][1]), peak / max(peak.max(initial=0.0), _TINY)
            )
        return found

    def _factors(self, ranges: Doubles) -> Doubles:
        """Rule 1: a factor by root, 1 for root 0 and for channels that no layer reads or makes."""
        factors = np.ones_like(ranges)
        live = ranges > 0
        normed = np.zeros_like(live)
        for layer in self.layers:
            normed[layer.makes] |= layer.matrix is None
        for _ in range(_ROUNDS):
            made, read = np.zeros_like(ranges), np.zeros_like(ranges)
            for layer in self.layers:
                if layer.matrix is None:
                    continue
                rows, columns = _peaks(layer.matrix, layer, factors)
                alive = live[layer.reads] | (layer.reads == 0)
                np.maximum.at(made, layer.makes, rows / max(rows.max(initial=0.0), _TINY))
                peak = columns[alive].max(initial=0.0) if alive.any() else columns.max(initial=0.0)
                np.maximum.at(read, layer.reads, np.minimum(columns / max(peak, _TINY), 1.0))
            scaled = ranges * factors
            spread = scaled / max(scaled[1:].max(initial=0.0), _TINY)
            made = np.where(normed, spread, made)
            both = np.sqrt(np.maximum(made, _TINY) * np.maximum(spread, _TINY))
            moves = (made > _TINY) & (read > _TINY) & live
            moves[0] = False
            step = np.where(moves, np.sqrt(np.maximum(read, _TINY) / np.maximum(both, _TINY)), 1.0)
            factors = np.clip(factors * np.sqrt(step), 1 / _MOST, _MOST)
        factors[0] = 1.0
        return factors

    # -- rewriting -------------------------------------------------------------------------------------------------
    def _rewrite(self, layer: Layer, factors: Doubles, silent: Mask) -> bool:
        reads, makes = factors[layer.reads], factors[layer.makes]
        dead = silent[layer.reads]
        if (reads == 1).all() and (makes == 1).all() and not dead.any():
            return False
        op = layer.op
        if layer.matrix is None:
            for index, vector in enumerate(op.operands[1:], 1):
                self._replace(op, index, (self._known(vector) * makes).astype(np.float32))
            return True
        scaled = _times(op, self._known(op.operands[1]), 1 / reads, makes)
        if dead.any() and not dead.all():
            cut = prod(_by_channel(op, scaled.shape, np.where(dead, 0.0, np.inf), np.ones_like(makes)), start=1.0)
            limit = np.abs(scaled).max(where=cut > 0, initial=0.0)
            bounds = np.maximum(cut, limit).astype(np.float32)
            scaled = by_block(lambda w, most: np.clip(w, -most, most), scaled.dtype, scaled, bounds)
        self._replace(op, 1, scaled)
        if len(op.operands) > 2:
            bias = self._known(op.operands[2])
            self._replace(op, 2, (bias * makes.reshape(bias.shape)).astype(np.float32))
        return True

    def _replace(self, op: Operation, index: int, array: Floats) -> None:
        old = op.operands[index]
        key = self.module.weights.add(old.op.attributes["key"] if old.op is not None else op.label, array)
        new = make("weight", (), {"key": key}, [old.type], op.location)
        self.function.body.insert_before(op, new)
        op.set_operand(index, new.result)


def _peaks(matrix: Floats, layer: Layer, factors: Doubles) -> tuple[Doubles, Doubles]:
    """The largest weight, as the factors have it, of each output and of each input; what fits caches at a time."""
    groups, outputs, inputs = matrix.shape
    made = factors[layer.makes].reshape(groups, outputs, 1)
    read = factors[layer.reads].reshape(groups, 1, inputs)
    rows, columns = np.zeros((groups, outputs)), np.zeros((groups, inputs))
    for block in blocks(matrix.shape[:2], inputs):
        part = np.multiply(matrix[block], made[block], dtype=np.float64)
        part /= read[block[0]]
        rows[block] = part.max(axis=2, initial=0.0)
        np.maximum(columns[block[0]], part.max(axis=1, initial=0.0), out=columns[block[0]])
    return rows.reshape(-1), columns.reshape(-1)


def _times(op: Operation, weight: Floats, reads: Doubles, makes: Doubles) -> Floats:
    """Weights of a layer times a factor per channel read and one per channel made, in float64 and rounded once."""

    def scaled(weight: Array, *each: Array) -> Array:
        product = weight.astype(np.float64)
        for factors in each:
            product *= factors
        return product

    return by_block(scaled, np.dtype(np.float32), weight, *_by_channel(op, weight.shape, reads, makes))


def _by_channel(op: Operation, shape: tuple[int, ...], reads: Doubles, makes: Doubles) -> tuple[Doubles, ...]:
    """Factors by channel as they broadcast against the weights of a layer, to be multiplied one after the other."""
    groups = op.attributes.get("group", 1)
    if op.short_name == "scale":
        return ((reads * makes).reshape(shape),)
    if op.short_name == "matmul":
        rows, columns = (makes, reads) if op.attributes.get("transpose_right") else (reads, makes)
        return rows[:, None], columns[None]
    first, second = (makes, reads) if op.short_name == "conv" else (reads, makes)
    both = first.reshape(groups, -1, 1) * second.reshape(groups, 1, -1)  # (groups, outputs, inputs), or inputs first
    return (both.reshape(*shape[:2], *(1,) * (len(shape) - 2)),)
