"""What int8 with the choice of modes may take, in seconds and memory; benchmarks/bench_choice.py says what it takes."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import bench_choice
import bench_scale

from bmcompiler.quant.calibration import collect
from bmcompiler.quant.data import check_data

_CHAIN, _SECONDS = 100, 20.0
"""Layers and CPU seconds: five times what they take, for loaded machines."""


def test_a_chain_is_compiled_in_seconds_and_its_shares_are_told() -> None:
    seconds, counts, result = bench_choice.measured(bench_scale.net(_CHAIN, branchy=False), 4, "bm1684")
    assert seconds < _SECONDS
    assert any(note.startswith("quantization modes") for note in result.notes)
    assert {"interpreter", "planner", "simulator"} <= set(counts)
    assert counts["planner"] > counts["simulator"]
    assert counts["all else"] < counts.total() / 4, "files of `SHARES` have other names"


def test_the_detector_has_what_yolov8n_has() -> None:
    module = bench_choice.Detector().module(size=64)
    names = [op.short_name for op in module.main.ops]
    assert (names.count("conv"), names.count("max_pool"), names.count("upsample")) == (63, 3, 2)
    assert [value.shape[2] for value in module.main.returned] == [8, 8, 4, 4, 2, 2]


def test_calibration_holds_the_activations_of_one_image() -> None:
    module = bench_choice.picture(540, 960)
    data = np.random.default_rng(0).uniform(-1, 1, (4, 3, 540, 960)).astype(np.float32)
    values = sum(value.type.nbytes for op in module.main.ops for value in op.results if op.operands)
    tracemalloc.start()
    try:
        collect(module, module.main, check_data(module.main, {"data": data}))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * values, f"{peak >> 20} MB, activations of one image have {values >> 20}"
