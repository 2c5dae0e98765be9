"""Kernels that move elements: copies inside global memory and inside lanes, transpositions, gathers, bands."""
