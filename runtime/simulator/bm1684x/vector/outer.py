"""Vector correlation (VC): every element of one vector with every element of another (bm1684x-vector.md 8)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Ar
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm1684x.operands import Operands
from bmcompiler.runtime.simulator.bm1684x.vector.access import code, element, kind_of, writer
from bmcompiler.runtime.simulator.bm1684x.vector.functions import SELECTIONS, function_of, selection
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.memory import Shape
from bmcompiler.runtime.simulator.plan import Step


def vector_step(ops: Operands) -> Step:
    """Step of one command: res0(i, c, 0, w) = a[i] op b(0, c, 0, w)."""
    f = ops.fields
    unit = code(Ar, ops, "tsk_eu_typ", "vector operation")
    sections, width, last = f["opd0_c"], f["opd0_w"], f["opd1_w"]
    if not 1 <= last <= width:
        raise SimulatorError(f"the last section of a vector has {last} elements, which must be 1 to {width}")
    length = (sections - 1) * width + last
    a, b, result = kind_of(ops, "opd0"), kind_of(ops, "opd1"), Kind(ops.precision("res0"))
    shape: Shape = (length, f["res0_c"], 1, f["res0_w"])
    if unit in SELECTIONS:
        function = selection(unit, a, b, result.precision, element(ops, "opd2", result.bits))
    else:
        function = function_of(unit, a, b, result.precision, f["opd2_n_str"])
    left = ops.tensor("opd0", (1, sections, 1, width), a.dtype)
    right = ops.tensor("opd1", (1, f["res0_c"], 1, f["res0_w"]), b.dtype)
    dtype = result.bits if unit in SELECTIONS else result.dtype
    return writer(
        ops,
        "res0",
        shape,
        dtype,
        lambda: function(left.read().reshape(-1)[:length].reshape(-1, 1, 1, 1), right.read()),
    )
