"""TensorOp IR: a small SSA IR in the shape of MLIR (types, ops, text, verifier, rewriting)."""

from bmcompiler.ir.copying import copy_module
from bmcompiler.ir.core import Block, Function, Location, Module, Operation, Value
from bmcompiler.ir.rewriter import Pattern, Rewriter, apply_patterns, erase_dead
from bmcompiler.ir.types import DTYPES, FLOAT_DTYPES, INTEGER_DTYPES, Quant, TensorType, type_of_array
from bmcompiler.ir.verifier import verify_module
from bmcompiler.ir.weights import Weights

__all__ = [
    "DTYPES", "FLOAT_DTYPES", "INTEGER_DTYPES", "Block", "Function", "Location", "Module", "Operation", "Pattern",
    "Quant", "Rewriter", "TensorType", "Value", "Weights", "apply_patterns", "copy_module", "erase_dead",
    "type_of_array", "verify_module",
]  # fmt: skip
