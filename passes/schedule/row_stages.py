"""A function whose regions of rows are in parts, one a stage behind the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bmcompiler.ir import Function, Module, Operation, Value, erase_dead
from bmcompiler.ir.keys import TENSOR_NAME, is_return, is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.passes.rewriting import make
from bmcompiler.passes.schedule.row_cuts import RowCut, cut_op, is_cut, part_of_constant
from bmcompiler.passes.schedule.row_orders import RowOrders, as_rows, count_rows
from bmcompiler.passes.schedule.row_regions import RowRegion, regions_of


class _Behind(NamedTuple):
    """A region behind a gather of rows of another one: by runs of its rows the parts of that one that they come from.

    Attributes:
        source: the value that is gathered.
    """

    region: RowRegion
    source: Value
    runs: Sequence[tuple[int, RowCut]]


class RowStages:
    """What of a function can be cut into parts.

    Attributes:
        cut: the regions that are cut.

    Args: parts: by how many rows a region has; others are not cut.
    """

    def __init__(self, module: Module, function: Function, rows: RowOrders, parts: Mapping[int, int]) -> None:
        self.module, self.function, self.rows = module, function, rows
        self._regions = regions_of(function, rows)
        self._cuts: dict[Operation, Sequence[RowCut]] = {}
        self._behind: list[_Behind] = []
        for region in self._regions:
            count = max(map(count_rows, region.read), default=0)
            equal = [RowCut(part, part + 1, parts[count]) for part in range(parts.get(count, 0))]
            if equal and any(isinstance(op, Matmul) for op in region.ops) and _can_be_cut(region, equal):
                self._cuts |= {op: equal for op in region.ops}
        for region in self._regions:
            behind = self._runs(region)
            if behind is not None and _can_be_cut(region, [cut for _, cut in behind.runs]):
                self._behind.append(behind)
        for behind in self._behind:
            self._cuts |= {op: [cut for _, cut in behind.runs] for op in behind.region.ops}
        self.cut = [region for region in self._regions if region.ops[0] in self._cuts]

    def _runs(self, region: RowRegion) -> _Behind | None:
        """How a region of ops that do the same with each row of one gather goes with what that reads."""
        if region.ops[0] in self._cuts or len(region.read) != 1 or not all(map(self.rows.by_rows, region.ops)):
            return None
        gather = next(iter(region.read)).op
        order = self.rows.order(gather)
        if gather is None or order is None or gather.operands[0].op not in self._cuts:
            return None
        cuts = self._cuts[gather.operands[0].op]
        part = np.searchsorted([cut.end * order.size // cut.total for cut in cuts], order, side="right")
        edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), order.size]
        if len(edges) > 2 * len(cuts):
            return None
        runs = [(int(part[begin]), RowCut(begin, end, order.size)) for begin, end in pairwise(edges)]
        return _Behind(region, gather.operands[0], runs)

    # -- the new function ----------------------------------------------------------------------------------------------
    def rebuilt(self) -> Function:
        """The function in parts."""
        old = self.function
        self._made = Function(old.name, [value.type for value in old.arguments], old.input_names, old.attributes)
        self._wholes: dict[Value, Value] = dict(zip(old.arguments, self._made.arguments))
        self._parts: dict[tuple[Value, RowCut], Value] = {}
        for op in old.ops:
            if not op.operands and not is_return(op):
                self._copy(op)
        behind = {each.region for each in self._behind}
        for region in self._regions:
            if region.ops[0] not in self._cuts:
                for op in region.ops:
                    self._copy(op)
            elif region not in behind:
                self._in_stages(region)
        self._made.set_outputs([self._whole(value) for value in old.returned], old.output_names)
        erase_dead(self._made)
        return self._made

    def _in_stages(self, region: RowRegion) -> None:
        """Wave by wave each part's next stage, that of the first part first; behind the last one what follows of it.

        So there are stages of other parts between one that makes what is moved and one that reads it.
        """
        cuts, stages = self._cuts[region.ops[0]], list(_stages(region))
        behind = [each for each in self._behind if each.source.op in region.ops]
        for wave in range(len(cuts) + len(stages)):
            for part, cut in enumerate(cuts):
                stage = wave - part
                if 0 <= stage < len(stages):
                    self._cut_ops(stages[stage], cut)
                elif stage == len(stages):
                    for each in behind:
                        for _, run in (run for run in each.runs if run[0] == part):
                            self._cut_ops(each.region.ops, run)

    def _cut_ops(self, ops: Sequence[Operation], cut: RowCut) -> None:
        for op in ops:
            operands = [
                self._constant(op, value, cut) if is_weight(value) else self._part(value, cut) for value in op.operands
            ]
            self._parts[op.results[0], cut] = self._append(cut_op(op, operands, cut))

    def _part(self, value: Value, cut: RowCut) -> Value:
        """Rows of a value that are made by its region, or picked of what that reads."""
        if (value, cut) not in self._parts:
            order = self.rows.order(value.op)
            if value.op is not None and order is not None and value not in self._wholes:
                made = self._picked(value.op, order, cut)
            else:
                made = self._sliced(value, cut)
            self._parts[value, cut] = made
        return self._parts[value, cut]

    def _picked(self, gather: Operation, order: np.ndarray, cut: RowCut) -> Value:
        """Rows of a gather, of one part of what it reads where that holds them all."""
        begin, end = (each * order.size // cut.total for each in (cut.begin, cut.end))
        source, picked = gather.operands[0], order[begin:end]
        for part in self._cuts.get(source.op, ()) if source.op is not None else ():
            low, high = (each * order.size // part.total for each in (part.begin, part.end))
            if low <= picked.min() and picked.max() < high:
                return self._gathered(gather, self._parts[source, part], picked - low)
        return self._gathered(gather, self._whole(source), picked)

    def _gathered(self, like: Operation, value: Value, order: np.ndarray) -> Value:
        name = f"{'+'.join(like.location[:1])}.order"
        index = self._weight(order.astype(np.int32), name, like.operands[1], like)
        return self._append(make("gather", [value, index], {"axis": 0}, None, like.location))

    def _constant(self, op: Operation, value: Value, cut: RowCut) -> Value:
        """What a part of an op reads of a constant."""
        found, array = part_of_constant(op, value, cut), self.rows.constant(value)
        if found is None or array is None or value.op is None:
            return self._whole(value)
        axis, begin, end = found
        return self._weight(np.take(array, range(begin, end), axis), value.op.attributes["key"], value, value.op)

    def _weight(self, array: np.ndarray, name: str, like: Value, op: Operation) -> Value:
        key = self.module.weights.add(name, array)
        return self._append(make("weight", (), {"key": key}, [like.type.with_shape(array.shape)], op.location))

    def _sliced(self, value: Value, cut: RowCut) -> Value:
        found = cut.of(value.shape)
        assert found is not None, "it was asked whether it can be cut"
        axis, begin, end = found
        starts, ends, steps = [0] * value.type.rank, list(value.shape), [1] * value.type.rank
        starts[axis], ends[axis] = begin, end
        return self._append(
            make(
                "slice", [self._whole(value)], {"starts": starts, "ends": ends, "steps": steps}, None, _location(value)
            )
        )

    def _whole(self, value: Value) -> Value:
        """A value; joined from its parts, as rows of one matrix, where it is made in parts."""
        gathers: list[Operation] = []
        source = value
        while source not in self._wholes and source.op is not None and self.rows.order(source.op) is not None:
            gathers.append(source.op)
            source = source.op.operands[0]
        self._join(source)
        for gather in reversed(gathers):
            self._copy(gather)
        return self._wholes[value]

    def _join(self, value: Value) -> None:
        """Make a whole of parts, which are made where it lies."""
        if value not in self._wholes:
            assert value.op is not None, "arguments are wholes"
            where = value.op.location
            parts = [self._parts[value, cut] for cut in self._cuts[value.op]]
            flat = [self._append(make("reshape", [part], {"shape": as_rows(part)}, None, where)) for part in parts]
            joined = self._append(make("concat", flat, {"axis": 0}, None, where))
            shaped = make("reshape", [joined], {"shape": value.shape}, None, where)
            if TENSOR_NAME in value.op.attributes:
                shaped.attributes[TENSOR_NAME] = value.op.attributes[TENSOR_NAME]
            self._wholes[value] = self._append(shaped)

    def _copy(self, op: Operation) -> None:
        assert isinstance(op, TensorOp), "other ops are the return"
        operands = [self._whole(value) for value in op.operands]
        new = type(op)(operands, op.attributes, [result.type for result in op.results], op.location)
        self._made.body.append(new)
        self._wholes.update(zip(op.results, new.results))

    def _append(self, op: Operation) -> Value:
        self._made.body.append(op)
        return op.results[0]


def _location(value: Value) -> tuple[str, ...]:
    return () if value.op is None else value.op.location


def _can_be_cut(region: RowRegion, cuts: Sequence[RowCut]) -> bool:
    constants = {value: None for op in region.ops for value in op.operands if is_weight(value)}
    return all(is_cut(op, cut, constants) for cut in cuts for op in region.ops)


def _stages(region: RowRegion) -> Iterator[list[Operation]]:
    """The ops of a region in order, those from a product by weights on apart, unless it is of the operand before."""
    ops: list[Operation] = []
    read: Value | None = None
    for op in region.ops:
        if isinstance(op, Matmul) and is_weight(op.right):
            if ops and op.left is not read:
                yield ops
                ops = []
            read = op.left
        ops.append(op)
    yield ops
