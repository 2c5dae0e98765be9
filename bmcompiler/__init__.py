"""bmcompiler: compiler, runtime and simulators for neural accelerators without an open toolchain.

    import bmcompiler
    bmcompiler.compile("net.onnx", data="calib.npz", output="net.bmodel")   # target=... chooses the chip
    bmcompiler.runtime.Session("net.bmodel").run({"x": images})

Everything is imported on first use, so that `import bmcompiler` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmcompiler import bmlang as bmlang
    from bmcompiler import runtime as runtime
    from bmcompiler.driver import ModuleOptions, Options, Result, compile, compile_module, load_network

__all__ = ["ModuleOptions", "Options", "Result", "bmlang", "compile", "compile_module", "load_network", "runtime"]

_DRIVER = ("ModuleOptions", "Options", "Result", "compile", "compile_module", "load_network")


def __getattr__(name: str) -> Any:
    if name in _DRIVER:
        return getattr(import_module("bmcompiler.driver"), name)
    if name in ("bmlang", "runtime"):
        return import_module(f"bmcompiler.{name}")
    raise AttributeError(f"module 'bmcompiler' has no attribute {name!r}")
