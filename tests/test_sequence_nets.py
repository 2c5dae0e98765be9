"""Networks on text lines, sound and boxes are the chips' as a whole, and give what ONNX Runtime gives."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bmcompiler

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
from sequences import NETS, sample, sequence_net

NEAR = 1e-5


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("name", NETS)
def test_they_are_the_chips_as_a_whole_and_near_onnx_runtime(name: str, chip: str) -> None:
    """Rows of a selection behind the last one that stays are -1; of all other results every element is compared."""
    model, given = sequence_net(name), sample(name)
    session = pytest.importorskip("onnxruntime").InferenceSession(model.SerializeToString())
    result = bmcompiler.compile(model, target=chip, quantize="f32", check="always")
    assert {row.where for row in result.rows} <= {chip, "view"}
    found = list(result.session().run(given).values())
    for got, want in zip(found, session.run(None, given), strict=True):
        if name == "detector":
            assert len(want) and (got[len(want) :] == -1).all()
            got = got[: len(want)]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=NEAR, atol=NEAR)
