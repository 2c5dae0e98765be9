"""Tables of a program that lie side by side are loaded by one command."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684_nets import QUANT, Net, check
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.tables import TableSpace, joined
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.ir import TensorType, Value


def looked_up(net: Net, x: Value, count: int) -> Value:
    for _ in range(count):
        x = net.b.lut(x, net.b.weight(net.rng.permutation(256).astype(np.uint8).view(np.int8), "t"))
    return x


def test_tables_of_a_program_are_loaded_together() -> None:
    """Each load of its own would take longer to begin than a table takes to move."""
    net = Net(((1, 70, 3, 5),), 0, "i8")
    compiled = check(net.module([looked_up(net, net.inputs[0], 5)]))
    listing = TARGET.disassemble(compiled.model)
    assert (listing.count("lut.mul"), listing.count("s2s.copy")) == (5, 1)


def test_tables_that_do_not_fit_come_when_they_are_needed() -> None:
    net = Net(((4, 3, 2, 2),), 0, "i8")
    compiled = check(net.module([looked_up(net, net.inputs[0], 400)]))  # 1 KiB each, and a command moves 256 KiB
    assert 1 < TARGET.disassemble(compiled.model).count("s2s.copy") < 20


def test_serial_programs_load_each_table_where_it_is_used() -> None:
    net = Net(((1, 70, 3, 5),), 0, "i8")
    compiled = check(net.module([looked_up(net, net.inputs[0], 3)]), level=0)
    assert TARGET.disassemble(compiled.model).count("s2s.copy") == 3


@pytest.mark.parametrize("level", [0, 1, 2])
@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=2, max_size=3))
@settings(max_examples=20)
@example([[0, 1], [0]])
@example([[0], [0, 1]])
@example([[1], [0, 2], [0, 1, 2]])
def test_each_subnet_finds_its_own_tables(level: int, drawn: list[list[int]]) -> None:
    """Tables that subnets share lie in other runs of each."""
    net = Net(((1, 3, 4, 4),), 0, "i8")
    b, type = net.b, TensorType((256,), "i8", QUANT)
    tables = [b.weight(net.rng.permutation(256).astype(np.uint8).view(np.int8), "t", type) for _ in range(5)]
    grid = net.f32(1, 4, 4, 2)
    x = net.inputs[0]
    for number, taken in enumerate(drawn):
        if number:
            on_host = b.grid_sample(b.dequantize(x), grid, mode="nearest")
            x = b.quantize(on_host, rounding="even", out=TensorType(x.shape, "i8", QUANT))
        for table in taken:
            x = b.lut(x, tables[table])
    check(net.module([x]), level=level, device=False)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6)), max_size=12), st.integers(1, 8), st.integers(1, 30))
def test_runs_hold_all_tables_without_gaps(drawn: list[tuple[int, int]], align: int, most: int) -> None:
    tables = [(place, min(size, 1)) for place, size in drawn]
    runs = joined(tables, align, most)
    assert sorted(place for start, size in runs for place in range(start, start + size)) == sorted(
        {p for p, _ in tables}
    )
    assert all(size <= most for _, size in runs)


def test_tables_fill_their_memory_to_its_end() -> None:
    first, end = CHIP.l2_free
    space, half = TableSpace(), (end - first) // 2
    assert space.place("a", half) == (first, True)
    assert space.place("b", end - first - half) == (first + half, True)
    assert space.place("a", half) == (first, False)
    assert space.place("c", half) == (first, True)  # in the place of the oldest
    assert space.place("b", end - first - half) == (first + half, False)
    assert space.place("a", half)[1]


def test_a_run_is_as_long_as_it_may_be() -> None:
    assert joined([(0, 64), (64, 64)], 64, 128) == [(0, 128)]
    assert joined([(0, 64), (64, 65)], 64, 128) == [(0, 64), (64, 65)]
