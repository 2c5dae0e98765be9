"""No cliffs at sizes nobody thought of: drawn graphs of the slow kinds stay near their bounds and compute the same."""

from __future__ import annotations

from typing import Any

import pytest
from cliff_graphs import module_of
from drawn_cliffs import KINDS, LARGE, MOVES, SMALL, drawn

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.testing import check_op

CHIPS = [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16")]
INTEGERS = [("bm1684", "int8"), ("bm1684x", "int8")]
_MOST = 8
"""Times the roofline bound."""
_FEW = 2
"""Of a hundred drawn graphs that may take longer: gathers of few long rows, softmax of 86 columns on the BM1684."""


def _ratio(seed: int, chip: str, precision: str, kinds: Any = KINDS) -> tuple[float, str]:
    name, make, shape = drawn(seed, LARGE, kinds)
    result = bmcompiler.compile_module(module_of(make, shape), target=chip, quantize=precision, check="never")
    found = estimate(result)
    assert found is not None and not found.cpu_records
    return found.ratio, f"seed {seed}, {name}: {found.ratio:.1f} times its bound"


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_a_graph_of_each_kind_takes_near_its_bound(seed: int) -> None:
    ratio, said = _ratio(seed, *CHIPS[seed % len(CHIPS)])
    assert ratio <= _MOST, said


@pytest.mark.sweep
@pytest.mark.parametrize("chip, precision", CHIPS)
def test_hardly_a_drawn_graph_takes_long(chip: str, precision: str) -> None:
    slow = [said for ratio, said in (_ratio(seed, chip, precision) for seed in range(100)) if ratio > _MOST]
    assert len(slow) <= _FEW, "; ".join(slow)


@pytest.mark.parametrize("chip, precision", CHIPS)
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(6, 30))])
def test_no_drawn_move_takes_long(seed: int, chip: str, precision: str) -> None:
    ratio, said = _ratio(seed, chip, precision, MOVES)
    assert ratio <= _MOST, said


@pytest.mark.parametrize("seed", range(15))
def test_drawn_moves_compute_what_evaluate_does(seed: int) -> None:
    _, make, shape = drawn(seed, SMALL, MOVES)
    chip, precision = (CHIPS + INTEGERS)[seed % 5]
    check_op(lambda b, x: make(b, b.relu(x)), [shape], target=chip, quantize=precision, seeds=1, on_device=False)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(5 * len(KINDS)))
def test_drawn_graphs_compute_what_evaluate_does(seed: int) -> None:
    _, make, shape = drawn(seed, SMALL)
    chip, precision = (CHIPS + INTEGERS)[seed % 5]
    check_op(lambda b, x: make(b, b.relu(x)), [shape], target=chip, quantize=precision, seeds=1, on_device=False)


def test_a_seed_says_all() -> None:
    assert [drawn(seed)[::2] for seed in range(40)] == [drawn(seed)[::2] for seed in range(40)]
    assert len({drawn(seed)[2] for seed in range(40)}) > 30
