"""Layers of our own for bmcompiler."""
