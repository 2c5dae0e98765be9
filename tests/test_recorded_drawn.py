"""Programs of drawn ops are those that were recorded, as in `test_recorded_programs`: `tests/data/programs/*_drawn*`.

Recorded networks have the sizes that networks have; these have the ones next to which tiles, ways and passes change.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pytest
from drawn_ops import drawn, drawn_apart
from mode_layers import layers_in_modes
from test_recorded_programs import PRECISIONS, Program, compare, of_ops, path_of, read, recorded, write

import bmcompiler
from bmcompiler.errors import BMError
from bmcompiler.ir import Module
from bmcompiler.target import find_target

LANE_BYTES = (0, 4096, 0, 16384, 2048, 0, 8192, 1024, 3072, 0, 4096, 16384)
"""Bytes of a lane by turn, 0 = as many as there are: with fewer, small ops are cut into many tiles."""
LANE_CHIPS = ("bm1684", "bm1684x")
"""Those that have layers of bytes in modes, and ops that read places."""
TURNS = {"bm1684": 4, "bm1684x": 4, "bm1880": 12, "dv700": 12}
"""As many as take a second or two."""
LEVELS = {2: 1}
"""Of turns that are not compiled at level 2."""


def check(chip: str, part: str, found: dict[str, Program], request: pytest.FixtureRequest) -> None:
    path = path_of(chip, part)
    if request.config.getoption("--update-golden"):
        write(path, found)
    compare(found, read(path))


@pytest.mark.parametrize(
    ("chip", "turn"),
    [
        pytest.param(chip, turn, marks=[pytest.mark.sweep] if turn >= turns // 2 else [])
        for chip, turns in TURNS.items()
        for turn in range(turns)
    ],
)
def test_single_ops(chip: str, turn: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = getattr(find_target(chip), "machine", None)
    if machine is not None and LANE_BYTES[turn]:
        monkeypatch.setattr(machine.tiler, "lane_bytes", LANE_BYTES[turn])
    nets = chain(drawn("f32", turn), drawn("i8", turn), drawn_apart(turn) if chip in LANE_CHIPS else ())
    found = of_ops(chip, nets, LEVELS.get(turn, 2))
    check(chip, f"drawn{turn}", found, request)


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x", "bm1880"])
def test_layers_in_all_modes(chip: str, request: pytest.FixtureRequest) -> None:
    check(chip, "modes", of_ops(chip, layers_in_modes(), 2), request)


def networks(chip: str, precision: str, turn: int) -> Iterator[tuple[str, Program]]:
    """Programs of ops that go through all passes, of which some have no numbers to quantize."""
    for name, module in drawn("f32", turn):
        program = network(chip, precision, module)
        if program is not None:
            yield name, program


def network(chip: str, precision: str, module: Module) -> Program | None:
    shape, rng = module.main.arguments[0].shape, np.random.default_rng(1)
    data = {"x0": rng.standard_normal((2 * shape[0], *shape[1:]), np.float32)} if precision == "int8" else None
    try:
        result = bmcompiler.compile_module(module, target=chip, quantize=precision, data=data, check="never")
    except BMError as error:
        assert "NaN or infinite on the calibration data" in str(error)
        return None
    return recorded(chip, result.model)


@pytest.mark.parametrize(
    ("chip", "precision"),
    [
        pytest.param(chip, one, marks=[pytest.mark.sweep] if one == "bf16" else [])
        for chip, many in PRECISIONS.items()
        for one in many
    ],
)
def test_ops_that_go_through_all_passes(chip: str, precision: str, request: pytest.FixtureRequest) -> None:
    check(chip, f"{precision}_drawn", dict(networks(chip, precision, 4)), request)
