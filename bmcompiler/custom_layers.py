"""What plugins say about custom layers: their CPU functions and, per target, the classes that make their instructions.

An entry point of the group `bmcompiler.tensor_insts` names

- a subclass of `bmcompiler.customized.TensorInst` that a backend offers (`backends/*/custom.py`),
- or a function without arguments, or a module, that calls `register_cpu_function` and `register_tensor_inst`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeAlias

from bmcompiler.customized import TensorInst
from bmcompiler.errors import UnsupportedError
from bmcompiler.registry import entry_points, plugin_code

GROUP = "bmcompiler.tensor_insts"
CpuFunction: TypeAlias = Callable[..., Any]
"""function(inputs: list of arrays, i32_params: tuple of int, f32_params: tuple of float) -> array or tuple of them."""
InstFactory: TypeAlias = Callable[[], TensorInst]

_functions: dict[str, CpuFunction] = {}
_insts: dict[tuple[str, str], InstFactory] = {}
_local_insts: ContextVar[Mapping[tuple[str, str], InstFactory]] = ContextVar("local", default=MappingProxyType({}))
_state = {"loaded": False}


def register_cpu_function(sub_type: str, function: CpuFunction) -> None:
    """Say what `customized` ops of this sub type compute in real numbers, on the host.

    The function gets (inputs, i32_params, f32_params) and returns one array per output, in the declared shapes. Raises
    UnsupportedError when the sub type has another function already.
    """
    if _functions.setdefault(sub_type, function) is not function:
        raise UnsupportedError(f"custom layer '{sub_type}' has two CPU functions")


def register_tensor_inst(cls: type[TensorInst]) -> type[TensorInst]:
    """Let `cls` make the instructions of ops of sub type `cls().inst_name()` on its target. Usable as a decorator.

    Raises UnsupportedError when the sub type has another class on that target already.
    """
    key = _key(cls())
    if _insts.setdefault(key, cls) is not cls:
        raise UnsupportedError(f"custom layer '{key[1]}' has two instruction classes for {key[0]}")
    return cls


def cpu_function(sub_type: str) -> CpuFunction | None:
    """The registered function; plugins are loaded when none is known yet."""
    if sub_type not in _functions:
        _load_plugins()
    return _functions.get(sub_type)


def tensor_inst(target: str, sub_type: str) -> TensorInst | None:
    """A new object that makes instructions of this sub type, None when nobody registered its class for `target`."""
    key = (target, sub_type)
    factory = _local_insts.get().get(key)
    if factory is None and key not in _insts:
        _load_plugins()
    factory = factory or _insts.get(key)
    return None if factory is None else factory()


@contextmanager
def tensor_insts(insts: Iterable[TensorInst | type[TensorInst]]) -> Iterator[None]:
    """Inside, these serve their sub types before all registered ones; of an object every op gets a copy."""
    local = {_key(inst() if isinstance(inst, type) else inst): _factory(inst) for inst in insts}
    token = _local_insts.set({**_local_insts.get(), **local})
    try:
        yield
    finally:
        _local_insts.reset(token)


def _factory(inst: TensorInst | type[TensorInst]) -> InstFactory:
    return inst if isinstance(inst, type) else lambda: copy.deepcopy(inst)


def _key(inst: TensorInst) -> tuple[str, str]:
    return inst.target, inst.inst_name()


def _load_plugins() -> None:
    if _state["loaded"]:
        return
    _state["loaded"] = True
    for load in entry_points(GROUP).values():
        found = load()
        with plugin_code(f"{GROUP}: plugin '{load.name}'"):
            if isinstance(found, type) and issubclass(found, TensorInst):
                register_tensor_inst(found)
            elif callable(found):
                found()
