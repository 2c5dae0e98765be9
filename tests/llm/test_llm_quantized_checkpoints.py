"""GPTQ and AWQ folders as they are, and float ones quantized here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from llm.model_folders import small_config, small_tensors, write_folder

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.interpreter import run_module
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.llm.nets import build_net
from bmcompiler.llm.precision import Precision, in_precision
from bmcompiler.numeric.packed_weights import PackedWeights

GROUP = 32
AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)
"""Columns in the nibbles of a word, lowest first."""


def words(codes: np.ndarray, bits: int, columns: tuple[int, ...]) -> np.ndarray:
    """Codes (rows, n) in int32 words along the last axis, code `columns[i]` of a word in its i-th place."""
    parts = codes.reshape(len(codes), -1, 32 // bits).astype(np.uint64)
    return sum(parts[..., c] << np.uint64(bits * i) for i, c in enumerate(columns)).astype(np.uint32).view(np.int32)


def quantized_tensors(
    method: str, bits: int, order: np.ndarray | None = None, stored: int = 1
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A model of random codes, and the same one in floats."""
    config = small_config(hidden_size=64, intermediate_size=96)
    rng, packed, plain = np.random.default_rng(5), {}, small_tensors(config, np.float16)
    for name, weight in list(plain.items()):
        if "_proj" not in name:
            packed[name] = weight
            continue
        (n, k), root = weight.shape, name.removesuffix(".weight")
        codes = rng.integers(0, 2**bits, (k, n))
        zeros = rng.integers(0, 2**bits, (k // GROUP, n))
        scales = ((rng.random((k // GROUP, n)) + 0.5) * k**-0.5 * 2 / 2**bits).astype(np.float16)
        groups = np.arange(k) // GROUP
        if order is not None:
            groups = groups[np.argsort(np.random.default_rng(k).permutation(k))]
            packed[f"{root}.g_idx"] = groups.astype(np.int32)
        wide = scales[groups].astype(np.float32) * (codes - zeros[groups]).astype(np.float32)
        plain[name] = wide.T.copy()
        straight = tuple(range(32 // bits))
        if method == "compressed-tensors":
            packed[f"{root}.weight_packed"] = words(codes.T, bits, straight)
            packed[f"{root}.weight_scale"] = np.ascontiguousarray(scales.T)
            packed[f"{root}.weight_zero_point"] = np.ascontiguousarray(words(zeros, bits, straight).T)
            continue
        if method == "gptq":
            packed[f"{root}.qweight"] = np.ascontiguousarray(words(codes.T, bits, straight).T)
            packed[f"{root}.qzeros"] = words((zeros - stored) % 2**bits, bits, straight)
        else:
            packed[f"{root}.qweight"] = words(codes, bits, AWQ_COLUMNS)
            packed[f"{root}.qzeros"] = words(zeros, bits, AWQ_COLUMNS)
        packed[f"{root}.scales"] = scales
    return packed, plain


def compressed(bits: int, **more: Any) -> dict[str, Any]:
    """Settings of compressed-tensors."""
    weights = {"num_bits": bits, "type": "int", "strategy": "group", "group_size": GROUP, **more}
    return {"format": "pack-quantized", "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}}}


def quantized_model(folder: Path, method: str, bits: int, tensors: dict[str, np.ndarray], **more: Any) -> LanguageModel:
    given = {"quant_method": method, "bits": bits, "group_size": GROUP, **more}
    config = small_config(torch_dtype="float16", quantization_config=given)
    return open_model(write_folder(folder, config, tensors))


@pytest.mark.parametrize(
    "method, bits, more",
    [
        ("gptq", 4, {}),
        ("gptq", 8, {}),
        ("gptq", 4, {"checkpoint_format": "gptq_v2"}),
        ("gptq", 4, {"desc_act": True}),
        ("awq", 4, {"version": "gemm", "zero_point": True}),
        ("compressed-tensors", 4, compressed(4)),
        ("compressed-tensors", 8, compressed(8)),
    ],
)
def test_codes_mean_what_the_floats_are(method: str, bits: int, more: dict[str, Any], tmp_path: Path) -> None:
    order = np.arange(1) if more.get("desc_act") else None
    packed, plain = quantized_tensors(method, bits, order, stored=0 if "checkpoint_format" in more else 1)
    model = quantized_model(tmp_path / "codes", method, bits, packed, **more)
    floats = open_model(write_folder(tmp_path / "floats", small_config(), plain))
    for part in ("q", "k", "v", "o", "gate", "up", "down"):
        found = getattr(model.layer(1), part)
        np.testing.assert_array_equal(found.dense(), getattr(floats.layer(1), part).dense())
        assert isinstance(found.weight, PackedWeights) and (found.order is None) == (order is None)
    ids = [1, 60, 33, 7, 7, 2]
    wanted = FloatModel(floats).states(ids)
    np.testing.assert_array_equal(FloatModel(model).states(ids), wanted)
    np.testing.assert_allclose(states_of_nets(model, ids, "f32"), wanted, atol=1e-5)
    error = np.abs(states_of_nets(model, ids, "f16") - wanted)
    assert 0 < error.max() < 0.02


def states_of_nets(model: LanguageModel, ids: list[int], dtype: str) -> np.ndarray:
    precision = Precision(dtype)
    state = run_module(
        build_net(model, "embedding", length=len(ids), precision=precision), {"input_ids": np.array([ids], np.int32)}
    )["embedding"]
    mask = np.where(np.tri(len(ids), dtype=bool), 0, -10000).astype(state.dtype)[None, None]
    for i in range(model.architecture.layers):
        module = build_net(model, f"block_{i}", length=len(ids), precision=precision)
        positions = np.arange(len(ids), dtype=np.int32)[None]
        inputs = {"input_states": state, "position_ids": positions, "attention_mask": mask}
        state = run_module(module, inputs)["output_states"]
    return state[0].astype(np.float32)


def test_groups_of_unlike_sizes_are_refused(tmp_path: Path) -> None:
    packed, _ = quantized_tensors("gptq", 4, np.arange(1))
    name = "model.layers.0.mlp.up_proj.g_idx"
    packed[name] = np.where(np.arange(len(packed[name])) < 5, 0, packed[name]).astype(np.int32)
    model = quantized_model(tmp_path, "gptq", 4, packed, desc_act=True)
    with pytest.raises(UnsupportedError, match="g_idx' has groups that do not hold 32 inputs each"):
        model.layer(0)


def test_compressed_codes_without_zero_points_are_signed(tmp_path: Path) -> None:
    packed, _ = quantized_tensors("compressed-tensors", 4)
    given = {name: values for name, values in packed.items() if "zero_point" not in name}
    layer = quantized_model(tmp_path, "compressed-tensors", 4, given, **compressed(4)).layer(0).up
    assert isinstance(layer.weight, PackedWeights)
    scale = given["model.layers.0.mlp.up_proj.weight_scale"].astype(np.float32).repeat(GROUP, 1)
    codes = given["model.layers.0.mlp.up_proj.weight_packed"].view(np.uint32)
    first = (codes & 15).astype(np.float32) - 8
    np.testing.assert_array_equal(layer.dense()[:, ::8], first * scale[:, ::8])


@pytest.mark.parametrize("wrong", [{"type": "float"}, {"num_bits": 2}, {"strategy": "tensor"}, {"group_size": None}])
def test_compressed_weights_that_nobody_knows_are_a_sentence(wrong: dict[str, Any], tmp_path: Path) -> None:
    packed, _ = quantized_tensors("compressed-tensors", 4)
    with pytest.raises(UnsupportedError, match="compressed-tensors of format 'pack-quantized'"):
        quantized_model(tmp_path, "compressed-tensors", 4, packed, **compressed(4, **wrong))


@pytest.mark.parametrize("kind", ["qweight", "qzeros", "scales"])
def test_tensors_of_a_quantized_layer_that_do_not_fit(kind: str, tmp_path: Path) -> None:
    packed, _ = quantized_tensors("gptq", 4)
    name = f"model.layers.1.self_attn.k_proj.{kind}"
    with pytest.raises(FileFormatError, match=rf"{kind}' has shape .* asks for"):
        quantized_model(tmp_path / "other", "gptq", 4, {**packed, name: packed[name][:1]})
    packed.pop(name)
    with pytest.raises(FileFormatError, match=f"'{name}' is missing"):
        quantized_model(tmp_path, "gptq", 4, packed)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("bits, limit", [(8, 0.006), (4, 0.1)])
def test_weights_quantized_here_are_near(bits: int, limit: float, dtype: str, tmp_path: Path) -> None:
    model = open_model(write_folder(tmp_path, small_config(), small_tensors(small_config())))
    linear = model.layer(0).gate
    held = in_precision(linear, Precision(dtype, bits, group_size=32), bits, "gate")
    assert isinstance(held.weight, PackedWeights) and held.weight.codes.shape == (96, 64 * bits // 8)
    error = held.dense() - linear.dense()
    assert 0 < np.sqrt(np.mean(error**2) / np.mean(linear.dense() ** 2)) < limit


def test_a_net_keeps_codes_as_codes(tmp_path: Path) -> None:
    model = open_model(write_folder(tmp_path, small_config(), small_tensors(small_config())))
    module = build_net(model, "block_0", length=4, precision=Precision("f16", 4, group_size=32))
    products = [op for op in module.main.ops if op.short_name == "weight_only_matmul"]
    assert len(products) == 7 and {op.operands[1].dtype for op in products} == {"u8"}
    head = build_net(model, "lm_head", length=4, precision=Precision("f16", head_bits=8))
    assert "weight_only_matmul" in {op.short_name for op in head.main.ops}


@pytest.mark.parametrize("scales", ["tensor", "channel", "blocks"])
def test_weights_of_fp8_are_floats_times_their_scales(scales: str, tmp_path: Path) -> None:
    """As fp8 and compressed-tensors write them; activations stay in 16 bits. What is left out stays as it is."""
    config = small_config(num_hidden_layers=1, torch_dtype="float16")
    plain = small_tensors(config, np.float16)
    stored, rng = dict(plain), np.random.default_rng(4)
    for name, weight in plain.items():
        if "_proj" not in name:
            continue
        n, k = weight.shape
        shape = {"tensor": (), "channel": (n, 1), "blocks": (-(-n // 40), -(-k // 40))}[scales]
        scale = np.asarray(rng.random(shape) + 0.5, np.float32)
        wide = np.repeat(np.repeat(scale, 40, 0)[:n], 40, 1)[:, :k] if scales == "blocks" else scale
        stored[name] = (weight / wide).astype(ml_dtypes.float8_e4m3fn)
        stored[f"{name}_scale_inv" if scales == "blocks" else f"{name}_scale"] = scale
        plain[name] = stored[name].astype(np.float32) * wide
    weights = {"type": "float", "num_bits": 8, "strategy": scales}
    given: dict[str, Any] = {"quant_method": "fp8", "weight_block_size": [40, 40]}
    if scales != "blocks":
        groups = {"group_0": {"weights": weights, "input_activations": {"dynamic": True}}}
        given = {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": groups}
    model = open_model(write_folder(tmp_path, {**config, "quantization_config": given}, stored))
    layer = model.layer(0)
    for part in ("q", "k", "v", "o", "gate", "up", "down"):
        kind = "mlp" if part in ("gate", "up", "down") else "self_attn"
        np.testing.assert_array_equal(getattr(layer, part).dense(), plain[f"model.layers.0.{kind}.{part}_proj.weight"])
    np.testing.assert_array_equal(model.head().dense(), plain["lm_head.weight"].astype(np.float32))


def test_fp8_without_its_scales_is_refused(tmp_path: Path) -> None:
    config = small_config(num_hidden_layers=1, quantization_config={"quant_method": "fp8"})
    tensors = small_tensors(config, np.float16)
    tensors["model.layers.0.mlp.up_proj.weight"] = tensors["model.layers.0.mlp.up_proj.weight"].astype(
        ml_dtypes.float8_e4m3fn
    )
    folder = write_folder(tmp_path, config, tensors)
    with pytest.raises(FileFormatError, match=r"up_proj.weight_scale' is missing"):
        open_model(folder)
