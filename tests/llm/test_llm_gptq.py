"""Codes chosen by samples: products lose less than with the nearest codes, on other inputs, too."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from model_folders import small_config, small_tensors, write_folder
from tokenizers import Tokenizer, models, pre_tokenizers

from bmcompiler.cli.llm import main as command
from bmcompiler.errors import RuntimeUseError, UsageError
from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.generate import Generator
from bmcompiler.llm.gptq import gptq_model, nearest_outputs
from bmcompiler.llm.model import open_model
from bmcompiler.llm.precision import Precision
from bmcompiler.llm.scales import block_errors
from bmcompiler.numeric.packed_weights import PackedWeights, dequantized, quantized


def related_inputs(seed: int) -> np.ndarray:
    """Inputs of which some follow from others, as those of trained models."""
    rng = np.random.default_rng(seed)
    mixed = np.random.default_rng(9).normal(size=(24, 96))
    return rng.normal(size=(300, 24)) @ mixed + 0.1 * rng.normal(size=(300, 96))


@pytest.mark.parametrize(
    "precision", [Precision("f16", 4, group_size=40), Precision("bf16", 8, group_size=0, symmetric=True)]
)
def test_products_lose_less_than_with_the_nearest_codes(precision: Precision) -> None:
    weight = np.random.default_rng(0).normal(size=(50, 96)).astype(np.float32)
    x, other = related_inputs(1), related_inputs(2)
    found = nearest_outputs(weight, x.T @ x, precision)
    assert precision.bits is not None
    nearest = quantized(weight, precision.bits, precision.group_size, found.scale.dtype, symmetric=precision.symmetric)
    for one, two in zip(found, nearest):
        assert (one is None) == (two is None) and (one is None or np.shape(one) == np.shape(two))

    def lost(codes: PackedWeights) -> float:
        return float(np.square((dequantized(codes, 96, "f32") - weight) @ other.T).sum())

    assert lost(found) < 0.6 * lost(nearest)


def test_inputs_that_never_come_do_no_harm() -> None:
    weight = np.random.default_rng(0).normal(size=(8, 32)).astype(np.float32)
    precision = Precision("f16", 4, group_size=16)
    found = nearest_outputs(weight, np.zeros((32, 32)), precision)
    steps = np.repeat(found.scale.astype(np.float32), 16, axis=1)
    assert (np.abs(dequantized(found, 32, "f32") - weight) < 0.51 * steps).all()


def test_layers_lose_less_on_other_tokens(tmp_path: Path) -> None:
    config = small_config()
    model = open_model(write_folder(tmp_path, config, small_tensors(config)))
    precision, rng = Precision("f16", 4), np.random.default_rng(3)
    found = gptq_model(model, precision, rng.integers(0, 80, (8, 48)).tolist())
    other = rng.integers(0, 80, 60).tolist()
    plain, better = (block_errors(model, each, precision, other) for each in (model, found))
    assert all(b.relative < 0.95 * a.relative for a, b in zip(plain, better))
    again = gptq_model(found, precision, [other])  # codes stay as they are
    assert again.layer(1).down.weight is found.layer(1).down.weight
    np.testing.assert_array_equal(FloatModel(found).states(other), FloatModel(again).states(other))
    with pytest.raises(UsageError, match="GPTQ makes codes by samples"):
        gptq_model(model, Precision("f16"), [other])


def test_the_command_takes_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    config = small_config(torch_dtype="float16", num_hidden_layers=1)
    folder = write_folder(tmp_path / "model", config, small_tensors(config, np.float16))
    tokenizer = Tokenizer(models.WordLevel({chr(48 + i): i for i in range(80)}, unk_token="0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.save(str(folder / "tokenizer.json"))
    (tmp_path / "text").write_text("the quick brown fox " * 20)
    made = []
    for more in ([], ["--samples", str(tmp_path / "text")]):
        made.append(tmp_path / str(len(made)) / "x.bmodel")
        words = ["--quantize", "w4f16", "--length", "4", "--head", "token", "--check", "never", *more]
        monkeypatch.setattr(sys, "argv", ["bmnet-llm", "compile", str(folder), "-o", str(made[-1]), *words])
        with pytest.raises(SystemExit) as ended:
            command()
        assert not ended.value.code, capfd.readouterr().err
    nearest, sampled = (
        bytes(next(net for net in Bundle.load(file).model.nets if net.name == "block_0").stages[0].coefficients)
        for file in made
    )
    assert len(nearest) == len(sampled) and nearest != sampled
    assert (Bundle.load(made[0]).vocabulary, Bundle.load(made[0]).tokens) == (0, 80)  # as config.json beside it says
    with pytest.raises(RuntimeUseError, match="200 is no token, they are 0 to 79"):
        list(Generator(Bundle.load(made[0])).generate([1, 200], 1))


def test_samples_that_are_no_text_and_folders_without_tokenizer_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    config = small_config(torch_dtype="float16", num_hidden_layers=1)
    folder = write_folder(tmp_path / "model", config, small_tensors(config, np.float16))
    (tmp_path / "noise").write_bytes(bytes(range(128, 256)))

    def said() -> str:
        words = ["compile", str(folder), "-o", str(tmp_path / "x.bmodel"), "--quantize", "w4f16", "--length", "64"]
        monkeypatch.setattr(sys, "argv", ["bmnet-llm", *words, "--text", str(tmp_path / "noise")])
        with pytest.raises(SystemExit) as ended:
            command()
        assert ended.value.code == 1
        return capfd.readouterr().err

    assert said().endswith("Remedy: put the model's tokenizer.json there, or leave out --text\n")
    Tokenizer(models.WordLevel({"0": 0}, unk_token="0")).save(str(folder / "tokenizer.json"))
    assert said().endswith("noise: is no text in UTF-8\n")
    assert not (tmp_path / "x.bmodel").exists()
