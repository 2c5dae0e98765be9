"""Arithmetic of whole arrays: exact integers, quantization modes, functions that numpy lacks."""
