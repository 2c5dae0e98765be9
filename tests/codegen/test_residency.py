"""What stays in local memory: plans of made-up works hold what they promise, shown by playing them step by step."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any
from unittest.mock import Mock

from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.codegen.groups.ahead import settle
from bmcompiler.codegen.groups.emission import Part, emit_steps
from bmcompiler.codegen.groups.issue import issue_best, issue_between, issue_late, issue_loads
from bmcompiler.codegen.groups.steps import Copy
from bmcompiler.codegen.groups.timeline import Clock, Timeline, least_cost, loading_cycles
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.residency import AHEAD, LiveRange, Residency, Step, plan_residency, whole_stripes
from bmcompiler.codegen.schedule import Moved
from bmcompiler.codegen.tiling import Buffer, Contents, Tiler, TileWork
from bmcompiler.ir import Module, Operation, TensorType, Value
from bmcompiler.ops.builder import Builder

ALIGN = 16
ROOM = 512
Run = tuple[Module, dict[Operation, "TileWork | None"], set[Operation], set[Value]]


class Chip:
    """Local memory as address -> (bytes, content), and the values in global memory; checks every access."""

    def __init__(self, inputs: set[Value]) -> None:
        self.local: dict[int, tuple[int, Any]] = {}
        self.stored = set(inputs)
        self.loaded: list[Any] = []

    def put(self, address: int, size: int, content: Any) -> None:
        assert 0 <= address <= address + size <= ROOM
        self.local = {a: (n, c) for a, (n, c) in self.local.items() if a + n <= address or address + size <= a}
        self.local[address] = size, content

    def read(self, address: int, content: Any) -> None:
        assert self.local[address][1] == content

    def load(self, address: int, size: int, content: Any, value: Value | None) -> None:
        assert value is None or value in self.stored
        self.loaded.append(content)
        self.put(address, size, content)


def work(op: Operation, sizes: list[int], layouts: list[int], weights: int, scratch: list[int]) -> TileWork:
    """An op whose operands and result take `sizes` bytes in `layouts` (0: one that no op shares)."""
    values = [root_of(value) for value in (*op.operands, *op.results)]
    contents = [
        Contents(value, layout) if layout else (value, op.label, i)
        for i, (value, layout) in enumerate(zip(values, layouts))
    ]
    if weights:
        contents.insert(0, f"weights of {op.label}")
        sizes, values = [weights, *sizes], [None, *values]  # type: ignore[list-item]

    def load(number: int) -> Buffer:
        size, content, value = sizes[number], contents[number], values[number]

        def transfer(chip: Chip, address: int) -> None:
            chip.load(address, size, content, value)

        return Buffer(size, "", size, transfer, value is None, content if isinstance(content, Contents) else None)

    def store(chip: Chip, address: int) -> None:
        chip.read(address, contents[-1])
        chip.stored.add(values[-1])

    def compute(chip: Chip, ins: list[int], outs: list[int], free: list[int]) -> None:
        for address, content in zip(ins, contents):
            chip.read(address, content)
        for address, size in zip(free, scratch):
            chip.put(address, size, "scratch")
        chip.put(outs[0], sizes[-1], contents[-1])
        for address, content in zip(ins, contents):
            chip.read(address, content)  # neither result nor scratch lie upon what is read

    found_contents = contents[-1] if isinstance(contents[-1], Contents) else None
    result = Buffer(sizes[-1], "", sizes[-1], store, contents=found_contents)
    return TileWork(tuple(map(load, range(len(sizes) - 1))), (result,), tuple(scratch), compute, 1)


@st.composite
def runs(draw: st.DrawFn, plain: bool = False) -> Run:
    """A random net with one or two operands per op, through views too; a work per op, and what is read elsewhere.

    `plain`: every op has a work, all in one layout.
    """
    b = Builder.new("net")
    values = [b.input(f"x{i}", TensorType((1, 4), "f32")) for i in range(2)]
    bytes_of = {value: draw(st.integers(1, 160)) for value in values}
    works: dict[Operation, TileWork | None] = {}
    blockers: set[Operation] = set()
    recent = st.integers(1, 5)
    for _ in range(draw(st.integers(1, 14))):
        x, y = (values[-min(draw(recent), len(values))] for _ in range(2))
        if draw(st.integers(0, 5)) == 0:
            x = b.reshape(b.reshape(x, shape=(4, 1)), shape=(1, 4))
        made = b.add(x, y) if draw(st.booleans()) else b.relu(x)
        op = made.op
        assert op is not None
        values.append(made)
        bytes_of[made] = draw(st.integers(1, 160))
        kind = "work" if plain else draw(st.sampled_from(["work"] * 6 + ["blocker", "copy", "copy with work"]))
        works[op] = None
        if "work" in kind:
            sizes = [bytes_of[root_of(value)] for value in (*op.operands, *op.results)]
            layouts = [1 if plain else draw(st.sampled_from([1, 1, 1, 1, 2, 0])) for _ in sizes]
            weights, scratch = draw(st.integers(0, 100)), draw(st.lists(st.integers(1, 60), max_size=2))
            works[op] = work(op, sizes, layouts, weights, scratch)
        if "copy" not in kind:
            blockers.add(op)
    returned = [values[-1], *draw(st.lists(st.sampled_from(values), max_size=2))]
    module = b.outputs(returned, [f"y{i}" for i in range(len(returned))])
    return module, works, blockers, {root_of(value) for value in returned}


def plan(run: Run) -> Residency:
    _, works, blockers, returned = run
    tiler = Tiler(ROOM, ALIGN)
    stripes = whole_stripes(list(works), works.__getitem__)
    found = plan_residency(stripes, blockers.__contains__, returned.__contains__, tiler)
    assert found is not None
    return found


def live_ranges(steps: list[Step]) -> list[LiveRange]:
    bindings = [binding.live_range for step in steps for binding in (*step.inputs, *step.outputs)]
    found = {id(life): life for life in (*bindings, *(life for step in steps for life in step.scratch))}
    return list(found.values())


def check_apart(found: Residency) -> None:
    for a, b in combinations(live_ranges(found.steps), 2):
        apart_in_time = a.last < b.first or b.last < a.first
        assert apart_in_time or a.address + a.lane_bytes <= b.address or b.address + b.lane_bytes <= a.address
    for life in live_ranges(found.steps):
        assert life.first <= life.last
        assert life.address % ALIGN == 0
        assert 0 <= life.address <= life.address + life.lane_bytes <= ROOM


def play(run: Run, found: Residency) -> tuple[Chip, Moved]:
    """Carry the plan out in the order of `Program`."""
    module, _, blockers, _ = run
    chip, total = Chip(set(module.main.arguments)), Moved()

    def alone(step: Step, moved: Moved) -> None:
        assert {root_of(value) for value in step.op.operands} <= chip.stored
        chip.stored.update(step.op.results)
        if step.op in blockers:
            chip.local.clear()

    def part(number: int, emit: Part) -> None:
        emit(found.steps[number], total)

    emit_steps(chip, found.steps, None, alone, part)
    return chip, total


@settings(max_examples=150, deadline=None)
@given(runs())
def test_what_an_op_reads_is_there_and_nothing_else_is_stored(run: Run) -> None:
    _, works, _, returned = run
    found = plan(run)
    assert [step.op for step in found.steps] == list(works)
    chip, total = play(run, found)
    made = {value for op in works for value in op.results}
    assert returned & made <= chip.stored
    assert found.local_only == made - chip.stored
    assert total.loaded == sum(
        binding.buffer.nbytes for step in found.steps for binding in step.inputs if binding.moves
    )


@settings(max_examples=150, deadline=None)
@given(runs())
def test_stays_of_the_same_time_lie_apart_within_local_memory(run: Run) -> None:
    check_apart(plan(run))


@settings(max_examples=100, deadline=None)
@given(runs(plain=True), st.integers(0, 2000))
def test_where_all_fits_inputs_weights_and_results_move_alone(run: Run, more: int) -> None:
    """Room for all values and what the largest op needs beside them; weights are loaded once, before their op."""
    _, works, blockers, returned = run
    buffers = [
        buffer for made in works.values() if made is not None for buffer in (*made.inputs, *made.outputs) if buffer
    ]
    scratch = [size for made in works.values() if made is not None for size in made.scratch]
    room = sum(-(-size // ALIGN) * ALIGN for size in (*(buffer.lane_bytes for buffer in buffers), *scratch))
    tiler = Tiler(2 * room + more, ALIGN)
    stripes = whole_stripes(list(works), works.__getitem__)
    found = plan_residency(stripes, blockers.__contains__, returned.__contains__, tiler)
    assert found is not None
    moved = [binding for step in found.steps for binding in step.inputs if binding.moves]
    values = [binding.buffer.contents.value for binding in moved if binding.buffer.contents is not None]
    assert len(values) == len(set(values)) and all(value.op is None for value in values)
    read = {root_of(value) for op in works for value in op.operands}
    assert found.local_only >= {value for op in works for value in op.results if value in read} - returned


@settings(max_examples=150, deadline=None)
@given(runs())
def test_loads_moved_ahead_find_free_places_and_cost_nothing(run: Run) -> None:
    """Whichever plan stays; the times that are returned are its own."""
    tiler, walked, found, blockers = Tiler(ROOM, ALIGN), plan(run), plan(run), run[2]
    before, after = (Clock(one, lambda op: 40, tiler, None) for one in (walked, found))
    issue_loads(walked, before, tiler)
    times = settle(found, after, blockers.__contains__, tiler)
    assert times.end <= before().end
    assert times == after()
    check_apart(found)
    play(run, found)


def test_weights_that_found_no_room_in_one_piece_come_earlier() -> None:
    """A tenth is gained."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4), "f32"))
    works: dict[Operation, TileWork | None] = {}
    for weights in (128, 128, 224, 64, 96, 160, 224, 224, 224, 96):
        x = b.relu(x)
        op = x.op
        assert op is not None
        works[op] = replace(work(op, [16, 16], [1, 1], weights, []), cycles=30)
    run = b.outputs([x], ["y"]), works, set(works), {x}
    tiler = Tiler(ROOM, ALIGN, bytes_per_cycle=4, tile_cycles=0)
    found = plan(run)
    times = Clock(found, lambda op: 0, tiler, None)
    issue_loads(found, times, tiler)
    before = times().end
    assert settle(found, times, set(works).__contains__, tiler).end < 0.9 * before
    play(run, found)


@settings(max_examples=100, deadline=None)
@given(runs(), st.integers(0, 50))
def test_late_loads_come_in_time_and_hold_nothing_up(run: Run, cycles_alone: int) -> None:
    found, tiler = plan(run), Tiler(ROOM, ALIGN)

    def times() -> Timeline:
        return Clock(found, lambda op: cycles_alone, tiler, None)()

    early, before = play(run, found), times()
    issue_late(found, before, tiler)
    late, after = play(run, found), times()
    assert late[1] == early[1]
    assert late[0].stored == early[0].stored
    for number, step in enumerate(found.steps):
        assert all(binding.live_range.first <= binding.issue <= number for binding in step.inputs if binding.moves)
    assert after.moved == before.moved


@settings(max_examples=100, deadline=None)
@given(runs(), st.integers(0, 50))
def test_loads_between_come_in_time_and_are_taken_where_they_end_first(run: Run, cycles_alone: int) -> None:
    found, tiler = plan(run), Tiler(ROOM, ALIGN)

    def times() -> Timeline:
        return Clock(found, lambda op: cycles_alone, tiler, None)()

    early, before, ends = play(run, found), times(), []
    for order in (issue_late, issue_between):
        order(found, before, tiler)
        assert least_cost(found, lambda op: cycles_alone, tiler) <= times().cost(tiler) * (1 + 1e-9)
        assert play(run, found)[1] == early[1]
        for number, step in enumerate(found.steps):
            assert all(binding.live_range.first <= binding.issue <= number for binding in step.inputs if binding.moves)
        ends.append(times().end)
    for step in found.steps:
        for binding in step.inputs:
            binding.issue = binding.live_range.first
    issue_loads(found, times, tiler)
    assert times().end == min(ends)


@settings(max_examples=50, deadline=None)
@given(runs())
def test_no_other_step_is_clearly_better_for_a_load_alone(run: Run) -> None:
    found, tiler = plan(run), Tiler(ROOM, ALIGN)
    times = Clock(found, lambda op: 40, tiler, None)
    issue_loads(found, times, tiler)
    before, early = times().end, play(run, found)
    issue_best(found, times, tiler)
    assert times().end <= before and play(run, found)[1] == early[1]
    for number, step in enumerate(found.steps):
        for binding in filter(lambda binding: binding.moves, step.inputs):
            least, chosen = times().end, binding.issue
            for issue in range(binding.live_range.first, number + 1):
                binding.issue = issue
                assert times().end >= 0.99 * least or loading_cycles(binding, tiler) < least / 128
            binding.issue = chosen


@settings(max_examples=50, deadline=None)
@given(runs())
def test_each_step_is_a_tile_and_computes_for_its_cycles(run: Run) -> None:
    found = plan(run)
    times = Clock(found, lambda op: 7, Tiler(ROOM, ALIGN), None)()
    took = [end - start for start, end in zip(times.starts, times.ends, strict=True)]
    assert took == [7 if step.work is None else step.work.cycles for step in found.steps]
    assert play(run, found)[1].tiles == sum(step.work is not None for step in found.steps)


@settings(max_examples=50, deadline=None)
@given(runs())
def test_nothing_stays_across_an_op_that_takes_all_local_memory(run: Run) -> None:
    found = plan(run)
    taken = [i for i, step in enumerate(found.steps) if step.work is None and step.op in run[2]]
    assert all(index < life.first or life.last < index for life in live_ranges(found.steps) for index in taken)


@settings(max_examples=50, deadline=None)
@given(runs())
def test_plans_are_deterministic(run: Run) -> None:
    first, second = plan(run), plan(run)
    assert live_ranges(first.steps) == live_ranges(second.steps)
    assert first.local_only == second.local_only


def test_a_load_is_issued_as_late_as_it_may_be() -> None:
    b, values, run = chain(*[16] * 8, weights=16)
    tiler = Tiler(ROOM, ALIGN, bytes_per_cycle=16, tile_cycles=0)  # a load takes as long as an op
    found = plan(finished(b, run, values[-1]))
    before = Clock(found, lambda op: 0, tiler, None)()
    issue_late(found, before, tiler)
    after = Clock(found, lambda op: 0, tiler, None)()
    issued = [[binding.issue for binding in step.inputs if binding.moves] for step in found.steps]
    assert issued == [[0, 0], *([index] for index in range(6))]
    assert after.end == before.end


def test_copies_inside_local_memory_take_turns_with_loads() -> None:
    """A step that begins with a copy waits for what is loaded, and loads of later steps wait for the copy."""
    b, values, run = chain(16, 16, 16, weights=16)
    tiler = Tiler(ROOM, ALIGN, bytes_per_cycle=1, tile_cycles=0)
    found = plan(finished(b, run, values[-1]))
    loading = [binding for step in found.steps for binding in step.inputs if binding.moves]
    before = Clock(found, lambda op: 0, tiler, None)()
    first = found.steps[0]
    assert first.work is not None
    first.work = replace(first.work, transfers=first.work.cycles)
    for binding in loading:
        binding.issue = 0
    after = Clock(found, lambda op: 0, tiler, None)()
    assert after.starts[0] == sum(binding.buffer.nbytes for binding in loading) > before.starts[0]
    assert after.moving == [(first.work.cycles, 0), (0, 0)]


def test_copies_by_the_engine_that_moves_data_take_turns_with_loads() -> None:
    """Before a step they wait for what is loaded; behind one, what is loaded next waits for them."""
    b, values, run = chain(16, 16, 16, weights=16)
    tiler = Tiler(ROOM, ALIGN, bytes_per_cycle=1, tile_cycles=0)
    found = plan(finished(b, run, values[-1]))
    for step in found.steps:
        for binding in step.inputs:
            binding.issue = min(binding.issue, 1)
    plain = Clock(found, lambda op: 0, tiler, None)()
    area, copier = found.live_ranges[0], Mock(cycles=lambda copied: 7, transfers=lambda copied: 5)
    copy = Copy(Mock(), area, area)
    found.steps[1].before.append(copy)
    before = Clock(found, lambda op: 0, tiler, copier)()
    assert before.took[1] == plain.took[1] + 7 and before.moving[1] == (5, 0)
    assert before.starts[1] >= plain.starts[1]
    found.steps[1].before.clear()
    found.steps[1].after.append(copy)
    after = Clock(found, lambda op: 0, tiler, copier)()
    assert after.moving[1] == (0, 5) and after.ends[1] >= after.starts[1] + after.took[1]


def test_a_result_that_the_next_step_reads_is_stored_before_later_loads() -> None:
    b, values, run = chain(16, 16, 16, 16, weights=16)
    ops = list(run[1])
    run[1][ops[1]] = work(ops[1], [16, 16], [2, 2], 16, [])  # reads the first result in another layout
    tiler = Tiler(ROOM, ALIGN, bytes_per_cycle=1, tile_cycles=0)
    found = plan(finished(b, run, values[-1]))
    issue_loads(found, Clock(found, lambda op: 0, tiler, None), tiler)
    issued = [[binding.issue for binding in step.inputs if binding.buffer.coefficient] for step in found.steps]
    assert issued[0] == [0]
    assert min(issued[2]) > 0


# -- single nets -------------------------------------------------------------------------------------------------------
def chain(*sizes: int, weights: int = 0) -> tuple[Builder, list[Value], Run]:
    """relu after relu; `sizes` in bytes, first that of the input."""
    b = Builder.new("net")
    values = [b.input("x", TensorType((1, 4), "f32"))]
    works: dict[Operation, TileWork | None] = {}
    for a, size in pairwise(sizes):
        values.append(b.relu(values[-1]))
        op = values[-1].op
        assert op is not None
        works[op] = work(op, [a, size], [1, 1], weights, [])
    return b, values, (Module(), works, set(works), set())


def finished(b: Builder, run: Run, *returned: Value) -> Run:
    names = [f"y{i}" for i in range(len(returned))]
    return b.outputs(list(returned), names), run[1], run[2], {root_of(value) for value in returned}


def joined(b: Builder, run: Run, x: Value, y: Value, sizes: list[int], layouts: list[int]) -> Value:
    total = b.add(x, y)
    assert total.op is not None
    run[1][total.op] = work(total.op, sizes, layouts, 0, [])
    run[2].add(total.op)
    return total


def test_a_residual_net_moves_its_input_and_output_alone() -> None:
    b, values, run = chain(64, 64, 64, weights=32)
    total = joined(b, run, values[0], values[-1], [64] * 3, [1] * 3)
    run = finished(b, run, total)
    found = plan(run)
    _, moved = play(run, found)
    assert (moved.loaded, moved.weights, moved.stored) == (64 + 2 * 32, 2 * 32, 64)
    assert found.local_only == set(values[1:])


def test_a_value_that_an_op_reads_twice_is_loaded_once() -> None:
    b, values, run = chain(64)
    total = joined(b, run, values[0], values[0], [64] * 3, [1] * 3)
    run = finished(b, run, total)
    assert play(run, plan(run))[1].loaded == 64


def test_a_value_wanted_in_another_layout_goes_through_global_memory() -> None:
    b, values, run = chain(64, 64)
    total = joined(b, run, values[1], values[1], [64] * 3, [1, 2, 1])
    run = finished(b, run, total)
    found = plan(run)
    assert play(run, found)[1].loaded == 64 + 64
    assert found.local_only == set()


def test_the_farthest_next_use_gives_way() -> None:
    b, values, run = chain(64, 160, 160, 160, 160)
    nearer = joined(b, run, values[2], values[4], [160, 160, 16], [1] * 3)
    last = joined(b, run, nearer, values[1], [16, 160, 16], [1] * 3)
    run = finished(b, run, last)
    found = plan(run)
    play(run, found)
    assert set(values[1:]) - found.local_only == {values[1]}


def test_of_equal_next_uses_the_larger_value_gives_way() -> None:
    b, values, run = chain(64, 160, 16, 240, 240)
    total = joined(b, run, values[1], values[2], [160, 16, 16], [1] * 3)
    last = joined(b, run, total, values[4], [16, 240, 240], [1] * 3)
    run = finished(b, run, last)
    found = plan(run)
    play(run, found)
    assert set(values[1:]) - found.local_only == {values[1]}


def test_weights_arrive_while_the_ops_before_compute() -> None:
    b, values, run = chain(*[16] * 8, weights=16)
    found = plan(finished(b, run, values[-1]))
    early = [index - binding.live_range.first for index, step in enumerate(found.steps) for binding in step.inputs[:1]]
    assert early == [min(index, AHEAD) for index in range(7)]
