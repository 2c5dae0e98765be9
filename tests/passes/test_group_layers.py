"""The pass group-layers: attributes that the text shows, choices that cost no more than simpler ones."""

from __future__ import annotations

from itertools import pairwise
from math import inf, prod

import numpy as np
import pytest
from fake_target import FakeTarget
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.chip import Dims, LaneChip
from bmcompiler.codegen.groups.choose import cheapest, greedy, total, ungrouped
from bmcompiler.codegen.groups.refine import Span, refined
from bmcompiler.codegen.groups.regions import LocalCopier, StridedCopy, whole_box, within
from bmcompiler.codegen.groups.segments import Kernels, Segments
from bmcompiler.codegen.groups.slices import Slices, slice_stripes
from bmcompiler.codegen.tiling import Box, Buffer, Contents, Tiler, TileWork
from bmcompiler.codegen.window import WindowAxis
from bmcompiler.errors import UsageError
from bmcompiler.ir import Module, Operation, TensorType, Value
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.ir.parser import parse_module
from bmcompiler.ir.printer import print_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.schedule.group_layers import GroupLayers
from bmcompiler.passmanager import PassContext, Pipeline
from bmcompiler.target import Target

CHIP = LaneChip("test", lanes=8, lmem_size=1 << 12, alignment=16)


class ByteCopier(LocalCopier):
    chip = CHIP

    def stored(self, value: Value, dims: Dims) -> tuple[Dims, int]:
        return dims, 1

    def emit(self, build: object, strided: StridedCopy, source: int, target: int) -> None:
        raise AssertionError

    def cycles(self, strided: StridedCopy) -> int:
        return 1


def extents(box: Box) -> Dims:
    n, c, h, w = (hi - lo for lo, hi in box)
    return n, c, h, w


def buffer(value: Value, box: Box) -> Buffer:
    n, c, h, w = value.shape
    dims = extents(box)
    contents = Contents(value, (n, c, h * w)) if dims == value.shape else Contents(value, value.shape, box)
    return Buffer(CHIP.lane_bytes(dims), "nchw", n * c * h * w, lambda build, address: None, contents=contents)


def part(op: Operation, box: Box) -> TileWork:
    """Windows of three rows for max_pool, element by element otherwise."""
    (result,) = op.results
    sources = []
    for value in op.operands:
        rows = box[2]
        if op.short_name == "max_pool":
            need = WindowAxis(value.shape[2], 3, op.attributes.get("strides", (1, 1))[0], 1).need(*rows)
            rows = need.lo, need.hi
        width = (0, value.shape[3])
        sources.append(buffer(value, (box[0], box[1], rows, width)))
    n, _, h, w = extents(box)
    return TileWork(tuple(sources), (buffer(result, box),), (), lambda *_: None, 4 * n * h * w)


def whole(op: Operation) -> TileWork | None:
    work = part(op, tuple((0, size) for size in op.results[0].shape))
    needed = sum(b.lane_bytes for b in (*work.inputs, *work.outputs))
    return work if needed <= CHIP.lmem_size else None


@st.composite
def nets(draw: st.DrawFn) -> Module:
    b = Builder.new("net")
    values = [b.input("x", TensorType((draw(st.sampled_from([1, 3])), 8, 48, draw(st.sampled_from([16, 40]))), "i8"))]
    for _ in range(draw(st.integers(2, 12))):
        x = values[-min(draw(st.integers(1, 3)), len(values))]
        alike = [value for value in values if value.shape == x.shape]
        kind = draw(st.sampled_from(["relu", "add", "pool", "pool", "stride"]))
        if kind == "relu":
            values.append(b.relu(x))
        elif kind == "add":
            values.append(b.max(x, alike[draw(st.integers(0, len(alike) - 1))]))
        else:
            step = 2 if kind == "stride" else 1
            values.append(b.max_pool(x, kernel=(3, 3), strides=(step, step), pads=(1, 1, 1, 1)))
    return b.outputs([values[-1]], ["y"])


@settings(max_examples=25, deadline=None)
@given(nets())
def test_the_best_way_costs_no_more_than_simpler_ones(module: Module) -> None:
    ops = list(module.main.ops)[:-1] if module.main.ops[-1].name == "func.return" else list(module.main.ops)
    returned = set(module.main.returned)
    kernels = Kernels(whole, part, lambda op: 20 * op.results[0].type.size, lambda op: True)
    segments = Segments(ops, kernels, returned.__contains__, Tiler(CHIP.lmem_size, CHIP.alignment), ByteCopier())
    costs = []
    for method in (cheapest, greedy, ungrouped):
        spans = method(segments)
        assert [start for start, _, _ in spans] == [0, *(end for _, end, _ in spans)][:-1]
        assert spans[-1][1] == len(segments.ops)
        costs.append(total(segments, spans))
    assert costs[0] <= min(costs) * (1 + 1e-9)
    assert costs[1] <= costs[2] * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=8, unique=True), st.integers(12, 20), st.integers(0, 99))
def test_groups_are_changed_only_where_that_is_cheaper(edges: list[int], count: int, seed: int) -> None:
    edges = sorted(edges)[: len(edges) // 2 * 2]
    spans = [(start, end, (1, 1, 2 + start % 2, 1)) for start, end in zip(edges[::2], edges[1::2])]
    asked = []

    def cost(spans: list[Span], most: float = inf) -> float:
        asked.append(spans)
        assert all(start < end <= count for start, end, _ in spans)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        return float(
            np.random.default_rng([seed, *(n for start, end, s in spans for n in (start, end, s[2]))]).random()
        )

    least = cost(spans)
    found, cycles = refined(spans, least, cost, count)
    assert cycles == cost(found) == min(map(cost, list(asked)))
    assert len(asked) < 5100 // count


@pytest.mark.parametrize("count", [10, 99])
def test_as_many_changes_are_tried_as_a_run_of_so_many_ops_has_time_for(count: int) -> None:
    asked = []

    def cost(spans: list[Span], most: float = inf) -> float:
        """Each is better than the one before, and none is worse."""
        asked.append(spans)
        return float(-len(asked)) if spans else inf

    refined([(0, 2, (1, 1, 2, 1)), (2, 5, (1, 1, 4, 1))], 0.0, cost, count)
    assert len(asked) == 2500 // count


def test_groups_are_joined_taken_apart_and_moved() -> None:
    two, four = (1, 1, 2, 1), (1, 1, 4, 1)
    wanted = [(1, 6, four), (8, 9, two)]

    def cost(spans: list[Span], most: float = inf) -> float:
        """How many ops are not computed as they should be."""
        ops = [{op: slices for start, end, slices in each for op in range(start, end)} for each in (spans, wanted)]
        return sum(ops[0].get(op) != ops[1].get(op) for op in range(10)) + 0.1 * len(spans)

    begun = [(0, 2, two), (2, 5, four), (6, 7, four), (8, 9, two)]
    assert refined(begun, cost(begun), cost, 10)[0] == wanted


@settings(max_examples=40, deadline=None)
@given(nets(), st.tuples(st.sampled_from([1, 2]), st.just(1), st.integers(1, 6), st.just(1)))
def test_slices_make_what_their_readers_need_and_results_as_a_whole(module: Module, slices: Slices) -> None:
    ops = [op for op in module.main.ops if op.name != "func.return"]
    returned = set(module.main.returned)
    found = slice_stripes(ops, slices, part, returned.__contains__, ByteCopier().grain)
    assert found is not None
    assert len(found) == prod(slices)
    covered = {value: np.zeros(value.shape, bool) for value in returned}
    for stripes in found:
        made: dict[Value, Box] = {}
        for stripe in stripes:
            assert stripe.work is not None
            for source in stripe.work.inputs:
                contents = source.contents
                if contents is not None and contents.value in {result for op in ops for result in op.results}:
                    assert within(contents.box or whole_box(contents.value.shape), made[contents.value])
            (result,) = stripe.op.results
            assert stripe.box is not None
            made[result] = stripe.box
            if result in covered:
                covered[result][tuple(slice(lo, hi) for lo, hi in stripe.box)] = True
    assert all(mask.all() for mask in covered.values())


def test_groups_with_an_op_that_cannot_be_cut_are_not_cut() -> None:
    module = chain()
    ops = [op for op in module.main.ops if op.name != "func.return"]

    def refuses(op: Operation, box: Box) -> TileWork | None:
        return None if op is ops[1] else part(op, box)

    assert (
        slice_stripes(ops, (1, 1, 2, 1), refuses, lambda value: value in module.main.returned, ByteCopier().grain)
        is None
    )


class Fixed(FakeTarget):
    """A target whose groups are known."""

    def __init__(self, groups: list[tuple[list[Operation], tuple[int, int, int, int]]]) -> None:
        self.groups, self.levels = groups, list[int]()

    def layer_groups(self, function: object, level: int) -> list[tuple[list[Operation], tuple[int, int, int, int]]]:
        self.levels.append(level)
        return self.groups if level else []


def chain() -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4, 8, 8), "f32"))
    return b.outputs([b.relu(b.sigmoid(b.relu(x)))], ["y"])


def run(module: Module, target: object, level: int = 2) -> bool:
    return GroupLayers(level).run(module, PassContext(target=target)).modified


def test_groups_are_attributes_that_the_text_keeps() -> None:
    module = chain()
    first, second, third, *_ = module.main.ops
    target = Fixed([([first, second], (1, 1, 4, 1)), ([third], (1, 2, 1, 1))])
    assert run(module, target)
    assert [op.attributes.get(GROUP) for op in (first, second, third)] == [0, 0, 1]
    text = print_module(module)
    assert "codegen.slices = [1, 1, 4, 1]" in text
    again = parse_module(text)
    assert [tuple(op.attributes[SLICES]) for op in again.main.ops[:3]] == [(1, 1, 4, 1), (1, 1, 4, 1), (1, 2, 1, 1)]
    assert not run(module, target)


def test_level_0_takes_groups_back() -> None:
    module = chain()
    target = Fixed([(list(module.main.ops[:2]), (1, 1, 4, 1))])
    assert run(module, target)
    assert run(module, target, 0)
    assert not any(GROUP in op.attributes or SLICES in op.attributes for op in module.main.ops)
    assert not run(module, target, 0)
    assert target.levels == [2, 0, 0]


@pytest.mark.parametrize("target", [None, FakeTarget()])
def test_targets_without_groups_have_none(target: Target | None) -> None:
    assert not run(chain(), target)


def test_levels_are_named_in_pipelines() -> None:
    assert str(Pipeline.parse("group-layers{level=1},group-layers")) == "group-layers{level=1},group-layers"
    with pytest.raises(UsageError, match="level of group-layers is 0, 1 or 2, not 3"):
        Pipeline.parse("group-layers{level=3}")
