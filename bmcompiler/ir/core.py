"""SSA structure: values with use lists, operations, blocks, functions, modules.

An operation owns its results and any nested blocks (each region is one block); operand changes go through
`set_operand`/`replace_all_uses_with`, which keep the use lists right. Nothing here knows what an op means:
`bmcompiler.ops` subclasses `Operation` for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bmcompiler.ir.keys import MACS, RETURN, is_return
from bmcompiler.ir.types import TensorType
from bmcompiler.ir.weights import Weights

Location = tuple[str, ...]
"""Names of the source layers an op stands for, in source order."""


class Value:
    """A tensor produced by an operation (or given to a block). `uses` maps (operation, operand index) -> None."""

    __slots__ = ("index", "owner", "type", "uses")

    def __init__(self, type: TensorType, owner: Operation | Block, index: int) -> None:
        self.type, self.owner, self.index = type, owner, index
        self.uses: dict[tuple[Operation, int], None] = {}

    @property
    def op(self) -> Operation | None:
        """The producing operation, None for block arguments."""
        return self.owner if isinstance(self.owner, Operation) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions of its type."""
        return self.type.shape

    @property
    def dtype(self) -> str:
        """Element type of its type."""
        return self.type.dtype

    @property
    def users(self) -> list[Operation]:
        """Operations that read this value, each once, in order of first use registration."""
        return list(dict.fromkeys(op for op, _ in self.uses))

    def replace_all_uses_with(self, other: Value) -> None:
        """Let all readers read `other` instead."""
        for op, index in list(self.uses):
            op.set_operand(index, other)


class Operation:
    """One operation. `name` is the dotted MLIR name ("tensorop.conv"); attributes are plain Python values.

    Attribute values: bool, int, float, str, tuples and dicts of these.
    """

    name: str

    def __init__(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[TensorType] = (),
        attributes: Mapping[str, Any] | None = None,
        regions: Iterable[Block] = (),
        location: Location = (),
    ) -> None:
        self.name = name
        self.operands: list[Value] = []
        self.results = [Value(t, self, i) for i, t in enumerate(result_types)]
        self.attributes: dict[str, Any] = dict(attributes or {})
        self.regions: list[Block] = []
        self.location: Location = tuple(location)
        self.parent: Block | None = None
        for value in operands:
            self.add_operand(value)
        for block in regions:
            self.add_region(block)

    # -- operands -------------------------------------------------------------------------------------------------
    def add_operand(self, value: Value) -> None:
        """Read one more value."""
        value.uses[(self, len(self.operands))] = None
        self.operands.append(value)

    def set_operand(self, index: int, value: Value) -> None:
        """Read another value in place of operand `index`."""
        del self.operands[index].uses[(self, index)]
        self.operands[index] = value
        value.uses[(self, index)] = None

    def drop_operands(self) -> None:
        """Read nothing any more."""
        for index, value in enumerate(self.operands):
            del value.uses[(self, index)]
        self.operands = []

    def add_region(self, block: Block) -> None:
        """Own a further block."""
        block.owner = self
        self.regions.append(block)

    # -- results --------------------------------------------------------------------------------------------------
    @property
    def result(self) -> Value:
        """The only result. Raises ValueError when there is not exactly one."""
        (value,) = self.results
        return value

    @property
    def type(self) -> TensorType:
        """Type of the only result."""
        return self.result.type

    @property
    def short_name(self) -> str:
        """Name without the dialect: "conv"."""
        return self.name.rpartition(".")[2]

    @property
    def title(self) -> str:
        """What reports and model files call its kind: the name without the dialect, or that of a custom layer."""
        return self.short_name

    @property
    def label(self) -> str:
        """What messages call this op: its source layers, or its own name where it has none."""
        return "+".join(self.location) if self.location else self.short_name

    # -- work ---------------------------------------------------------------------------------------------------------
    def products(self) -> int:
        """Multiply-accumulates that the op computes, by its shapes: of data and weights (operand 1); 0 for others."""
        return 0

    def macs(self) -> int:
        """Multiply-accumulates that its layers need: the network's, however many stand for them (`carrying.py`)."""
        needed = self.attributes.get(MACS)
        return needed if isinstance(needed, int) else self.products()

    # -- place in the block -----------------------------------------------------------------------------------------
    def erase(self) -> None:
        """Remove from its block and from the use lists of its operands. Raises ValueError while results are in use."""
        if any(result.uses for result in self.results):
            raise ValueError(f"{self.label}: cannot erase an operation whose results are still used")
        self.drop_operands()
        for block in self.regions:
            for op in reversed(list(block.ops)):
                op.erase()
        if self.parent is not None:
            self.parent.remove(self)

    def verify_op(self, module: Module) -> None:
        """Check the rules of this kind of op, beyond the structure that `verify_module` checks. Raises VerifyError."""

    @property
    def enclosing(self) -> Function | None:
        """The function that it is in, at whatever depth."""
        owner = None if self.parent is None else self.parent.owner
        return owner.enclosing if isinstance(owner, Operation) else owner

    def walk(self) -> Iterator[Operation]:
        """This op and all nested ones, outermost first."""
        yield self
        for block in self.regions:
            yield from block.walk()

    def __repr__(self) -> str:
        return f"<{self.name} {self.label}>"


class Block:
    """A straight list of operations with typed arguments."""

    def __init__(self, argument_types: Iterable[TensorType] = ()) -> None:
        self.arguments = [Value(t, self, i) for i, t in enumerate(argument_types)]
        self.ops: list[Operation] = []
        self.owner: Operation | Function | None = None

    def add_argument(self, type: TensorType) -> Value:
        """A further argument at the end; returns its value."""
        self.arguments.append(Value(type, self, len(self.arguments)))
        return self.arguments[-1]

    def append(self, op: Operation) -> Operation:
        """Put an op at the end; returns it."""
        op.parent = self
        self.ops.append(op)
        return op

    def insert_before(self, anchor: Operation, op: Operation) -> Operation:
        """Put an op before another one of this block; returns it."""
        op.parent = self
        self.ops.insert(self.ops.index(anchor), op)
        return op

    def remove(self, op: Operation) -> None:
        """Take an op out; its operands and results stay connected."""
        self.ops.remove(op)
        op.parent = None

    def walk(self) -> Iterator[Operation]:
        """All ops in order, those of inner regions after their owner."""
        for op in list(self.ops):
            yield op
            for block in op.regions:
                yield from block.walk()


class Function:
    """One net: a block ending in `func.return`, with the outside names of its inputs and outputs.

    Attributes:
        weights: of the module that it is in.
    """

    def __init__(
        self,
        name: str,
        input_types: Sequence[TensorType] = (),
        input_names: Sequence[str] = (),
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.body = Block(input_types)
        self.body.owner = self
        self.input_names: list[str] = list(input_names)
        self.output_names: list[str] = []
        self.attributes: dict[str, Any] = dict(attributes or {})
        self.weights = Weights()

    @property
    def arguments(self) -> list[Value]:
        """Values of the inputs, in the order of `input_names`."""
        return self.body.arguments

    @property
    def ops(self) -> list[Operation]:
        """All ops, `func.return` last."""
        return self.body.ops

    @property
    def returned(self) -> list[Value]:
        """The values of `func.return`. Raises ValueError while the function has none yet."""
        if not self.ops or not is_return(self.ops[-1]):
            raise ValueError(f"function {self.name} has no func.return")
        return self.ops[-1].operands

    def set_outputs(self, values: Sequence[Value], names: Sequence[str]) -> None:
        """(Re)write the return op. Names are the outside names of the outputs."""
        if self.ops and is_return(self.ops[-1]):
            self.ops[-1].erase()
        self.body.append(Operation(RETURN, values))
        self.output_names = list(names)

    def walk(self) -> Iterator[Operation]:
        """All ops, those of inner regions included."""
        yield from self.body.walk()

    def origin(self, value: Value) -> tuple[str, ...]:
        """What an op is called that only gives a value another form: layers that make the value, an input's name."""
        if value.owner is self.body:
            return (self.input_names[value.index],)
        return () if value.op is None else value.op.location


class Module:
    """Functions plus the weights they refer to by key."""

    def __init__(self, functions: Iterable[Function] = (), attributes: Mapping[str, Any] | None = None) -> None:
        self._weights = Weights()
        self.functions = functions
        self.attributes: dict[str, Any] = dict(attributes or {})

    @property
    def functions(self) -> tuple[Function, ...]:
        """All nets; setting them lets them share the weights."""
        return self._functions

    @functions.setter
    def functions(self, functions: Iterable[Function]) -> None:
        self._functions = tuple(functions)
        for function in self._functions:
            function.weights = self._weights

    @property
    def weights(self) -> Weights:
        """Arrays by key."""
        return self._weights

    @weights.setter
    def weights(self, weights: Weights) -> None:
        self._weights = weights
        self.functions = self._functions

    @property
    def main(self) -> Function:
        """The only (or first) function."""
        return self.functions[0]

    def walk(self) -> Iterator[Operation]:
        """All ops of all functions."""
        for function in self.functions:
            yield from function.walk()

    def __str__(self) -> str:
        from bmcompiler.ir.printer import print_module

        return print_module(self)
