"""GDMA instructions: transfers between the memories and their special functions (bm1880.md 5)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.backends.bm1880.isa import FLAG_NEURON, FLAG_WEIGHT, Direction, GdmaFunction
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric.arith import saturate
from bmcompiler.numeric.arrays import IntArray
from bmcompiler.runtime.simulator.bm1880.memory import Memories, Shape, Tensor
from bmcompiler.runtime.simulator.plan import Step

# T = A g A^T of a 3x3 kernel (bm1880.md 5.4).
_WINOGRAD_A = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int32)
_LOCAL_SOURCES = (Direction.STORE, Direction.LOCAL)
_LOCAL_TARGETS = (Direction.LOAD, Direction.LOCAL)


class Transfer:
    """Operands of one GDMA command; `bases` are the neuron and weight addresses that relocation adds (bm1880.md 3)."""

    def __init__(self, memories: Memories, fields: Fields, flags: int, bases: tuple[int, int]) -> None:
        self.memories, self.fields = memories, fields
        self.direction = fields["direction"]
        self._base = (bases[0] if flags & FLAG_NEURON else 0) + (bases[1] if flags & FLAG_WEIGHT else 0)

    def is_local(self, side: str) -> bool:
        """Whether `side` ("src" or "dst") is local memory."""
        return self.direction in (_LOCAL_SOURCES if side == "src" else _LOCAL_TARGETS)

    def address(self, side: str) -> int:
        """Address of one side: relocated global address, or flat local address."""
        raw = self.fields[f"{side}_addr_lo"] | self.fields[f"{side}_addr_hi"] << 32
        if not self.is_local(side):
            return raw - CHIP.global_base + self._base
        if not 0 <= raw - CHIP.lmem_window < CHIP.lmem_total:
            raise SimulatorError(f"{side} address 0x{raw:x} is not in local memory")
        return raw - CHIP.lmem_window

    def place(self, side: str) -> tuple[int, int]:
        """(lane, offset) of a local side."""
        return divmod(self.address(side), CHIP.lmem_size)

    def shape(self, side: str, batch: int) -> Shape:
        """Shape fields of one side; n is `batch` because the destination has no n field."""
        f = self.fields
        return (batch, f[f"{side}_c"], f[f"{side}_h"], f[f"{side}_w"])

    def strides(self, side: str, shape: Shape) -> Shape:
        """Explicit strides, or with the stride bit off the defaults: packed in global memory, aligned in local."""
        f = self.fields
        if f["enable_stride"]:
            channel = f[f"{side}_c_str_lo"] | f[f"{side}_c_str_hi"] << 16
            return (f[f"{side}_n_str"], channel, f[f"{side}_h_str"], 1)
        _, c, h, w = shape
        if not self.is_local(side):
            return (c * h * w, h * w, w, 1)
        channel = align_up(h * w, CHIP.alignment)
        # Unlike TIU defaults, these count the groups from lane 0 (bm1880.md 2.2).
        groups = -(-(self.place(side)[0] + c) // CHIP.lanes)
        return (groups * channel, channel, w, 1)

    def tensor(self, side: str, shape: Shape, lane_offset: int = 0, strides: Shape | None = None) -> Tensor:
        """One side as a tensor; `lane_offset` channels away from its address (local sides)."""
        strides = strides or self.strides(side, shape)
        if not self.is_local(side):
            tensor = self.memories.globals.tensor(self.address(side), shape, strides)
            if side == "dst" and not tensor.pieces[0][1].flags.writeable:
                raise SimulatorError("it writes into the weights, which are read-only here")
            return tensor
        lane, offset = self.place(side)
        return self.memories.local.tensor(lane + lane_offset, offset, shape, strides)


def gdma_step(transfer: Transfer) -> Step:
    """Step of one GDMA command. Raises SimulatorError for unknown functions and shapes that do not fit."""
    function = transfer.fields["function"]
    maker = _MAKERS.get(function)
    if maker is None:
        raise SimulatorError(f"GDMA function {function} is not supported: no kernel call of the chip emits it")
    if transfer.fields["add_result"]:
        raise SimulatorError("GDMA accumulation is not supported: no kernel call of the chip emits it")
    if transfer.fields["matrix"] and transfer.direction in (Direction.LOAD, Direction.STORE):
        return _matrix(transfer)
    return maker(transfer)


def _pairs(target: Tensor, source: Tensor) -> list[tuple[IntArray, IntArray]] | None:
    """(destination, source) views that together are the whole copy, or None when the shapes of pieces differ."""
    if target.shape != source.shape:
        return None
    if source.view is not None:
        return [(piece, part) for part, piece in target.split(source.view)]
    if target.view is not None:
        return source.split(target.view)
    return None


def _run_pairs(pairs: list[tuple[IntArray, IntArray]]) -> Step:
    if len(pairs) == 1:
        target, source = pairs[0]

        def run_one() -> None:
            target[...] = source

        return run_one

    def run() -> None:
        for target, source in pairs:
            target[...] = source

    return run


def _copy(transfer: Transfer) -> Step:
    """Copy bytes in index order; the n of the destination is whatever makes the sizes agree."""
    source_shape = transfer.shape("src", transfer.fields["src_n"])
    target_shape = transfer.shape("dst", 1)
    batch, left = divmod(prod(source_shape), max(prod(target_shape), 1))
    if left or not batch:
        raise SimulatorError(f"source {source_shape} does not fill whole images of destination {target_shape}")
    target_shape = transfer.shape("dst", batch)
    source, target = transfer.tensor("src", source_shape), transfer.tensor("dst", target_shape)
    pairs = _pairs(target, source)
    # Inside one memory the sides may overlap: only a single assignment, or a copy first, is safe.
    if pairs is not None and (len(pairs) == 1 or transfer.direction in (Direction.LOAD, Direction.STORE)):
        return _run_pairs(pairs)
    return lambda: target.write(source.read().reshape(target_shape).copy())


def _transpose(transfer: Transfer) -> Step:
    """Exchange n and c: destination[n][c] = source[c][n]."""
    f = transfer.fields
    source_shape = transfer.shape("src", f["src_n"])
    target_shape = transfer.shape("dst", f["src_c"])
    n, c, h, w = source_shape
    if target_shape != (c, n, h, w):
        raise SimulatorError(f"destination {target_shape} is not the transpose of {source_shape}")
    source, target = transfer.tensor("src", source_shape), transfer.tensor("dst", target_shape)
    return lambda: target.write(source.read().transpose(1, 0, 2, 3))


def _matrix(transfer: Transfer) -> Step:
    """Load or store of a matrix (R, K) kept locally as R batches of K columns in chunks (bm1880.md 2.3)."""
    f = transfer.fields
    function = f["function"]
    if function not in (GdmaFunction.NONE, GdmaFunction.TRANSPOSE):
        raise SimulatorError(f"GDMA function {function} does not work on matrices")
    local, remote = ("dst", "src") if transfer.direction == Direction.LOAD else ("src", "dst")
    outer, inner = f[f"{remote}_h"], f[f"{remote}_w"]
    rows, columns = (inner, outer) if function == GdmaFunction.TRANSPOSE else (outer, inner)
    chunks, width = f[f"{local}_c"], f[f"{local}_w"]
    if width < 1 or chunks != -(-columns // width):
        raise SimulatorError(f"{columns} columns do not make {chunks} chunks of {width}")
    remote_shape = (1, 1, outer, inner)
    table = transfer.tensor(remote, remote_shape, strides=(1, 1, f[f"{remote}_h_str"], 1)).read()[0, 0]
    if function == GdmaFunction.TRANSPOSE:
        table = table.T
    strides = transfer.strides(local, (rows, chunks, 1, width))
    full, rest = divmod(columns, width)
    pairs: list[tuple[IntArray, IntArray]] = []
    if full:
        whole = transfer.tensor(local, (rows, full, 1, width), strides=strides)
        pairs += whole.split(_chunked(table[:, : full * width], full, width))
    if rest:
        last = transfer.tensor(local, (rows, 1, 1, rest), lane_offset=full, strides=strides)
        pairs += last.split(_chunked(table[:, full * width :], 1, rest))
    if transfer.direction == Direction.LOAD:
        pairs = [(piece, part) for part, piece in pairs]
    return _run_pairs(pairs)


def _chunked(table: IntArray, chunks: int, width: int) -> IntArray:
    """A view (R, chunks, 1, width) of a matrix view (R, chunks * width)."""
    row, column = table.strides
    return np.lib.stride_tricks.as_strided(
        table, (table.shape[0], chunks, 1, width), (row, width * column, width * column, column)
    )


def _lrn_shift(transfer: Transfer) -> Step:
    """Copy channels `step` further (right) or nearer and zero the exposed ones; addresses are shifted already."""
    f = transfer.fields
    if transfer.direction != Direction.LOCAL:
        raise SimulatorError("LRN shift works inside local memory only")
    step, batch = f["lrn_step"], f["src_n"]
    shape = transfer.shape("src", batch)
    if transfer.shape("dst", batch) != shape:
        raise SimulatorError(f"source {shape} and destination {transfer.shape('dst', batch)} differ")
    source, target = transfer.tensor("src", shape), transfer.tensor("dst", shape)
    strides = transfer.strides("dst", shape)
    exposed: Tensor | None = None
    if step:
        offset = -step if f["lrn_right"] else shape[1]
        exposed = transfer.tensor("dst", (shape[0], step, *shape[2:]), lane_offset=offset, strides=strides)

    def run() -> None:
        target.write(source.read().copy())
        if exposed is not None:
            for _, piece in exposed.pieces:
                piece[...] = 0

    return run


def _fill(transfer: Transfer) -> Step:
    target = transfer.tensor("dst", transfer.shape("dst", transfer.fields["src_n"]))
    value = transfer.fields["fill_value"]

    def run() -> None:
        for _, piece in target.pieces:
            piece[...] = value

    return run


def _winograd_weights(transfer: Transfer) -> Step:
    """3x3 kernels (9 bytes each) to transformed 4x4 ones (16 bytes each) (bm1880.md 5.4)."""
    f = transfer.fields
    batch = f["src_n"]
    shape, target_shape = transfer.shape("src", batch), transfer.shape("dst", batch)
    kernels, left = divmod(shape[3], 9)
    if transfer.direction != Direction.LOAD or left or target_shape != (*shape[:3], kernels * 16):
        raise SimulatorError(f"Winograd weights of shape {shape} cannot become {target_shape}")
    source, target = transfer.tensor("src", shape), transfer.tensor("dst", target_shape)
    scale = f["lrn_step"] + 1

    def run() -> None:
        kernel = source.read().view(np.int8).astype(np.int32).reshape(*shape[:3], kernels, 3, 3)
        spread = _WINOGRAD_A @ kernel @ _WINOGRAD_A.T
        scaled = (((spread + 2) >> 2) * scale + 4) >> 3
        target.write(saturate(scaled, "i8").reshape(target_shape))

    return run


_MAKERS: dict[int, Callable[[Transfer], Step]] = {
    GdmaFunction.NONE: _copy,
    GdmaFunction.TRANSPOSE: _transpose,
    GdmaFunction.LRN_SHIFT: _lrn_shift,
    GdmaFunction.FILL: _fill,
    GdmaFunction.WINOGRAD: _winograd_weights,
}
