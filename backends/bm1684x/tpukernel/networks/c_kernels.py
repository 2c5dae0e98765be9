"""Kernels in C as layers of networks: functions of a shared object that was linked with libtpukernel.so.

    register_layer("Weighted", reference=weighted_sum)(c_kernel("weighted.so", "weighted"))

The function gets a `tpu_layer_call_t` of tpu_kernel.h: what a kernel in Python knows of its `LayerCall`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from bmcompiler.backends.bm1684x.tpukernel.kernel import Program, program_of
from bmcompiler.backends.bm1684x.tpukernel.networks.layers import LayerCall
from bmcompiler.backends.bm1684x.tpukernel.networks.model import Placed
from bmcompiler.backends.bm1684x.tpukernel.recorder import recording
from bmcompiler.capi.entries import functions_of
from bmcompiler.errors import UsageError
from bmcompiler.plugins.registry import PluginError

MOST_DIMS, REASON_BYTES = 8, 256
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    """`tpu_layer_tensor_t`."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("dtype", ctypes.c_int32),
        ("dims", ctypes.c_int32),
        ("shape", ctypes.c_int32 * MOST_DIMS),
    ]


class _Call(ctypes.Structure):
    """`tpu_layer_call_t`."""

    _fields_ = [
        ("inputs", ctypes.POINTER(_Tensor)),
        ("outputs", ctypes.POINTER(_Tensor)),
        ("i32_params", ctypes.POINTER(ctypes.c_int32)),
        ("f32_params", ctypes.POINTER(ctypes.c_float)),
        ("input_num", ctypes.c_int32),
        ("output_num", ctypes.c_int32),
        ("i32_num", ctypes.c_int32),
        ("f32_num", ctypes.c_int32),
        ("local_bytes", ctypes.c_uint32),
        ("reason", ctypes.c_char_p),
    ]


def c_kernel(library: str | PathLike[str], name: str) -> Callable[[LayerCall], Program]:
    """The kernel `name` of a shared object, for `register_layer`.

    What it refuses, by `tpu_layer_refuse` or by a call of the library that is refused, is the host's, as of a kernel in
    Python. It is called in the process that compiles: a failed TPUKERNEL_ASSERT ends it.

    Raises:
        UsageError: the file is not there, cannot be loaded, or registers no such kernel.
    """
    file = Path(library)
    if not file.is_file():
        raise UsageError("there is no such file", file=fspath(library), remedy="build it as docs/kernel_layers.md says")
    try:
        found = functions_of(str(file.resolve()))
    except OSError as error:
        raise UsageError(f"it cannot be loaded: {error}", file=fspath(library)) from error
    if name not in found:
        known = f", only {', '.join(sorted(found))}" if found else ""
        raise UsageError(
            f"it registers no kernel '{name}'{known}",
            file=fspath(library),
            remedy=f"write TPUKERNEL_FUNC_REGISTER({name}) behind the function, and link with libtpukernel.so",
        )
    entry = _ENTRY(found[name])

    def run(call: LayerCall) -> Program:
        given, reason = _given(call)
        with recording() as recorder:
            entry(ctypes.addressof(given))
        if reason.value:
            raise UsageError(reason.value.decode(errors="replace"))
        if recorder.refused is not None:
            raise recorder.refused
        if not recorder.commands:
            raise PluginError(
                f"the kernel '{name}' of {file.name} issued no command",
                remedy="link it with the libtpukernel.so that bmnet-capi of this Python built",
            )
        return program_of(recorder, name)

    run.__name__, run.__doc__ = name, f"The kernel {name} of {file.name}."
    run.__module__ = sys._getframe(1).f_globals.get("__name__", "__main__")  # whose layer it is: that of who asks
    return run


def _given(call: LayerCall) -> tuple[_Call, Any]:
    """A call as C sees it, and where its reason to refuse goes. Raises UsageError for too many dimensions."""
    reason = ctypes.create_string_buffer(REASON_BYTES)
    numbers = (ctypes.c_int32 * len(call.i32_params))(*call.i32_params)
    floats = (ctypes.c_float * len(call.f32_params))(*call.f32_params)
    counts = (len(each) for each in (call.inputs, call.outputs, numbers, floats))
    tensors = (_tensors(call.inputs), _tensors(call.outputs))
    given = _Call(*tensors, numbers, floats, *counts, call.memory.end, ctypes.cast(reason, ctypes.c_char_p))
    return given, reason


def _tensors(placed: Sequence[Placed]) -> ctypes.Array[_Tensor]:
    most = max((len(one.shape) for one in placed), default=0)
    if most > MOST_DIMS:
        raise UsageError(f"kernels in C take tensors of at most {MOST_DIMS} dimensions, got {most}")
    shapes = [(ctypes.c_int32 * MOST_DIMS)(*one.shape) for one in placed]
    rows = (_Tensor(one.address, int(one.dtype), len(one.shape), shape) for one, shape in zip(placed, shapes))
    return (_Tensor * len(placed))(*rows)
