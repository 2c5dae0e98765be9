"""What users may write into the group attributes of saved IR."""

from __future__ import annotations

from typing import Any

import pytest

from bmcompiler.codegen.groups.stripes import annotation
from bmcompiler.errors import VerifyError
from bmcompiler.ir import Operation, TensorType
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.ops.builder import Builder


def relu(**attributes: Any) -> Operation:
    b = Builder.new("net")
    op = b.relu(b.input("x", TensorType((1, 2, 4, 4), "f32"))).op
    assert op is not None
    op.attributes.update({name: attributes[name] for name in attributes})
    return op


def test_groups_are_read_as_the_pass_writes_them() -> None:
    assert annotation(relu()) is None
    assert annotation(relu(**{GROUP: 3, SLICES: (1, 1, 4, 1)})) == (3, (1, 1, 4, 1))


@pytest.mark.parametrize(
    ("group", "slices"),
    [("x", [1, 1, 1, 1]), (0, [0]), (0, None), (None, [1, 1, 2, 1]), (0, [1, 1, 0, 1]), (True, [1] * 4), (0, 4)],
)
def test_what_is_no_group_is_refused_in_a_sentence(group: Any, slices: Any) -> None:
    given = {GROUP: group, SLICES: slices}
    with pytest.raises(VerifyError, match=r"must be a whole number and .* four positive ones"):
        annotation(relu(**{name: value for name, value in given.items() if value is not None}))
