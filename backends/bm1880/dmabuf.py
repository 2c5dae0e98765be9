"""DMA buffers: what the driver hands to the chip, built from a command buffer (bm1880.md 7).

Layout: 64-byte header, CPU descriptors (one per CPU record and a final sync), then the TPU lists, then the GDMA lists.
The order of the lists is our choice; the CPU descriptors say where each begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import CPU, CPU_NAME_BYTES, CPU_PAYLOAD, GDMA, TIU, CpuOperation, Engine
from bmcompiler.errors import EncodingError, FileFormatError

DMA_MAGIC = 0xA7
_HEADER_BYTES = 64
_TPU_UNIT, _GDMA_UNIT = 256, 64
_CHUNK_BYTES = 16
_CHUNK_ORDER = (6, 1, 2, 3, 4, 5, 0)


@dataclass
class _Segment:
    """The instructions before one CPU descriptor."""

    cpu: bytes = b""
    tpu: list[bytes] = field(default_factory=list)
    gdma: list[bytes] = field(default_factory=list)
    tpu_offset: int = 0
    gdma_offset: int = 0


def build(cmdbuf: bytes) -> bytes:
    """The DMA buffer of a (relocated) command buffer, for device address 0 - base of global memory; see `relocate`.

    Raises:
        FileFormatError: malformed command buffer.
        EncodingError: a CPU record too long for a descriptor.
    """
    segments = _segments(cmdbuf)
    size = _HEADER_BYTES + len(segments) * CPU_PAYLOAD
    for segment in segments:
        size = segment.tpu_offset = align_up(size, _TPU_UNIT)
        size += len(segment.tpu) * TIU.size
    for segment in segments:
        size = segment.gdma_offset = align_up(size, _GDMA_UNIT)
        size += len(segment.gdma) * GDMA.size
    counts = [len(segments), sum(len(s.tpu) for s in segments), sum(len(s.gdma) for s in segments)]
    out = np.zeros(size, np.uint8)
    out[:20].view("<u4")[:] = [DMA_MAGIC, size, *counts]
    for i, segment in enumerate(segments):
        at = _HEADER_BYTES + i * CPU_PAYLOAD
        out[at : at + CPU_PAYLOAD] = np.frombuffer(_cpu_descriptor(segment), np.uint8)
        _place(out, segment.tpu_offset, _tpu_list(segment.tpu))
        _place(out, segment.gdma_offset, _gdma_list(segment.gdma, segment.gdma_offset))
    return out.tobytes()


def relocate(dmabuf: bytes, address: int) -> bytes:
    """The DMA buffer for device address `address` (without the 0x1_0000_0000 of global memory; a multiple of 256).

    Raises:
        FileFormatError: not a DMA buffer, or lists outside it.
        EncodingError: misaligned address, or one whose pointers leave their 32 bits.
    """
    base = address + CHIP.global_base
    if address < 0 or address % _TPU_UNIT or base // _GDMA_UNIT >> 31:
        raise EncodingError(f"DMA buffer address 0x{address:x} must be a multiple of {_TPU_UNIT} in device memory")
    words = np.frombuffer(dmabuf, np.uint8).copy()
    if words.size < _HEADER_BYTES or words.size % 4 or int(words[:4].view("<u4")[0]) != DMA_MAGIC:
        raise FileFormatError("DMA buffer: the header is cut off or its magic word is not 0xa7")
    count = int(words[8:12].view("<u4")[0])
    end = _HEADER_BYTES + count * CPU_PAYLOAD
    if end > words.size:
        raise FileFormatError(f"DMA buffer: {count} CPU descriptors do not fit {words.size} bytes")
    cpu = words[_HEADER_BYTES:end].view("<u4").reshape(count, -1)
    for descriptor in cpu:
        first, length = int(descriptor[4]) * _GDMA_UNIT, int(descriptor[2]) * GDMA.size
        if first + length > words.size:
            raise FileFormatError(f"DMA buffer: a GDMA list at {first} of {length} bytes leaves the buffer")
        words[first : first + length].view("<u4").reshape(-1, GDMA.size // 4)[:, 15] += np.uint32(base // _GDMA_UNIT)
    cpu[:, 3] += np.uint32(base // _TPU_UNIT)
    cpu[:, 4] += np.uint32(base // _GDMA_UNIT)
    return words.tobytes()


def _segments(cmdbuf: bytes) -> list[_Segment]:
    segments = [_Segment()]
    for i, (engine, payload, _) in enumerate(records(cmdbuf)):
        if engine == Engine.CPU:
            if len(payload) > CPU_PAYLOAD:
                raise EncodingError(f"record {i}: a CPU descriptor has {CPU_PAYLOAD} bytes, this one {len(payload)}")
            segments[-1].cpu = payload.ljust(CPU_PAYLOAD, b"\0")
            segments.append(_Segment())
        else:
            (segments[-1].tpu if engine == Engine.TPU else segments[-1].gdma).append(payload)
    sync = bytearray(CPU.encode_one(operation=CpuOperation.SYNC).ljust(CPU_PAYLOAD, b"\0"))
    sync[CPU_NAME_BYTES] = b"layer_end".ljust(16, b"\0")
    segments[-1].cpu = bytes(sync)
    return segments


def _cpu_descriptor(segment: _Segment) -> bytes:
    head = CPU.unpack(segment.cpu[: CPU.size])
    head |= {
        "tpu_count": len(segment.tpu),
        "gdma_count": len(segment.gdma),
        "tpu_offset": segment.tpu_offset // _TPU_UNIT,
        "gdma_offset": segment.gdma_offset // _GDMA_UNIT,
    }
    return CPU.pack(head) + segment.cpu[CPU.size :]


def _tpu_list(payloads: list[bytes]) -> NDArray[np.uint8]:
    if not payloads:
        return np.zeros(0, np.uint8)
    table = TIU.decode(np.frombuffer(b"".join(payloads), np.uint8))
    table["cmd_end"][-1] = table["cmd_intr_en"][-1] = 1
    chunks = TIU.encode(table).reshape(len(payloads), -1, _CHUNK_BYTES)[:, _CHUNK_ORDER]
    chunks[:, :, -1] = chunks[:, :, -1] & 0x0F | np.array(_CHUNK_ORDER, np.uint8) << 4
    return chunks.reshape(-1)


def _gdma_list(payloads: list[bytes], offset: int) -> NDArray[np.uint8]:
    if not payloads:
        return np.zeros(0, np.uint8)
    table = GDMA.decode(np.frombuffer(b"".join(payloads), np.uint8))
    table["barrier"][:] = 1
    table["next"] = offset // _GDMA_UNIT + 1 + np.arange(len(payloads))
    table["next"][-1] = 0
    table["list_end"][-1] = table["intr_en"][-1] = 1
    return GDMA.encode(table).reshape(-1)


def _place(out: NDArray[np.uint8], at: int, data: NDArray[np.uint8]) -> None:
    out[at : at + data.size] = data
