"""Boards of the BM1684 and BM1684X: models run by the vendor's installed libraries, which are opened by their names."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from weakref import finalize

import numpy as np

from bmcompiler.bmodel import BModel
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, tensor_info
from bmcompiler.errors import RuntimeUseError, UnsupportedError
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.bmlib.types import MAX_DIMS, BmDataType
from bmcompiler.runtime.devices import Device, LoadedProgram

LIBRARIES = "BMCOMPILER_BOARD_LIBRARIES"
"""The variable that names the folder of the vendor's libraries, where the loader does not find them by itself."""
_Handle = ctypes.c_void_p


class VendorMemory(ctypes.Structure):
    """A piece of device memory, as `bm_device_mem_t` of the vendor's header."""

    _fields_ = [
        ("device_addr", ctypes.c_ulong),
        ("reserved", ctypes.c_uint32),
        ("dmabuf_fd", ctypes.c_int32),
        ("rawflags", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
    ]


class VendorShape(ctypes.Structure):
    """Sizes of an array, as `bm_shape_t` of the vendor's header."""

    _fields_ = [("num_dims", ctypes.c_int32), ("dims", ctypes.c_int32 * MAX_DIMS)]


class VendorTensor(ctypes.Structure):
    """An array in device memory, as `bm_tensor_t` of the vendor's header."""

    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("shape", VendorShape),
        ("device_mem", VendorMemory),
        ("st_mode", ctypes.c_int32),
    ]


class BoardDevice(Device):
    """A card or SoC of one chip, by the vendor's libbmlib.so and libbmrt.so."""

    chip: ClassVar[str]
    chip_id: ClassVar[int]

    def load(self, model: BModel) -> list[LoadedProgram]:
        if not isinstance(model, Bm168xModel) or model.target != self.chip:
            raise UnsupportedError(f"a {self.chip} board cannot run models for {model.target}")
        runtime = _Runtime(self, b"".join(model.parts(file="the model")))
        return [_Program(runtime, net, stage) for net in model.nets for stage in net.stages]


class Bm1684Board(BoardDevice):
    """A board with a BM1684."""

    chip, chip_id = "bm1684", 0x1684


class Bm1684xBoard(BoardDevice):
    """A board with a BM1684X."""

    chip, chip_id = "bm1684x", 0x1686


class _Runtime:
    """A model in a runtime of the vendor's, until nobody uses it."""

    def __init__(self, board: BoardDevice, data: bytes) -> None:
        self._lib, self._rt = _library("libbmlib.so"), _library("libbmrt.so")
        self._rt.bmrt_create.restype = ctypes.c_void_p
        self._rt.bmrt_load_bmodel_data.restype = self._rt.bmrt_launch_tensor_ex.restype = ctypes.c_bool
        self.handle, self._runtime, chip = _Handle(), _Handle(), ctypes.c_uint32()
        self.need("bm_dev_request", ctypes.byref(self.handle), board.index)
        self._end = finalize(self, _end, self._lib, self._rt, self.handle, self._runtime)
        self.need("bm_get_chipid", self.handle, ctypes.byref(chip))
        if chip.value != board.chip_id:
            raise UnsupportedError(
                f"board {board.index} has the chip 0x{chip.value:x}, not a {board.chip}",
                remedy=f"compile the model for that chip, or choose another board than {board.index}",
            )
        self._runtime.value = self._rt.bmrt_create(self.handle)
        if not self._runtime.value:
            raise RuntimeUseError("bmrt_create fails", remedy="look at what the vendor's library prints")
        if not self._rt.bmrt_load_bmodel_data(self._runtime, data, ctypes.c_size_t(len(data))):
            raise RuntimeUseError("bmrt_load_bmodel_data fails: the vendor's library does not take the model")

    def need(self, name: str, *arguments: Any) -> None:
        """Call a function of libbmlib. Raises RuntimeUseError with its code unless that is 0."""
        code = getattr(self._lib, name)(*arguments)
        if code:
            raise RuntimeUseError(f"{name} fails with code {code}", remedy="look at what the vendor's library prints")

    def launch(self, net: str, types: Sequence[int], inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Run a net: fills `outputs`. Types are numbers of the vendor's, of inputs, then outputs. RuntimeUseError."""
        ins, outs = (VendorTensor * len(inputs))(), (VendorTensor * len(outputs))()
        made: list[VendorMemory] = []

        def size(array: Array) -> ctypes.c_uint32:
            return ctypes.c_uint32(array.nbytes)

        try:
            for tensor, array in zip((*ins, *outs), (*inputs, *outputs)):
                self.need("bm_malloc_device_byte", self.handle, ctypes.byref(tensor.device_mem), size(array))
                made.append(tensor.device_mem)
            for tensor, array in zip(ins, inputs):
                self.need("bm_memcpy_s2d", self.handle, tensor.device_mem, ctypes.c_void_p(array.ctypes.data))
            for tensor, array, number in zip((*ins, *outs), (*inputs, *outputs), types, strict=True):
                tensor.dtype, tensor.shape = number, _shape(array)
            counts = ctypes.c_bool(True), ctypes.c_bool(False)
            if not self._rt.bmrt_launch_tensor_ex(
                self._runtime, net.encode(), ins, len(inputs), outs, len(outputs), *counts
            ):
                raise RuntimeUseError(f"bmrt_launch_tensor_ex fails for net '{net}'")
            self.need("bm_thread_sync", self.handle)
            for tensor, array in zip(outs, outputs):
                place = ctypes.c_void_p(array.ctypes.data)
                self.need("bm_memcpy_d2s_partial", self.handle, place, tensor.device_mem, size(array))
        finally:
            for memory in made:
                self._lib.bm_free_device(self.handle, memory)


class _Program(LoadedProgram):
    """A stage of a net: the runtime finds it by the shapes of the inputs."""

    def __init__(self, runtime: _Runtime, net: Bm168xNet, stage: Bm168xStage) -> None:
        self._runtime, self._net = runtime, net.name
        self.inputs = tuple(tensor_info(one, stage) for one in stage.inputs)
        self.outputs = tuple(tensor_info(one, stage) for one in stage.outputs)
        self._types = [int(BmDataType[one.dtype.upper()]) for one in (*self.inputs, *self.outputs)]
        kept = [one.name for one in (*self.inputs, *self.outputs) if one.kept]
        if kept:
            raise UnsupportedError(f"tensor '{kept[0]}' is kept between runs, which is done on simulators only")

    def run(self, inputs: Sequence[Array | None]) -> list[Array]:
        given = [np.ascontiguousarray(one) for one in inputs if one is not None]
        made = [np.zeros(one.shape, one.stored) for one in self.outputs]
        self._runtime.launch(self._net, self._types, given, made)
        return made


def _shape(array: Array) -> VendorShape:
    return VendorShape(array.ndim, (ctypes.c_int32 * MAX_DIMS)(*array.shape))


def _library(name: str) -> ctypes.CDLL:
    folder = os.environ.get(LIBRARIES, "")
    try:
        return ctypes.CDLL(str(Path(folder) / name) if folder else name)
    except OSError as error:
        raise UnsupportedError(
            f"boards are used through the vendor's {name}, which cannot be opened: {error}",
            remedy=f"install the vendor's driver and libraries, or name their folder in {LIBRARIES}",
        ) from None


def _end(lib: Any, rt: Any, handle: _Handle, runtime: _Handle) -> None:
    if runtime.value:
        rt.bmrt_destroy(runtime)
    lib.bm_dev_free(handle)
