"""Operands of TIU instructions: from fields to tensors, immediates and result writers (bm1880.md 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.backends.bm1880.isa import StrideCode
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric.arith import requantize, saturate
from bmcompiler.numeric.arrays import IntArray
from bmcompiler.runtime.simulator.bm1880.memory import SIGNED, UNSIGNED, Memories, Shape, Tensor, WideTensor

Reader = Callable[[], IntArray]

# Multiply-accumulates of one instruction; real ones stay below 2**32.
MAX_WORK = 1 << 35


def aligned_strides(shape: Shape) -> Shape:
    """Strides (n, c, h, w) of an aligned local tensor (bm1880.md 2.2)."""
    return _packed(shape, align_up(shape[2] * shape[3], CHIP.alignment))


def unaligned_strides(shape: Shape) -> Shape:
    """Strides (n, c, h, w) of an unaligned local tensor (bm1880.md 2.2)."""
    return _packed(shape, shape[2] * shape[3])


def _packed(shape: Shape, channel: int) -> Shape:
    return (-(-shape[1] // CHIP.lanes) * channel, channel, shape[3], 1)


class Operands:
    """Operands of one TIU command. All methods raise SimulatorError for tensors outside local memory."""

    def __init__(self, memories: Memories, fields: Fields) -> None:
        self.memories, self.fields = memories, fields
        self.lane = fields["res0_addr"] // CHIP.lmem_size

    def shape(self, name: str) -> Shape:
        """Shape fields of operand `name` (res0, opd0, opd1, opd2)."""
        f = self.fields
        return (f[f"{name}_n"], f[f"{name}_c"], f[f"{name}_h"], f[f"{name}_w"])

    def dtype(self, name: str) -> np.dtype[Any]:
        """Element type of the (high) plane of an operand."""
        return SIGNED if self.fields[f"opt_{name}_sign"] else UNSIGNED

    def place(self, name: str) -> tuple[int, int]:
        """(lane, offset). The 16-bit addresses of opd1 and opd2 have no lane: it is the result's (bm1880.md 2.4)."""
        address = self.fields[f"{name}_addr"]
        if name in ("res0", "opd0"):
            lane, offset = divmod(address, CHIP.lmem_size)
            if lane >= CHIP.lanes:
                raise SimulatorError(f"{name} address 0x{address:x} is beyond the last lane")
            return lane, offset
        return self.lane, address

    def strides(self, name: str, shape: Shape) -> Shape:
        """Strides by the operand's stride code."""
        code = self.fields[f"short_{name}_str"]
        if code == StrideCode.ALIGNED:
            return aligned_strides(shape)
        if code == StrideCode.UNALIGNED:
            return unaligned_strides(shape)
        if code == StrideCode.EXPLICIT:
            f = self.fields
            return (f[f"{name}_n_str"], f[f"{name}_c_str"], f[f"{name}_h_str"], f[f"{name}_w_str"])
        raise SimulatorError(f"stride code {code} has no meaning for {name} here")

    def tensor(
        self, name: str, shape: Shape | None = None, strides: Shape | None = None, dtype: np.dtype[Any] | None = None
    ) -> Tensor:
        """The (low) plane of an operand; shape, strides and dtype come from the fields unless given."""
        shape = shape or self.shape(name)
        lane, offset = self.place(name)
        return self.memories.local.tensor(
            lane, offset, shape, strides or self.strides(name, shape), dtype or self.dtype(name)
        )

    def wide(self, name: str, shape: Shape | None = None) -> WideTensor:
        """A 16-bit operand.

        With explicit strides the high plane is a b stride away; otherwise it follows the low one as a further set of
        batches (bias of convolutions, results and bias of matrix_mac; bm1880.md 2.4).
        """
        shape = shape or self.shape(name)
        strides = self.strides(name, shape)
        explicit = self.fields[f"short_{name}_str"] == StrideCode.EXPLICIT
        distance = self.fields[f"{name}_b_str"] if explicit else shape[0] * strides[0]
        low = self.tensor(name, shape, strides, UNSIGNED)
        lane, offset = self.place(name)
        return WideTensor(low, self.memories.local.tensor(lane, offset + distance, shape, strides, self.dtype(name)))

    def constant(self, name: str) -> int | None:
        """Value of an immediate operand: the low 8 or 16 bits of the address field; None for a tensor."""
        f = self.fields
        if not f[f"opt_{name}_const"]:
            return None
        bits = 8 if f[f"opt_{name}_int8"] else 16
        value = f[f"{name}_addr"] & ((1 << bits) - 1)
        return value - (1 << bits) if f[f"opt_{name}_sign"] and value >> (bits - 1) else value

    def is_wide(self, name: str) -> bool:
        """Whether the operand has 16-bit elements."""
        return not self.fields[f"opt_{name}_int8"]

    def reader(self, name: str, shape: Shape | None = None) -> Reader:
        """Function that reads an operand: its 8-bit view, or int32 for 16-bit operands and immediates."""
        value = self.constant(name)
        if value is not None:
            # A first operand gives the result its shape, a second one broadcasts.
            immediate = np.broadcast_to(np.int32(value), self.shape("res0") if name == "opd0" else ())
            return lambda: immediate
        return self.wide(name, shape).read if self.is_wide(name) else self.tensor(name, shape).read

    def bias(self, shape: Shape) -> Reader | None:
        """Reader of the bias, when the command has one (three operands). Raises SimulatorError for another shape."""
        if self.fields["tsk_opd_num"] != 3:
            return None
        if self.shape("opd2") != shape and not self.fields["opt_opd2_const"]:
            raise SimulatorError(f"bias shape {self.shape('opd2')} should be {shape}")
        return self.reader("opd2")

    def result_dtype(self) -> str:
        """Name of the type results saturate to; it follows the sign flag, not the declared format (bm1880.md 8.1)."""
        return ("i" if self.fields["opt_res0_sign"] else "u") + ("16" if self.is_wide("res0") else "8")

    def requantizer(self) -> Callable[[IntArray], IntArray]:
        """ReLU, right shift and saturation, in this order, of 32- or 64-bit sums (bm1880.md 8.1)."""
        f = self.fields
        bits, rounding, relu, dtype = f["opt_right_shift"], f["opt_rshift_typ"], f["opt_relu"], self.result_dtype()

        def run(sums: IntArray) -> IntArray:
            if relu:
                sums = np.maximum(sums, 0)
            return requantize(sums, bits, dtype) if rounding else saturate(sums >> bits, dtype)

        return run

    def result(self, shape: Shape | None = None) -> Tensor | WideTensor:
        """Where the result goes."""
        return self.wide("res0", shape) if self.is_wide("res0") else self.tensor("res0", shape)

    def old(self) -> WideTensor:
        """The result as it was before, where it is added to."""
        return self.wide("res0")

    def add_old(self, old: WideTensor) -> Callable[[IntArray], IntArray]:
        """sums + (old << left shift) in 32-bit two's complement (bm1880.md 8.1).

        With the logical shift type the wrapped sum counts as unsigned.
        """
        f = self.fields
        bits, signed = f["opt_left_shift"], f["opt_shift_typ"]

        def run(sums: IntArray) -> IntArray:
            total = sums.astype(np.int64) + (old.read().astype(np.int64) << bits)
            wrapped = total & 0xFFFFFFFF
            return np.asarray((wrapped ^ 0x80000000) - 0x80000000) if signed else wrapped

        return run


def check_work(count: int) -> None:
    """Refuse an instruction whose shapes ask for more work than local memory could ever hold operands for."""
    if count > MAX_WORK:
        raise SimulatorError(f"its shapes ask for {count} multiply-accumulates, more than any real command")
