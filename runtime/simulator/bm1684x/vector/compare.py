"""Compare and select (CMP), linear commands (LIN) (bm1684x-vector.md 7, 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.codes import Cmp, Layout, Lin
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, Reader
from bmcompiler.runtime.simulator.bm1684x.vector.access import code, kind_of, reader
from bmcompiler.runtime.simulator.bm1684x.vector.functions import comparison
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.memory import Shape
from bmcompiler.runtime.simulator.plan import Step

_ONE_PLACE: Shape = (0, 0, 0, 0)
_COMPARISONS = {
    Cmp.MAX_AND_SELECT: "greater",
    Cmp.SELECT_GT: "greater",
    Cmp.SELECT_EQ: "equal",
    Cmp.MIN_AND_SELECT: "less",
    Cmp.SELECT_LT: "less",
}
_EXTREMES = {Cmp.MAX_AND_SELECT: ("maximum", np.maximum), Cmp.MIN_AND_SELECT: ("minimum", np.minimum)}


def compare_step(ops: Operands) -> Step:
    """Step of one command: res0 or res1 = a op b ? c : d, for two operations also res0 = max(a, b) or min(a, b)."""
    unit = code(Cmp, ops, "tsk_eu_typ", "comparison")
    kind, chosen = kind_of(ops, "opd0"), Kind(ops.precision("opd2")).bits
    shape = ops.shape("res0")
    a, b = (_compared(ops, name, kind.dtype) for name in ("opd0", "opd1"))
    c, d = (reader(ops, name, shape, chosen) for name in ("opd2", "opd3"))
    holds = comparison(_COMPARISONS[unit], kind)
    both = unit in _EXTREMES
    selected = ops.result("res1" if both else "res0", shape, chosen)
    if not both:
        return lambda: selected.write(_full(np.where(holds(a(), b()), c(), d()), shape))
    name, of_integers = _EXTREMES[unit]
    extreme = getattr(kind.floats, name) if kind.is_float else of_integers
    result = ops.result("res0", shape, kind.dtype)

    def run() -> None:
        x, y = a(), b()
        values, picked = extreme(x, y), np.where(holds(x, y), c(), d())
        result.write(_full(values, shape))
        selected.write(_full(picked, shape))

    return run


def _compared(ops: Operands, name: str, dtype: np.dtype[Any]) -> Reader:
    """Layout code 3 is one value per lane."""
    layout = ops.layout(name)
    return reader(ops, name, ops.shape("res0"), dtype, _ONE_PLACE if layout == Layout.FREE else layout)


def _full(values: Array, shape: Shape) -> Array:
    return values if values.shape == shape else np.broadcast_to(values, shape)


def linear_step(ops: Operands) -> Step:
    """Step of one linear command: a * b + c, (a + b)^2 or (a - b)^2 with vectors of one value per channel."""
    unit = code(Lin, ops, "tsk_eu_typ", "linear operation")
    shape, kind = ops.shape("res0"), Kind(ops.precision("res0"))
    arithmetic = kind.floats
    a, b = ops.tensor("opd0", shape, kind.dtype), _vector(ops, "opd1", kind)
    result = ops.result("res0", shape, kind.dtype)
    if unit == Lin.MAC:
        c = _vector(ops, "opd2", kind)
        return lambda: result.write(arithmetic.add(arithmetic.multiply(a.read(), b()), c()))
    combine = arithmetic.add if unit == Lin.SQUARE_SUM else arithmetic.subtract

    def run() -> None:
        side = combine(a.read(), b())
        result.write(arithmetic.multiply(side, side))

    return run


def _vector(ops: Operands, name: str, kind: Kind) -> Reader:
    return reader(ops, name, (1, ops.fields["res0_c"], 1, 1), kind.dtype, Layout.COMPACT)
