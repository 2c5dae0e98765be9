"""Kernels that add: matrix products, reductions, norms, softmax, resizing by weighted sums."""
