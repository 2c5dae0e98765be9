"""Kernels of the DV700: one class per family of TensorOps, found by op class."""

from bmcompiler.backends.dv.kernels.base import DvKernel
from bmcompiler.backends.dv.kernels.fc import FcKernel
from bmcompiler.backends.dv.kernels.maps import AddKernel, AvgPoolKernel, ConvKernel, MaxPoolKernel, ReluKernel
from bmcompiler.target import kernel_table

KERNELS: tuple[DvKernel, ...] = (
    ConvKernel(),
    FcKernel(),
    MaxPoolKernel(),
    AvgPoolKernel(),
    AddKernel(),
    ReluKernel(),
)
TABLE = kernel_table(KERNELS)
