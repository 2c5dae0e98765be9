"""Int8 networks at batch 1: what computing on bands saves against level 0, at the same bits."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import MODELS, files, samples

import bmcompiler
from bmcompiler.driver import load_network
from bmcompiler.runtime.simulator.bm1684.analysis import analyze

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Bars:
    """Cycles of level 0 for one of level 2; bytes moved for one that has to; bytes of feature maps; commands."""

    faster: float = 1.0
    moved: float = float("inf")
    features: float = float("inf")
    commands: float = float("inf")


BARS = {
    "light_resnet50": Bars(faster=2.5, moved=1.08, commands=400),
    "mobilenetv2_160": Bars(faster=2.5, moved=1.08, commands=400),
    "centerface_480": Bars(features=14e6),
    "ppocr_v4_det": Bars(features=6.9e6),
}


def _model(name: str, folder: Path) -> tuple[Path, np.ndarray]:
    """File and calibration data of a network."""
    if name == "ppocr_v4_det":
        return files(name)[0], samples(name, 8)
    size = 224 if name == "light_resnet50" else int(name.rpartition("_")[2])
    noise = np.random.default_rng(0).standard_normal((8, 3, size, size)).astype(np.float32)
    if name == "light_resnet50":
        return files(name)[0], noise
    spec = importlib.util.spec_from_file_location("seeded", MODELS / "seeded.py")
    assert spec is not None and spec.loader is not None
    seeded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(seeded)
    return seeded.seeded_model(name, folder), noise


@pytest.mark.parametrize("name", BARS)
def test_bands_at_batch_one(name: str, tmp_path: Path) -> None:
    model, data = _model(name, tmp_path)
    shape = [1, *data.shape[1:]]
    input_name = load_network(model, None, shapes=[shape]).main.input_names[0]
    options: dict[str, Any] = {"target": "bm1684", "quantize": "int8", "data": {input_name: data}, "shapes": [shape]}
    zero, two = (bmcompiler.compile(model, opt=level, **options) for level in (0, 2))
    before, after = (analyze(result.model).timing() for result in (zero, two))
    bars = BARS[name]
    assert after.cycles * bars.faster <= before.cycles
    bytes_moved = sum(layer.loaded + layer.stored for layer in after.layers)
    weights = sum(layer.weights for layer in after.layers)
    borders = (*two.module.main.arguments, *two.module.main.returned)
    assert bytes_moved <= bars.moved * (weights + sum(value.type.nbytes for value in borders))
    assert bytes_moved - weights <= bars.features
    assert sum(engine.commands for engine in after.engines) <= bars.commands
    assert list(analyze(two.model).races()) == []
    results = [bmcompiler.runtime.Session(result.model).run({input_name: data[:1]}) for result in (zero, two)]
    for key, array in results[0].items():
        np.testing.assert_array_equal(array, results[1][key])
