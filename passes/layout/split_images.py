"""The images of a batch one after the other, where each alone finds more room in local memory."""

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


@dataclass(frozen=True)
class SplitImages(Pass):
    """A net of several images becomes as many nets of one, which share its weights.

    Groups of layers that are cut into images end where the values between them are stored: those of all images. An
    image alone keeps them in local memory where a net of batch 1 does.

    1. a function whose images never meet, as a trial on noise shows : for each image a slice of the inputs, its ops,
       and a concatenation of the outputs

    For values whose images share no words. It is done where the images one by one may take less than `part` of the time
    of all at once without groups, which is soon known, and then less than `nearly` of it in groups before these are
    refined: those of one image gain more by that, and let less move. Each sum keeps its order.
    """

    name = "split-images"
    requires = (NO_GROUPS,)
    breaks = (NO_LAYOUT,)
    loses_bits = False
    part: float = 0.85
    nearly: float = 1.05

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        modified, functions = False, list(module.functions)
        for number, function in enumerate(functions):
            if ctx.target is None or not _is_apart(ctx.target, function):
                continue
            single = rebatch(function, 1)
            if single is None or not _adds_alike(ctx.target, function, single):
                continue
            if not _may_gain(ctx.target, function, single, self.part):
                continue
            split, pair = _split(function, single), rebatch(function, 2)  # more images are alike
            if pair is None or not _is_better(ctx.target, function, split, self.nearly):
                continue
            if keeps_samples_apart(module, pair, single):
                functions[number], modified = split, True
        module.functions = functions
        return PassResult(modified)


def _adds_alike(target: Target, function: Function, single: Function) -> bool:
    """Whether the target makes the sums of both in the same order."""
    orders = [
        [kernel.order_of_sums(op) for op in each.ops if (kernel := target.kernel_for(op)) is not None]
        for each in (function, single)
    ]
    return orders[0] == orders[1]


def _may_gain(target: Target, function: Function, single: Function, part: float) -> bool:
    """Whether one image gains by the room that it has, and every output depends on the image."""
    constants = {value for op in single.ops if not op.operands for value in op.results}
    whole, one = (target.planned_cycles(each, 0) for each in (function, single))
    if whole is None or one is None or not constants.isdisjoint(single.returned):
        return False
    return one * function.arguments[0].shape[0] < whole * part


def _is_better(target: Target, function: Function, split: Function, nearly: float) -> bool:
    whole, images = (target.planned_cycles(each, 2) for each in (function, split))
    return whole is not None and images is not None and images < whole * nearly


def _is_apart(target: Target, function: Function) -> bool:
    """Whether there are several images, none of which shares words with another."""
    values = (*function.arguments, *(value for op in function.ops if op.operands for value in op.results))
    batched = function.arguments and all(value.shape and value.shape[0] > 1 for value in function.arguments)
    return bool(batched) and all(target.image_slots(value.dtype) == 1 for value in values)


def _split(function: Function, single: Function) -> Function:
    """The function as its form for one image, image by image."""
    images = function.arguments[0].shape[0]
    types = [value.type for value in function.arguments]
    made = Function(function.name, types, function.input_names, function.attributes)
    constants: dict[Value, Value] = {}
    outputs: list[list[Value]] = []
    for image in range(images):
        values = dict(constants)
        for whole, one in zip(made.arguments, single.arguments):
            values[one] = _image_of(whole, image, made)
        for op in single.ops:
            if is_return(op) or (not op.operands and op.results[0] in constants):
                continue
            new = _copied(op, [values[value] for value in op.operands], image, images)
            made.body.append(new)
            values.update(zip(op.results, new.results))
            if not op.operands:
                constants.update(zip(op.results, new.results))
        outputs.append([values[value] for value in single.returned])
    joined = [make("concat", parts, {"axis": 0}) for parts in zip(*outputs)]
    for op in joined:
        made.body.append(op)
    made.set_outputs([op.result for op in joined], function.output_names)
    return made


def _image_of(whole: Value, image: int, function: Function) -> Value:
    shape = whole.shape
    starts, ends = (image, *(0,) * (len(shape) - 1)), (image + 1, *shape[1:])
    op = make("slice", [whole], {"starts": starts, "ends": ends, "steps": (1,) * len(shape)})
    function.body.append(op)
    return op.result


def _copied(op: Operation, operands: Sequence[Value], image: int, images: int) -> TensorOp:
    assert isinstance(op, TensorOp), "`rebatch` made it"
    new = type(op)(operands, op.attributes, [result.type for result in op.results], op.location)
    if op.operands:
        new.attributes[IMAGE] = image
    if MACS in new.attributes:
        needed = new.attributes[MACS]
        new.attributes[MACS] = needed * (image + 1) // images - needed * image // images
    return new
