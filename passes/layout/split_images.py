"""The images of a batch one after the other, or a few at a time, where these find more room in local memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bmcompiler.conditions import NO_GROUPS, NO_LAYOUT
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import IMAGE, MACS, is_return
from bmcompiler.ops.base import TensorOp
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

    Parts are whole words of images (`Target.image_slots`), and equal. Of their sizes the largest is taken whose parts
    one after the other take about the least time in groups that are soon found. It is done where that is less than
    `part` of the time of all at once, and then less than `nearly` of it in groups of `level` before these are refined:
    those of few images gain more by that, and let less move. Each sum keeps its order.
    """

    name = "split-images"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False
    part: float = 0.95
    nearly: float = 1.0
    level: int = 2

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        modified, functions = False, list(module.functions)
        for number, function in enumerate(functions):
            split = None if ctx.target is None else self._quicker(function, ctx.target)
            if split is None:
                continue
            pair, single = (rebatch(function, images, folded=True) for images in (2, 1))  # more images are alike
            if pair is not None and single is not None and keeps_samples_apart(module, pair, single):
                functions[number], modified = split, True
        module.functions = functions
        return PassResult(modified)

    def _quicker(self, function: Function, target: Target) -> Function | None:
        """The function in parts of the batch; None where all at once is as quick."""
        whole = target.planned_cycles(function, 1) if _has_images(function) else None
        if whole is None:
            return None
        images = function.arguments[0].shape[0]
        found: list[tuple[float, Function]] = []
        for size in _sizes(function, target):
            one = rebatch(function, size, folded=True)
            if one is None or _has_constant_output(one):
                return None
            cycles = target.planned_cycles(one, 1) if _adds_alike(target, function, one) else None
            if cycles is not None:
                found.append((cycles * images / size, one))
        least = min((cycles for cycles, _ in found), default=whole)
        if least >= whole * self.part:
            return None
        split = _split(function, next(one for cycles, one in found if cycles <= least * _ALIKE))
        together, apart = (target.planned_cycles(each, self.level) for each in (function, split))
        return split if together is not None and apart is not None and apart < together * self.nearly else None


def _has_images(function: Function) -> bool:
    """Whether every input has several."""
    return bool(function.arguments) and all(value.shape and value.shape[0] > 1 for value in function.arguments)


def _sizes(function: Function, target: Target) -> list[int]:
    """Numbers of images that parts may have, most first: words of them in every type."""
    images = function.arguments[0].shape[0]
    values = (*function.arguments, *(value for op in function.ops if op.operands for value in op.results))
    word = max(target.image_slots(value.dtype) for value in values)
    return [images // parts for parts in range(2, images + 1) if images % parts == 0 and images // parts % word == 0]


def _adds_alike(target: Target, function: Function, part: Function) -> bool:
    """Whether the target makes the sums of both in the same order."""
    orders = [
        [kernel.order_of_sums(op) for op in each.ops if (kernel := target.kernel_for(op)) is not None]
        for each in (function, part)
    ]
    return orders[0] == orders[1]


def _has_constant_output(function: Function) -> bool:
    """Whether an output depends on no image."""
    constants = {value for op in function.ops if not op.operands for value in op.results}
    return not constants.isdisjoint(function.returned)


def _split(function: Function, one: Function) -> Function:
    """The function as its form for a part of the batch, part by part."""
    size = one.arguments[0].shape[0]
    parts = function.arguments[0].shape[0] // size
    types = [value.type for value in function.arguments]
    made = Function(function.name, types, function.input_names, function.attributes)
    constants: dict[Value, Value] = {}
    outputs: list[list[Value]] = []
    for part in range(parts):
        values = dict(constants)
        for whole, its in zip(made.arguments, one.arguments):
            values[its] = _images_of(whole, part * size, size, made)
        for op in one.ops:
            if is_return(op) or (not op.operands and op.results[0] in constants):
                continue
            new = _copied(op, [values[value] for value in op.operands], part, parts)
            made.body.append(new)
            values.update(zip(op.results, new.results))
            if not op.operands:
                constants.update(zip(op.results, new.results))
        outputs.append([values[value] for value in one.returned])
    joined = [make("concat", parts, {"axis": 0}) for parts in zip(*outputs)]
    for op in joined:
        made.body.append(op)
    made.set_outputs([op.result for op in joined], function.output_names)
    return made


def _images_of(whole: Value, first: int, size: int, function: Function) -> Value:
    shape = whole.shape
    starts, ends = (first, *(0,) * (len(shape) - 1)), (first + size, *shape[1:])
    op = make("slice", [whole], {"starts": starts, "ends": ends, "steps": (1,) * len(shape)})
    function.body.append(op)
    return op.result


def _copied(op: Operation, operands: Sequence[Value], part: int, parts: int) -> TensorOp:
    assert isinstance(op, TensorOp), "`rebatch` made it"
    new = type(op)(operands, op.attributes, [result.type for result in op.results], op.location)
    if op.operands:
        new.attributes[IMAGE] = part
    if MACS in new.attributes:
        needed = new.attributes[MACS]
        new.attributes[MACS] = needed * (part + 1) // parts - needed * part // parts
    return new
