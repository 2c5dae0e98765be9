"""Ops that need no command."""

from bmcompiler.codegen.kernels import ViewKernel

__all__ = ["ViewKernel"]
