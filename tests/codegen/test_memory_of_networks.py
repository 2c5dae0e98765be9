"""Neuron memory of real networks: at most a tenth more than what is alive at once, on every chip and level.

`tests/test_levels_of_networks.py` asks the same of what it compiles: one image, each large network in one mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from level_nets import MODES, QUICK, SHAPES, SMALL, Network, assert_memory_is_close_to_what_is_alive_at_once

from bmcompiler.target import find_target


def _cases() -> Iterator[Any]:
    """Small networks in all modes; large ones, in turns, in one with one image and in two others with four."""
    for turn, name in enumerate(SHAPES):
        for batch, modes in ((1, (0,)), (4, (2, 4))):
            own = MODES if name in (*QUICK, *SMALL) else [MODES[(turn + mode) % len(MODES)] for mode in modes]
            for mode in own:
                yield pytest.param(name, batch, mode, id="-".join((name, str(batch), *mode)), marks=_marks(name, batch))


def _marks(name: str, batch: int) -> Any:
    if batch == 1 or name not in (*QUICK, *SMALL[:3]):
        return pytest.mark.sweep
    return () if name in QUICK else pytest.mark.slow


@pytest.mark.parametrize(("name", "batch", "mode"), list(_cases()))
def test_neuron_memory_is_close_to_what_is_alive_at_once(
    name: str, batch: int, mode: tuple[str, str], shared: Path
) -> None:
    module = Network(name, *mode, shared, batch).module
    for level in (0, 1, 2):
        assert_memory_is_close_to_what_is_alive_at_once(find_target(mode[0]).compile([module], level).totals, level)
