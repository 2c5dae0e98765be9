"""The instruction builder kernels emit through: addresses, packed weights, and moves between the two memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    CTRL_TP,
    CTRL_WEIGHT,
    FMT_I8,
    FMT_U8,
    Bmk1880Context,
    bmk1880_copy_with_stride_param_t,
    bmk1880_cpu_op,
    bmk1880_gdma_copy_gmem,
    bmk1880_gdma_copy_lmem,
    bmk1880_gdma_load,
    bmk1880_gdma_load_stride,
    bmk1880_gdma_store,
    bmk1880_gdma_store_stride,
    bmk1880_tpu_copy_with_stride,
    bmk1880_tpu_xor_int8,
    bmk1880_xor_int8_param_t,
    shape_t,
    shape_t2,
    shape_t4,
    stride_t,
    stride_t2,
    stride_t4,
    tensor_gmem,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.backends.bm1880.isa import Engine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import BaseBuild, Dims, dense_strides, extents, start_of
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.hazards import Hazards, Range
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.ir import Value

P = TypeVar("P")
FORMATS = {"i8": FMT_I8, "u8": FMT_U8, "bool": FMT_U8}
WEIGHTS = 1 << 40
"""Added to offsets in weight memory, so that one number says where a value lies in global memory (`base_of`)."""
_NUMBER = {Engine.TPU: 0, Engine.GDMA: 1}
_RESULTS = frozenset({"res", "res_low", "res_high", "ofmap", "dst", "max", "min"})
"""Parameters of TPU calls that are written; accumulators are read, too, by the same engine."""


class Build(BaseBuild):
    """One program under construction. `overlap`: may transfers run beside computation?

    Instructions then wait for those of the other engine that touch the same bytes of local memory, and for no others;
    all transfers run on one engine, in order, so that global memory needs no waits (bm1880.md 6).
    """

    chip = CHIP

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients, overlap: bool = True) -> None:
        super().__init__(plan, coefficients, overlap)
        self.ctx = Bmk1880Context()
        self._hazards: Hazards[int] = Hazards()

    # -- instructions --------------------------------------------------------------------------------------------------
    def tpu(self, call: Callable[[Bmk1880Context, P], Op], param: P) -> None:
        """Emit a TPU call of the kernel API; what it touches are the tensors among its parameters."""
        reads, writes = touched(param)
        self._emit(Engine.TPU, reads, writes, lambda: call(self.ctx, param))

    def cpu(self, function: str, parameters: bytes) -> None:
        """Let the host run a function after all instructions so far: a barrier (bm1880.md 3)."""
        bmk1880_cpu_op(self.ctx, function, parameters)
        self._hazards = Hazards()

    def foreign(self) -> None:
        """Instructions that others put into `ctx` since the last call of this builder touch all of local memory."""
        everything = [(0, CHIP.lmem_size)]
        for engine in (Engine.TPU, Engine.GDMA):
            self._hazards.note(_NUMBER[engine], self.ctx.sync.issued(engine), everything, everything)

    def _emit(self, engine: Engine, reads: Sequence[Range], writes: Sequence[Range], call: Callable[[], Op]) -> None:
        if self.overlap:
            self.ctx.sync.wait_for(self._hazards.before(_NUMBER[engine], reads, writes) or 0)
        self._hazards.note(_NUMBER[engine], call().number, reads, writes)

    def load(self, tensor: tensor_lmem, gaddr: int, flag: int, strides: stride_t | None = None) -> None:
        """Load a local tensor or matrix from `gaddr` after the base that `flag` names; packed without `strides`.

        With CTRL_TP beside the base a packed matrix becomes its transpose on the way.
        """

        def call() -> Op:
            if strides is None:
                return bmk1880_gdma_load(self.ctx, tensor, gaddr, flag)
            return bmk1880_gdma_load_stride(self.ctx, tensor, gaddr, strides, flag)

        self._emit(Engine.GDMA, [], [(tensor.offset, tensor.end)], call)

    def store(
        self, tensor: tensor_lmem, gaddr: int, strides: stride_t | None = None, *, transposed: bool = False
    ) -> None:
        """The way back of `load`, to neuron memory."""

        def call() -> Op:
            if strides is None:
                return bmk1880_gdma_store(self.ctx, tensor, gaddr, CTRL_NEURON | (CTRL_TP if transposed else 0))
            return bmk1880_gdma_store_stride(self.ctx, tensor, gaddr, strides, CTRL_NEURON)

        self._emit(Engine.GDMA, [(tensor.offset, tensor.end)], [], call)

    def source(self, value: Value) -> int:
        """Address to load a value from: in neuron memory, or in weight memory for constants as they stand."""
        offset, constant = self.stored(value)
        return offset + (WEIGHTS if constant else 0)

    # -- activations ---------------------------------------------------------------------------------------------------
    def load_box(self, value: Value, view: Dims, box: tuple[tuple[int, int], ...], address: int) -> None:
        """Load the `box` of an activation or constant seen as `view` (N, C, H, W) into an aligned local tensor."""
        base, flag = base_of(self.source(value))
        tensor = aligned(address, extents(box), FORMATS[value.dtype])
        self.load(tensor, base + start_of(box, view), flag, None if is_packed(view, box) else strides_of(view, box))

    def store_box(self, value: Value, view: Dims, box: tuple[tuple[int, int], ...], address: int) -> None:
        """The way back of `load_box`."""
        tensor = aligned(address, extents(box), FORMATS[value.dtype])
        strides = None if is_packed(view, box) else strides_of(view, box)
        self.store(tensor, self.neuron(value) + start_of(box, view), strides)

    def load_matrix(self, gaddr: int, extent: tuple[int, int], row_stride: int, address: int, flag: int) -> None:
        """Load an `extent` (rows, cols) of a matrix whose rows lie `row_stride` bytes apart; `flag` is the base."""
        strides = None if extent[0] == 1 or row_stride == extent[1] else stride_t2(row_stride, 1)
        self.load(matrix(address, *extent), gaddr, flag, strides)

    def store_matrix(self, gaddr: int, extent: tuple[int, int], row_stride: int, address: int) -> None:
        """The way back of `load_matrix`, to neuron memory."""
        strides = None if extent[0] == 1 or row_stride == extent[1] else stride_t2(row_stride, 1)
        self.store(matrix(address, *extent), gaddr, strides)

    # -- weights -------------------------------------------------------------------------------------------------------
    def load_weight(
        self, offset: int, dims: Dims, address: int, *, align: bool, strides: stride_t | None = None
    ) -> None:
        """Load packed (or, with `strides`, strided) coefficient bytes as a local tensor of shape `dims`."""
        self.load(tensor_lmem(address, shape_t4(*dims), FMT_I8, align), offset, CTRL_WEIGHT, strides)

    # -- copies --------------------------------------------------------------------------------------------------------
    def copy_global(self, target: int, source: int, item: int, shape: Dims, to: Dims, by: Dims) -> None:
        """Copy inside neuron memory; strides in elements, which are bytes: `to` of the target, `by` of the source."""
        extent = shape_t4(*shape)
        sides = tensor_gmem(target, extent, stride_t4(*to)), tensor_gmem(source, extent, stride_t4(*by))
        self._emit(Engine.GDMA, [], [], lambda: bmk1880_gdma_copy_gmem(self.ctx, *sides, CTRL_NEURON))

    def copy(self, source: Words, target: Words) -> None:
        """Copy bytes within lanes, by the TPU."""
        to, by = stride_t4(*self._steps(target)), stride_t4(*self._steps(source))
        dst, src = aligned(target.address, target.shape), aligned(source.address, source.shape)
        self.tpu(bmk1880_tpu_copy_with_stride, bmk1880_copy_with_stride_param_t(dst, to, src, by))

    def fill(self, target: Words, bits: int) -> None:
        """Aligned bytes become zeros, whatever they are; no other number is made by one command."""
        if bits:
            raise ValueError(f"bytes are filled with 0, not {bits}")
        place = aligned(target.address, target.shape)
        self.tpu(bmk1880_tpu_xor_int8, bmk1880_xor_int8_param_t(place, place, place))

    def transfer(self, source: Words, target: Words) -> None:
        """Copy aligned tensors of bytes, also from lane to lane, by the GDMA.

        It goes image by image: over several images the engine's default strides would be those of another tensor
        (bm1880.md 2.2).
        """
        image = (1, *source.shape[1:])
        to, by = self._steps(target), self._steps(source)
        for index in range(source.shape[0]):
            dst = aligned(target.lane * CHIP.lmem_size + target.address + index * to[0], image)
            src = aligned(source.lane * CHIP.lmem_size + source.address + index * by[0], image)
            self._copy_local(dst, src)

    def _copy_local(self, dst: tensor_lmem, src: tensor_lmem) -> None:
        reads, writes = [(src.offset, src.end)], [(dst.offset, dst.end)]
        self._emit(Engine.GDMA, reads, writes, lambda: bmk1880_gdma_copy_lmem(self.ctx, dst, src))

    @staticmethod
    def _steps(words: Words) -> Dims:
        return words.strides or CHIP.aligned_strides(words.shape, item=1)


def base_of(address: int) -> tuple[int, int]:
    """(offset, flag of the base that it counts from) of an address in global memory."""
    return (address - WEIGHTS, CTRL_WEIGHT) if address >= WEIGHTS else (address, CTRL_NEURON)


def touched(param: object) -> tuple[list[Range], list[Range]]:
    """Bytes within a lane that a TPU call reads and writes: the tensors among its parameters."""
    reads: list[Range] = []
    writes: list[Range] = []
    for name, tensor in vars(param).items():
        if isinstance(tensor, tensor_lmem):
            strides = getattr(param, f"{name}_stride", None)
            end = tensor.end if strides is None else replace(tensor, stride=strides).end
            (writes if name in _RESULTS else reads).append((tensor.offset, end))
    return reads, writes


def aligned(address: int, dims: Dims, fmt: int = FMT_I8) -> tensor_lmem:
    """Descriptor of an aligned local tensor."""
    return tensor_lmem(address, shape_t4(*dims), fmt, True)


def matrix(address: int, rows: int, cols: int, fmt: int = FMT_I8) -> tensor_lmem:
    """Descriptor of an aligned local matrix."""
    return tensor_lmem(address, shape_t2(rows, cols), fmt, True)


aligned_lane_bytes = CHIP.lane_bytes
"""Bytes per lane of an aligned tensor (bm1880.md 2.2)."""


def matrix_lane_bytes(rows: int, cols: int) -> int:
    """Bytes per lane of an aligned matrix (bm1880.md 2.3)."""
    width = 16 if cols <= 32 else 32
    chunks = -(-cols // width)
    return rows * -(-chunks // CHIP.lanes) * align_up(width, CHIP.alignment)


def strides_of(view: Dims, box: tuple[tuple[int, int], ...]) -> stride_t:
    """Global strides of a box; an axis of one element needs none (long rows would not fit the 16-bit field)."""
    n_str, c_str, h_str, w_str = dense_strides(view)
    return stride_t4(n_str, c_str, h_str if box[2][1] - box[2][0] > 1 else 0, w_str)


def is_packed(view: Dims, box: tuple[tuple[int, int], ...]) -> bool:
    """True when the box is one run of bytes."""
    dims = extents(box)
    inner = 1
    for size, full in zip(reversed(dims), reversed(view)):
        if size != full:
            return all(d == 1 for d in dims[: 4 - inner])
        inner += 1
    return True


__all__ = ["Build", "Dims", "extents", "shape_t", "stride_t4"]
