"""Transpositions and broadcasts between lanes (TRANS&BC) (bm1684x-vector.md 9.1)."""

from __future__ import annotations

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Layout, Trans
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm1684x.operands import Operands
from bmcompiler.runtime.simulator.bm1684x.vector.access import code, writer
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.plan import Step


def move_step(ops: Operands) -> Step:
    """Step of one command; elements are moved as bits. Raises SimulatorError for sizes that do not fit."""
    unit = code(Trans, ops, "tsk_eu_typ", "transposition or broadcast")
    if unit in (Trans.CW, Trans.WC):
        return _transpose(ops, unit)
    if unit in (Trans.STATIC_BROADCAST, Trans.STATIC_DISTRIBUTE):
        return _from_static(ops, unit)
    n, c, h, w = shape = ops.shape("res0")
    if unit == Trans.LANE_BROADCAST:
        _within_one_row(ops, c)
        shape = (n, 1, h, w)
    bits = Kind(ops.precision("res0")).bits
    source = ops.tensor("opd0", shape, bits)
    return writer(ops, "res0", (n, c, h, w), bits, source.read)


def _within_one_row(ops: Operands, channels: int) -> None:
    lane, _ = ops.place("res0")
    if lane + channels > CHIP.lanes:
        raise SimulatorError(f"a broadcast to {channels} lanes from lane {lane} on passes the last lane")


def _transpose(ops: Operands, unit: Trans) -> Step:
    """res0(n, c, h, w) = opd0(n, w, h, c); rows of the result of CW begin aligned."""
    n, c, h, w = shape = ops.shape("res0")
    if (ops.fields["opd0_c"], ops.fields["opd0_w"]) != (w, c):
        found = f"{ops.fields['opd0_c']} channels and width {ops.fields['opd0_w']}"
        raise SimulatorError(
            f"the operand of a transposition to {shape} must have {w} channels and width {c}, got {found}"
        )
    bits = Kind(ops.precision("res0")).bits
    source = ops.tensor("opd0", (n, w, h, c), bits)
    lane, _ = ops.place("res0")
    layout = CHIP.line_aligned(shape, bits.itemsize, lane) if unit == Trans.CW else Layout.ALIGNED
    return writer(ops, "res0", shape, bits, lambda: source.read().transpose(0, 3, 2, 1), layout)


def _from_static(ops: Operands, unit: Trans) -> Step:
    """A row of static memory to every channel, or element c to channel c."""
    n, c, h, w = shape = ops.shape("res0")
    bits = Kind(ops.precision("res0")).bits
    if unit == Trans.STATIC_BROADCAST:
        _within_one_row(ops, c)
        if n * h != 1:
            raise SimulatorError(f"a row of static memory becomes (1, c, 1, w), not {shape}")
        row = ops.static("opd0", w, bits).reshape(1, 1, 1, w)
        return writer(ops, "res0", shape, bits, lambda: row)
    if n * h * w != 1 or c > CHIP.lanes:
        raise SimulatorError(
            f"elements of static memory become (1, c, 1, 1) with {CHIP.lanes} channels at most, not {shape}"
        )
    column = ops.static("opd0", c, bits).reshape(1, c, 1, 1)
    return writer(ops, "res0", shape, bits, lambda: column, Layout.COMPACT)
