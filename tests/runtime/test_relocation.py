"""Where the runtime moves the addresses of a program: each area by its own distance, an empty one not at all."""

from __future__ import annotations

from itertools import product

import pytest

from bmcompiler.bmodel.bm168x import Bm168xStage
from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm168x.commands import stage_relocation

SIZE = 0x100
STARTS = {"coefficients": 0x1000, "io": 0x3000, "neuron": 0x5000}
PLACES = (0x41000, 0x83000, 0xC5000)
AREAS = list(product((0, SIZE), repeat=3))


def stage(sizes: tuple[int, ...]) -> Bm168xStage:
    coefficients, io, neuron = sizes
    starts = {"coeff_address": STARTS["coefficients"], "io_address": STARTS["io"]}
    return Bm168xStage([], [], STARTS["neuron"], neuron, [], coefficients=bytes(coefficients), io_size=io, **starts)


@pytest.mark.parametrize("sizes", AREAS)
@pytest.mark.parametrize("places", [PLACES, ()], ids=["moved", "as compiled"])
def test_each_area_is_moved_by_its_own_distance(sizes: tuple[int, ...], places: tuple[int, ...]) -> None:
    """An address of an area that is empty belongs to the area before it; below all of them it stays."""
    found = stage_relocation(stage(sizes), *places)
    distance, constant = 0, False
    for number, (start, size) in enumerate(zip(STARTS.values(), sizes)):
        if size:
            distance, constant = (places[number] - start if places else 0), number == 0
        for address in (start, start + SIZE - 1):
            assert found(address) == address + distance
            if not constant:
                assert found(address, written=True) == address + distance
                continue
            with pytest.raises(SimulatorError, match="writes to the coefficients"):
                found(address, written=True)
    assert found(STARTS["coefficients"] - 1, written=True) == STARTS["coefficients"] - 1
