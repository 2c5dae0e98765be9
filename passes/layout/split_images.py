"""The images of a batch one after the other, or a few at a time, where these find more room in local memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bmcompiler.codegen.partition import partition
from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.copying import copy_module
from bmcompiler.ir.keys import IMAGE, MACS, is_return
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passes.layout.image_parts import has_images, parts_of, single_image
from bmcompiler.passes.rewriting import make
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.quant.other_batch import keeps_samples_apart
from bmcompiler.quant.rebatch import rebatch
from bmcompiler.target import Target

_ALIKE = 1.05
"""How many times the cycles of the quickest parts those of fewer ops may take."""


@dataclass(frozen=True)
class SplitImages(Pass):
    """A net of several images becomes as many nets of one, or of a few, which share its weights.

    Groups of layers that are cut into images end where the values between them are stored: those of all images. A few
    images alone keep them in local memory where a net of that batch does. So twice the batch takes twice the time,
    where it no longer fits local memory.

    1. a function whose images never meet, as a trial on noise shows : for each part of the batch a slice of the inputs,
       its ops, and a concatenation of the outputs
    2. ops of the host in such a function : all images at once, between the device's runs, which are split by rule 1

    Parts are whole words of images (`Target.image_slots`), and equal. Of their sizes the largest is taken whose parts
    one after the other take about the least time in groups that are soon found. It is done where that is less than
    `part` of the time of all at once, and then less than `nearly` of it in groups of `level` before these are refined:
    those of few images gain more by that, and let less move. Each sum keeps its order.

    `single`: images that are fewer than a word takes are parts of one each, whose rows `fill-image-slots` then makes
    bands, where the whole program takes less than `part` of the time so: words take as long with a place left.
    """

    name = "split-images"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False
    part: float = 0.95
    nearly: float = 1.0
    level: int = 2
    single: bool = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        modified, functions, known = False, list(module.functions), set(module.weights)
        for number, function in enumerate(functions):
            split = self._split(module, function, ctx)
            if split is None:
                continue
            pair, single = (
                rebatch(function, images, folded=True, tokens=True) for images in (2, 1)
            )  # more images are alike
            if pair is not None and single is not None and keeps_samples_apart(module, pair, single):
                functions[number], modified = split, True
        module.functions = functions
        read = {op.key for op in module.walk() if isinstance(op, Weight)}
        for key in set(module.weights) - known - read:
            del module.weights[key]
        return PassResult(modified)

    def _split(self, module: Module, function: Function, ctx: PassContext) -> Function | None:
        if ctx.target is None:
            return None
        return self._by_one(module, function, ctx) if self.single else self._quicker(function, ctx.target)

    def _quicker(self, function: Function, target: Target) -> Function | None:
        """The function in parts of the batch; None where all at once is as quick."""
        whole = target.planned_cycles(function, 1) if has_images(function) else None
        if whole is None:
            return None
        found = list(parts_of(function, target, 1))
        least = min((cycles for cycles, _ in found), default=whole)
        if least >= whole * self.part:
            return None
        split = _Split(function, next(one for cycles, one in found if cycles <= least * _ALIKE), target).made
        together, apart = (target.planned_cycles(each, self.level) for each in (function, split))
        return split if together is not None and apart is not None and apart < together * self.nearly else None

    def _by_one(self, module: Module, function: Function, ctx: PassContext) -> Function | None:
        """The function image by image; None where its program is as quick with all of them in one word."""
        if ctx.trial is None or len(module.functions) > 1 or not has_images(function):
            return None
        one = single_image(function, ctx.target)
        if one is None:
            return None
        split = _Split(function, one, ctx.target).made
        draft = copy_module(module)
        draft.functions = (split,)
        together, apart = (ctx.trial.timing(each, self.name) for each in (module, draft))
        quicker = together is not None and apart is not None and apart.cycles < together.cycles * self.part
        return split if quicker else None


class _Split:
    """The function as its form `one` for a part of the batch, run by run and part by part.

    What the host computes between runs of the device it computes of all images. `made`: the result.
    """

    def __init__(self, function: Function, one: Function, target: Target) -> None:
        self._count = function.arguments[0].shape[0] // one.arguments[0].shape[0]
        types = [value.type for value in function.arguments]
        self.made = Function(function.name, types, function.input_names, function.attributes)
        self._wholes: dict[Value, Value] = dict(zip(one.arguments, self.made.arguments))
        self._parts: dict[tuple[Value, int], Value] = {}
        self._shared: set[Value] = set()
        together = dict(zip(one.ops, function.ops))
        for op in one.ops:
            if self._shared.issuperset(op.operands) and not is_return(op):
                self._share(op)
        for device, ops in _runs(one, target):
            if device:
                self._in_parts(ops)
            else:
                self._at_once([(op, together[op]) for op in ops])
        self.made.set_outputs([self._whole(value) for value in one.returned], function.output_names)

    def _share(self, op: Operation) -> None:
        """What depends on no image."""
        new = _copied(op, [self._wholes[value] for value in op.operands])
        self.made.body.append(new)
        self._wholes.update(zip(op.results, new.results))
        self._shared.update(op.results)

    def _in_parts(self, ops: Sequence[Operation]) -> None:
        own = [op for op in ops if not self._shared.issuperset(op.operands)]
        for part in range(self._count):
            for op in own:
                operands = [self._part(value, part) for value in op.operands]
                new = _copied(op, operands, part, self._count)
                self.made.body.append(new)
                self._parts.update(((old, part), value) for old, value in zip(op.results, new.results))

    def _at_once(self, ops: Sequence[tuple[Operation, Operation]]) -> None:
        """Ops as those of the whole batch, which stand beside them."""
        for op, like in ops:
            if self._shared.issuperset(op.operands):
                continue
            operands = [
                self._constant(its) if value in self._shared else self._whole(value)
                for value, its in zip(op.operands, like.operands)
            ]
            new = _copied(like, operands)
            self.made.body.append(new)
            self._wholes.update(zip(op.results, new.results))

    def _constant(self, value: Value) -> Value:
        """What depends on no image, of the whole batch where it has one."""
        if value not in self._wholes:
            assert value.op is not None, "an argument has images"
            new = _copied(value.op, [self._constant(each) for each in value.op.operands])
            self.made.body.append(new)
            self._wholes.update(zip(value.op.results, new.results))
        return self._wholes[value]

    def _part(self, value: Value, part: int) -> Value:
        if value in self._shared:
            return self._wholes[value]
        if (value, part) not in self._parts:
            count, *size = value.shape
            starts, ends = (part * count, *(0,) * len(size)), ((part + 1) * count, *size)
            attributes = {"starts": starts, "ends": ends, "steps": (1,) * value.type.rank}
            self._parts[value, part] = self._appended(make("slice", [self._wholes[value]], attributes))
        return self._parts[value, part]

    def _whole(self, value: Value) -> Value:
        if value not in self._wholes:
            parts = [self._parts[value, part] for part in range(self._count)]
            self._wholes[value] = self._appended(make("concat", parts, {"axis": 0}))
        return self._wholes[value]

    def _appended(self, op: TensorOp) -> Value:
        self.made.body.append(op)
        return op.result


def _runs(function: Function, target: Target) -> list[tuple[bool, list[Operation]]]:
    """Ops that have operands in runs of the device (True) and of the host; views are where what they show is made."""
    segments = partition(function, target)
    runs: list[tuple[bool, list[Operation]]] = [(segment.device, []) for segment in segments]
    number = {op: index for index, segment in enumerate(segments) for op in segment.ops}
    for op in function.ops:
        if op.operands and not is_return(op):
            home = number.get(op)
            if home is None:
                home = number[op] = max((number[v.op] for v in op.operands if v.op in number), default=0)
            runs[home][1].append(op)
    return runs


def _copied(op: Operation, operands: Sequence[Value], part: int | None = None, parts: int = 1) -> TensorOp:
    """The op on other operands; part: whose images it computes, None = all."""
    assert isinstance(op, TensorOp), "`rebatch` made it"
    new = type(op)(operands, op.attributes, [result.type for result in op.results], op.location)
    if part is None:
        return new
    new.attributes[IMAGE] = part
    if MACS in new.attributes:
        needed = new.attributes[MACS]
        new.attributes[MACS] = needed * (part + 1) // parts - needed * part // parts
    return new
