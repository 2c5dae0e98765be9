"""Builds functions: `b.conv(x, w, bias, strides=(2, 2))` creates and appends the op and returns its value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bmcompiler.ir import Function, Module, Operation, TensorType, Value, type_of_array
from bmcompiler.ops import find_op

if TYPE_CHECKING:
    import numpy as np

    from bmcompiler.ops.base import TensorOp


class Builder:
    """Appends to one function of a module. `location` is given to every op created while it is set (see `at`)."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        self.location: tuple[str, ...] = ()

    @staticmethod
    def new(name: str) -> Builder:
        """A builder for a fresh module with one empty function."""
        function = Function(name)
        return Builder(Module([function]), function)

    @contextmanager
    def at(self, *names: str) -> Iterator[Builder]:
        """Ops created inside carry these source layer names."""
        before, self.location = self.location, names
        try:
            yield self
        finally:
            self.location = before

    def input(self, name: str, type: TensorType) -> Value:
        """Add an argument to the function."""
        self.function.input_names.append(name)
        return self.function.body.add_argument(type)

    def weight(self, array: np.ndarray, name: str = "weight", type: TensorType | None = None) -> Value:
        """A constant tensor kept in the module's weights under `name` (made unique).

        `type` may add a quantization to the array's own type.
        """
        import numpy as np

        array = np.asarray(array)
        key = self.module.weights.add(name, array)
        return self.create("weight", [], {"key": key}, [type or type_of_array(array)]).result

    def create(
        self,
        op: str,
        operands: Sequence[Value],
        attributes: dict[str, Any] | None = None,
        result_types: Sequence[TensorType] | None = None,
    ) -> TensorOp:
        """Create and append an op by name. None operands at the end are left out."""
        values = list(operands)
        while values and values[-1] is None:
            values.pop()
        created = find_op(op)(values, attributes, result_types, self.location)
        self.function.body.append(created)
        return created

    def append(self, op: Operation) -> Operation:
        """Put an op that was made elsewhere at the end; returns it."""
        return self.function.body.append(op)

    def outputs(self, values: Sequence[Value], names: Sequence[str]) -> Module:
        """Finish the function. Returns the module."""
        self.function.set_outputs(values, names)
        return self.module

    def __getattr__(self, op: str) -> Callable[..., Value]:
        """`b.NAME(*operands, out=TYPE or [TYPES], **attributes)` for every TensorOp; returns its value.

        Of an op with several results it is a tuple of them, which types do not say: `create(...).results` does.
        """
        if op.startswith("_"):
            raise AttributeError(op)

        def build(*operands: Value, out: TensorType | Sequence[TensorType] | None = None, **attributes: Any) -> Any:
            types = [out] if isinstance(out, TensorType) else out
            results = self.create(op, operands, attributes, types).results
            return results[0] if len(results) == 1 else tuple(results)

        return build
