"""What may happen to results that are padded as their length depends on values (`bmcompiler.ops.places.selection`)."""

from __future__ import annotations

from collections.abc import Iterator

from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import Module, Value
from bmcompiler.ir.keys import is_return
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.selection import Nonzero, Padded
from bmcompiler.spelling import spelled

_KEEPS_MARKS = ("permute", "cast")
"""Ops that keep padding recognisable: -1 stays -1."""
_KEEPS_LENGTH = (*_KEEPS_MARKS, "reshape", "slice", "split", "gather", "gather_elements", "gather_nd", "concat")
"""Ops whose result is as long as what they read."""


def need_known_shape(value: Value) -> None:
    """Raise UnsupportedError where the shape of a value is asked for that has a padded length."""
    seen, todo = {value}, [value]
    while todo:
        op = todo.pop().op
        if isinstance(op, Padded):
            raise UnsupportedError(
                f"how many results '{op.label}' has is known at run time only",
                remedy=f"cut the net before it with {spelled('outputs')}",
            )
        if isinstance(op, TensorOp) and op.opname in _KEEPS_LENGTH:
            todo += [v for v in op.operands if v not in seen]
            seen.update(op.operands)


def padding_notes(module: Module) -> Iterator[str]:
    """One remark for the user per padded op.

    Raises UnsupportedError where a list of positions (nonzero) goes into further layers, which would take the padding
    for the last position. Indices of boxes may: layers that gather by them give rows that count for nothing, and the
    remark says so.
    """
    for op in module.main.ops:
        if not isinstance(op, Padded):
            continue
        room = op.result.shape[op.padded_axis]
        if isinstance(op, Nonzero) and not _only_leaves(op):
            raise UnsupportedError(
                "other layers compute with its result, whose length is known at run time only",
                layer=op.label,
                kind=op.opname,
                remedy=f"cut the net before it with {spelled('outputs')}",
            )
        unused = (
            "unused ones hold -1" if _only_leaves(op) else "unused ones hold -1, and what layers make of them is void"
        )
        yield f"'{op.label}' ({op.opname}): its result always has room for {room} entries; {unused}"


def _only_leaves(op: TensorOp) -> bool:
    """Whether a result reaches nothing but outputs of the net, its padding still marked."""
    return all(
        is_return(user) or (isinstance(user, TensorOp) and user.opname in _KEEPS_MARKS and _only_leaves(user))
        for user in op.result.users
    )
