"""Kernels of the BM1684X: what of the house of lanes it needs in its own form, and the list of all."""
