"""The instruction builder kernels emit through: addresses, waits, and moves between global and local memory.

Global tensors are dense arrays of their element type. In local memory 8-bit and 16-bit feature maps are packed, four or
two images to a word (bm1684.md 4.2): they are moved with one command per image slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bmcompiler.backends.bm1684.builder import Builder, CommandGroup, Ticket
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.hazards import Hazards, Range
from bmcompiler.backends.bm1684.isa import GDMA, DataFormat, Direction, Engine, Function
from bmcompiler.backends.bm1684.l2 import TableSpace
from bmcompiler.backends.bm1684.layout import Shape, Strides, aligned_strides, compact_strides, global_strides
from bmcompiler.codegen.build import BaseBuild, Box, extents, start_of
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.ir import Value

__all__ = [
    "FORMAT_OF_SIZE",
    "NEURON_VIRTUAL",
    "Box",
    "Build",
    "compact_bytes",
    "extents",
    "lane_bytes",
    "place_neurons",
    "side_fields",
    "word_shape",
]

NEURON_VIRTUAL = 1 << 39
"""Where neuron memory seems to begin until the size of the coefficients is known (`place_neurons`)."""
FORMAT_OF_SIZE = {1: DataFormat.INT8, 2: DataFormat.INT16, 4: DataFormat.FP32}


def word_shape(shape: Shape, item: int) -> Shape:
    """The words that hold a feature map of `item`-byte elements: (word-images, c, h, w)."""
    n, c, h, w = shape
    return -(-n * item // 4), c, h, w


def lane_bytes(shape: Shape, item: int = 4) -> int:
    """Bytes per lane of a feature map in its aligned layout; the space of a partial group of images is whole."""
    return CHIP.lane_bytes(word_shape(shape, item), 4)


def compact_bytes(shape: Shape, item: int = 4) -> int:
    """Bytes per lane of weights, biases and per-channel vectors."""
    n, c, h, w = shape
    return n * -(-c // CHIP.lanes) * h * w * item


class Build(BaseBuild):
    """One program under construction; `serial` makes every command wait for all before it."""

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients, serial: bool = False) -> None:
        super().__init__(plan, coefficients)
        self.serial = serial
        self.counts = {engine: 0 for engine in Engine}
        self._start()

    def _start(self) -> None:
        self._builder, self._hazards, self._tables = Builder(), Hazards[Ticket](), TableSpace()

    def finish(self) -> list[CommandGroup]:
        """The commands since the last call, as groups; the next command begins a new subnet."""
        groups = self._builder.groups()
        self._start()
        return groups

    # -- commands ------------------------------------------------------------------------------------------------------
    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> None:
        """Add a TIU command. Ranges are bytes within a lane, or addresses from `CHIP.l2_window` for L2 tables."""
        self._add(Engine.TIU, tuple(reads), tuple(writes), fields)

    def gdma(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> None:
        """Add a GDMA command; ranges as for `tiu`, global memory needs none."""
        self._add(Engine.GDMA, tuple(reads), tuple(writes), fields)

    def _add(self, engine: Engine, reads: tuple[Range, ...], writes: tuple[Range, ...], fields: dict[str, int]) -> None:
        after: list[Ticket] | None = None
        if not self.serial:
            ticket = self._hazards.before(engine, reads, writes)
            after = [] if ticket is None else [ticket]
        add = self._builder.tiu if engine is Engine.TIU else self._builder.gdma
        self._hazards.note(engine, add(after=after, **fields), reads, writes)
        self.counts[engine] += 1

    # -- addresses -----------------------------------------------------------------------------------------------------
    def neuron(self, value: Value) -> int:
        """Address of an activation, with `NEURON_VIRTUAL` as the base."""
        return NEURON_VIRTUAL + super().neuron(value)

    def coefficient(self, offset: int) -> int:
        """Address of byte `offset` of the coefficients."""
        return CHIP.program_base + offset

    def source(self, value: Value) -> int:
        """Address to load a value from: neuron memory, or the coefficients for constants as they stand."""
        offset, constant = self.stored(value)
        return self.coefficient(offset) if constant else NEURON_VIRTUAL + offset

    def table(self, place: int, size: int) -> int:
        """Offset in L2 of the table of `size` bytes (whole words) that starts at byte `place` of the coefficients.

        It is loaded unless this program has it there already.
        """
        offset, fresh = self._tables.place((place, size), size)
        if fresh:
            address, dims = CHIP.l2_window + offset, (1, 1, 1, size // 4)
            self.gdma(
                [],
                [(address, address + size)],
                direction=Direction.SYSTEM_TO_SYSTEM,
                src_addr=self.coefficient(place),
                dst_addr=address,
                **_copy(4, dims, global_strides(dims), global_strides(dims)),
            )
        return offset

    # -- feature maps --------------------------------------------------------------------------------------------------
    def load_box(self, value: Value, view: Shape, box: Box, address: int) -> None:
        """Load the `box` of a value seen as `view` (N, C, H, W) into an aligned local tensor at `address`."""
        strides = global_strides(view)
        item = value.type.numpy.itemsize
        self.load(self.source(value) + start_of(box, view) * item, extents(box), strides, item, address)

    def store_box(self, value: Value, view: Shape, box: Box, address: int) -> None:
        """The way back of `load_box`."""
        strides = global_strides(view)
        item = value.type.numpy.itemsize
        self.store(self.neuron(value) + start_of(box, view) * item, extents(box), strides, item, address)

    def load(
        self,
        source: int,
        shape: Shape,
        strides: Strides,
        item: int,
        address: int,
        frame: tuple[int, int, int, int] = (0, 0, 0, 0),
        channels: tuple[int, int] = (0, 0),
    ) -> None:
        """Load a strided global tensor into an aligned local one.

        Args:
            source: global address; strides: (n, c, h, w) in elements, 0 repeats (w: at most 4095).
            item: bytes of an element; 1 and 2 are packed into words.
            frame: (top, bottom, left, right) rows and columns of the local tensor around what is loaded.
            channels: how many of its channels come before and after.
        """
        n, c, h, w = shape
        top, bottom, left, right = frame
        whole = (n, channels[0] + c + channels[1], h + top + bottom, w + left + right)
        writes = [(address, address + lane_bytes(whole, item))]
        row, lane = divmod(channels[0], CHIP.lanes)
        step = aligned_strides(word_shape(whole, item))[1]
        first = local_address(address + 4 * (row * step + top * whole[3] + left), lane)
        for k, (images, *_), local in _slots(whole, item):
            self.gdma(
                [],
                writes,
                direction=Direction.SYSTEM_TO_LOCAL,
                src_addr=source + k * strides[0] * item,
                dst_addr=first + k * item,
                **_copy(item, (images, c, h, w), (strides[0] * (4 // item), *strides[1:]), local),
            )

    def store(self, target: int, shape: Shape, strides: Strides, item: int, address: int) -> None:
        """The way back of `load`."""
        reads = [(address, address + lane_bytes(shape, item))]
        for k, part, local in _slots(shape, item):
            self.gdma(
                reads,
                [],
                direction=Direction.LOCAL_TO_SYSTEM,
                src_addr=local_address(address) + k * item,
                dst_addr=target + k * strides[0] * item,
                **_copy(item, part, local, (strides[0] * (4 // item), *strides[1:])),
            )

    # -- compact tensors and global moves ------------------------------------------------------------------------------
    def load_compact(self, source: int, shape: Shape, item: int, address: int, strides: Strides | None = None) -> None:
        """Load weights, a bias or per-channel values (dense unless `strides` say otherwise) without gaps."""
        self.gdma(
            [],
            [(address, address + compact_bytes(shape, item))],
            direction=Direction.SYSTEM_TO_LOCAL,
            src_addr=source,
            dst_addr=local_address(address),
            **_copy(item, shape, strides or global_strides(shape), compact_strides(shape)),
        )

    def copy_global(self, target: int, source: int, item: int, shape: Shape, to: Strides, by: Strides) -> None:
        """Copy inside global memory; strides in elements: `to` of the target, `by` of the source (w: at most 4095)."""
        self.gdma(
            [], [], direction=Direction.SYSTEM_TO_SYSTEM, src_addr=source, dst_addr=target, **_copy(item, shape, by, to)
        )

    def fill_global(self, target: int, item: int, shape: Shape, strides: Strides, bits: int) -> None:
        """Fill a strided part of global memory with the low bits of a constant."""
        self.gdma([], [], direction=Direction.SYSTEM_TO_SYSTEM, dst_addr=target, **_fill(item, shape, strides, bits))

    def fill_local(self, address: int, shape: Shape, item: int, bits: int) -> None:
        """Fill an aligned local tensor; `bits` is one element, all image slots get it."""
        words = word_shape(shape, item)
        self._fill_words(address, (0, lane_bytes(shape, item)), words, aligned_strides(words), repeated(bits, item))

    def fill_frame(self, address: int, shape: Shape, item: int, bits: int, frame: tuple[int, int, int, int]) -> None:
        """Fill (top, bottom, left, right) rows and columns of an aligned local tensor as `fill_local` does."""
        n, c, h, w = words = word_shape(shape, item)
        top, bottom, left, right = frame
        strides, end, pattern = aligned_strides(words), lane_bytes(shape, item), repeated(bits, item)
        if top + bottom >= h or left + right >= w:
            self.fill_local(address, shape, item, bits)
            return
        for rows, columns in (
            ((0, top), (0, w)),
            ((h - bottom, h), (0, w)),
            ((0, h), (0, left)),
            ((0, h), (w - right, w)),
        ):
            part = (n, c, rows[1] - rows[0], columns[1] - columns[0])
            if part[2] and part[3]:
                start = 4 * (rows[0] * w + columns[0])
                self._fill_words(address + start, (-start, end - start), part, strides, pattern)

    def _fill_words(self, address: int, within: Range, shape: Shape, strides: Strides, bits: int) -> None:
        """Fill words from `address` on; `within`: the bytes of the tensor they are part of, counted from there."""
        self.gdma(
            [],
            [(address + within[0], address + within[1])],
            direction=Direction.LOCAL_TO_LOCAL,
            dst_addr=local_address(address),
            **_fill(4, shape, strides, bits),
        )


def _slots(shape: Shape, item: int) -> Iterator[tuple[int, Shape, Strides]]:
    """(image slot, shape of its images, strides in local memory in elements) of a feature map."""
    n, c, h, w = shape
    slots = 4 // item
    words = aligned_strides(word_shape(shape, item))
    local: Strides = tuple(stride * slots for stride in words)  # type: ignore[assignment]
    for k in range(min(n, slots)):
        yield k, (-(-(n - k) // slots), c, h, w), local


def _copy(item: int, shape: Shape, source: Strides, target: Strides) -> dict[str, int]:
    form = int(FORMAT_OF_SIZE[item])
    return {
        "stride_enable": 1,
        "src_data_format": form,
        "dst_data_format": form,
        **side_fields("src", shape, source),
        **side_fields("dst", shape, target),
    }


def repeated(bits: int, item: int) -> int:
    """The word whose elements of `item` bytes are all `bits`."""
    return int.from_bytes((bits & (1 << 8 * item) - 1).to_bytes(item, "little") * (4 // item), "little")


def _fill(item: int, shape: Shape, strides: Strides, bits: int) -> dict[str, int]:
    form = int(FORMAT_OF_SIZE[item])
    return {
        "stride_enable": 1,
        "special_func": Function.FILL,
        "src_data_format": form,
        "dst_data_format": form,
        "constant_value": bits & 0xFFFF_FFFF,
        **side_fields("dst", shape, strides),
    }


def side_fields(side: str, shape: Shape, strides: Strides) -> dict[str, int]:
    """Size and stride fields; an axis of one element has stride 0, its own could exceed the field."""
    steps = [stride if size > 1 else 0 for size, stride in zip(shape, strides)]
    steps[3] = strides[3]
    return {
        **{f"{side}_{axis}": size for axis, size in zip("nchw", shape)},
        **{f"{side}_{axis}_str": step for axis, step in zip("nchw", steps)},
    }


def place_neurons(commands: bytes, start: int) -> bytes:
    """GDMA commands with their virtual neuron addresses moved to the real start of neuron memory."""
    if not commands:
        return commands
    columns = GDMA.decode(np.frombuffer(commands, np.uint8))
    for side in ("src", "dst"):
        address = columns[f"{side}_addr_lo"] | columns[f"{side}_addr_hi"] << 32
        moved = np.where(address >= NEURON_VIRTUAL, address - NEURON_VIRTUAL + start, address)
        columns[f"{side}_addr_lo"], columns[f"{side}_addr_hi"] = moved & 0xFFFF_FFFF, moved >> 32
    return GDMA.encode(columns).tobytes()
