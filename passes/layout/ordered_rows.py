"""Rows of maps: loaded in the order that slices, concatenations and permutes bring them into, and kept in lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Operation, Rewriter, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.elementwise import Add
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.ops.layers.norm import LayerNorm
from bmcompiler.ops.places.index import Gather
from bmcompiler.ops.places.shape import Concat, Permute, Reshape, Slice
from bmcompiler.passes.drafts import without_numbers
from bmcompiler.passes.rewriting import PatternTable, TargetPatternPass, declared, make, on, rebuild, sole
from bmcompiler.target import unsupported_reason

_Moving = Permute | Slice | Concat
_Types = Cast | Quantize | Dequantize
_LEAST = 1 << 14
"""Elements below which the starts of commands, which targets may leave out, count more."""
_ROW = 64
"""Bytes of the shortest rows that are gathered: each takes as long as 256, and other passes move short ones better."""
_DEEP = 24
"""Ops behind one another that are followed."""


@dataclass(frozen=True)
class _Rows:
    """Numbers of the rows of `source` that a value consists of; along the last axis those that lie side by side."""

    source: Value
    numbers: np.ndarray
    ops: tuple[TensorOp, ...]

    @property
    def width(self) -> int:
        """Elements of a row; one of a scalar."""
        return prod(self.source.shape[-1:])


@dataclass(frozen=True)
class OrderedRows(TargetPatternPass):
    """Windows, shifts of maps and neighbours as channels are rows in another order: one gather instead of copies.

    1. slices, concats and permutes of one value, reshapes between them, which keep its rows whole and nobody else
       reads                           : gather of its rows by a constant
    2. cast to fewer bytes of a gather : gather of the cast
    3. norms along the last axis of maps [1, h, w, c], their sums and types, more of whose neighbours know them as
       matrices of rows of c elements than as maps : the same of such matrices, rows in lanes as products leave them
    4. the same quantize of all slices of a value, which a concat joins : slices of the quantized
    Rule 1 is done where the target takes less time for a gather than for copies through global memory. Bits stay.
    """

    name = "ordered-rows"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def table(self) -> PatternTable:
        return {
            **on(Permute, self.gathered),
            **on(Slice, self.gathered),
            **on(Concat, self.gathered),
            **on(Quantize, self.before_slices, self.as_rows),
            **on(Cast, self.narrowed, self.as_rows),
            **on(Dequantize, self.as_rows),
            **on(LayerNorm, self.as_rows),
            **on(Add, self.as_rows),
        }

    def gathered(self, op: _Moving, rewriter: Rewriter) -> bool:
        """Rule 1."""
        found = _rows_of(op.result)
        if (
            not found.ops
            or found.source.type.rank < 2
            or self.constant(found.source) is not None
            or found.width * found.source.type.numpy.itemsize < _ROW
            or _goes_on(op, op.result)
        ):
            return False
        inner = [result for each in found.ops if each is not op for result in each.results]
        if any(user not in found.ops for value in inner for user in value.users) or not self._is_quicker(op, found):
            return False
        order = self.weight(_order(found), None, op, rewriter, f"{op.label}.order")
        flat, picked, shaped = _parts(op, found, order)
        rewriter.insert_before(op, flat)
        rewriter.insert_before(op, picked)
        rewriter.replace_with(op, shaped, absorbed=[each for each in found.ops if not isinstance(each, Reshape)])
        return True

    def narrowed(self, op: Cast, rewriter: Rewriter) -> bool:
        """Rule 2."""
        value = op.operands[0]
        while (shaped := sole(value, Reshape)) is not None:
            value = shaped.operands[0]
        gather = sole(value, Gather)
        if gather is None or self.constant(gather.indices) is None or PLACE_CPU in {*op.attributes, *gather.attributes}:
            return False
        if op.type.numpy.itemsize >= gather.x.type.numpy.itemsize:
            return False
        cast = rebuild(op, [gather.x])
        cast.attributes.pop(TENSOR_NAME, None)
        rewriter.insert_before(gather, cast)
        moved = make("gather", [cast.result, gather.indices], {"axis": gather.axis}, None, gather.location)
        rewriter.insert_before(gather, moved)
        rewriter.replace_with(op, make("reshape", [moved.result], {"shape": op.type.shape}, None, op.location))
        return True

    def before_slices(self, op: Quantize, rewriter: Rewriter) -> bool:
        """Rule 4."""
        cut, joined = sole(op.operands[0], Slice), next(iter(op.result.users), None)
        if cut is None or not isinstance(joined, Concat):
            return False
        alike = [each.op for each in joined.operands if isinstance(each.op, Quantize) and _is_like(each.op, op)]
        slices = [part for each in alike if (part := sole(each.operands[0], Slice)) is not None and part.x is cut.x]
        if len(slices) != len(joined.operands) or sum(each.type.size for each in slices) < cut.x.type.size:
            return False
        whole = rebuild(op, [cut.x])
        whole.attributes.pop(TENSOR_NAME, None)
        parts = [make("slice", [whole.result], declared(each), None, each.location) for each in slices]
        for made in (whole, *parts):
            rewriter.insert_before(joined, made)
        rewriter.replace_with(joined, rebuild(joined, [part.result for part in parts]), absorbed=alike)
        return True

    def as_rows(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 3, for all ops that it joins."""
        joined = self._joined(op)
        if not joined or not self._gains_as_rows(joined):
            return False
        for each in joined:
            _make_rows(each, rewriter)
        return True

    def _can_be_rows(self, op: Operation | None) -> bool:
        """Whether an op of maps [1, h, w, c], in local memory, can be one of their rows."""
        if not isinstance(op, LayerNorm | Add | _Types) or PLACE_CPU in op.attributes or op.type.rank != 4:
            return False
        maps, changed = _maps(op), isinstance(op, Quantize | Dequantize)
        if op.type.shape[0] != 1 or not all(x.shape == op.type.shape for x in (*maps, op.result)):
            return False
        if not all(x.type.is_float or (changed and not _is_along_axis(x)) for x in (*maps, op.result)):
            return False
        if isinstance(op, LayerNorm) and (op.axis % 4 != 3 or any(self.constant(x) is None for x in op.operands[1:])):
            return False
        return all(self.constant(x) is None for x in maps) and self.target.local_cycles(op) is not None

    def _joined(self, op: TensorOp) -> dict[TensorOp, None]:
        """The op and all that can be ops of rows like it and read or make its values, and theirs."""
        joined: dict[TensorOp, None] = {}
        found: list[Operation | None] = [op]
        while found:
            each = found.pop()
            if isinstance(each, TensorOp) and each not in joined and self._can_be_rows(each):
                joined[each] = None
                found += [value.op for value in _maps(each)] + list(each.result.users)
        return joined

    def _gains_as_rows(self, joined: Mapping[TensorOp, None]) -> bool:
        """Whether fewer values go from one layout to another in local memory; norms of rows take less themselves."""
        norms = any(isinstance(op, LayerNorm) for op in joined)
        _, _, columns, width = next(iter(joined)).type.shape
        if columns == 1:  # rows lie in lanes already
            return norms
        read = {value: value.op for op in joined for value in _maps(op) if value.op not in joined}
        edges = [self._layout(maker, maker.operands, width) for maker in read.values() if maker is not None]
        for op in joined:
            edges += {self._layout(user, user.results, width) for user in op.result.users if user not in joined}
        return edges.count("rows") + norms > edges.count("map")

    def _layout(self, op: Operation, views: Sequence[Value], width: int) -> str:
        """How a neighbour of joined ops holds its values: as rows, as a map; "" where they go through global memory."""
        if isinstance(op, Reshape):
            return "rows" if views[0].type.rank == 2 and views[0].shape[-1] == width else "map"
        return "" if not isinstance(op, TensorOp) or self.target.local_cycles(op) is None else "map"

    def _is_quicker(self, op: TensorOp, found: _Rows) -> bool:
        """Whether a gather takes less time than copies outside of local memory, and the load of the last one."""
        target, before = self.target, 0
        for each in found.ops:
            if not isinstance(each, Reshape) and target.local_cycles(each) is None:
                before += target.moving_cycles(each) or 0
        if not before or op.type.size < _LEAST:
            return False
        order = without_numbers(op.result, _order(found).shape)
        order.type = TensorType(order.shape, "i32")
        flat, picked, shaped = _parts(op, found, order)
        taken = None if unsupported_reason(target, picked) is not None else target.cycles(picked)
        for each in (shaped, picked, flat):
            each.drop_operands()
        return taken is not None and taken < before + target.loading_cycles(op.type.nbytes)


def _is_like(op: Quantize, other: Quantize) -> bool:
    """Whether an op quantizes as another does, for one op."""
    return (
        len(op.result.uses) == 1
        and PLACE_CPU not in {*op.attributes, *other.attributes}
        and (declared(op), op.type.dtype, op.type.quant) == (declared(other), other.type.dtype, other.type.quant)
    )


def _is_along_axis(value: Value) -> bool:
    return value.type.quant is not None and bool(value.type.quant.scales)


def _maps(op: TensorOp) -> Sequence[Value]:
    """Operands but coefficients of a norm."""
    return op.operands[:1] if isinstance(op, LayerNorm) else op.operands


def _make_rows(op: TensorOp, rewriter: Rewriter) -> None:
    """The op of matrices [h * w, c] in place of one of maps [1, h, w, c]."""
    shape = (op.type.size // op.type.shape[3], op.type.shape[3])
    views = {value: make("reshape", [value], {"shape": shape}, None, op.location) for value in _maps(op)}
    for view in views.values():
        rewriter.insert_before(op, view)
    operands = [views[value].result if value in views else value for value in op.operands]
    rows = rebuild(op, operands, **({"axis": 1} if isinstance(op, LayerNorm) else {}))
    rows.attributes.pop(TENSOR_NAME, None)
    rewriter.insert_before(op, rows)
    rewriter.replace_with(op, make("reshape", [rows.result], {"shape": op.type.shape}, None, op.location))


def _order(found: _Rows) -> np.ndarray:
    """Numbers of rows; with a second axis where several of them lie side by side."""
    numbers = found.numbers.reshape(-1, found.numbers.shape[-1]).astype(np.int32)
    return numbers.ravel() if numbers.shape[-1] == 1 else numbers


def _parts(op: TensorOp, found: _Rows, order: Value) -> tuple[TensorOp, TensorOp, TensorOp]:
    """The source as rows, the gather, and its result in the shape of the op's."""
    flat = make(
        "reshape", [found.source], {"shape": (found.source.type.size // found.width, found.width)}, None, op.location
    )
    picked = make("gather", [flat.result, order], {"axis": 0}, None, op.location)
    return flat, picked, make("reshape", [picked.result], {"shape": op.type.shape}, None, op.location)


def _rows_of(value: Value, depth: int = 0, known: dict[Value, _Rows] | None = None) -> _Rows:
    """The rows that a value consists of: those of itself where nothing moved them, or more than `_DEEP` ops ago.

    known: of what was asked before; a map that is moved around is read by two slices, each time.
    """
    known = {} if known is None else known
    if value not in known:
        known[value] = _moved_rows(value, depth, known)
    return known[value]


def _moved_rows(value: Value, depth: int, known: dict[Value, _Rows]) -> _Rows:
    op = value.op
    if depth < _DEEP and isinstance(op, Reshape | _Moving) and value.type.rank and PLACE_CPU not in op.attributes:
        parts = [_rows_of(x, depth + 1, known) for x in op.operands]
        if len({part.source for part in parts}) == 1:
            numbers = _moved(op, [part.numbers for part in parts], parts[0].width)
            if numbers is not None:
                ops = dict.fromkeys(each for part in parts for each in part.ops)
                return _Rows(parts[0].source, numbers, (*ops, op))
    outer = value.shape[:-1]
    return _Rows(value, np.arange(prod(outer)).reshape(*outer, 1), ())


def _moved(op: TensorOp, numbers: Sequence[np.ndarray], width: int) -> np.ndarray | None:
    """The numbers of rows of `width` elements behind an op; None where it parts their elements."""
    last = op.type.rank - 1
    if isinstance(op, Reshape):
        (found,), shape = numbers, op.type.shape
        return found.reshape(*shape[:-1], shape[-1] // width) if width and shape[-1] % width == 0 else None
    if isinstance(op, Permute) and op.order[-1] != last:
        return None
    if isinstance(op, Slice) and (op.starts[last], op.ends[last], op.steps[last]) != (0, op.x.shape[last], 1):
        return None
    return np.asarray(op.evaluate(*numbers))


def _goes_on(op: TensorOp, value: Value) -> bool:
    """Whether what reads a value moves the rows of `op` further."""
    for user in value.users:
        if isinstance(user, Reshape) and _goes_on(op, user.result):
            return True
        if isinstance(user, _Moving) and op in _rows_of(user.result).ops:
            return True
    return False
