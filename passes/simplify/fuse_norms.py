"""Recognise normalisations over the last axes that an exporter wrote out as arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Sqrt
from bmcompiler.ops.elements.elementwise import Add, Div, Mul, Pow, Sub
from bmcompiler.ops.layers.norm import LastAxesNorm, LayerNorm, RmsNorm, Scale
from bmcompiler.ops.layers.reduce import Reduce
from bmcompiler.passes.rewriting import PatternPass, PatternTable, activates, make, on, producer, sole
from bmcompiler.passes.simplify.formulas import become, closed

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class FuseNorms(PatternPass):
    """Replace decomposed normalisations by one op; what is inside a pattern must have no other reader (floats only).

    1. (x - mean(x)) / sqrt(mean((x - mean(x))**2) + epsilon), means over the last axes : layer_norm
    2. x / sqrt(mean(x**2) + epsilon), the mean over the last axes                      : rms_norm
    3. layer_norm or rms_norm times a constant, layer_norm plus a constant, also as a scale, where the constant varies
       along the normalised axes only : gamma and beta of the op
    The square root may be a power of 1/2, the division a product with the reciprocal or with a power of -1/2.
    """

    name = "fuse-norms"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Div, self.normalised),
            **on(Mul, self.normalised, self.gamma),
            **on(Add, self.beta),
            **on(Scale, self.gamma_and_beta),
        }

    # -- rules 1 and 2 -----------------------------------------------------------------------------------------------
    def normalised(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rules 1 and 2."""
        for side in (0,) if isinstance(op, Div) else (0, 1):
            data, divisor = op.operands[side], op.operands[1 - side]
            root = self.root(divisor) if isinstance(op, Div) else self.reciprocal_root(divisor)
            if root is None or data.shape != op.type.shape or not op.type.is_float:
                continue
            rank = data.type.rank
            if root.axes != tuple(range(root.axes[0], rank)):
                continue
            attributes = {"axis": root.axes[0], "epsilon": root.epsilon}
            left, right = self.centred(data, root.axes), self.centred(root.base, root.axes)
            if left is not None and right is not None and left[0] is right[0]:
                ops = [op, *root.ops, *left[1], *right[1]]
                if closed(op, ops):
                    return become(op, make("layer_norm", [left[0]], attributes), rewriter)
            if data is root.base and closed(op, root.ops):
                return become(op, make("rms_norm", [data], attributes), rewriter)
        return False

    def root(self, value: Value) -> _Root | None:
        """`value` as the square root of a mean of squares plus a number."""
        op = sole(value, Sqrt, Pow)
        if op is None or (isinstance(op, Pow) and self.uniform(op.operands[1]) != 0.5):
            return None
        return self._under_root(op.operands[0], [op])

    def reciprocal_root(self, value: Value) -> _Root | None:
        """`value` as the reciprocal of `root`."""
        op = sole(value, Div, Pow)
        if op is None:
            return None
        if isinstance(op, Pow):
            return self._under_root(op.operands[0], [op]) if self.uniform(op.operands[1]) == -0.5 else None
        found = self.root(op.operands[1]) if self.uniform(op.operands[0]) == 1.0 else None
        return None if found is None else found._replace(ops=[op, *found.ops])

    def _under_root(self, value: Value, ops: list[TensorOp]) -> _Root | None:
        total = sole(value, Add)
        if total is not None and activates(total):
            return None
        for side in (0, 1):
            epsilon = self.uniform(total.operands[1 - side]) if total is not None else None
            mean = sole(total.operands[side], Reduce) if total is not None else None
            if total is None or epsilon is None or mean is None or mean.method != "mean" or not mean.keepdims:
                continue
            square = sole(mean.operands[0], Mul, Pow)
            if square is None or mean.type.shape != total.type.shape:
                continue
            same = square.operands[0] is square.operands[1] if isinstance(square, Mul) else None
            if same or (same is None and self.uniform(square.operands[1]) == 2.0):
                axes = tuple(sorted(mean.axes))
                return _Root(square.operands[0], axes, epsilon, [*ops, total, mean, square])
        return None

    def centred(self, value: Value, axes: tuple[int, ...]) -> tuple[Value, list[TensorOp]] | None:
        """(x, ops) when value = x - mean(x)."""
        op = producer(value, Sub)
        mean = producer(op.operands[1], Reduce) if op is not None else None
        if op is None or mean is None or mean.operands[0] is not op.operands[0]:
            return None
        same = (mean.method, tuple(sorted(mean.axes)), mean.keepdims) == ("mean", axes, True)
        return (op.operands[0], [op, mean]) if same else None

    # -- rule 3 ------------------------------------------------------------------------------------------------------
    def gamma(self, op: Mul, rewriter: Rewriter) -> bool:
        """Rule 3, a factor."""
        for side in (0, 1):
            norm = sole(op.operands[side], LayerNorm, RmsNorm)
            factor = self.fitting(norm, op.operands[1 - side]) if norm is not None else None
            if norm is not None and factor is not None and op.type.shape == norm.type.shape:
                return self.absorb(op, norm, factor, None, rewriter)
        return False

    def beta(self, op: Add, rewriter: Rewriter) -> bool:
        """Rule 3, an addend."""
        if activates(op):
            return False
        for side in (0, 1):
            norm = sole(op.operands[side], LayerNorm)
            shift = self.fitting(norm, op.operands[1 - side]) if norm is not None else None
            if norm is not None and shift is not None and op.type.shape == norm.type.shape:
                return self.absorb(op, norm, None, shift, rewriter)
        return False

    def gamma_and_beta(self, op: Scale, rewriter: Rewriter) -> bool:
        """Rule 3, a scale along one of the normalised axes."""
        norm = sole(op.operands[0], LayerNorm, RmsNorm)
        factor, shift = self.constant(op.weight), self.constant(op.bias)
        wants_beta = op.bias is not None
        if norm is None or factor is None or not op.type.is_float or op.axis % op.type.rank < norm.axis:
            return False
        if wants_beta and (shift is None or isinstance(norm, RmsNorm)):
            return False
        column = (-1, *(1,) * (op.type.rank - 1 - op.axis % op.type.rank))
        shape = norm.type.shape[norm.axis :]
        factor = _spread(factor.reshape(column), shape)
        return self.absorb(op, norm, factor, None if shift is None else _spread(shift.reshape(column), shape), rewriter)

    def fitting(self, norm: LastAxesNorm, value: Value) -> np.ndarray | None:
        """A constant in the shape of the normalised axes, None when it varies along others."""
        array = self.constant(value)
        count = norm.type.rank - norm.axis
        if array is None or not value.type.is_float or any(d != 1 for d in array.shape[: max(0, array.ndim - count)]):
            return None
        return _spread(array.reshape(array.shape[max(0, array.ndim - count) :]), norm.type.shape[norm.axis :])

    def absorb(
        self, op: TensorOp, norm: LastAxesNorm, factor: np.ndarray | None, shift: np.ndarray | None, rewriter: Rewriter
    ) -> bool:
        """`norm` times `factor` plus `shift` as one op in the place of `op`."""
        import numpy as np

        gamma = self.constant(norm.operands[1]) if len(norm.operands) > 1 else None
        beta = self.constant(norm.operands[2]) if len(norm.operands) > 2 else None
        known = [array for array in (gamma, beta) if array is not None]
        if len(known) != len(norm.operands) - 1:
            return False
        kind = norm.type.numpy
        gamma = np.ones(norm.type.shape[norm.axis :], kind) if gamma is None else gamma
        if factor is not None:
            gamma = (gamma.astype(np.float64) * factor).astype(kind)
            beta = None if beta is None else (beta.astype(np.float64) * factor).astype(kind)
        if shift is not None:
            beta = (shift if beta is None else beta.astype(np.float64) + shift).astype(kind)
        operands = [norm.operands[0], self.weight(gamma, None, op, rewriter, f"{op.label}.gamma")]
        if beta is not None:
            operands.append(self.weight(beta, None, op, rewriter, f"{op.label}.beta"))
        attributes = {"axis": norm.axis, "epsilon": norm.epsilon}
        rewriter.replace_with(op, make(norm.opname, operands, attributes))
        return True


class _Root(NamedTuple):
    """sqrt(mean of base**2 over axes + epsilon)."""

    base: Value
    axes: tuple[int, ...]
    epsilon: float
    ops: list[TensorOp]


def _spread(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    import numpy as np

    return np.broadcast_to(array, shape)
