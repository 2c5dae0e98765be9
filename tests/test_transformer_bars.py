"""Layers of transformers stay near their roofline on the BM1684X, and move little through global memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import bmcompiler
from bmcompiler.analysis.profile import analysis_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
from transformers import transformer

BARS = {
    ("bert_block", "f32"): 3.80e6,
    ("bert_block", "f16"): 1.20e6,
    ("vit_block", "f32"): 2.65e6,
    ("vit_block", "f16"): 0.73e6,
    ("swin_stage3", "f32"): 1.58e6,
    ("swin_stage3", "f16"): 0.61e6,
}
"""Cycles: 5 % above what they take (docs/performance.md)."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "precision"), BARS)
def test_layers_of_transformers_take_few_cycles(name: str, precision: str, tmp_path: Path) -> None:
    result = bmcompiler.compile(transformer(name, tmp_path), target="bm1684x", quantize=precision, check="never")
    analysis = analysis_of("bm1684x", result.model)
    assert analysis is not None
    assert analysis.timing().cycles <= BARS[name, precision]
    assert {row.where for row in result.rows} <= {"bm1684x", "view", "alias"}
