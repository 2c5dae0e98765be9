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
