"""Parts of a batch, in which a net may be computed one after the other, and what they take."""

from __future__ import annotations

from collections.abc import Iterator

from bmcompiler.ir import Function
from bmcompiler.quant.rebatch import rebatch
from bmcompiler.target import Target


def has_images(function: Function) -> bool:
    """Whether every input has several."""
    return bool(function.arguments) and all(value.shape and value.shape[0] > 1 for value in function.arguments)


def parts_of(function: Function, target: Target, level: int) -> Iterator[tuple[float, Function]]:
    """Forms of a function for parts of its batch, largest first, with the cycles of all parts in groups of a level.

    Parts are equal, whole words of images, and have their sums in the order of the whole. Nothing where a form cannot
    be told from shapes and axes, or where an output depends on no image.
    """
    images = function.arguments[0].shape[0]
    for size in _sizes(function, target):
        one = rebatch(function, size, folded=True, tokens=True)
        if one is None or _has_constant_output(one):
            return
        cycles = target.planned_cycles(one, level) if _adds_alike(target, function, one) else None
        if cycles is not None:
            yield cycles * images / size, one


def single_image(function: Function, target: Target) -> Function | None:
    """The form of a function for one image; None where all images fill a word, or more than one."""
    if function.arguments[0].shape[0] >= _word(function, target):
        return None
    one = rebatch(function, 1, folded=True, tokens=True)
    return None if one is None or _has_constant_output(one) or not _adds_alike(target, function, one) else one


def least_cycles(function: Function, target: Target, level: int) -> float | None:
    """What a function takes at once or in parts of its batch, whichever is less; None where the target does not say."""
    whole = target.planned_cycles(function, level)
    if whole is None or not has_images(function):
        return whole
    return min((whole, *(cycles for cycles, _ in parts_of(function, target, level))))


def _sizes(function: Function, target: Target) -> list[int]:
    """Numbers of images that parts may have, most first: words of them in every type."""
    images, word = function.arguments[0].shape[0], _word(function, target)
    return [images // parts for parts in range(2, images + 1) if images % parts == 0 and images // parts % word == 0]


def _word(function: Function, target: Target) -> int:
    """Images that share a word in the type that packs most."""
    values = (*function.arguments, *(value for op in function.ops if op.operands for value in op.results))
    return max(target.image_slots(value.dtype) for value in values)


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
