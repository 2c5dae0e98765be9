"""Feature maps of one image as bands of rows, where a chip packs several images into the words of its local memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from bmcompiler.conditions import INTEGERS, NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.carrying import carry_macs, need_of
from bmcompiler.ir.keys import PLACE_CPU, TENSOR_NAME
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.layout.band_forms import BandForm, band_form
from bmcompiler.passes.rewriting import hand_name, make, rebuild
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.target import Target, unsupported_reason

_BYTES = "i8"


@dataclass(frozen=True)
class FillImageSlots(Pass):
    """Compute nets of one image on bands of its rows, as many as fill the image slots of words (`Target.image_slots`).

    There are as many bands as a word has bytes; halfwords, of fewer images to a word, pass between element-wise ops.

    1. conv, deconv, max_pool, avg_pool, upsample, concat along channels and element-wise ops work on bands as they do
       on images; windows read also rows of the neighbouring bands, made by to_bands or regroup_bands, and pad no rows
    2. ops that are neither get the image again, by from_bands
    3. connected ops stay as they are where the target says that bands do not compute faster
    """

    name = "fill-image-slots"
    requires = (INTEGERS, NO_GROUPS)
    breaks = (NO_LAYOUT,)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        changed = False
        for function in module.functions:
            for ops in _regions(function, ctx.target):
                draft = _Draft(ops, ctx.target)
                if draft.pays():
                    draft.commit(function)
                    changed = True
                else:
                    draft.drop()
        return PassResult(changed)


def cycles_on_bands(op: Operation, target: Target) -> int | None:
    """Estimated cycles of an op once its image is bands, without making those; None where it is not computed so."""
    if not isinstance(op, TensorOp) or not _takes_part(op, target):
        return None
    draft = _Draft([op], target)
    (banded,) = [new for new in _flat(draft.made) if isinstance(new, type(op))]
    count = target.cycles(banded) if unsupported_reason(target, banded) is None else None
    draft.drop()
    return count


def _regions(function: Function, target: Target | None) -> list[list[TensorOp]]:
    """The ops that can work on bands, connected ones together, in program order."""
    if target is None:
        return []
    found = [op for op in function.ops if isinstance(op, TensorOp) and _takes_part(op, target)]
    root: dict[TensorOp, TensorOp] = {op: op for op in found}

    def leader(op: TensorOp) -> TensorOp:
        while root[op] is not op:
            root[op] = root[root[op]]
            op = root[op]
        return op

    for op in found:
        form = band_form(op, target.image_slots(_BYTES))
        assert form is not None, "regions are of ops that have a form in bands"
        for index in form.operands:
            maker = op.operands[index].op
            if maker in root:
                root[leader(op)] = leader(maker)
    regions: dict[TensorOp, list[TensorOp]] = {}
    for op in found:
        regions.setdefault(leader(op), []).append(op)
    return list(regions.values())


def _takes_part(op: TensorOp, target: Target) -> bool:
    packed = all(target.image_slots(value.type.dtype) > 1 for value in op.results)  # forms are those of integers
    form = band_form(op, target.image_slots(_BYTES)) if packed else None
    if form is None or PLACE_CPU in op.attributes or unsupported_reason(target, op) is not None:
        return False
    return all(target.image_slots(op.operands[index].dtype) > 1 for index in form.operands)


@dataclass
class _Draft:
    """The ops of a region on bands, not yet part of the function."""

    ops: list[TensorOp]
    target: Target
    made: list[tuple[TensorOp, list[TensorOp]]] = field(default_factory=list)
    images: dict[Value, Value] = field(default_factory=dict)
    _bands: dict[Value, Value] = field(default_factory=dict)
    _cut: dict[tuple[Any, ...], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        inside = set(self.ops)
        for op in self.ops:
            fresh: list[TensorOp] = []
            self.made.append((op, fresh))
            self._add(op, fresh)
            if any(user not in inside or not self._reads_bands(user, op.result) for user in op.result.users):
                bands = self._bands[op.result]
                joined = make("from_bands", [bands], {"height": op.type.shape[2]}, location=op.location)
                fresh.append(joined)
                self.images[op.result] = joined.result

    def _reads_bands(self, user: Operation, value: Value) -> bool:
        form = self._form(cast(TensorOp, user))
        return all(index in form.operands for index, read in enumerate(user.operands) if read is value)

    def _form(self, op: TensorOp) -> BandForm:
        form = band_form(op, self.target.image_slots(_BYTES))
        assert form is not None, "regions are of ops that have a form in bands"
        return form

    def _add(self, op: TensorOp, fresh: list[TensorOp]) -> None:
        form = self._form(op)
        known = (self._bands[op.operands[i]] for i in form.operands if op.operands[i] in self._bands)
        rows = form.rows(min(known, key=lambda bands: bands.shape[2], default=None))
        operands = list(op.operands)
        for index in form.operands:
            operands[index] = self._supply(op, op.operands[index], form, rows, fresh)
        for index, value in enumerate(operands):
            if index not in form.operands and value in self.images:
                operands[index] = self.images[value]
        banded = rebuild(op, operands, **form.changes)
        fresh.append(banded)
        self._bands[op.result] = banded.result

    def _supply(self, op: TensorOp, value: Value, form: BandForm, rows: int, fresh: list[TensorOp]) -> Value:
        """The bands of a value that an op with results of `rows` rows reads."""
        wanted = {"rows": form.rows_read(rows), "top": form.top, "bottom": form.bottom}
        bands = self._bands.get(value)
        if bands is not None and not form.below and (bands.shape[2], 0, 0) == tuple(wanted.values()):
            return bands
        fill = {"fill": form.fill} if form.top or form.bottom or form.fill else {}
        key = (value, *wanted.values(), *fill.values())
        if key not in self._cut:
            if bands is None:
                slots = self.target.image_slots(_BYTES)
                made = make("to_bands", [value], {"bands": slots, **wanted, **fill}, location=op.location)
            else:
                made = make(
                    "regroup_bands", [bands], {"height": value.shape[2], **wanted, **fill}, location=op.location
                )
            fresh.append(made)
            self._cut[key] = made.result
        return self._cut[key]

    # -- whether, and then ---------------------------------------------------------------------------------------------
    def pays(self) -> bool:
        """Whether the target runs all of it, in less time than the ops as they are (rule 3)."""
        made = list(_flat(self.made))
        if any(unsupported_reason(self.target, op) is not None for op in made):
            return False
        return self._cost(made) < self._cost(self.ops)

    def _cost(self, ops: Iterable[TensorOp]) -> int:
        found = 0
        for op in ops:
            count = self.target.local_cycles(op)
            found += (self.target.cycles(op) or 0) if count is None else count
        return found

    def commit(self, function: Function) -> None:
        """Put the new ops in the place of the old ones."""
        inside = set(self.ops)
        for op, fresh in self.made:
            carry_macs([need_of(op)], fresh)
            for new in fresh:
                function.body.insert_before(op, new)
            image = self.images.get(op.result)
            self._bands[op.result].op.attributes.pop(TENSOR_NAME, None)  # type: ignore[union-attr]
            if image is not None:
                hand_name(op, image)
                for user, index in list(op.result.uses):
                    if user not in inside:
                        user.set_operand(index, image)
        for op in reversed(self.ops):
            op.erase()

    def drop(self) -> None:
        """Forget the new ops."""
        for op in _flat(self.made):
            op.drop_operands()


def _flat(made: list[tuple[TensorOp, list[TensorOp]]]) -> Iterator[TensorOp]:
    for _, fresh in made:
        yield from fresh
