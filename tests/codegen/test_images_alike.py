"""Which ops are those of one image: alike for all images, in order."""

from __future__ import annotations

import pytest

from bmcompiler.codegen.groups.images import images_of, repeated
from bmcompiler.ir import Operation, TensorType
from bmcompiler.ir.keys import IMAGE
from bmcompiler.ops.builder import Builder


def chains(*kinds: tuple[str, ...]) -> list[Operation]:
    """A chain of ops for each image, one op of each image in turn, behind an op of none."""
    b = Builder.new("net")
    first = b.neg(b.input("x", TensorType((1, 4), "f32")))
    values, found = [first] * len(kinds), [first.op]
    for step in range(max(map(len, kinds))):
        for image, names in enumerate(kinds):
            if step < len(names):
                values[image] = getattr(b, names[step])(values[image])
                values[image].op.attributes[IMAGE] = image
                found.append(values[image].op)
    return found


@pytest.mark.parametrize("count", [2, 3])
def test_images_that_are_alike(count: int) -> None:
    ops = chains(*[("relu", "sqrt", "exp")] * count)
    images = images_of(ops)
    assert images == [ops[1 + image :: count] for image in range(count)]
    groups = repeated([(images[0][:2], "a"), (images[0][2:], "b")], images)  # type: ignore[list-item]
    assert groups == [part for image in images for part in ((image[:2], "a"), (image[2:], "b"))]


def test_what_a_pass_puts_behind_an_image_is_of_it() -> None:
    ops = chains(*[("relu", "sqrt", "exp")] * 2)
    for op in ops[3:5]:
        del op.attributes[IMAGE]
    assert images_of(ops) == [ops[1::2], ops[2::2]]


@pytest.mark.parametrize(
    "kinds", [[("relu", "sqrt")], [("relu", "sqrt"), ("sqrt", "relu")], [("relu",), ("relu", "exp")]]
)
def test_others_have_no_images(kinds: list[tuple[str, ...]]) -> None:
    assert images_of(chains(*kinds)) == []
