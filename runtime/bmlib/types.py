"""Types of BMLib and BMRuntime, the two tables, and what a refused call returns."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import wraps
from math import prod
from typing import Any, ParamSpec

import numpy as np

from bmcompiler.capi.api import Api, Prototype, declared
from bmcompiler.capi.kinds import Fault, anything, boolean, buffer, instance, integers, path, signed, text, unsigned
from bmcompiler.errors import BMError, FileFormatError, RuntimeUseError, UnsupportedError, UsageError
from bmcompiler.runtime.bmlib.forms import MEMORY, WIDE_MEMORIES, forms

log = logging.getLogger("bmcompiler.runtime")
P = ParamSpec("P")

BM_MEM_ADDR_NULL = 0xF_FFFF_FFFF
MAX_DIMS = 8
CPU_FAULT = 2
"""What `bm_cpu_status_t` says of a processor that does not run."""


class BmStatus(IntEnum):
    """What functions of BMLib return."""

    SUCCESS = 0
    DEVNOTREADY = 1
    FAILURE = 2
    TIMEOUT = 3
    PARAM = 4
    NOMEM = 5
    DATA = 6
    BUSY = 7
    NOFEATURE = 8
    NOT_SUPPORTED = 9


class BmMemType(IntEnum):
    """What kind of memory a description is of."""

    DEVICE = 0
    HOST = 1
    SYSTEM = 2
    INT8_DEVICE = 3
    INVALID = 4


class BmDataType(IntEnum):
    """Element types of tensors."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT8 = 2
    UINT8 = 3
    INT16 = 4
    UINT16 = 5
    INT32 = 6
    UINT32 = 7
    BFLOAT16 = 8

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type; of BFLOAT16 that of its bits."""
        return np.dtype("uint16" if self is BmDataType.BFLOAT16 else self.name.lower())


def _refuse(prototype: Prototype, parameter: str, fault: Fault) -> Any:
    return failed(prototype, BmStatus.PARAM, fault.of(parameter))


_FAILURES: dict[str, object] = {
    "bool": False, "int": 0, "index_t": -1, "size_t": 0, "u64": 0, "unsigned int": 0, "unsigned long long": 0,
    "tpu_kernel_function_t": 0, "bm_mem_type_t": BmMemType.INVALID, "address_t": 0, "bm_cpu_status_t": CPU_FAULT,
    "process_t": -1,
}  # fmt: skip


def failed(prototype: Prototype, code: BmStatus, reason: object) -> Any:
    """Write the reason to the log; the value that says so, with None for every result."""
    log.error("%s: %s", prototype.name, reason)
    value = code if prototype.result == "bm_status_t" else _FAILURES.get(prototype.result)
    return (value, *(None for _ in prototype.outs)) if prototype.outs else value


def code_of(error: BMError | OSError | MemoryError) -> BmStatus:
    """The vendor's error code for an error of this package."""
    if isinstance(error, MemoryError):
        return BmStatus.NOMEM
    if isinstance(error, FileFormatError):
        return BmStatus.DATA
    if isinstance(error, UnsupportedError):
        return BmStatus.NOT_SUPPORTED
    return BmStatus.PARAM if isinstance(error, RuntimeUseError | UsageError) else BmStatus.FAILURE


def served(api: Api) -> Callable[[Callable[P, object]], Callable[P, Any]]:
    """A decorator: arguments are checked, errors become codes; what the function returns are its results.

    A function with the result `bm_status_t` or a `bool` that says whether it succeeded returns only what it stores.
    """

    def decorate(function: Callable[P, object]) -> Callable[P, Any]:
        prototype = api.functions[function.__name__]
        coded = prototype.result == "bm_status_t"

        @api.checked
        @wraps(function)
        def call(*values: P.args, **named: P.kwargs) -> Any:
            try:
                found = function(*values, **named)
            except (BMError, OSError, MemoryError) as error:
                return failed(prototype, code_of(error), error)
            if not prototype.outs:
                return BmStatus.SUCCESS if coded else found
            outs = found if len(prototype.outs) > 1 and isinstance(found, tuple) else (found,)
            return (BmStatus.SUCCESS if coded else prototype.result == "bool" or None, *outs)

        return call

    return decorate


_NUMBERS = {
    "int": signed("int", 32),
    "unsigned int": unsigned("unsigned int", 32),
    "unsigned long": unsigned("unsigned long", 64),
    "unsigned long long": unsigned("unsigned long long", 64),
    "long long": signed("long long", 64),
    "address_t": unsigned("address_t", 64),
    "size_t": unsigned("size_t", 64),
    "bool": boolean(),
    "const char *": path(),
}
BMLIB = Api(
    declared(__file__, "bmlib.h"),
    {
        **_NUMBERS,
        **{one: buffer(one) for one in ("void *", "const void *", "cores_t")},
        "char *": path("char *"),
        "tpu_kernel_function_t": signed("int", 32),
        "PERF_MONITOR_ID": signed("PERF_MONITOR_ID", 32),
        "bmlib_api_dbg_callback": anything("bmlib_api_dbg_callback"),
        **{one: instance(one, (list, tuple), "a list") for one in ("pairs_t", "launches_t")},
    },
    _refuse,
)
FORMS = forms(BMLIB.functions)
BMLIB.functions |= {name: form.prototype for name, form in FORMS.items()}


@BMLIB.struct
@dataclass
class bm_device_mem_t:  # noqa: N801
    """A piece of device memory: address and bytes. Whether it is allocated is known to the device."""

    device_addr: int
    size: int
    reserved: int = 0
    dmabuf_fd: int = 0
    rawflags: int = 0


for _name in WIDE_MEMORIES.values():
    BMLIB.structs[_name] = tuple(
        replace(one, c_type="unsigned long long") if one.name == "size" else one for one in BMLIB.structs[MEMORY]
    )
    BMLIB.struct(bm_device_mem_t, _name)


@dataclass(frozen=True)
class bm_shape_t:  # noqa: N801
    """Sizes, outermost first; in C at most 8."""

    dims: tuple[int, ...] = field(default=())

    @property
    def num_dims(self) -> int:
        """How many dimensions the shape has."""
        return len(self.dims)

    @property
    def count(self) -> int:
        """Elements. Raises UsageError for sizes below 1, and for none or too many of them."""
        if not 1 <= len(self.dims) <= MAX_DIMS or min(self.dims) < 1:
            raise UsageError(f"{list(self.dims)} is no shape of 1 to {MAX_DIMS} positive sizes")
        return prod(self.dims)


@dataclass(frozen=True)
class bm_tensor_t:  # noqa: N801
    """An array in device memory."""

    dtype: int
    shape: bm_shape_t
    device_mem: bm_device_mem_t
    st_mode: int = 0

    @property
    def size(self) -> int:
        """Bytes. Raises UsageError for unknown types and for no shape."""
        return item_bytes(self.dtype) * self.shape.count


def item_bytes(dtype: int) -> int:
    """Bytes of an element. Raises UsageError for unknown types."""
    return data_type(dtype).numpy.itemsize


def data_type(dtype: int) -> BmDataType:
    """The type of that number. Raises UsageError."""
    try:
        return BmDataType(dtype)
    except ValueError:
        raise UsageError(f"{dtype} is no data type that a tensor can have") from None


@dataclass(frozen=True)
class bm_stage_info_t:  # noqa: N801
    """Shapes of inputs and outputs, and the memory where the network has them."""

    input_shapes: tuple[bm_shape_t, ...]
    output_shapes: tuple[bm_shape_t, ...]
    input_mems: tuple[bm_device_mem_t, ...]
    output_mems: tuple[bm_device_mem_t, ...]


@dataclass(frozen=True)
class bm_net_info_t:  # noqa: N801
    """A network. Scales: integer = real * input scale + zero point; real = (integer - zero point) * output scale.

    With the `addr_mode` 1 its inputs and outputs lie in memory of its own, one for all stages, and keep what they have.
    """

    name: str
    input_names: tuple[str, ...]
    input_dtypes: tuple[int, ...]
    input_scales: tuple[float, ...]
    output_names: tuple[str, ...]
    output_dtypes: tuple[int, ...]
    output_scales: tuple[float, ...]
    stages: tuple[bm_stage_info_t, ...]
    max_input_bytes: tuple[int, ...]
    max_output_bytes: tuple[int, ...]
    input_zero_point: tuple[int, ...]
    output_zero_point: tuple[int, ...]
    is_dynamic: bool = False
    addr_mode: int = 0


_DIMENSIONS = integers("int[]", _NUMBERS["int"])
BMRT = Api(
    declared(__file__, "bmrt.h"),
    {
        **_NUMBERS,
        "u64": unsigned("u64", 64),
        "name_t": text(),
        "const int *": _DIMENSIONS,
        "int64_t": signed("int64_t", 64),
        "char": signed("char", 8),
        "const bm_net_info_t *": instance("const bm_net_info_t *", bm_net_info_t, "a bm_net_info_t"),
        "void *": buffer("void *"),
        "const void *": buffer("const void *"),
        "bm_data_type_t": signed("bm_data_type_t", 32),
        "bm_store_mode_t": signed("bm_store_mode_t", 32),
        "handles_t": instance("handles_t", (list, tuple), "a list of handles"),
        "buffers_t": instance("buffers_t", (list, tuple), "a list of buffers"),
        **{one: instance(one, list, "a list") for one in ("tensors_t", "outputs_t", "shapes_t")},
    },
    _refuse,
)


@BMRT.struct
@dataclass(frozen=True)
class memory_t:  # noqa: N801
    """A piece of device memory (type 0), its address -1 where none is set aside yet."""

    addr: int
    size: int
    type: int = 0
    number: int = 1
    reserved: tuple[int, ...] = ()


@BMRT.struct
@dataclass(frozen=True)
class mem_info_t:  # noqa: N801
    """The memory that a model needs, or what is set aside for it."""

    instruction_mem: memory_t
    variable_instruction_mem: memory_t
    neuron_mem: memory_t
    coeff_mem: memory_t
    io_mem: memory_t
    reserved: tuple[memory_t, ...] = ()


BMRT.struct(bm_device_mem_t)
BMRT.struct(bm_shape_t)
BMRT.struct(bm_tensor_t)
