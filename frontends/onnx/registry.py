"""Converters by op type, domain and opset: `@onnx_op("LeakyRelu")` registers one, plugins use the same decorator.

A plugin package names a module in the entry point group `bmcompiler.onnx_ops`; importing it runs its decorators. An
entry point that takes the place of a built-in converter must be called like the op type; others are loaded when an op
type is not known, those called "DOMAIN.TYPE", "TYPE" or "DOMAIN" first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, Union

from bmcompiler.ir import Value
from bmcompiler.plugins.registry import plugin_code
from bmcompiler.plugins.tables import Doors, PluginTable

if TYPE_CHECKING:
    import numpy as np

    from bmcompiler.frontends.onnx.node import Node
    from bmcompiler.ops.builder import Builder

Tensor = Union[Value, "np.ndarray"]
"""What a tensor name stands for during import: a value of the function, or a constant known now."""

Converter = Callable[["Node", "Builder"], "Tensor | tuple[Tensor, ...]"]
"""Builds TensorOps for one node; returns its output, or one tensor per output."""

_C = TypeVar("_C", bound=Converter)
GROUP = "bmcompiler.onnx_ops"


def _called(key: tuple[str, str, int]) -> str:
    domain, name, since = key
    return f"ONNX op '{domain}.{name}'" if domain else f"ONNX op '{name}' (opset {since})"


_DOORS = Doors(GROUP, lambda found: found())
_TABLE: PluginTable[tuple[str, str, int], Converter] = PluginTable(_DOORS, _called)


def onnx_op(*types: str, since: int = 1, domain: str = "") -> Callable[[_C], _C]:
    """Register a converter for op types from opset `since` on, up to the next registered `since`.

    A plugin may take the place of a built-in converter (see the head of this file). Raises UnsupportedError when a
    program registers two; two packages that claim one op make an error when a net needs it.
    """

    def register(converter: _C) -> _C:
        for name in types:
            _TABLE.add((domain, name, since), converter, replace=True)
        return converter

    return register


def load_converters() -> None:
    """Import the built-in converters and all plugins; broken ones are left out (`registry.failures`)."""
    _DOORS.open_built_in()
    _DOORS.open_all()


def find_converter(domain: str, op_type: str, opset: int) -> Converter | None:
    """The converter with the highest `since` that is not above `opset`; None when nobody registered one.

    Raises PluginError when two packages claim the op, or the plugin called like it is broken.
    """
    _DOORS.open_built_in()
    names = (f"{domain}.{op_type}", domain, op_type) if domain else (op_type,)
    for name in names:
        _DOORS.open(name)
    if not opsets(domain, op_type):
        _DOORS.open_all()
    usable = [since for since in opsets(domain, op_type) if since <= opset]
    return _TABLE.get((domain, op_type, max(usable))) if usable else None


def opsets(domain: str, op_type: str) -> list[int]:
    """Opsets at which registered converters of an op type begin, those that two packages claim included."""
    return [since for _, _, since in _TABLE.family((domain, op_type))]


def known_types(domain: str = "") -> list[str]:
    """Op types of a domain that have a converter, sorted."""
    load_converters()
    return sorted({name for d, name, _ in _TABLE.registered() if d == domain})


def run_converter(converter: Converter, node: Node, builder: Builder) -> Tensor | tuple[Tensor, ...]:
    """Call a converter; what a plugin's own raises besides reported errors becomes a PluginError."""
    if converter.__module__.startswith("bmcompiler."):
        return converter(node, builder)
    with plugin_code(f"the converter '{converter.__module__}.{converter.__qualname__}'"):
        return converter(node, builder)
