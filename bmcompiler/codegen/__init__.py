"""Chip-neutral parts of code generation: device/CPU partition, global memory plan, tiling, pipelined schedule."""
