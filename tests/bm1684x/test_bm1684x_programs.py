"""Programs of the vendor's compiler run as recorded, every bit of every output, and survive being written again."""

from __future__ import annotations

import numpy as np
import pytest
from bm1684x_golden import DATA, PROGRAMS, model

from bmcompiler.bmodel.bm168x import read
from bmcompiler.runtime.bm1684x_device import Bm1684xDevice


def recorded(name: str) -> dict[str, np.ndarray]:
    return dict(np.load(DATA / "bm1684x_programs" / f"{name}.npz"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_vendor_programs_give_the_recorded_outputs(name: str) -> None:
    (program,) = Bm1684xDevice().load(model(name))
    arrays = recorded(name)
    for case in "ab":
        found = program.run([arrays[f"{case}/in/{info.name}"] for info in program.inputs])
        for info, value in zip(program.outputs, found):
            wanted = arrays[f"{case}/out/{info.name}"]
            assert value.dtype == wanted.dtype
            assert np.array_equal(value.view(np.uint8), wanted.reshape(value.shape).view(np.uint8))


@pytest.mark.parametrize("name", PROGRAMS)
def test_vendor_programs_survive_being_written(name: str) -> None:
    first = model(name)
    again = read(memoryview(b"".join(map(bytes, first.parts()))), name)
    assert again.nets == first.nets
    assert again.chip == "BM1684X"
