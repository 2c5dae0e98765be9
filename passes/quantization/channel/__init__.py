"""Quantization with a scale for each output channel: multipliers and shifts per channel, 32-bit biases."""
