"""Nets whose weights are integers already, with the table that they were made by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import NO_LAYOUT, THRESHOLDS
from bmcompiler.errors import CalibrationError
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import INTEGER_WEIGHTS, TOWARDS_ZERO, WEIGHT_SHIFT, is_weight
from bmcompiler.numeric.arrays import Floats
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Elu
from bmcompiler.ops.layers.nn import Convolution, Matmul
from bmcompiler.passes.precision.calibrate import thresholds
from bmcompiler.passes.quantization.formulas import I8, I16
from bmcompiler.passes.quantization.state import calibration_of
from bmcompiler.passes.rewriting import make
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.quant.table import CalibrationTable, LayerEntry
from bmcompiler.text import has_versions, without_version

_FULL = 64
"""A quantized weight tensor reaches at least this magnitude: its shift is the largest that fits (bm1880.md 11.2)."""


@dataclass(frozen=True)
class IntegerWeights(Pass):
    """Give the layers of a quantized source net their real weights back, for quantize to find the same integers.

    A net counts as quantized when it comes with a table, the weights and biases of all its layers are integers in the
    ranges of int8 and int16, and those of some layer reach 64. Then, for input and output thresholds tx and ty and the
    table's shift r, weights are q * (ty / tx) / 2**r and biases q * ty / 128 / 2**r (bm1880.md 11.2, solved for the
    reals). The layers keep r as a note, and the function a note that every threshold of the table must be kept.

    With a table that has shifts, integers of an elu are cut towards zero, as the vendor's plug-in does.

    Raises CalibrationError where a layer has no shift in the table, and for integer constants of other ops.
    """

    name = "integer-weights"
    requires = (THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        table = ctx.table
        if table is None or not calibration_of(ctx).was_given(table):
            return PassResult(False)
        elus = [op for function in module.functions for op in function.ops if isinstance(op, Elu)]
        if any(entry.right_shift_width is not None for entry in table.layers):
            for op in elus:
                op.attributes[TOWARDS_ZERO] = True
        found = [_Layers(module, function).restore(table) for function in module.functions]
        if any(found):
            ctx.notes.append(f"the weights of {sum(found)} layers are integers already and are taken as they are")
        return PassResult(any(found))


class _Layers:
    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        ops = [op for op in function.ops if isinstance(op, TensorOp)]
        self.layers = [op for op in ops if isinstance(op, (Convolution, Matmul)) and is_weight(op.operands[1])]
        self.others = [op for op in ops if op not in self.layers]

    def restore(self, table: CalibrationTable) -> int:
        """Layers that were changed: all of a quantized net, none of another."""
        if not self._quantized():
            return 0
        for op in self.others:
            if any(self._integers(value, I8) for value in op.operands if is_weight(value)):
                raise CalibrationError(
                    "the net is quantized already, and what the integers of this layer mean is not known",
                    layer=op.label,
                    kind=op.short_name,
                    remedy="compile the float net with the same table",
                )
        entries = {entry.name: entry for entry in table.layers}
        versions = has_versions(self.function.input_names, entries)
        real = thresholds(self.function)
        for op in self.layers:
            names = [without_version(name) if versions else name for name in op.location]
            self._restore(op, [entries[name] for name in names if name in entries], real)
        self.function.attributes[INTEGER_WEIGHTS] = True
        return len(self.layers)

    def _quantized(self) -> bool:
        constants = [(op.operands[1], I8) for op in self.layers]
        constants += [(op.operands[2], I16) for op in self.layers if len(op.operands) > 2]
        if not self.layers or not all(self._integers(value, limit) for value, limit in constants):
            return False
        return any(np.abs(self._array(op.operands[1])).max(initial=0) >= _FULL for op in self.layers)

    def _array(self, value: Value) -> Floats:
        assert value.op is not None, "weights are made by an op"
        return self.module.weights[value.op.attributes["key"]]

    def _integers(self, value: Value, limit: int) -> bool:
        """Whether a constant is integers that are not all 0, 1 or -1, within limits, or a bias."""
        if not is_weight(value):
            return False
        array = self._array(value)
        if array.size == 0 or not (np.abs(array) <= limit + 1).all() or not (array == np.floor(array)).all():
            return False
        return limit == I16 or bool(np.abs(array).max() > 1)

    def _restore(self, op: Operation, entries: list[LayerEntry], real: dict[Value, float]) -> None:
        shift = next((entry.right_shift_width for entry in entries if entry.right_shift_width is not None), None)
        if shift is None or not 0 <= shift < 32:
            raise CalibrationError(
                "its weights are integers already, and the calibration table has no right_shift_width for it",
                layer=op.label,
                kind=op.short_name,
                remedy="give the table that was written together with the weights (.pb2), or the float weights",
            )
        tx, ty = real[op.operands[0]], real[op.result]
        factors = (ty / tx / 2.0**shift, ty / 128 / 2.0**shift)
        for index, factor in enumerate(factors, 1):
            if index < len(op.operands):
                self._scale(op, index, factor)
        op.attributes[WEIGHT_SHIFT] = shift

    def _scale(self, op: Operation, index: int, factor: float) -> None:
        old = op.operands[index]
        assert old.op is not None, "weights are made by an op"
        array = (self._array(old).astype(np.float64) * factor).astype(np.float32)
        key = self.module.weights.add(old.op.attributes["key"], array)
        new = make("weight", (), {"key": key}, [old.type], op.location)
        self.function.body.insert_before(op, new)
        op.set_operand(index, new.result)
