"""Kernels that need nothing but lanes and their layouts."""
