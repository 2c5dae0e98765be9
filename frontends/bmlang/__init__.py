"""BMLang: tensor programs in Python, computed at once or compiled for a chip.

    from bmcompiler import bmlang
    from bmcompiler.bmlang import COMPUTE_CPU, FLOAT32, Tensor

    with bmlang.init(COMPUTE_CPU, "BM1684"):
        x = Tensor(data=[[1.0, 2.0]])
        y = bmlang.muls(x, 3.0)          # or: bmlang.muls(x, 3.0, out)
        print(y)                          # Tensor(FLOAT32, [1, 2], [3, 6])

The 108 operators of the vendor's language are functions of this module, with its names, and a few conveniences beside
them; see docs/bmlang.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bmcompiler.frontends.bmlang.compile import Compilation, compile, compile_with_check
from bmcompiler.frontends.bmlang.operator import OPERATORS, Operator
from bmcompiler.frontends.bmlang.program import Program, current, deinit, init, set_mode
from bmcompiler.frontends.bmlang.rows import Locality, Row
from bmcompiler.frontends.bmlang.table import CONVENIENCES, TABLE
from bmcompiler.frontends.bmlang.tensor import Scalar, Tensor
from bmcompiler.frontends.bmlang.types import (
    ActiveType,
    ArgParam,
    Arithmetic,
    BmLangMode,
    ConvParam,
    DataType,
    ExpandDimsParam,
    LayerNormParam,
    MatrixMulParam,
    PadType,
    PoolParam,
    PoolType,
    QCalMode,
    ReduceMethodType,
    ReduceParam,
    ResizeMode,
    ResizeParam,
    SelectType,
    ShapeFetchParam,
    TensorKind,
    TopkParam,
    UserCpuParam,
)
from bmcompiler.plugins.custom_layers import register_cpu_function

FLOAT32, FLOAT16, BFLOAT16, INT8, UINT8, INT16, UINT16, INT32 = (
    DataType.FLOAT32,
    DataType.FLOAT16,
    DataType.BFLOAT16,
    DataType.INT8,
    DataType.UINT8,
    DataType.INT16,
    DataType.UINT16,
    DataType.INT32,
)
NEURON_TENSOR, COEFF_TENSOR = TensorKind
COMPUTE_CPU, COMPILE_TPU, BOTH, UNKNOWN_MODE = BmLangMode

__all__ = [
    "BFLOAT16", "BOTH", "COEFF_TENSOR", "COMPILE_TPU", "COMPUTE_CPU", "CONVENIENCES", "FLOAT16", "FLOAT32", "INT8",
    "INT16", "INT32", "NEURON_TENSOR", "OPERATORS", "TABLE", "UINT8", "UINT16", "UNKNOWN_MODE", "ActiveType",
    "ArgParam", "Arithmetic", "BmLangMode", "Compilation", "ConvParam", "DataType", "ExpandDimsParam",
    "LayerNormParam", "Locality", "MatrixMulParam", "Operator", "PadType", "PoolParam", "PoolType", "Program",
    "QCalMode", "ReduceMethodType", "ReduceParam", "ResizeMode", "ResizeParam", "Row", "Scalar", "SelectType",
    "ShapeFetchParam", "Tensor", "TensorKind", "TopkParam", "UserCpuParam", "compile", "compile_with_check",
    "current", "deinit", "init", "register_cpu_function", "set_mode",
]  # fmt: skip

globals().update(OPERATORS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The operators, which `OPERATORS` lists."""
