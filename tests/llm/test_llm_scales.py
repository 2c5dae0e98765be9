"""Scales by activations: the same model before quantization, a nearer one behind it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from llm.model_folders import small_config, small_tensors, write_folder

from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.llm.precision import Precision
from bmcompiler.llm.scales import activation_scales, block_errors

IDS = np.random.default_rng(1).integers(0, 80, 48).tolist()
W4 = Precision("f16", 4, group_size=32)


def with_outliers(folder: Path, family: str) -> LanguageModel:
    """Two channels that a norm makes much larger, as in trained models."""
    config = small_config(model_type=family)
    tensors = small_tensors(config)
    for name, values in tensors.items():
        if name.endswith("layernorm.weight"):
            values[[5, 40]] *= 20
    return open_model(write_folder(folder, config, tensors))


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_scaled_weights_are_the_same_model(family: str, tmp_path: Path) -> None:
    model = with_outliers(tmp_path, family)
    found = activation_scales(model, W4, IDS)
    assert not np.allclose(found.scales[0].attention, 1) and not np.allclose(found.scales[1].down, 1)
    wanted = FloatModel(model).states(IDS)
    np.testing.assert_allclose(FloatModel(found).states(IDS), wanted, atol=2e-5 * np.abs(wanted).max())


def test_layers_lose_less_on_other_tokens(tmp_path: Path) -> None:
    model = with_outliers(tmp_path, "qwen2")
    scaled = activation_scales(model, W4, IDS)
    other = np.random.default_rng(2).integers(0, 80, 48).tolist()
    plain, better = (block_errors(model, each, W4, other) for each in (model, scaled))
    assert [error.index for error in plain] == [0, 1]
    assert all(b.relative < 0.8 * a.relative for a, b in zip(plain, better))


def test_floats_are_not_scaled_and_lose_nothing(tmp_path: Path) -> None:
    model = with_outliers(tmp_path, "llama")
    scaled = activation_scales(model, Precision("f32"), IDS)
    assert all(np.all(each == 1) for layer in scaled.scales for each in layer)
    assert max(error.relative for error in block_errors(model, scaled, Precision("f32"), IDS)) < 1e-6


def test_eight_bits_lose_less_than_four(tmp_path: Path) -> None:
    model = with_outliers(tmp_path, "llama")
    four, eight = (block_errors(model, model, Precision("f16", bits), IDS) for bits in (4, 8))
    assert all(0 < e.relative < f.relative / 8 for e, f in zip(eight, four))
