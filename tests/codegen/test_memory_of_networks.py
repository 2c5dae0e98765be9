"""Neuron memory of real networks: at most a tenth more than what is alive at once, on every chip and level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from level_nets import MODES, SHAPES, Network

from bmcompiler.files.mlir import load_module
from bmcompiler.target import find_target

QUICK = ("lenet", "resnet8")
SMALL = ("mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "ppocr_v2_cls")


def marks(name: str, batch: int) -> Any:
    """One image of every network is quantized for other tests, too; four of the large ones for this test alone."""
    if name in QUICK:
        return ()
    return pytest.mark.slow if batch == 1 or name in SMALL else pytest.mark.sweep


CASES = [pytest.param(name, batch, marks=marks(name, batch)) for name in SHAPES for batch in (1, 4)]
PADDING = 64 * 32
"""Bytes that alignment may add: the bound knows none, which shows where a whole net takes a few thousand bytes."""


@pytest.mark.parametrize("mode", MODES, ids="-".join)
@pytest.mark.parametrize(("name", "batch"), CASES)
def test_neuron_memory_is_close_to_what_is_alive_at_once(
    name: str, batch: int, mode: tuple[str, str], shared: Path
) -> None:
    module = load_module(Network(name, *mode, shared, batch).path)
    for level in (0, 1, 2):
        totals = find_target(mode[0]).compile([module], level).totals
        size, bound = totals["neuron memory"], totals["neuron lower bound"]
        assert bound <= size <= max(1.1 * bound, bound + PADDING), f"level {level}: {size} bytes, at least {bound}"
