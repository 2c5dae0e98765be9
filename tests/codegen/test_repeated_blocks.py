"""Blocks that are equal cost what they cost, and are looked at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bmcompiler.codegen.groups.repeats import Repeats
from bmcompiler.codegen.groups.segments import Kernels, Segments
from bmcompiler.codegen.tiling import Box, Tiler, TileWork
from bmcompiler.ir import Module, Operation, TensorType
from bmcompiler.ops.builder import Builder

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "passes"))
from test_group_layers import CHIP, ByteCopier, part, whole

BLOCKS, ODD = 28, 1


def blocks() -> Module:
    """Sums of maps that fill local memory; one block has a function more than the others."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 8, 36, 36), "f32"))
    for number in range(BLOCKS):
        inner = b.relu(b.max_pool(x, kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1)))
        x = b.add(b.sigmoid(inner) if number == ODD else inner, x)
    return b.outputs([x], ["y"])


def segments(module: Module, part_of: Callable[[Operation, Box], TileWork | None]) -> Segments:
    ops = [op for op in module.main.ops if op.name != "func.return"]
    kernels = Kernels(whole, part_of, lambda op: 20 * op.results[0].type.size, lambda op: True)
    tiler = Tiler(CHIP.lmem_size, CHIP.alignment)
    return Segments(ops, kernels, set(module.main.returned).__contains__, tiler, ByteCopier())


def test_equal_blocks_are_planned_once_and_as_if_each_were_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    module, asked = blocks(), list[Operation]()

    def counted(op: Operation, box: Box) -> TileWork | None:
        asked.append(op)
        return part(op, box)

    once = segments(module, counted)
    ends = range(1, len(once.ops) + 1)
    found = [once.ending_at(end) for end in ends]
    few = len(asked)
    asked.clear()
    monkeypatch.setattr(Repeats, "key", lambda *_: object())
    each = segments(module, counted)
    assert found == [each.ending_at(end) for end in ends]
    assert sum(map(len, found)) > len(ends)
    assert few < 0.9 * len(asked)


@pytest.mark.parametrize("picture", [True, False])
def test_blocks_that_read_a_picture_have_a_plan_of_their_own(picture: bool) -> None:
    """Their tiles are others than those of equal ops on other bytes."""
    b = Builder.new("net")
    given = [b.input(name, TensorType((1, 8, 36, 36), dtype)) for name, dtype in (("p", "u8"), ("x", "f32"))]
    tops = []
    for value in given if picture else given[1:] * 2:
        x = value if value.dtype == "u8" else b.cast(b.sigmoid(value), dtype="u8")
        for _ in range(2):
            x = b.max_pool(x, kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))
        tops.append(x)
    found = segments(b.outputs(tops, ["a", "b"]), part)
    first, second = (found.made_at[top] for top in tops)
    keys = [found._repeats.key(at, at + 1, ()) for at in (first, second)]
    assert (keys[0] == keys[1]) is not picture
