"""Many boxes asked at once say what each says alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.codegen.groups.nested import NestedBoxes
from bmcompiler.codegen.groups.regions import inside
from bmcompiler.codegen.tiling import Box, Contents
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder

VALUE = Builder.new("net").input("x", TensorType((2, 3, 4, 5)))
LAYOUTS = ((2, 3, 4, 5), (6, 4, 1, 5))


@st.composite
def _boxes(draw: st.DrawFn, layout: tuple[int, ...]) -> Box:
    return tuple(
        (begin, draw(st.integers(begin + 1, size))) for size in layout for begin in (draw(st.integers(0, size - 1)),)
    )


@st.composite
def contents(draw: st.DrawFn) -> Contents:
    """A whole or a box of one value, in one of two layouts."""
    layout = draw(st.sampled_from(LAYOUTS))
    return Contents(VALUE, layout, draw(st.none() | _boxes(layout)))


@given(st.lists(st.none() | contents(), max_size=12), contents())
def test_they_lie_within_and_around_what_they_do_one_by_one(many: list[Contents | None], one: Contents) -> None:
    boxes = NestedBoxes(many)
    boxed = [(place, each) for place, each in enumerate(many) if each is not None and each.box is not None]
    if one.box is not None:
        assert boxes.within(one) == [place for place, each in boxed if inside(each, one)]
        assert boxes.around(one) == [place for place, each in boxed if inside(one, each)]
    else:
        assert boxes.within(one) == boxes.around(one) == []
    assert boxes.wholes == [place for place, each in enumerate(many) if each is not None and each.box is None]
