"""Model folders that are wrong: a sentence each, before anything is computed."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm.model_folders import save_tensors, small_config, small_tensors, write_folder

from bmcompiler.errors import BMError, FileFormatError, RuntimeUseError, UnsupportedError, UsageError
from bmcompiler.llm import families
from bmcompiler.llm.checkpoint import Checkpoint
from bmcompiler.llm.families import Family
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.heads import GREEDY, SAMPLE
from bmcompiler.llm.model import open_model
from bmcompiler.llm.nets import build_net, net_names
from bmcompiler.llm.precision import Precision
from bmcompiler.plugins.registry import Loader

Q = "model.layers.1.self_attn.q_proj.weight"


def refused(folder: Path, kind: type[BMError] = FileFormatError) -> str:
    with pytest.raises(kind) as told:
        open_model(folder)
    assert "\n" not in str(told.value) and str(folder) in str(told.value)
    return str(told.value)


def small(folder: Path, change: Callable[[dict[str, np.ndarray]], Any] = lambda tensors: None, **config: Any) -> Path:
    tensors = small_tensors(small_config())
    change(tensors)
    return write_folder(folder, small_config(**config), tensors)


@pytest.mark.parametrize(
    "config, words",
    [
        ({"model_type": "mamba"}, ["'mamba'", "known are gemma2", "bmcompiler.llm_families"]),
        ({"hidden_act": "relu6"}, ["'relu6'", "known are silu"]),
        ({"rope_scaling": {"rope_type": "spiral"}}, ["'spiral'", "known are default"]),
        ({"torch_dtype": "float8"}, ["'float8'", "bfloat16"]),
        ({"quantization_config": {"quant_method": "hqq"}}, ["'hqq'", "gptq, awq, compressed-tensors or fp8"]),
        ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, ["gptq of 3 bits", "4 and 8"]),
        ({"quantization_config": {"quant_method": "awq", "bits": 8}}, ["awq of 8 bits"]),
        ({"layer_types": ["linear_attention"] * 2}, ["'linear_attention'"]),
    ],
)
def test_what_nobody_knows_is_named(config: dict[str, Any], words: list[str], tmp_path: Path) -> None:
    text = refused(small(tmp_path, **config), UnsupportedError)
    assert "config.json" in text and all(word in text for word in words), text


@pytest.mark.parametrize(
    "config, words",
    [
        ({"hidden_size": "64"}, "'hidden_size' must be a positive number, got \"64\""),
        ({"num_hidden_layers": 0}, "'num_hidden_layers' must be a positive number, got 0"),
        ({"num_attention_heads": 4.5}, "'num_attention_heads' must be an integer"),
        ({"num_key_value_heads": 3}, "4 heads of queries cannot share 3"),
        ({"model_type": None}, "'model_type' must be a name"),
        ({"layer_types": ["full_attention"]}, "'layer_types' must be a list with a name for each of 2 layers"),
        ({"rms_norm_eps": -1}, "'rms_norm_eps' must be a positive number, got -1"),
        ({"tie_word_embeddings": "no"}, "'tie_word_embeddings' must be true or false"),
        ({"partial_rotary_factor": 0.2}, "3 of 16 dimensions of a head cannot be rotated in pairs"),
    ],
)
def test_values_that_cannot_be_are_named(config: dict[str, Any], words: str, tmp_path: Path) -> None:
    assert words in refused(small(tmp_path, **config))


def test_shapes_that_do_not_fit_the_configuration(tmp_path: Path) -> None:
    text = refused(small(tmp_path, intermediate_size=97))
    assert "gate_proj.weight' has shape [96, 64], config.json asks for [97, 64]" in text and "Remedy" in text


def test_a_tensor_that_is_missing(tmp_path: Path) -> None:
    assert f"tensor '{Q}' is missing" in refused(small(tmp_path, lambda tensors: tensors.pop(Q)))


def test_more_layers_than_there_are(tmp_path: Path) -> None:
    assert "'model.layers.2.input_layernorm.weight' is missing" in refused(small(tmp_path, num_hidden_layers=3))


def test_files_that_are_missing_or_damaged(tmp_path: Path) -> None:
    assert "config.json: cannot be read" in refused(tmp_path)
    (tmp_path / "config.json").write_text("{")
    assert "config.json: is no JSON" in refused(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    assert "must hold an object" in refused(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(small_config()))
    assert "holds no *.safetensors file" in refused(tmp_path)


@pytest.mark.parametrize("kept", [0, 5, 200, -1])
def test_a_file_that_is_cut_off(kept: int, tmp_path: Path) -> None:
    file = small(tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    assert "is cut off" in refused(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        b"no json", b"[]", b'{"a": 1}', b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}}',
    ],
)  # fmt: skip
def test_a_damaged_header(header: bytes, tmp_path: Path) -> None:
    small(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    assert "damaged" in refused(tmp_path)


def test_a_part_that_is_missing(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (small(tmp_path) / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "names files that are missing: 'model-00002-of-00002.safetensors'" in refused(tmp_path)


def test_parts_are_one_model(tmp_path: Path) -> None:
    whole = open_model(small(tmp_path / "whole"))
    tensors = small_tensors(small_config())
    halves = [dict(list(tensors.items())[:9]), dict(list(tensors.items())[9:])]
    folder = small(tmp_path / "parts")
    (folder / "model.safetensors").unlink()
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for file, part in zip(names, halves):
        save_tensors(folder / file, part)
    index = {"weight_map": {name: file for file, part in zip(names, halves) for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    ids = [3, 1, 4]
    np.testing.assert_array_equal(FloatModel(open_model(folder)).states(ids), FloatModel(whole).states(ids))


def test_parameters_of_a_rotary_embedding_that_are_missing(tmp_path: Path) -> None:
    model = open_model(small(tmp_path, rope_scaling={"rope_type": "llama3", "factor": 8.0}))
    with pytest.raises(FileFormatError, match="rotary embedding 'llama3' needs 'low_freq_factor'"):
        FloatModel(model)


def test_elements_that_are_not_supported(tmp_path: Path) -> None:
    file = small(tmp_path) / "model.safetensors"
    text = file.read_bytes().replace(b'"lm_head.weight": {"dtype": "F32"', b'"lm_head.weight": {"dtype": "F8 "')
    file.write_bytes(text)
    with pytest.raises(UnsupportedError, match=r"'lm_head.weight' has elements of type F8 "):
        Checkpoint(tmp_path).read("lm_head.weight")


def test_nets_and_lengths_that_cannot_be(tmp_path: Path) -> None:
    model = open_model(small(tmp_path))
    blocks = [f"block_{kind}{layer}" for kind in ("", "cache_", "kv_") for layer in range(2)]
    assert net_names(model)[2:] == [*blocks, "lm_head", GREEDY, SAMPLE]
    for name in ("block_2", "block", "head", "block_cache_"):
        with pytest.raises(UsageError, match=f"no net '{name}'"):
            build_net(model, name, length=8)
    for lengths in ({"length": 0}, {"length": 9, "cache": 8}):
        with pytest.raises(UsageError, match="do not fit a cache"):
            build_net(model, "block_0", **lengths)
    for wrong in ({"dtype": "f64"}, {"bits": 3}, {"head_bits": 16}, {"group_size": -1}):
        with pytest.raises(UsageError):
            Precision(**wrong)


def test_too_many_tokens_and_unknown_ones(tmp_path: Path) -> None:
    reference = FloatModel(open_model(small(tmp_path)), 8)
    with pytest.raises(RuntimeUseError, match="9 tokens exceed the 8 positions"):
        reference.states([1] * 9)
    with pytest.raises(RuntimeUseError, match="tokens must be 0 to 79"):
        reference.states([80])


def test_weights_beyond_half_precision_are_refused(tmp_path: Path) -> None:
    def grow(tensors: dict[str, np.ndarray]) -> None:
        tensors[Q][3, 5] = 1e6

    model = open_model(small(tmp_path, grow))
    build_net(model, "block_1", length=4, precision=Precision("bf16"))
    with pytest.raises(UnsupportedError, match=r"q.weight.*beyond.*f16.*bf16"):
        build_net(model, "block_1", length=4, precision=Precision("f16"))


def test_a_package_adds_a_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("shouting", "llm.test_llm_folders:SHOUTING", families.GROUP)
    monkeypatch.setattr(families, "entry_points", lambda group: {"shouting": Loader(group, "shouting", (point,))})
    given = open_model(small(tmp_path / "a", model_type="shouting"))
    plain = open_model(small(tmp_path / "b"))
    ids = [5, 2]
    np.testing.assert_array_equal(FloatModel(given).embed(ids), FloatModel(plain).embed(ids) * np.float32(8))


SHOUTING = Family(scaled_embedding=True)
