"""The TensorOp set: one family per file, found through the entry point group `bmcompiler.tensor_ops`."""

from __future__ import annotations

from typing import Any

from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import Block, Location, Module, Operation, TensorType, Value
from bmcompiler.ir.keys import DIALECT
from bmcompiler.ir.parser import parse_module as _parse
from bmcompiler.ops.base import OPS, TensorOp
from bmcompiler.plugins.registry import failure_note


def load_all() -> dict[str, type[TensorOp]]:
    """Import every family (built in and from plugins; broken ones are left out). Op name -> class."""
    assert OPS.doors is not None, "the table of ops has doors"
    OPS.doors.open_built_in()
    OPS.doors.open_all()
    return OPS.entries()


def find_op(name: str) -> type[TensorOp]:
    """Class of an op by its short name.

    Raises:
        UnsupportedError: nobody declares it.
        PluginError: two packages do, or the plugin called like the op is broken.
    """
    cls = OPS.get(name)
    if cls is None:
        raise UnsupportedError(
            f"no TensorOp is called '{name}'",
            remedy="install the plugin that declares it" + failure_note("bmcompiler.tensor_ops"),
        )
    return cls


def make_operation(
    name: str,
    operands: list[Value],
    types: list[TensorType],
    attributes: dict[str, Any],
    regions: list[Block],
    location: Location,
) -> Operation:
    """Operation factory for the parser: registered classes for TensorOps, plain operations for the rest."""
    if name.startswith(DIALECT):
        return find_op(name.removeprefix(DIALECT))(operands, attributes, types, location, regions)
    return Operation(name, operands, types, attributes, regions, location)


def parse_module(text: str, file: object = None) -> Module:
    """Read MLIR text with TensorOps as their declared classes. Raises BMError subclasses."""
    return _parse(text, file, make_operation)


def need_tensor_ops(module: Module) -> None:
    """Raise UnsupportedError for an op of another dialect: text may hold any, passes know TensorOps only."""
    for function in module.functions:
        for op in function.ops[:-1]:
            if not isinstance(op, TensorOp):
                raise UnsupportedError(f"op '{op.name}' is no TensorOp", layer=op.label)
