"""Kernels of windows that slide over maps: convolutions, by Winograd's algorithm too, and pooling."""
