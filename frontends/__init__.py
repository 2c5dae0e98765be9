"""Readers of network files: a source file becomes TensorOp IR."""
