"""The kernel context: collects command records and hands out local memory (vendor: BMKernel library, System API)."""
# ruff: noqa: N801

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.backends.bm1880.bmkernel.allocator import LocalMemory
from bmcompiler.backends.bm1880.bmkernel.sync import Op, SyncIds
from bmcompiler.backends.bm1880.bmkernel.tensors import shape_t, tensor_lmem
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cmdbuf import pack_cpu
from bmcompiler.backends.bm1880.isa import CTRL_AL, CTRL_NULL, GDMA, HEADER, HEADER_SIZE, TIU, Engine
from bmcompiler.errors import EncodingError
from bmcompiler.instructions.isa import Format

_TPU_HEADER = HEADER.encode_one(len=TIU.size, engine=Engine.TPU)
_GDMA_HEADERS = tuple(
    HEADER.encode_one(len=GDMA.size, engine=Engine.GDMA, neuron=flags & 1, weight=flags >> 1) for flags in range(4)
)
_OWN_BIT = {Engine.TPU: TIU.by_name["cmd_id_tpu"].first_bit, Engine.GDMA: GDMA.by_name["cmd_id_gdma"].first_bit}
_WAIT_BIT = {Engine.TPU: TIU.by_name["cmd_id_gdma"].first_bit, Engine.GDMA: GDMA.by_name["cmd_id_tpu"].first_bit}


@dataclass
class bmk1880_info_t:
    """What a context is registered with.

    `cmdbuf`, when given, receives the commands at acquire; `cmdbuf_size` limits their bytes (None: length of `cmdbuf`,
    or no limit).
    """

    chip_version: int = CHIP.version
    cmdbuf_size: int | None = None
    cmdbuf: bytearray | None = None


@dataclass(frozen=True)
class bmk1880_chip_info_t:
    """Geometry of the chip; sizes in bytes."""

    version: int
    npu_num: int
    eu_num: int
    lmem_size: int
    lmem_banks: int
    lmem_bank_size: int


class Bmk1880Context:
    """Command records in program order, synchronisation state and the local-memory allocator.

    Contexts share nothing, so each thread may have its own.
    """

    def __init__(self, info: bmk1880_info_t | None = None) -> None:
        info = info or bmk1880_info_t()
        if info.chip_version != CHIP.version:
            raise EncodingError(f"bmk1880_register: chip_version is {info.chip_version}, must be {CHIP.version}")
        self._target = info.cmdbuf
        self._limit = info.cmdbuf_size
        if self._target is not None:
            self._limit = min(len(self._target), len(self._target) if self._limit is None else self._limit)
        self._chunks: list[bytes] = []
        self._size = 0
        self._closed = False
        self.sync = SyncIds()
        self.lmem = LocalMemory()

    @property
    def count(self) -> int:
        """Records emitted so far."""
        return len(self._chunks)

    def emit_tpu(self, call: str, values: dict[str, int]) -> Op:
        """Append a TIU instruction: the reset values overridden by `values`; ids are added here."""
        return self._emit(call, Engine.TPU, _TPU_HEADER, TIU, values)

    def emit_gdma(self, call: str, values: dict[str, int], flags: int = 0) -> Op:
        """Append a GDMA instruction with header flags FLAG_NEURON | FLAG_WEIGHT; ids are added here."""
        return self._emit(call, Engine.GDMA, _GDMA_HEADERS[flags], GDMA, values)

    def _emit(self, call: str, engine: Engine, header: bytes, layout: Format, values: dict[str, int]) -> Op:
        try:
            bits = layout.pack_bits(values)
        except EncodingError as error:
            raise EncodingError(f"{call}: {error.reason}") from error
        self._reserve(HEADER_SIZE + layout.size)
        op, own, wait = self.sync.issue(engine, len(self._chunks))
        bits |= own << _OWN_BIT[engine] | wait << _WAIT_BIT[engine]
        self._chunks.append(header + bits.to_bytes(layout.size, "little"))
        return op

    def emit_cpu(self, name: str, params: bytes) -> None:
        """Append a CPU record: a full barrier, after which both engines' ids restart at 1."""
        record = pack_cpu(name, params)
        self._reserve(len(record))
        self._settle()
        self._chunks.append(record)
        self.sync.restart()

    def _reserve(self, size: int) -> None:
        if self._closed:
            raise EncodingError("the kernel context was cleaned up")
        if self._limit is not None and self._size + size > self._limit:
            raise EncodingError(f"the command buffer of {self._limit} bytes is full after {len(self._chunks)} commands")
        self._size += size

    def _settle(self) -> None:
        for op, wait in self.sync.settle():
            self._patch_wait(op, wait)

    def _patch_wait(self, op: Op, wait: int) -> None:
        record = self._chunks[op.position]
        bits = int.from_bytes(record[HEADER_SIZE:], "little") | wait << _WAIT_BIT[op.engine]
        self._chunks[op.position] = record[:HEADER_SIZE] + bits.to_bytes(len(record) - HEADER_SIZE, "little")

    def destroy_streams(self) -> None:
        """Fix the streams' wait ids and return to serial mode."""
        for op, wait in self.sync.destroy_streams():
            self._patch_wait(op, wait)

    def acquire(self) -> bytes:
        """All records emitted so far."""
        self._settle()
        cmdbuf = b"".join(self._chunks)
        if self._target is not None:
            self._target[: len(cmdbuf)] = cmdbuf
        return cmdbuf

    def reset(self) -> None:
        """Drop all records, return to serial mode and restart the ids.

        Allocations stay: programs free their tensors after they have submitted and reset the buffer.
        """
        self._chunks, self._size = [], 0
        self.sync.reset()

    def close(self) -> None:
        """Refuse further commands."""
        self._chunks, self._size, self._closed = [], 0, True


def bmk1880_register(info: bmk1880_info_t | None = None) -> Bmk1880Context:
    """A new context. Raises EncodingError for another chip version."""
    return Bmk1880Context(info)


def bmk1880_cleanup(ctx: Bmk1880Context) -> None:
    """Free a context; later calls on it raise EncodingError."""
    ctx.close()


def bmk1880_acquire_cmdbuf(ctx: Bmk1880Context) -> bytes:
    """The command buffer so far (its length replaces the C call's size result)."""
    return ctx.acquire()


def bmk1880_reset(ctx: Bmk1880Context) -> None:
    """Empty the command buffer and restart in serial mode."""
    ctx.reset()


def bmk1880_parallel_enable(ctx: Bmk1880Context) -> None:
    """Open a group whose instructions on different engines do not wait for each other."""
    ctx.sync.parallel_enable()


def bmk1880_parallel_disable(ctx: Bmk1880Context) -> None:
    """Close the parallel group."""
    ctx.sync.parallel_disable()


def bmk1880_create_streams(ctx: Bmk1880Context, nr_streams: int) -> None:
    """Enter stream mode with streams 0..nr_streams-1; stream 0 is current."""
    ctx.sync.create_streams(nr_streams)


def bmk1880_destroy_streams(ctx: Bmk1880Context) -> None:
    """Leave stream mode for serial mode."""
    ctx.destroy_streams()


def bmk1880_set_stream(ctx: Bmk1880Context, i: int) -> None:
    """Put the following instructions into stream i."""
    ctx.sync.set_stream(i)


def bmk1880_add_dependency(ctx: Bmk1880Context, before: Op, after: Op) -> None:
    """Make the instruction `after` wait for `before` (handles returned by the computation calls)."""
    ctx.sync.add_dependency(before, after)


def bmk1880_cpu_op(ctx: Bmk1880Context, name: str, params: bytes = b"") -> None:
    """Run CPU plugin `name` with parameter bytes `params`, after all earlier and before all later instructions."""
    ctx.emit_cpu(name, params)


def bmk1880_chip_info() -> bmk1880_chip_info_t:
    """Design parameters of the chip."""
    return bmk1880_chip_info_t(
        CHIP.version, CHIP.lanes, CHIP.execution_units, CHIP.lmem_size, CHIP.lmem_banks, CHIP.lmem_bank_size
    )


def bmk1880_tl_prealloc(ctx: Bmk1880Context, la: int, s: shape_t, fmt: int) -> tensor_lmem:
    """Descriptor of an unaligned tensor at flat local address `la`; nothing is reserved."""
    return tensor_lmem(la, s, fmt, False)


def bmk1880_tl_prealloc_align(ctx: Bmk1880Context, la: int, s: shape_t, fmt: int) -> tensor_lmem:
    """Descriptor of an aligned tensor at flat local address `la`; nothing is reserved."""
    return tensor_lmem(la, s, fmt, True)


def bmk1880_tl_alloc(ctx: Bmk1880Context, s: shape_t, fmt: int, ctrls: int) -> tensor_lmem | None:
    """Allocate a tensor (CTRL_NULL unaligned, CTRL_AL aligned) on the stack; None when it does not fit."""
    return ctx.lmem.stack(None).alloc(s, fmt, _aligned("bmk1880_tl_alloc", ctrls))


def bmk1880_tl_alloc_bank(ctx: Bmk1880Context, bank_id: int, s: shape_t, fmt: int, ctrls: int) -> tensor_lmem | None:
    """Allocate a tensor from one bank's own stack; None when it does not fit."""
    return ctx.lmem.stack(bank_id).alloc(s, fmt, _aligned("bmk1880_tl_alloc_bank", ctrls))


def bmk1880_tl_free(ctx: Bmk1880Context, tlp: tensor_lmem) -> None:
    """Free a tensor; allocated ones last-in first-out (EncodingError otherwise)."""
    ctx.lmem.free(tlp)


def _aligned(call: str, ctrls: int) -> bool:
    if ctrls not in (CTRL_NULL, CTRL_AL):
        raise EncodingError(f"{call}: ctrls is 0x{ctrls:x}, must be CTRL_NULL or CTRL_AL")
    return ctrls == CTRL_AL
