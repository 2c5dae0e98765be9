"""The page on TPUKernel's functions: what they are, and how far composites are from float64."""
