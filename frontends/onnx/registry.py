"""Converters by op type, domain and opset: `@onnx_op("LeakyRelu")` registers one, plugins use the same decorator.

A plugin package names a module in the entry point group `bmcompiler.onnx_ops`; importing it runs its decorators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, Union

from bmcompiler.ir import Value
from bmcompiler.registry import entry_points

if TYPE_CHECKING:
    import numpy as np

    from bmcompiler.builder import Builder
    from bmcompiler.frontends.onnx.node import Node

Tensor = Union[Value, "np.ndarray"]
"""What a tensor name stands for during import: a value of the function, or a constant known now."""

Converter = Callable[["Node", "Builder"], "Tensor | tuple[Tensor, ...]"]
"""Builds TensorOps for one node; returns its output, or one tensor per output."""

_C = TypeVar("_C", bound=Converter)
_CONVERTERS: dict[tuple[str, str], dict[int, Converter]] = {}
_state = {"loaded": False}


def onnx_op(*types: str, since: int = 1, domain: str = "") -> Callable[[_C], _C]:
    """Register a converter for op types from opset `since` on, up to the next registered `since`.

    A later registration for the same type, domain and opset replaces the earlier one, so a plugin can override.
    """

    def register(converter: _C) -> _C:
        for name in types:
            _CONVERTERS.setdefault((domain, name), {})[since] = converter
        return converter

    return register


def load_converters() -> None:
    """Import the built-in converters, then the plugins."""
    if _state["loaded"]:
        return
    loaders = dict(entry_points("bmcompiler.onnx_ops"))
    builtin = loaders.pop("builtin", None)
    for load in ([builtin] if builtin else []) + list(loaders.values()):
        load()
    _state["loaded"] = True


def find_converter(domain: str, op_type: str, opset: int) -> Converter | None:
    """The converter with the highest `since` that is not above `opset`; None when nobody registered one."""
    load_converters()
    versions = _CONVERTERS.get((domain, op_type), {})
    usable = [since for since in versions if since <= opset]
    return versions[max(usable)] if usable else None


def known_types(domain: str = "") -> list[str]:
    """Op types of a domain that have a converter, sorted."""
    load_converters()
    return sorted(name for d, name in _CONVERTERS if d == domain)
