"""Operands of TIU commands: where they lie, in which layout, of which type.

What executes commands is a table from task to the maker of a step: `STEPS` of the packages `cube` and `vector`. A maker
gets the `Operands` of one command, looks every operand up once (which checks it), and returns what is done at each run:

    def copy_step(ops: Operands) -> Step:
        shape, dtype = ops.shape("res0"), ops.dtype("opd0")
        source = ops.reader("opd0", shape, dtype, ops.layout("opd0"))       # of an immediate, too
        result = ops.result("res0", shape, dtype, ops.layout("res0"))
        return lambda: result.write(source())

It raises SimulatorError for what the chip refuses and for forms whose meaning is unknown. Names of operands are those
of the fields: res0, res1, opd0 .. opd3; those of results begin with "res". Elements are numpy arrays (N, C, H, W); fp16
and bf16 are their bits as uint16 (`bmcompiler.numeric.halves` widens and narrows them), fp32 is float32.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Layout, Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric.arrays import Array, Mask
from bmcompiler.runtime.simulator.bm1684x.memories import Memories
from bmcompiler.runtime.simulator.memory import Shape, Tensor
from bmcompiler.runtime.simulator.plan import Step

Reader = Callable[[], Array]
StepMaker = Callable[["Operands"], Step]

FP32 = np.dtype(np.float32)
FLOATS = (Precision.FP16, Precision.FP32, Precision.BF16)
HALVES = (Precision.FP16, Precision.BF16)
ALL_LANES = (1 << 64) - 1
"""A lane mask that masks nothing."""
_WORD = (1 << 32) - 1
_KINDS = {Precision.FP16: ("u2", "u2"), Precision.FP32: ("f4", "f4"), Precision.BF16: ("u2", "u2")}


def dtype_of(precision: Precision, signed: int) -> np.dtype[Any]:
    """numpy type of elements in memory; fp16 and bf16 are their bits."""
    size = ITEM_BYTES[precision]
    return np.dtype(_KINDS.get(precision, (f"u{size}", f"i{size}"))[bool(signed)])


class Work(Enum):
    """Kinds of work, with how much of it a command may ask for: some seconds here at most.

    No layer of a network comes near: the largest convolutions of usual ones have 2**31 products an image. Damaged
    commands do, by immediates, overlapping strides and inserted pixels.
    """

    PRODUCTS = 1 << 33
    HALF_PRODUCTS = 1 << 32  # of fp16 and bf16, whose sums take longest
    LONG_PRODUCTS = 1 << 31  # of integers in 64 bits
    TAPS = 1 << 30  # of windows over one channel
    TERMS = 1 << 28  # of series
    PIXELS = 1 << 26  # of an image with its borders and inserted pixels
    WEIGHTS = 1 << 24  # elements of kernels, of which immediates can have more than local memory holds

    @property
    def title(self) -> str:
        """As an error has it."""
        return self.name.lower().replace("_", " ")


_PRODUCTS = {
    **dict.fromkeys(HALVES, Work.HALF_PRODUCTS),
    **dict.fromkeys((Precision.INT32, Precision.INT16), Work.LONG_PRODUCTS),
}


def products_of(precision: Precision) -> Work:
    """The kind of work that products of a type are."""
    return _PRODUCTS.get(precision, Work.PRODUCTS)


def check_work(work: Work, *counts: int) -> None:
    """Refuse commands whose product of `counts` is too much of a kind of work. Raises SimulatorError."""
    if prod(counts) > work.value:
        raise SimulatorError(f"the command takes {prod(counts)} {work.title}, more than the {work.value} of any layer")


def lane_mask(fields: Fields) -> int:
    """Bit L says whether lane L is written; forms without a mask write all."""
    return fields.get("lane_mask_lo", ALL_LANES & _WORD) | fields.get("lane_mask_hi", ALL_LANES >> 32) << 32


class Result:
    """A tensor that a command writes; lanes that the command masks keep what they have."""

    def __init__(self, tensor: Tensor, lane: int, mask: int) -> None:
        self.tensor, self.shape, self.dtype = tensor, tensor.shape, tensor.dtype
        self._kept: Mask | None = None
        if mask != ALL_LANES:
            lanes = (lane + np.arange(tensor.shape[1])) % CHIP.lanes
            self._kept = (np.array([mask], np.uint64) >> lanes.astype(np.uint64) & np.uint64(1)) == 0

    def read(self) -> Array:
        """What is there; perhaps a view, so do not write to it."""
        return self.tensor.read()

    def write(self, values: Array) -> None:
        """Store (N, C, H, W); integers keep the low bits that fit the type."""
        if self._kept is not None:
            values = np.where(self._kept[:, None, None], self.tensor.read(), values.astype(self.dtype))
        self.tensor.write(values)


class Operands:
    """The operands of one TIU command in `memories`; `fast` allows float sums in any order."""

    def __init__(self, memories: Memories, fields: Fields, fast: bool = False) -> None:
        self.memories, self.fields, self.fast = memories, fields, fast

    # -- what the fields say -------------------------------------------------------------------------------------------
    def precision(self, name: str) -> Precision:
        """Precision of an operand. Raises SimulatorError for codes that do not exist."""
        code = self.fields[f"{name}_prec"]
        if code not in ITEM_BYTES:
            raise SimulatorError(f"precision code {code} of {name} is not a type the command can work on")
        return Precision(code)

    def signed(self, name: str) -> bool:
        """The sign bit of an operand (false for commands that have none)."""
        return bool(self.fields.get(f"{name}_sign", 0))

    def dtype(self, name: str) -> np.dtype[Any]:
        """numpy type of an operand by its precision and sign bit, see `dtype_of`."""
        return dtype_of(self.precision(name), self.signed(name))

    def shape(self, name: str) -> Shape:
        """(n, c, h, w) as the size fields of `res0`, `opd0` or `opd1` say."""
        f = self.fields
        return (f[f"{name}_n"], f[f"{name}_c"], f[f"{name}_h"], f[f"{name}_w"])

    def layout(self, name: str) -> int:
        """Layout code of an operand."""
        return self.fields[f"{name}_str"]

    def is_constant(self, name: str) -> bool:
        """Whether the operand is the immediate in its address field."""
        return bool(self.fields.get(f"{name}_const", 0))

    def constant(self, name: str, dtype: np.dtype[Any]) -> Array:
        """The immediate as an array of shape (): its low bits taken as `dtype`."""
        return np.array([self.fields[f"{name}_addr"]], "<u4").view(dtype)[:1].reshape(())

    # -- where operands lie --------------------------------------------------------------------------------------------
    def place(self, name: str) -> tuple[int, int]:
        """(lane, byte in the lane) of channel 0. Raises SimulatorError for addresses outside local memory."""
        address = self.fields[f"{name}_addr"]
        within = address - CHIP.lmem_window if address >= CHIP.lmem_window else address
        if within >= CHIP.lmem_total:
            raise SimulatorError(f"address 0x{address:x} of {name} is not in local memory")
        return divmod(within, CHIP.lmem_size)

    def strides(self, name: str, shape: Shape, item: int, layout: int) -> Shape:
        """Strides in bytes of a layout code (bm1684x-vector.md 3). Raises SimulatorError for unknown codes."""
        lane, _ = self.place(name)
        if layout == Layout.ALIGNED:
            return CHIP.aligned(shape, item, lane)
        if layout == Layout.COMPACT:
            return CHIP.compact(shape, item, lane)
        if layout == Layout.PER_CHANNEL:
            return (0, item, 0, 0)
        f = self.fields
        if layout == Layout.FREE and f"{name}_n_str" in f and f"{name}_w_str" in f:
            return tuple(item * f[f"{name}_{axis}_str"] for axis in "nchw")  # type: ignore[return-value]
        raise SimulatorError(f"layout code {layout} has no meaning for {name} here")

    def tensor(self, name: str, shape: Shape, dtype: np.dtype[Any], layout: int | Shape = Layout.ALIGNED) -> Tensor:
        """Elements of an operand in local memory.

        Args:
            name: of the operand; `shape`: (n, c, h, w).
            layout: code of a layout, or strides (n, c, h, w) in bytes; the c stride is that of a row of channels.

        Raises:
            SimulatorError: the address is no multiple of the element size, or an element lies outside a lane.
        """
        lane, offset = self.place(name)
        if offset % dtype.itemsize:
            address = self.fields[f"{name}_addr"]
            raise SimulatorError(f"address 0x{address:x} of {name} is not a multiple of {dtype.itemsize} bytes")
        strides = self.strides(name, shape, dtype.itemsize, layout) if isinstance(layout, int) else layout
        return self.memories.local.tensor(lane, offset, shape, strides, dtype)

    def reader(self, name: str, shape: Shape, dtype: np.dtype[Any], layout: int | Shape = Layout.ALIGNED) -> Reader:
        """What reads an operand as (N, C, H, W), perhaps as a view: its tensor, or its immediate repeated."""
        if self.is_constant(name):
            filled = np.broadcast_to(self.constant(name, dtype), shape)
            return lambda: filled
        return self.tensor(name, shape, dtype, layout).read

    def result(self, name: str, shape: Shape, dtype: np.dtype[Any], layout: int | Shape = Layout.ALIGNED) -> Result:
        """Where a result goes, see `tensor`."""
        return Result(self.tensor(name, shape, dtype, layout), self.place(name)[0], lane_mask(self.fields))

    def static(self, name: str, count: int, dtype: np.dtype[Any]) -> Array:
        """`count` elements of static memory, as a view. Raises SimulatorError outside."""
        offset = self.fields[f"{name}_addr"] - CHIP.static_window
        end = offset + count * dtype.itemsize
        if offset % dtype.itemsize or offset < 0 or end > CHIP.static_size:
            raise SimulatorError(f"{count} elements at offset 0x{offset:x} do not lie in static memory")
        return self.memories.static[offset:end].view(dtype)
