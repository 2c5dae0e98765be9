"""libbmkernel.so: the BM1880 kernel calls for C."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from bmcompiler.backends.bm1880 import bmkernel, isa
from bmcompiler.backends.bm1880.bmkernel import Bmk1880Context, bmk1880_info_t, stride_t, tensor_lmem
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.tensors import lane_bytes
from bmcompiler.capi.api import declared
from bmcompiler.capi.library import HANDLES, CLibrary, Handles, Read, Write
from bmcompiler.errors import EncodingError
from bmcompiler.runtime.bmdevice import BmErr

_CONSTANTS = (
    "CTRL_NULL", "CTRL_AL", "CTRL_NEURON", "CTRL_WEIGHT", "CTRL_TP", "CTRL_WINOGRAD", "CTRL_RELU",
    "CTRL_RA", "CTRL_KFLIP", "CTRL_BN", "CTRL_ADDR_ALIGN", "WINOGRAD_SCALE_SHIFT",
)  # fmt: skip

_CODES = "".join(f"#define BM_{'' if not code else 'ERR_'}{code.name} {int(code)}\n" for code in BmErr)
PREAMBLE = (
    declared(__file__, "kernel.h")
    + "".join(f"#define {name} 0x{int(getattr(isa, name)):x}u\n" for name in _CONSTANTS)
    + f"typedef u32 bmerr_t;\n{_CODES}"
)
_FREED = 1024  # descriptors that are kept after their end, so that their addresses are not used again at once


_ALLOCATED, _PLACED = 0, 1  # TL_TYPE_TENSOR, TL_TYPE_TENSOR_PREALLOC
_U32 = 0xFFFF_FFFF


class _Shape(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("dim", "n", "c", "h", "w")]


class _Stride(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("n", "c", "h", "w")]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_uint32),
        ("address", ctypes.c_uint32),
        ("shape", _Shape),
        ("stride", ctypes.POINTER(_Stride)),
        ("aligned", ctypes.c_bool),
        ("fmt", ctypes.c_uint32),
        ("bank_id", ctypes.c_uint32),
        ("reserved_size", ctypes.c_int32),
    ]


class _Tensors:
    """The descriptors that C has, by their addresses. What C writes into one counts from then on."""

    def __init__(self) -> None:
        self._given: dict[int, tuple[_Tensor, tensor_lmem]] = {}
        self._freed: OrderedDict[int, tuple[_Tensor, tensor_lmem]] = OrderedDict()
        self._lock = Lock()

    def read(self, address: int) -> object:
        """The tensor, with changed fields a new one of the same allocation."""
        if not address:
            return None
        raw, tensor = self._given.get(address) or self._freed.get(address) or (None, None)
        if raw is None or tensor is None or tensor.freed:
            return tensor if tensor is not None else object()
        stride = stride_t(*(getattr(raw.stride[0], axis) for axis in "nchw")) if raw.stride else None
        shape = bmkernel.shape_t(*(getattr(raw.shape, axis) for axis in ("dim", "n", "c", "h", "w")))
        now = (raw.fmt, shape, stride, raw.aligned, raw.address)
        if now == (tensor.fmt, tensor.shape, tensor.stride, tensor.aligned, tensor.address):
            return tensor
        fmt, shape, stride, aligned, flat = now
        return replace(tensor, fmt=fmt, shape=shape, stride=stride, aligned=aligned, address=flat)

    def write(self, address: int, tensor: tensor_lmem | None) -> None:
        """Store the address of a new descriptor."""
        pointer = 0
        if tensor is not None:
            shape, bank, kept = _Shape(*tensor.shape), tensor.bank_id & _U32, tensor.owner is not None
            size = lane_bytes(tensor.shape, tensor.aligned) if kept else 0
            kind = _ALLOCATED if kept else _PLACED
            raw = _Tensor(kind, tensor.address, shape, None, tensor.aligned, tensor.fmt, bank, size)
            pointer = ctypes.addressof(raw)
            with self._lock:
                self._given[pointer] = (raw, tensor)
        ctypes.c_uint64.from_address(address).value = pointer

    def free(self, slots: Any, result: int) -> None:
        """`bmk1880_tl_free`: the tensor as it was made ends, whatever C has written since."""
        known = self._given.get(slots[1])
        bmkernel.bmk1880_tl_free(HANDLES.read(slots[0]), known[1] if known else self.read(slots[1]))  # type: ignore[arg-type]
        with self._lock:
            self._freed[slots[1]] = self._given.pop(slots[1])
            if len(self._freed) > _FREED:
                self._freed.popitem(last=False)


TENSORS = _Tensors()
_BUFFERS: WeakKeyDictionary[Bmk1880Context, Any] = WeakKeyDictionary()
"""Where the commands of a context go: memory of the caller, or what the last acquire gave out."""
_OWNED: WeakKeyDictionary[Bmk1880Context, Any] = WeakKeyDictionary()


def _register(slots: Any, result: int) -> None:
    info, buffer, limit = bmk1880_info_t(), 0, None
    if slots[0]:
        raw = LIBRARY.layout("bmk1880_info_t").from_address(slots[0])
        buffer, limit = raw.cmdbuf or 0, raw.cmdbuf_size or None
        if buffer and limit is None:
            raise EncodingError("bmk1880_register: info.cmdbuf_size is 0, with a buffer given")
        info = bmk1880_info_t(raw.chip_version, limit)
    ctx = bmkernel.bmk1880_register(info)
    if buffer:
        _BUFFERS[ctx] = buffer
    HANDLES.write(result, ctx)


def _acquire(slots: Any, result: int) -> None:
    ctx = HANDLES.read(slots[0])
    commands = bmkernel.bmk1880_acquire_cmdbuf(ctx)
    if not slots[1]:
        raise EncodingError("bmk1880_acquire_cmdbuf: size is NULL")
    pointer = _BUFFERS.get(ctx)
    if pointer is None:
        _OWNED[ctx] = memory = ctypes.create_string_buffer(commands, max(1, len(commands)))
        pointer = ctypes.addressof(memory)
    else:
        ctypes.memmove(pointer, commands, len(commands))
    ctypes.c_uint32.from_address(slots[1]).value = len(commands)
    ctypes.c_uint64.from_address(result).value = pointer


_OPS = Handles(first=1 << 40, most=1 << 16)
"""Handles of commands: one for each, so that old ones are forgotten."""
_READ: dict[str, Read] = {
    "ctx_t": HANDLES.read,
    "reader_t": HANDLES.read,
    "op_t": _OPS.read,
    "tensor_lmem *": TENSORS.read,
}
_WRITE: dict[str, Write] = {"op_t": _OPS.write, "tensor_lmem *": TENSORS.write}

LIBRARY = CLibrary(
    "bmkernel",
    KERNEL,
    PREAMBLE,
    {
        # contexts are void pointers in the manual: either kind of program compiles, also as C++
        "ctx_t": "void *",
        "reader_t": "const void *",
        "op_t": "void *",
        "const8": "s8",
        "const16": "s16",
    },
    {},
    lambda name: getattr(bmkernel, name),
    headers=("bmkernel.h", "bmkernel/bm_kernel.h", "bmkernel/bm_kernel_legacy.h", "bmkernel/bm1880/bmkernel_1880.h"),
    includes=("<math.h>",),
    numbers=dict.fromkeys(("fmt_t", "ctrl_t", "laddr_t"), ctypes.c_uint32),
    returns={"void *": "bmk1880_context_t *", "op_t": "bmk1880_op_t *"},
    read=_READ,
    write=_WRITE,
    special={
        "bmk1880_register": _register,
        "bmk1880_acquire_cmdbuf": _acquire,
        "bmk1880_tl_free": TENSORS.free,
    },
    after={
        "bmk1880_chip_info_t": "typedef bmk1880_chip_info_t bmk_chip_info_t;\n",
        "bmk1880_info_t": "typedef bmk1880_info_t bmk_info_t;\n",
        "stride_t": declared(__file__, "tensors.h"),
        "tensor_gmem": declared(__file__, "tensors_global.h"),
    },
    skipped=frozenset({"bmk1880_cpu_op"}),
)
