"""Graphs in the ops of ONNX Runtime GenAI: what the runtime computes, and the bundle of the folder they come from."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from genai_graph import GenAiGraph
from model_folders import small_config, small_tensors, write_folder
from onnx import helper, numpy_helper

from bmcompiler.cli.llm import main as command
from bmcompiler.errors import BMError
from bmcompiler.llm.bundle import Bundle
from bmcompiler.llm.compile import BundleOptions, compile_bundle
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.generate import Generator
from bmcompiler.llm.model import LanguageModel, architecture_of, open_model
from bmcompiler.llm.precision import Precision
from bmcompiler.llm.text import end_tokens

SMALL_LLAMA = Path(__file__).parents[2] / "models" / "small_llama"
PROMPT = [1, 5, 70, 33, 2, 9, 17]


def folder_of(parent: Path, **config: Any) -> LanguageModel:
    facts = small_config(torch_dtype="float16", **config)
    return open_model(write_folder(parent / "model", facts, small_tensors(facts, np.float16)))


def graph_of(model: LanguageModel, file: Path, **how: Any) -> LanguageModel:
    onnx.save(GenAiGraph(model, **how).build(), file)
    return open_model(file)


def computed(file: Path, ids: list[int]) -> np.ndarray:
    """Logits of ONNX Runtime for a prompt, with an empty past."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # which rounds activations
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    feed: dict[str, np.ndarray] = {}
    for given in session.get_inputs():
        if given.name.startswith("past"):
            kind = np.float16 if "16" in given.type else np.float32
            feed[given.name] = np.zeros((1, given.shape[1], 0, given.shape[3]), kind)
        else:
            values = {"input_ids": ids, "attention_mask": [1] * len(ids), "position_ids": range(len(ids))}
            feed[given.name] = np.array([values[given.name]])
    logits: np.ndarray = session.run(["logits"], feed)[0]
    return logits[0]


@pytest.mark.parametrize(
    "config, how",
    [
        ({}, {"bits": 4}),
        ({"model_type": "qwen2"}, {"joined": True}),
        ({"model_type": "qwen3"}, {"rotary_ops": True, "bits": 8}),
        ({"model_type": "mistral", "sliding_window": 3}, {"skip": False}),
    ],
)
def test_a_graph_means_what_the_runtime_computes(config: dict[str, Any], how: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "x.onnx"
    found = graph_of(folder_of(tmp_path, **config), file, dtype="float32", **how)
    model = FloatModel(found)
    np.testing.assert_allclose(model.logits(model.states(PROMPT)), computed(file, PROMPT), rtol=1e-4, atol=1e-4)
    assert (found.architecture.layers, found.architecture.dtype) == (2, "f32")


@pytest.mark.parametrize("bits", [None, 4])
def test_its_bundle_is_that_of_the_folder(bits: int | None, tmp_path: Path) -> None:
    """Byte for byte: codes, tables and sizes are the same."""
    folder = folder_of(tmp_path, num_hidden_layers=1)
    graph = graph_of(folder, tmp_path / "x.onnx", bits=bits)
    options = BundleOptions(Precision("f16", bits), length=4, cache=12, logits=False, check="never")
    one, other = (b"".join(map(bytes, compile_bundle(each, options).model.parts())) for each in (folder, graph))
    assert one == other


@pytest.mark.sweep
@pytest.mark.parametrize("bits", [None, 4])
def test_the_trained_model_says_the_same(bits: int | None, tmp_path: Path) -> None:
    """60 tokens of models/small_llama, by its folder and by its graph."""
    folder = open_model(SMALL_LLAMA)
    graph = graph_of(folder, tmp_path / "x.onnx", bits=bits)
    options = BundleOptions(Precision("f16", bits), length=8, cache=80)
    said = []
    for model in (folder, graph):
        made = compile_bundle(model, options)
        assert set(made.unchecked) <= {"sample_head"}
        said.append(list(Generator(Bundle.of(made.model)).generate([0, 5, 70, 33], 60)))
    assert said[0] == said[1] and len(set(said[0])) > 20


def test_the_command_takes_a_graph(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "genai"
    made.mkdir()
    graph_of(folder_of(tmp_path, num_hidden_layers=1), made / "model.onnx", bits=4)
    (made / "genai_config.json").write_text(json.dumps({"model": {"eos_token_id": [79]}}))

    def bmnet(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["bmnet-llm", *words])
        with pytest.raises(SystemExit) as ended:
            command()
        assert not ended.value.code
        return capfd.readouterr().out

    words = ("--length", "4", "--cache", "8", "--head", "token", "--check", "never")
    bmnet("compile", str(made), "-o", str(tmp_path / "a/x.bmodel"), *words)
    assert end_tokens(tmp_path / "a/config") == {79}
    assert len(bmnet("run", str(tmp_path / "a/x.bmodel"), "--tokens", "1,5", "--count", "3").split()) == 3
    assert "w4f16" in bmnet("estimate", str(made), "--length", "8")
    assert architecture_of(made / "model.onnx").hidden == architecture_of(made).hidden == 64


def renamed(kind: str, to: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        next(node for node in model.graph.node if node.op_type == kind).op_type = to

    return change


def with_attribute(kind: str, **values: Any) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        node = next(node for node in model.graph.node if node.op_type == kind)
        kept = [each for each in node.attribute if each.name not in values]
        del node.attribute[:]
        node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in values.items())])

    return change


def other_stream(model: onnx.ModelProto) -> None:
    """The second sum of a layer takes the rows of the embedding, not the sum before it."""
    sums = [node for node in model.graph.node if node.op_type == "SkipSimplifiedLayerNormalization"]
    sums[1].input[0] = sums[0].input[0]


def two_epsilons(model: onnx.ModelProto) -> None:
    with_attribute("SkipSimplifiedLayerNormalization", epsilon=0.5)(model)


def narrow_gate(model: onnx.ModelProto) -> None:
    for tensor in model.graph.initializer:
        if tensor.name == "model.layers.1.mlp.gate_proj.weight":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor)[:, :32], tensor.name))


@pytest.mark.parametrize(
    "change, said",
    [
        (with_attribute("GroupQueryAttention", do_rotary=0), "no constant tables of a rotary embedding"),
        (with_attribute("GroupQueryAttention", smooth_softmax=1), "smooth_softmax"),
        (with_attribute("GroupQueryAttention", kv_num_heads=3), "4 heads of queries do not share 3 heads of keys"),
        (renamed("Sigmoid", "Tanh"), "should be activation(gate) * up, of silu or gelu"),
        (renamed("SimplifiedLayerNormalization", "LayerNormalization"), "should be a norm of the stream"),
        (other_stream, "adds to another stream than that of its layer"),
        (two_epsilons, "differs from the first layer"),
        (narrow_gate, "differs from the first layer"),
    ],
)
def test_other_graphs_are_refused(change: Callable[[onnx.ModelProto], None], said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.onnx"
    model = GenAiGraph(folder_of(tmp_path)).build()
    change(model)
    onnx.save(model, file)
    with pytest.raises(BMError, match=r"x\.onnx") as raised:
        open_model(file)
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_files_that_hold_no_language_model(tmp_path: Path) -> None:
    file = tmp_path / "x.onnx"
    whole = GenAiGraph(folder_of(tmp_path)).build().SerializeToString()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BMError, match=r"x\.onnx: is not an ONNX model"):
        open_model(file)
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy"]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])), file)
    with pytest.raises(BMError, match="holds no GroupQueryAttention"):
        open_model(file)
