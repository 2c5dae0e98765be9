"""The kernel context: collects command records and hands out local memory (vendor: BMKernel library, System API)."""
# ruff: noqa: N801

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.backends.bm1880.bmkernel.allocator import LocalMemory
from bmcompiler.backends.bm1880.bmkernel.checks import ConstraintError
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.sync import Op, SyncIds
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cmdbuf import pack_cpu
from bmcompiler.backends.bm1880.isa import GDMA, HEADER, HEADER_SIZE, TIU, Engine
from bmcompiler.errors import EncodingError
from bmcompiler.instructions.isa import Format

_TPU_HEADER = HEADER.encode_one(len=TIU.size, engine=Engine.TPU)
_GDMA_HEADERS = tuple(
    HEADER.encode_one(len=GDMA.size, engine=Engine.GDMA, neuron=flags & 1, weight=flags >> 1) for flags in range(4)
)
_OWN_BIT = {Engine.TPU: TIU.by_name["cmd_id_tpu"].first_bit, Engine.GDMA: GDMA.by_name["cmd_id_gdma"].first_bit}
_WAIT_BIT = {Engine.TPU: TIU.by_name["cmd_id_gdma"].first_bit, Engine.GDMA: GDMA.by_name["cmd_id_tpu"].first_bit}


@KERNEL.struct
@dataclass
class bmk1880_info_t:
    """What a context is registered with.

    `cmdbuf`, when given, receives the commands at acquire; `cmdbuf_size` limits their bytes (None: length of `cmdbuf`,
    or no limit).
    """

    chip_version: int = CHIP.version
    cmdbuf_size: int | None = None
    cmdbuf: bytearray | None = None


@KERNEL.struct
@dataclass(frozen=True)
class bmk1880_chip_info_t:
    """Geometry of the chip; sizes in bytes."""

    version: int
    npu_num: int
    eu_num: int
    lmem_size: int
    lmem_banks: int
    lmem_bank_size: int


@KERNEL.handle("reader_t")
@KERNEL.handle("ctx_t")
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

    def emit_tpu(self, values: dict[str, int]) -> Op:
        """Append a TIU instruction: the reset values overridden by `values`; ids are added here."""
        return self._emit(Engine.TPU, _TPU_HEADER, TIU, values)

    def emit_gdma(self, values: dict[str, int], flags: int = 0) -> Op:
        """Append a GDMA instruction with header flags FLAG_NEURON | FLAG_WEIGHT; ids are added here."""
        return self._emit(Engine.GDMA, _GDMA_HEADERS[flags], GDMA, values)

    def _emit(self, engine: Engine, header: bytes, layout: Format, values: dict[str, int]) -> Op:
        try:
            bits = layout.pack_bits(values)
        except EncodingError as error:
            raise ConstraintError(error.reason) from error
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
        """Free all tensors and refuse further calls."""
        self._chunks, self._size, self._closed = [], 0, True
        self.lmem.close()

    def ended(self) -> str:
        """Why it cannot be used any more."""
        return "was cleaned up" if self._closed else ""
