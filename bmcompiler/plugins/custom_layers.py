"""What plugins say about custom layers and ops: host functions, and per target what makes their instructions.

An entry point of the group `bmcompiler.tensor_insts`, best called like the layer type or op it serves, names

- a module whose import registers (`register_cpu_function`, `register_tensor_inst`, `register_kernel`),
- a subclass of `bmcompiler.bmnet.TensorInst` that a backend offers (`backends/*/custom.py`),
- or a function without arguments that registers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

from bmcompiler.bmnet.inst import TensorInst
from bmcompiler.errors import UnsupportedError
from bmcompiler.plugins.registry import BUILT_IN
from bmcompiler.plugins.tables import Doors, PluginTable

if TYPE_CHECKING:
    from bmcompiler.ir import Operation
    from bmcompiler.ops.base import TensorOp
    from bmcompiler.target import Kernel

GROUP = "bmcompiler.tensor_insts"
CUSTOMIZED = "customized"
"""The op of custom layers, which its sub type names."""
CpuFunction: TypeAlias = Callable[..., Any]
"""function(inputs: list of arrays, i32_params: tuple of int, f32_params: tuple of float) -> array or tuple of them."""
InstFactory: TypeAlias = Callable[[], TensorInst]
_F = TypeVar("_F", bound=CpuFunction)
_I = TypeVar("_I", bound=type[TensorInst])
_K = TypeVar("_K", bound="type[Kernel[Any]]")


def _take(found: Any) -> None:
    if isinstance(found, type) and issubclass(found, TensorInst):
        register_tensor_inst(found)
    elif not isinstance(found, type):
        found()
    elif found not in _kernels.entries().values():  # a kernel registers itself when it is imported
        raise UnsupportedError(f"is a class of its own kind: {found.__name__} is no TensorInst")


_doors = Doors(GROUP, _take)
_functions: PluginTable[str, CpuFunction] = PluginTable(
    _doors, lambda sub_type: f"the CPU function of custom layer '{sub_type}'", lambda sub_type: (sub_type,)
)
_insts: PluginTable[tuple[str, str], InstFactory] = PluginTable(
    _doors, lambda key: f"the instruction class of custom layer '{key[1]}' for {key[0]}", lambda key: (key[1],)
)
_kernels: PluginTable[tuple[str, str, str], type[Kernel[Any]]] = PluginTable(
    _doors, lambda key: f"the kernel of '{key[2] or key[1]}' for {key[0]}", lambda key: (key[2] or key[1],)
)
"""By target, op and sub type ("" but for `customized`)."""


def load_plugins() -> None:
    """Load all plugins of the group; broken ones are left out (`registry.failures`)."""
    _doors.open_all()


# -- host functions ----------------------------------------------------------------------------------------------------
@overload
def register_cpu_function(sub_type: str, function: _F) -> _F: ...
@overload
def register_cpu_function(sub_type: str) -> Callable[[_F], _F]: ...
def register_cpu_function(sub_type: str, function: CpuFunction | None = None) -> Any:
    """Say what `customized` ops of this sub type compute in real numbers, on the host.

    The function gets (inputs, i32_params, f32_params) and returns one array per output, in the declared shapes. Without
    a function this is a decorator. Raises UnsupportedError when this package gave the sub type another function.
    """

    def register(given: _F) -> _F:
        _functions.add(sub_type, given)
        return given

    return register if function is None else register(function)


@runtime_checkable
class Shaped(Protocol):
    """A CPU function that needs to know the shapes of its results."""

    def shaped(self, shapes: Sequence[Sequence[int]]) -> CpuFunction:
        """The CPU function for results of these shapes."""
        ...


def cpu_function(sub_type: str) -> CpuFunction | None:
    """The registered function; plugins are loaded when none is known yet. Raises PluginError for a clash."""
    return _functions.get(sub_type)


# -- instruction classes -----------------------------------------------------------------------------------------------
def register_tensor_inst(cls: _I) -> _I:
    """Let `cls` make the instructions of ops of sub type `cls().inst_name()` on its target. Usable as a decorator.

    Raises UnsupportedError when this package gave the sub type another class for that target.
    """
    _insts.add(_key(cls()), cls)
    return cls


def tensor_inst(target: str, sub_type: str) -> TensorInst | None:
    """A new object that makes instructions of this sub type, None when nobody registered its class for `target`."""
    factory = _insts.get((target, sub_type))
    return None if factory is None else factory()


def tensor_insts(insts: Iterable[TensorInst | type[TensorInst]]) -> AbstractContextManager[None]:
    """Inside, these serve their sub types before all registered ones; of an object every op gets a copy."""
    return _insts.local({_key(inst() if isinstance(inst, type) else inst): _factory(inst) for inst in insts})


def _factory(inst: TensorInst | type[TensorInst]) -> InstFactory:
    return inst if isinstance(inst, type) else lambda: copy.deepcopy(inst)


def _key(inst: TensorInst) -> tuple[str, str]:
    return inst.target, inst.inst_name()


# -- kernels -----------------------------------------------------------------------------------------------------------
def register_kernel(target: str, sub_type: str = "") -> Callable[[_K], _K]:
    """Class decorator: the kernel serves its `ops` on `target`, where no built-in kernel does.

    A kernel derived from the chip's own base classes is tiled and fused into layer groups like a built-in one. For an
    op that is built in, the entry point must be called like the op. Raises UnsupportedError when this package
    registered another kernel for the same op and target.

    Args:
        sub_type: for a kernel whose op is `customized`: the custom layer it serves.
    """

    def register(cls: _K) -> _K:
        ops: tuple[type[TensorOp], ...] = cls.ops  # type: ignore[misc]  # typed by the class, the same for all kernels
        if not ops or any((op.opname == CUSTOMIZED) != bool(sub_type) for op in ops):
            raise UnsupportedError(
                f"kernel {cls.__name__} needs ops, and a sub type if and only if the op is `customized`"
            )
        for op in ops:
            _kernels.add((target, op.opname, sub_type), cls)
        return cls

    return register


def plugin_kernel(target: str, op: Operation) -> type[Kernel[Any]] | None:
    """The class of a plugin's kernel for the class of an op. Raises PluginError for a clash or a broken plugin."""
    sub_type = op.attributes.get("sub_type", "") if op.short_name == CUSTOMIZED else ""
    built_in = type(op).__module__.startswith(f"{BUILT_IN}.") and not sub_type
    return _kernels.get((target, op.short_name, sub_type), search=not built_in)
