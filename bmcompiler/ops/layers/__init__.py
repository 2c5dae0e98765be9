"""Families that sum: convolutions and products, windows, norms, reductions, recurrent layers."""
