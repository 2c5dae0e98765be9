"""The accelerators: per chip its instruction set, kernel API, kernels and code generator."""
