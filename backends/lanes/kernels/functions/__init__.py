"""Kernels of single elements: functions, arithmetic, comparisons, conversions."""
