"""Kernels of this chip alone: convolution, matrix products, pooling; `table` has all that it runs."""
