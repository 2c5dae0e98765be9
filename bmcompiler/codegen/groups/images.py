"""Device runs that do the same for one image after the other, or a few: the groups of the first are those of each."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.codegen.groups.slices import Slices
from bmcompiler.ir import Operation
from bmcompiler.ir.keys import IMAGE

Group = tuple[list[Operation], Slices]


def images_of(ops: Sequence[Operation]) -> list[list[Operation]]:
    """The ops of each image, in order; none where the ops of two images are not alike, or all are of one."""
    found: dict[int, list[Operation]] = {}
    known = _known(ops)
    for op in ops:
        if op in known:
            found.setdefault(known[op], []).append(op)
    images = list(found.values())
    alike = all([_form(op) for op in image] == [_form(op) for op in images[0]] for image in images)
    return images if alike and len(images) > 1 else []


def _known(ops: Sequence[Operation]) -> dict[Operation, int]:
    """The image of each op that is of one: its own, or that of all that it reads."""
    known: dict[Operation, int] = {}
    for op in ops:
        read = {known.get(value.op) for value in op.operands if value.op is not None and value.op.operands}
        image = op.attributes.get(IMAGE, next(iter(read)) if len(read) == 1 else None)
        if image is not None:
            known[op] = image
    return known


def repeated(groups: Sequence[Group], images: Sequence[Sequence[Operation]]) -> list[Group]:
    """The groups of the first image, for each image."""
    position = {op: index for index, op in enumerate(images[0])}
    places = [([position[op] for op in ops], slices) for ops, slices in groups]
    return [([image[index] for index in indices], slices) for image in images for indices, slices in places]


def _form(op: Operation) -> tuple[object, ...]:
    return op.name, *(value.type for value in (*op.operands, *op.results))
