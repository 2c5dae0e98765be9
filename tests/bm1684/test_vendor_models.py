"""Model files made by the vendor's compiler give on the simulator what they give on the vendor's runtime, bit for bit.

The networks are our own (tools/vendor/small_nets.py), recorded by `tools/vendor_check.py theirs --record`: file, inputs
and outputs of each. The runtime ran on the vendor's functional model of the chip. `deconv_int8` is among them because
it reads local memory that nothing wrote (bm1684.md 3.1).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bmcompiler import bmodel
from bmcompiler.runtime import Session

FOLDER = Path(__file__).parents[1] / "data" / "bm1684_vendor"
RECORDED = sorted(path.stem for path in FOLDER.glob("*.npz"))


@pytest.fixture(params=RECORDED)
def recorded(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    """A file (its bytes as "bmodel"), its inputs ("in:NAME") and outputs ("out:NAME")."""
    with np.load(FOLDER / f"{request.param}.npz") as found:
        return dict(found)


@pytest.fixture
def file(recorded: dict[str, np.ndarray], tmp_path: Path) -> Path:
    path = tmp_path / "vendor.bmodel"
    path.write_bytes(recorded["bmodel"].tobytes())
    return path


def named(recorded: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {key.removeprefix(prefix): value for key, value in recorded.items() if key.startswith(prefix)}


def test_programs_of_the_vendor_give_its_results(recorded: dict[str, np.ndarray], file: Path) -> None:
    expected = named(recorded, "out:")
    results = Session(file).run(named(recorded, "in:"))
    assert set(results) == set(expected)
    for name, values in expected.items():
        assert results[name].size == values.size
        np.testing.assert_array_equal(results[name].reshape(-1).view(np.uint32), values.reshape(-1).view(np.uint32))


def test_a_written_copy_runs_alike(recorded: dict[str, np.ndarray], file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.bmodel"
    bmodel.save(bmodel.load(file), copy)
    inputs = named(recorded, "in:")
    results, again = Session(file).run(inputs), Session(copy).run(inputs)
    for name, values in results.items():
        np.testing.assert_array_equal(again[name], values)
