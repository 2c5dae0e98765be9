"""bmcompiler: compiler, runtime and simulators for neural accelerators without an open toolchain.

    import bmcompiler
    bmcompiler.compile("net.onnx", target=CHIP, data="calib.npz", output="net.bmodel")
    bmcompiler.runtime.Session("net.bmodel").run({"x": images})

Everything is imported on first use, so that `import bmcompiler` is quick.
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of typing, without its import: commands begin here
if TYPE_CHECKING:
    from bmcompiler import bmlang as bmlang
    from bmcompiler import runtime as runtime
    from bmcompiler.api import compile, compile_module, load_network
    from bmcompiler.options import ModuleOptions, Options
    from bmcompiler.result import Difference, Result

    __version__: str

__all__ = [
    "Difference", "ModuleOptions", "Options", "Result", "__version__", "bmlang", "compile", "compile_module",
    "load_network", "runtime",
]  # fmt: skip

_HOMES = {
    "api": ("compile", "compile_module", "load_network"),
    "options": ("ModuleOptions", "Options"),
    "result": ("Difference", "Result"),
}
_MODULES = ("bmlang", "runtime")


def _beside() -> list[str]:
    """The folder of the checkout that this file stands in, where frontends, passes, backends and runtime are; or none.

    Python started there finds this folder before an installed package, which has those four inside.
    """
    import os

    checkout = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = os.path.exists(os.path.join(checkout, "pyproject.toml")) and os.path.isdir(os.path.join(checkout, "passes"))
    return [checkout] if found else []


__path__ += _beside()


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        return import_module("bmcompiler.version").version()
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bmcompiler.{home}"), name)
    if name in _MODULES:
        return import_module(f"bmcompiler.{name}")
    raise AttributeError(f"module 'bmcompiler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
