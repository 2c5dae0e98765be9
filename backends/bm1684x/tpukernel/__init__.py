"""TPUKernel: the kernel library of the BM1684X, in Python.

    from bmcompiler.tpukernel import *

    @kernel
    def double(dst: int, src: int, shape: dim4) -> None:
        tpu_initialize()
        tpu_gdma_cpy_S2L(0, src, shape, None, None, DT_FP32)
        tpu_bdc_fp_mul_C(0, 0, scalar_t(f32=2.0), shape, None, None, DT_FP32)
        tpu_gdma_cpy_L2S(dst, 0, shape, None, None, DT_FP32)
        tpu_poll()

    program = double(0x1_0010_0000, 0x1_0000_0000, dim4(1, 64, 8, 8))
    print(program.disassembly())

The functions are those of the vendor's library, by its names and with its arguments; None is NULL, a `dim4` needs no
pointer, and functions that fill a `dim4` return it. They issue the chip's commands: see docs/tpukernel.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.tpukernel.allocator import LocalMemory
from bmcompiler.backends.bm1684x.tpukernel.functions import FUNCTIONS, MISSING, LibraryFunction
from bmcompiler.backends.bm1684x.tpukernel.kernel import Kernel, Program, kernel, program_of
from bmcompiler.backends.bm1684x.tpukernel.local import aligned, compact, line_aligned
from bmcompiler.backends.bm1684x.tpukernel.networks.c_kernels import c_kernel
from bmcompiler.backends.bm1684x.tpukernel.networks.layers import LayerCall, register_layer
from bmcompiler.backends.bm1684x.tpukernel.networks.model import Placed, model_of
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder, Release, recording
from bmcompiler.backends.bm1684x.tpukernel.table import TABLE
from bmcompiler.backends.bm1684x.tpukernel.types import (
    data_type_t,
    dim2,
    dim4,
    padding_t,
    rounding_mode_t,
    scalar_t,
    variable_t,
    variable_type_t,
)

NPU_NUM, LOCAL_MEM_SIZE, LOCAL_MEM_BANKS, BANK_SIZE = CHIP.lanes, CHIP.lmem_size, CHIP.lmem_banks, CHIP.lmem_bank_size
ALIGN_BYTES = CHIP.alignment
EU_NUM_32BIT, EU_NUM_16BIT, EU_NUM_8BIT = ALIGN_BYTES // 4, ALIGN_BYTES // 2, ALIGN_BYTES
GLOBAL_MEM_START, L2_SRAM_START = CHIP.global_base, CHIP.l2_window

_ENUMS = (data_type_t, rounding_mode_t, variable_type_t)
_MEMBERS: dict[str, Any] = {member.name: member for enum in _ENUMS for member in enum}
__all__ = [
    "ALIGN_BYTES", "BANK_SIZE", "EU_NUM_8BIT", "EU_NUM_16BIT", "EU_NUM_32BIT", "FUNCTIONS", "GLOBAL_MEM_START",
    "L2_SRAM_START", "LOCAL_MEM_BANKS", "LOCAL_MEM_SIZE", "NPU_NUM", "TABLE", "Kernel", "LayerCall", "LibraryFunction",
    "LocalMemory", "Placed", "Program", "Recorder", "Release", "aligned", "c_kernel", "compact", "data_type_t", "dim2",
    "dim4", "kernel", "line_aligned", "model_of", "padding_t", "program_of", "recording", "register_layer",
    "rounding_mode_t", "scalar_t", "variable_t", "variable_type_t",
]  # fmt: skip
__all__ += list(_MEMBERS)
__all__ += list(FUNCTIONS)
__all__ += list(MISSING)

globals().update(_MEMBERS)
globals().update(FUNCTIONS | MISSING)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The functions, which `TABLE` lists, and the members of the enumerations."""
