"""Kernels as programs of model files, and as layers of networks."""
