"""Neuron memory of real networks: at most a tenth more than what is alive at once, on every chip and level."""

from __future__ import annotations

from pathlib import Path

import pytest
from level_nets import MODES, SHAPES, Network

from bmcompiler.files.mlir import load_module
from bmcompiler.target import find_target

QUICK = ("lenet", "resnet8")
BATCHES = [
    pytest.param(
        name,
        batch,
        id=f"{name}-{batch}",
        marks=() if name in QUICK else pytest.mark.slow if batch > 1 else pytest.mark.sweep,
    )
    for name in SHAPES
    for batch in (1, 4)
]
PADDING = 64 * 32
"""Bytes that alignment may add: the bound knows none, which shows where a whole net takes a few thousand bytes."""


@pytest.mark.parametrize("mode", MODES, ids="-".join)
@pytest.mark.parametrize(("name", "batch"), BATCHES)
def test_neuron_memory_is_close_to_what_is_alive_at_once(
    name: str, batch: int, mode: tuple[str, str], shared: Path
) -> None:
    module = load_module(Network(name, *mode, shared, batch).path)
    for level in (0, 1, 2):
        totals = find_target(mode[0]).compile([module], level).totals
        size, bound = totals["neuron memory"], totals["neuron lower bound"]
        assert bound <= size <= max(1.1 * bound, bound + PADDING), f"level {level}: {size} bytes, at least {bound}"
