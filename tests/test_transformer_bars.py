"""Layers of transformers stay near their roofline on BM1684 and BM1684X, and move little through global memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import bmcompiler
from bmcompiler.analysis.profile import analysis_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))
from transformers import transformer

BARS = {
    ("bm1684", "bert_block", "f32"): 3.60e6,
    ("bm1684", "vit_block", "f32"): 1.88e6,
    ("bm1684", "swin_stage3", "f32"): 1.57e6,
    ("bm1684x", "bert_block", "f32"): 3.16e6,
    ("bm1684x", "bert_block", "f16"): 0.502e6,
    ("bm1684x", "vit_block", "f32"): 2.035e6,
    ("bm1684x", "vit_block", "f16"): 0.345e6,
    ("bm1684x", "swin_stage3", "f32"): 1.105e6,
    ("bm1684x", "swin_stage3", "f16"): 0.208e6,
    ("bm1684x", "segformer_b0", "f16"): 0.293e6,
    ("bm1684x", "mobilevit_block", "f16"): 0.278e6,
}
"""Cycles: 5 % above what they take (docs/performance.md)."""


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "name", "precision"), BARS)
def test_layers_of_transformers_take_few_cycles(chip: str, name: str, precision: str, tmp_path: Path) -> None:
    result = bmcompiler.compile(transformer(name, tmp_path), target=chip, quantize=precision, check="never")
    analysis = analysis_of(chip, result.model)
    assert analysis is not None
    assert analysis.timing().cycles <= BARS[chip, name, precision]
    assert {row.where for row in result.rows} <= {chip, "view", "alias"}
