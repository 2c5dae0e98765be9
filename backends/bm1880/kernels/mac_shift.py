"""Sums of products with constants, which are 16 bits wide before they are shifted."""

from __future__ import annotations

from bmcompiler.backends.bm1880.bmkernel import (
    bmk1880_copy_param_t,
    bmk1880_mac_const_param_t,
    bmk1880_mul_const_param_t,
    bmk1880_tpu_copy,
    bmk1880_tpu_mac_const,
    bmk1880_tpu_mul_const,
)
from bmcompiler.backends.bm1880.build import Build, Dims
from bmcompiler.backends.bm1880.kernels.elementwise import ElementwiseKernel, LocalTile, emit_muls
from bmcompiler.ops.elements.integer import MacShift
from bmcompiler.target import rule

_MAX_MAC_SHIFT = 15


class MacShiftKernel(ElementwiseKernel[MacShift]):
    """mac_shift: mul_const into 16 bits, then mac_const, the last one back to 8 bits (bm1880.md 12.1 Eltwise).

    The 8-bit result comes to lie in the low plane, which is copied where that had to be the scratch tensor: planes of
    16 bits lie in the order of their addresses.
    """

    ops = (MacShift,)
    scratch_tensors = 1
    """The other plane of the 16-bit sum."""

    def cycles(self, op: MacShift, dims: Dims) -> int:
        pass_cycles = self.machine.cycles.pass_cycles
        return (len(op.operands) - 1) * pass_cycles(dims, 2) + pass_cycles(dims, 1)

    def copy_cycles(self, op: MacShift, dims: Dims) -> int:
        return self.machine.cycles.pass_cycles(dims, 1) if len(op.operands) > 1 else 0

    @rule("Multipliers must be between -128 and 127, or up to 255 for a single operand", got="multipliers")
    def multiplier_range(self, op: MacShift) -> bool:
        top = 255 if len(op.multipliers) == 1 else 127
        return all(-128 <= m <= top for m in op.multipliers)

    @rule("The right shift must be between 0 and 15", got="rshift")
    def shift_range(self, op: MacShift) -> bool:
        return op.rshift <= _MAX_MAC_SHIFT

    @rule("The sum of all products but the last must fit 16 bits", got="multipliers")
    def partial_sums(self, op: MacShift) -> bool:
        return bool(128 * sum(abs(m) for m in op.multipliers[:-1]) <= 32767)

    def compute(self, op: MacShift, build: Build, tile: LocalTile) -> None:
        x, out, multipliers = tile.x, tile.out, op.multipliers
        if len(x) == 1:
            emit_muls(build, out, x[0], multipliers[0], op.rshift)
            return
        low, high = sorted((out, tile.scratch[0]), key=lambda plane: plane.address)  # bm1880.md 2.4
        build.tpu(bmk1880_tpu_mul_const, bmk1880_mul_const_param_t(high, low, x[0], multipliers[0], True, 0))
        for tensor, multiplier in zip(x[1:-1], multipliers[1:-1]):
            mac = bmk1880_mac_const_param_t(high, low, False, tensor, multiplier, True, 0, 0)
            build.tpu(bmk1880_tpu_mac_const, mac)
        last = bmk1880_mac_const_param_t(high, low, True, x[-1], multipliers[-1], True, 0, op.rshift)
        build.tpu(bmk1880_tpu_mac_const, last)
        if low is not out:
            build.tpu(bmk1880_tpu_copy, bmk1880_copy_param_t(out, low))
