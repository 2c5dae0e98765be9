"""One GDMA command: its tensors in the memories of a chip (bm1684x.md 3.1, 3.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP, dense, is_local
from bmcompiler.backends.bm1684x.codes import ITEM_BYTES
from bmcompiler.backends.bm1684x.isa import ADDRESS_LOW
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm1684x.memories import Memories
from bmcompiler.runtime.simulator.bm1684x.operands import Result, lane_mask
from bmcompiler.runtime.simulator.memory import Shape, Tensor
from bmcompiler.runtime.simulator.relocation import Relocation


def format_of(code: int) -> np.dtype[Any]:
    """Elements of a data format as they are moved: unsigned integers. Raises SimulatorError for unknown formats."""
    if code not in ITEM_BYTES:
        raise SimulatorError(f"data format {code} does not exist")
    return np.dtype(f"u{ITEM_BYTES[code]}")  # type: ignore[index]


class Transfer:
    """One GDMA command. Sides are the prefixes of fields: src, dst, index."""

    def __init__(self, memories: Memories, fields: Fields, relocation: Relocation) -> None:
        self.memories, self.fields, self.relocation = memories, fields, relocation
        self.function = fields["special_func"]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements moved."""
        return format_of(self.fields["data_format"])

    @property
    def fills(self) -> bool:
        """Whether the source is the constant of the command."""
        return bool(self.fields["fill_constant_en"])

    @property
    def constant(self) -> Array:
        """The constant as an array of shape ()."""
        return np.array([self.fields["constant_value"]], "<u4").view(self.dtype)[:1].reshape(())

    def size(self, side: str) -> Shape:
        """(n, c, h, w) of the source or destination."""
        f = self.fields
        return (f[f"{side}_n"], f[f"{side}_c"], f[f"{side}_h"], f[f"{side}_w"])

    def registers(self, side: str, width: int | None = None) -> Shape | None:
        """Stride registers (n, c, h, w) in elements; None when the command uses default layouts.

        `width` stands for the W stride in commands that take it as 1.
        """
        f = self.fields
        if not f["stride_enable"]:
            return None
        w = f[f"{side}_w_str"] if width is None else width
        return (f[f"{side}_n_str"], f[f"{side}_c_str"], f[f"{side}_h_str"], w)

    def address(self, side: str) -> int:
        """Address of the first element; global ones relocated."""
        f = self.fields
        address = f[f"{side}_addr_lo"] | f[f"{side}_addr_hi"] << ADDRESS_LOW
        return self.relocation(address, side == "dst")

    def is_local(self, side: str) -> bool:
        """Whether a side lies in local memory."""
        return is_local(self.address(side))

    def place(self, side: str, at: int = 0) -> tuple[int, int]:
        """(lane, byte in the lane) of a side in local memory, `at` bytes behind its first element."""
        return divmod(self.address(side) + at - CHIP.lmem_window, CHIP.lmem_size)

    def tensor(
        self, side: str, shape: Shape, strides: Shape | None = None, *, dtype: np.dtype[Any] | None = None, at: int = 0
    ) -> Tensor:
        """Elements of one side.

        Args:
            strides: (n, c, h, w) in elements; None: the default layout (bm1684x.md 3.3).
            dtype: by default that of the command. at: bytes (in the lane) before the first element.

        Raises:
            SimulatorError: the address is no multiple of the element size, or an element is outside the memory.
        """
        kind, address = dtype or self.dtype, self.address(side) + at
        if address % kind.itemsize:
            raise SimulatorError(f"address 0x{address:x} of {side} is not a multiple of {kind.itemsize} bytes")
        steps = None if strides is None else tuple(kind.itemsize * stride for stride in strides)
        if is_local(address):
            lane, offset = self.place(side, at)
            steps = steps or CHIP.aligned(shape, kind.itemsize, lane)
            return self.memories.local.tensor(lane, offset, shape, steps, kind)  # type: ignore[arg-type]
        steps = steps or dense(shape, kind.itemsize)
        return self.memories.globals.tensor(address, shape, steps, kind)  # type: ignore[arg-type]

    def result(
        self, shape: Shape, strides: Shape | None = None, *, dtype: np.dtype[Any] | None = None, at: int = 0
    ) -> Tensor | Result:
        """Where elements go; local lanes that the command masks keep what they have."""
        tensor = self.tensor("dst", shape, strides, dtype=dtype, at=at)
        if not self.is_local("dst"):
            return tensor
        return Result(tensor, self.place("dst", at)[0], lane_mask(self.fields))
