"""Memory plan, partition and the text of CPU subnets."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations, pairwise, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bmcompiler.codegen.cpu_segment import bind_segment, decode_segment, encode_segment
from bmcompiler.codegen.memory import Lifetime, _Fit, first_fit, outermost, pack, parts_of_others, plan_memory, root_of
from bmcompiler.codegen.partition import partition
from bmcompiler.errors import BMError, FileFormatError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Function, Module, Operation, Quant, TensorType, Value
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.target import find_target

QUANT = Quant(1 / 64)


@st.composite
def functions(draw: st.DrawFn) -> Module:
    """Chains and trees of byte ops, with views, concats, splits, and outputs of all kinds."""
    b = Builder.new("net")
    values = [b.input(f"x{i}", TensorType((1, draw(st.integers(1, 300))), "i8", QUANT)) for i in range(2)]
    for _ in range(draw(st.integers(0, 15))):
        x = draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["relu", "view", "concat", "split", "cpu"]))
        if kind == "concat":
            values.append(b.concat(x, draw(st.sampled_from(values)), axis=1))
        elif kind == "split" and x.shape[1] > 1:
            values += b.split(x, axis=1, sizes=(1, x.shape[1] - 1))
        elif kind == "view":
            values.append(b.reshape(b.reshape(x, shape=x.shape[::-1]), shape=x.shape))
        elif kind == "cpu":
            values.append(b.adds_shift(x, value=3))
        else:
            values.append(b.relu(x))
    chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    return b.outputs(chosen, [f"y{i}" for i in range(len(chosen))])


@settings(max_examples=150, deadline=None)
@given(functions(), st.sampled_from([1, 64]), st.booleans())
def test_values_alive_together_never_share_memory(module: Module, align: int, borders: bool) -> None:
    function = module.main
    segments = partition(function, find_target("bm1880"))
    steps = [step for segment in segments for step in segment.steps()]
    hidden = {value for segment in segments for value in segment.hidden()}
    ops = (op for segment in segments if segment.device for op in segment.ops)
    hosts = parts_of_others(function, ops, borders=borders)
    plan = plan_memory(function, steps, align, hosts, hidden)
    spans = _spans(function, steps, {v for v in plan.offsets if v not in hosts}, hosts)
    for (a, (first_a, last_a)), (b, (first_b, last_b)) in combinations(spans.items(), 2):
        apart = last_a < first_b or last_b < first_a
        start_a, start_b = plan.offsets[a], plan.offsets[b]
        assert apart or start_a + a.type.nbytes <= start_b or start_b + b.type.nbytes <= start_a
    assert all(v in plan.offsets for op in (op for step in steps for op in step) for v in op.results if v not in hidden)
    assert plan.size >= plan.lower_bound
    assert plan.size >= max(offset + value.type.nbytes for value, offset in plan.offsets.items())
    for value, (host, offset) in hosts.items():
        assert plan.offsets[value] == plan.offsets[host] + offset
    if hosts.keys().isdisjoint(function.arguments):
        _check_border(function, plan.offsets, plan.outputs)


def test_outputs_that_make_an_input_longer_lie_behind_it() -> None:
    """A cache and its new row: nothing is copied, and what reads both reads one value."""
    b = Builder.new("net")
    past, x = (b.input(name, TensorType((1, rows, 8), "f32")) for name, rows in (("past", 6), ("x", 1)))
    row = b.relu(x)
    longer = b.concat(past, row, axis=1)
    function = b.outputs([row, b.neg(longer)], ["row", "y"]).main
    steps = [[op] for op in function.ops]
    hosts = parts_of_others(function, function.ops, borders=True)
    plan = plan_memory(function, steps, 64, hosts)
    assert hosts == {past: (longer, 0), row: (longer, past.type.nbytes)}
    assert plan.offsets[past] == 0 and plan.outputs[0] == plan.offsets[row] == past.type.nbytes
    assert plan.offsets[x] == longer.type.nbytes
    assert parts_of_others(function, function.ops) == {}
    cut = b.outputs([row, longer], ["row", "y"]).main  # an output has a place of its own
    assert parts_of_others(cut, cut.ops, borders=True) == {}


def _spans(
    function: Function, steps: list[list[Operation]], values: set[Value], hosts: dict[Value, tuple[Value, int]]
) -> dict[Value, tuple[int, int]]:
    """First and last step that touches each value; inputs and outputs are never reused."""
    fixed = {outermost(v, hosts)[0] for v in (*function.arguments, *map(root_of, function.returned))}
    spans = {value: (-1, len(steps)) for value in values if value in fixed}
    for position, step in enumerate(steps):
        for value in (v for op in step for v in (*op.operands, *op.results)):
            holder = root_of(value)
            while holder in hosts:
                holder = hosts[holder][0]
            if holder in values and holder not in fixed:
                spans[holder] = (spans.get(holder, (position, 0))[0], position)
    return spans


def _check_border(function: Function, offsets: dict[Value, int], outputs: list[int]) -> None:
    cursor = 0
    for argument in function.arguments:
        assert offsets[argument] == cursor
        cursor += argument.type.nbytes
    assert all(a + v.type.nbytes == b for a, b, v in zip(outputs, outputs[1:], function.returned))
    assert outputs[0] >= cursor


LIVES = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 20), st.integers(0, 6)), max_size=25)


@settings(max_examples=100, deadline=None)
@given(LIVES, st.sampled_from([1, 16]), st.sampled_from([0, 48]))
def test_packed_values_lie_apart_and_end_no_later_than_by_first_fit(
    facts: list[tuple[int, int, int]], align: int, base: int
) -> None:
    lives = [Lifetime(size, first, first + steps) for size, first, steps in facts]
    first_fit(lives, base, align)
    before = max((life.offset + life.nbytes for life in lives), default=base)
    pack(lives, base, align)
    assert max((life.offset + life.nbytes for life in lives), default=base) <= before
    assert all(life.offset >= base and (life.offset - base) % align == 0 for life in lives)
    for a, b in combinations(lives, 2):
        apart = a.last < b.first or b.last < a.first
        assert apart or a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
    again = [Lifetime(life.nbytes, life.first, life.last) for life in lives]
    pack(again, base, align)
    assert [life.offset for life in again] == [life.offset for life in lives]


@settings(max_examples=100, deadline=None)
@given(LIVES.filter(bool), st.randoms())
def test_one_turn_that_comes_sooner_moves_what_all_turns_in_that_order_move(
    facts: list[tuple[int, int, int]], random: Random
) -> None:
    fit = _Fit([Lifetime(size, first, first + steps) for size, first, steps in facts], 0, 16)
    order = random.sample(range(len(facts)), len(facts))
    at = random.randrange(len(order))
    turn = random.randint(0, at)
    sooner = [*order[:turn], order[at], *order[turn:at], *order[at + 1 :]]
    places = fit.places(sooner)
    assert fit.places_again(sooner, turn, fit.places(order), fit.end(places)) == places


def test_a_search_finds_orders_that_first_fit_does_not() -> None:
    """The largest value belongs above those alive with it, although it is the largest."""
    facts = [(5, 3, 5), (5, 0, 2), (4, 2, 3), (4, 5, 7), (2, 1, 4), (3, 4, 6)]
    least = max(sum(size for size, first, last in facts if first <= step <= last) for step in range(8))
    lives = [Lifetime(*fact) for fact in facts]
    first_fit(lives, 0, 1)
    assert max(life.offset + life.nbytes for life in lives) > least
    pack(lives, 0, 1)
    assert max(life.offset + life.nbytes for life in lives) == least


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=6))
@example([(2, 1, 0), (5, 1, 0), (6, 0, 0), (5, 0, 1)])
def test_a_search_finds_what_trying_all_orders_finds(facts: list[tuple[int, int, int]]) -> None:
    """Some order of placing each as low as possible needs the least room."""
    lives = [Lifetime(8 * size, first, first + more) for size, first, more in facts]
    least = min(map(_end_in_order, permutations(lives)))
    assert pack(lives, 0, 8, enough=least) == max(life.offset + life.nbytes for life in lives) == least


def _end_in_order(order: tuple[Lifetime, ...]) -> int:
    """The end of all, each as low as those before it let it be."""
    placed: list[tuple[int, Lifetime]] = []
    for life in order:
        offset = 0
        for start, other in sorted(placed, key=lambda entry: entry[0]):
            together = other.first <= life.last and life.first <= other.last
            if together and start < offset + life.nbytes and offset < start + other.nbytes:
                offset = start + other.nbytes
        placed.append((offset, life))
    return max(offset + life.nbytes for offset, life in placed)


def test_the_search_ends_with_what_is_enough() -> None:
    facts = [(5, 3, 5), (5, 0, 2), (4, 2, 3), (4, 5, 7), (2, 1, 4), (3, 4, 6)]
    by_first_fit, found = ([Lifetime(*fact) for fact in facts] for _ in range(2))
    first_fit(by_first_fit, 0, 1)
    end = max(life.offset + life.nbytes for life in by_first_fit)
    assert pack(found, 0, 1, enough=end) == end
    assert found == by_first_fit


@pytest.mark.parametrize("target", ["bm1880", "bm1684"])
def test_a_slice_that_is_a_run_of_bytes_is_a_view(target: str) -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((4, 6, 5), "i8", QUANT))
    rows = b.slice(b.maxs(x, value=1), starts=(1, 2, 0), ends=(2, 5, 5), steps=(1, 1, 1))
    columns = b.slice(b.maxs(x, value=2), starts=(0, 0, 1), ends=(4, 6, 3), steps=(1, 1, 1))
    backward = b.slice(b.maxs(x, value=3), starts=(3, 0, 0), ends=(-1, 6, 5), steps=(-1, 1, 1))
    module = b.outputs([b.mins(value, value=7) for value in (rows, columns, backward)], ["a", "b", "c"])
    hosts = parts_of_others(module.main, module.main.ops)
    assert list(hosts.values()) == [(root_of(rows.op.operands[0]), 30 + 10)]
    compiled = find_target(target).compile([module], 2)
    inputs = {"x": np.random.default_rng(0).integers(-128, 128, (4, 6, 5)).astype(np.int8)}
    found, expected = Session(compiled.model).run(inputs, raw=True), run_module(module, inputs)
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


@settings(max_examples=100, deadline=None)
@given(functions())
def test_segments_keep_the_order_of_producers_and_readers(module: Module) -> None:
    segments = partition(module.main, find_target("bm1880"))
    order = [op for segment in segments for op in segment.ops]
    position = {op: i for i, op in enumerate(order)}
    assert len(position) == len(order)
    for op in order:
        for value in op.operands:
            maker = root_of(value).op
            assert maker is None or position[maker] < position[op]
    for segment in segments:
        assert all((op.name == "tensorop.adds_shift") != segment.device for op in segment.ops)
        assert all(bool(reason) != segment.device for reason in segment.reasons)
    assert all(a.device != b.device for a, b in pairwise(segments))


def test_a_note_keeps_an_op_on_the_cpu() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 8), "i8", QUANT))
    y = b.relu(x)
    y.op.attributes[PLACE_CPU] = "for a test"
    b.outputs([b.relu(y)], ["y"])
    cpu, device = partition(b.function, find_target("bm1880"))
    assert (cpu.device, cpu.reasons, device.device) == (False, ["for a test"], True)


def test_independent_ops_join_earlier_runs() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 8), "i8", QUANT))
    on_cpu = [b.adds_shift(b.relu(x), value=i) for i in range(4)]
    b.outputs(on_cpu, [f"y{i}" for i in range(4)])
    assert [segment.device for segment in partition(b.function, find_target("bm1880"))] == [True, False]


# -- CPU subnets ---------------------------------------------------------------------------------------------------


def _softmax_text(place: int = 16) -> tuple[Module, bytes]:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4), "i8", QUANT))
    with b.at("prob"):
        scaled = b.mul(b.dequantize(x), b.weight(np.array([[1, 2, 3, 4]], np.float32), "w"))
        module = b.outputs([b.softmax(b.reshape(scaled, shape=(2, 2)), axis=1)], ["y"])
    (segment,) = partition(b.function, find_target("bm1880"))
    return module, encode_segment(segment, "cpu0", lambda value: 0 if value is x else place, lambda _: 4)


def _memories() -> tuple[np.ndarray, np.ndarray]:
    neuron, weight = np.zeros(64, np.uint8), np.zeros(20, np.uint8)
    weight[4:] = np.array([1, 2, 3, 4], np.float32).view(np.uint8)
    return neuron, weight


def test_a_bound_subnet_reads_and_writes_memory_in_every_run() -> None:
    module, text = _softmax_text()
    neuron, weight = _memories()
    run = bind_segment(text + bytes(7), neuron, weight)
    for values in ([1, -2, 3, 100], [-128, 127, 0, 5]):
        x = np.array([values], np.int8)
        neuron[:4] = x.view(np.uint8).reshape(-1)
        run()
        np.testing.assert_array_equal(neuron[16:32].view(np.float32), run_module(module, {"x": x})["y"].reshape(-1))
    assert "prob" in text.decode()
    assert len(decode_segment(text).main.ops) == 6


@pytest.mark.parametrize("place", [50, 1 << 40, -4])
def test_tensors_outside_memory_are_refused(place: int) -> None:
    with pytest.raises(FileFormatError, match="activation bytes"):
        bind_segment(_softmax_text(place)[1], *_memories())
    neuron, _ = _memories()
    with pytest.raises(FileFormatError, match="weight bytes"):
        bind_segment(_softmax_text()[1], neuron, np.zeros(19, np.uint8))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_text_is_refused_or_harmless(data: st.DataObject) -> None:
    text = bytearray(_softmax_text()[1])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    neuron, weight = _memories()
    with suppress(BMError):
        bind_segment(bytes(text), neuron, weight)()


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"builtin.module", b"not mlir at all"])
def test_text_that_is_no_function_is_refused(text: bytes) -> None:
    with pytest.raises(BMError):
        bind_segment(text, *_memories())


def test_a_subnet_needs_its_offsets() -> None:
    text = _softmax_text()[1].decode()
    for change in (("input_offsets", "other"), ("output_offsets = [16]", "output_offsets = [1, 2]")):
        assert change[0] in text
        with pytest.raises(FileFormatError, match="one offset per value"):
            decode_segment(text.replace(*change).encode())


def test_parts_of_a_view_are_runs_of_bytes_of_the_view() -> None:
    """A split along the last axis of a view of something flat: its parts are not in one piece."""
    b = Builder.new("net")
    x = b.input("x", TensorType((4, 2), "i8", QUANT))
    flat = b.concat(x, x, axis=0)
    left, right = b.split(b.reshape(flat, shape=(2, 4, 2)), axis=2, sizes=(1, 1))
    module = b.outputs([b.relu(left), b.relu(right)], ["left", "right"])
    assert left not in parts_of_others(module.main, module.main.ops)
