"""Matrix products of floats and of bytes."""

from __future__ import annotations

from bmcompiler.backends.bm1684.packed.int_matmul import IntMatmulKernel
from bmcompiler.backends.lanes.kernels.float_matmul import FloatMatmulKernel
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.ops.nn import Matmul


class MatmulKernel(FormsKernel[Matmul]):
    """matmul of floats and of bytes."""

    ops = (Matmul,)
    kinds = (FloatMatmulKernel, IntMatmulKernel)
