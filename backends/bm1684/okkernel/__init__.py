"""okkernel: the kernel library of the BM1684, in Python.

    from bmcompiler.okkernel import *

    @kernel
    def double(dst: int, src: int, shape: dim4) -> None:
        okk_initialize()
        okk_gdma_32bit_cpy_S2L(0, src, shape, None, None)
        okk_bdc_mul_C(0, 0, 2.0, shape, None, None)
        okk_gdma_32bit_cpy_L2S(dst, 0, shape, None, None)
        okk_poll()

    program = double(0x1_0010_0000, 0x1_0000_0000, dim4(1, 64, 8, 8))
    print(program.disassembly())

The functions are those of the vendor's library, by its names and with its arguments; None is NULL, a `dim4` needs no
pointer, and functions that fill a `dim4` return it. They issue the chip's commands: see docs/okkernel.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.okkernel.functions import FUNCTIONS, MISSING, LibraryFunction
from bmcompiler.backends.bm1684.okkernel.kernel import Kernel, Program, kernel, program_of
from bmcompiler.backends.bm1684.okkernel.recorder import Recorder, recording
from bmcompiler.backends.bm1684.okkernel.table import TABLE
from bmcompiler.backends.bm1684.okkernel.types import Padding, dim2, dim4, fp32_or_addr_t, x32, x32_or_addr_t

NPU_NUM, LOCAL_MEM_SIZE, GLOBAL_MEM_START = CHIP.lanes, CHIP.lmem_size, CHIP.global_base
__all__ = [
    "FUNCTIONS", "GLOBAL_MEM_START", "LOCAL_MEM_SIZE", "NPU_NUM", "TABLE", "Kernel", "LibraryFunction", "Padding",
    "Program", "Recorder", "dim2", "dim4", "fp32_or_addr_t", "kernel", "program_of", "recording", "x32",
    "x32_or_addr_t",
]  # fmt: skip
__all__ += list(FUNCTIONS)
__all__ += list(MISSING)

globals().update(FUNCTIONS | MISSING)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The functions, which `TABLE` lists."""
