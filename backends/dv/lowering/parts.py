"""What an op is made of: runs with the constants they multiply by and the map they add, without places in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bmcompiler.backends.dv.arithmetic.run_model import RunWeights
from bmcompiler.backends.dv.driver.commands import Run
from bmcompiler.backends.dv.driver.structs import WeightFormat
from bmcompiler.backends.dv.formats.packing import pack_conv, pack_dilated
from bmcompiler.backends.dv.formats.packing_sizes import conv_size, dilated_size
from bmcompiler.backends.dv.formats.palette import coded
from bmcompiler.ir import Operation, Value
from bmcompiler.numeric.arrays import Array, Bits16, Bytes, Halves
from bmcompiler.quant.palette import SIZE

UNROUNDED = "dv.unrounded"
"""Attribute of an op whose result goes on to its reader inside the same run, without being rounded to fp16."""


@dataclass(frozen=True)
class Filters:
    """The weights of a run.

    Attributes:
        values: constants of the IR that they come from, in the order in which `halves` takes their arrays.
        halves: fp16 weights, biases and slopes from these arrays.
        layout: names `halves`: equal values and layouts give equal weights.
    """

    values: tuple[Value, ...]
    halves: Callable[..., RunWeights]
    layout: str

    def of(self, arrays: Mapping[Value, Array]) -> RunWeights:
        """The weights, from the arrays of all constants."""
        return self.halves(*(arrays[value] for value in self.values))


@dataclass(frozen=True)
class Part:
    """One run of an op, or what several ops that join have become.

    Attributes:
        run: its fields; `weight_buf` is set when coefficients have a place.
        filters: what it multiplies by, where it has a convolution.
        addend: the value that is added before max pooling and activation (output mode 1).
    """

    run: Run
    filters: Filters | None = None
    addend: Value | None = None


def stored(run: Run, weights: RunWeights) -> Run:
    """The run with the smaller of the formats that its weights can be stored in: fp16, or bytes and a table.

    Both give the same numbers. PReLU excludes bytes (dv.md 3.4), and so do more than 255 different weights besides 0.
    """
    m, c, ky, kx = weights.weights.shape
    size = dilated_size if run.is_dilated else conv_size
    smaller = size(c, kx, ky, m, True) < size(c, kx, ky, m, False)
    if not smaller or run.has_prelu_stream or coded(weights.weights) is None:
        return replace(run, weight_fmt=WeightFormat.FLOAT16)
    return replace(run, weight_fmt=WeightFormat.QUANTIZED)


def packed(run: Run, weights: RunWeights) -> Bytes:
    """Weights as the run reads them from memory, in its format (`stored`).

    Raises ValueError for bytes where there are too many different weights.
    """
    packer = pack_dilated if run.is_dilated else pack_conv
    bias, prelu = bits(weights.bias), None if weights.prelu is None else bits(weights.prelu)
    if not run.is_quantized:
        return packer(bits(weights.weights), bias, None, prelu)
    found = coded(weights.weights)
    if found is None:
        raise ValueError(f"weights have more different values than a table of {SIZE}")
    return packer(found.indices, bias, found.table, prelu)


def bits(array: Halves) -> Bits16:
    """The 16-bit patterns of fp16 numbers."""
    return np.ascontiguousarray(array).view(np.uint16)


def is_unrounded(op: Operation | None) -> bool:
    """The result of `op` stays inside a run."""
    return op is not None and UNROUNDED in op.attributes
