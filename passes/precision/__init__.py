"""Layers as they are rounded, and their element types (phase "precision"): activations inside, thresholds, integers.

What `quantize` consists of is the room `passes/quantization`.
"""
