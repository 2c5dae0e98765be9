"""Scores of heads and tables that repeat for each window, or masks for each head, added where products leave them."""

from __future__ import annotations

import numpy as np
import pytest
from lane_nets import Net

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.ir import Module
from bmcompiler.result import Result

WINDOWS, HEADS, TOKENS, WIDTH = 16, 3, 49, 32
CASES = [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16"), ("bm1684x", "bf16")]


def scores(table: tuple[int, ...], *, wide: bool = False, first: bool = False, tokens: int = TOKENS) -> Module:
    """softmax(q k + table); wide: with an axis of one element before the others; first: the table is operand a."""
    shape = (WINDOWS, HEADS, tokens, WIDTH)
    net = Net([shape, shape])
    query, key = net.inputs
    made = net.b.matmul(net.b.relu(query), net.b.relu(key), transpose_right=True)
    added = net.f32(*((1,) if wide else ()), *table)
    whole = net.b.reshape(made, shape=(1, *made.shape)) if wide else made
    total = net.b.add(added, whole) if first else net.b.add(whole, added)
    return net.b.outputs([net.b.softmax(net.b.reshape(total, shape=made.shape), axis=3)], ["y"])


def compiled(module: Module, chip: str, precision: str) -> Result:
    return bmcompiler.compile_module(module, target=chip, quantize=precision, check="always")


def cycles(module: Module, chip: str, precision: str) -> int:
    analysis = analysis_of(chip, compiled(module, chip, precision).model)
    assert analysis is not None and not analysis.races()
    return analysis.timing().cycles


@pytest.mark.parametrize(("chip", "precision"), CASES)
@pytest.mark.parametrize("first", [False, True])
def test_programs_keep_every_bit(chip: str, precision: str, first: bool) -> None:
    for table in ((1, HEADS, TOKENS, TOKENS), (WINDOWS, 1, TOKENS, TOKENS), (HEADS, TOKENS, TOKENS)):
        compiled(scores(table, first=first), chip, precision)
    compiled(scores((WINDOWS, 1, TOKENS, TOKENS), wide=True, first=first), chip, precision)
    compiled(scores((1, HEADS, 70, 70), first=first, tokens=70), chip, precision)  # more rows than lanes


@pytest.mark.parametrize("table", [(1, HEADS, TOKENS, TOKENS), (WINDOWS, 1, TOKENS, TOKENS)])
def test_a_table_takes_hardly_longer_than_a_number(table: tuple[int, ...]) -> None:
    """Scores went into another layout and back: a third of the attention of a window."""
    plain = cycles(scores((1,)), "bm1684x", "f16")
    number = np.prod(table) * 2 / 30  # bytes of the table, loaded in short runs
    assert cycles(scores(table), "bm1684x", "f16") <= 1.05 * plain + number
