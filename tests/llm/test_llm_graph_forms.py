"""Forms in which exporters write a decoder: what ONNX Runtime computes is what is read of the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from genai_graph import GenAiGraph
from model_folders import small_config, small_tensors, write_folder
from onnx import helper, numpy_helper
from test_llm_genai import PROMPT, computed

from bmcompiler.errors import BMError
from bmcompiler.llm.compile import BundleOptions, compile_bundle
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.linear import LinearLayer
from bmcompiler.llm.model import LanguageModel, LayerWeights, open_model
from bmcompiler.llm.precision import Precision, in_precision
from bmcompiler.numeric.packed_weights import PackedWeights, packed, unpacked


class Interleaved(GenAiGraph):
    """Pairs of the rotary embedding are neighbours."""

    def node(self, kind: str, inputs: list[str], outputs: list[str] | int = 1, **attributes: object) -> str:
        if kind == "RotaryEmbedding":
            attributes["interleaved"] = 1
        elif kind == "GroupQueryAttention":
            attributes["rotary_interleaved"] = attributes["do_rotary"]
        return super().node(kind, inputs, outputs, **attributes)


class Neighbours(Interleaved):
    """So that the model is that of the folder: channels of queries and keys are ordered as they are turned."""

    def linear(self, x: str, linear: LinearLayer, name: str, bits: int | None, out: str = "") -> str:
        if name.endswith((".q_proj", ".k_proj")):
            heads = np.arange(linear.outputs).reshape(-1, 2, self.facts.head_dim // 2)
            linear = linear.rows(heads.transpose(0, 2, 1).reshape(-1))
        return super().linear(x, linear, name, bits, out)


class PartlyTurned(Interleaved):
    """Half of the channels of a head."""

    def constant(self, name: str, values: np.ndarray) -> str:
        return super().constant(name, values[:, : values.shape[1] // 2] if name.endswith("_cache") else values)


class Dequantized(GenAiGraph):
    """Weights of the type `codes` before a DequantizeLinear; turned: by outputs, behind it a Transpose."""

    codes_of, turned, blocks = "int4", False, True

    def linear(self, x: str, linear: LinearLayer, name: str, bits: int | None, out: str = "") -> str:
        kind = np.dtype(getattr(ml_dtypes, self.codes_of) if "4" in self.codes_of else self.codes_of)
        bits = 4 if "4" in self.codes_of else 8
        depth, signed = linear.depth, not self.codes_of.startswith("u")
        precision = Precision("f32", bits, group_size=16 if self.blocks else 0, symmetric=not self.blocks)
        made = in_precision(linear, precision, bits, name).weight
        assert isinstance(made, PackedWeights)
        middle = 2 ** (bits - 1) * signed
        zero = np.full(made.scale.shape, 2 ** (bits - 1)) if made.zero_point is None else made.zero_point
        parts = [unpacked(made.codes, bits, depth).astype(int) - middle, made.scale, zero.astype(int) - middle]
        parts = [part if self.turned else part.T for part in parts]
        at = int(self.turned)
        if not self.blocks:
            parts[1:] = [part.reshape(-1) for part in parts[1:]]
        kinds, ends = (kind, np.float32, kind), ("codes", "scale", "zero")
        names = [self.constant(f"{name}.{end}", part.astype(k)) for end, part, k in zip(ends, parts, kinds)]
        sizes = {"axis": at, "block_size": 16} if self.blocks else {"axis": 1 - at}
        weight = self.node("DequantizeLinear", names, **sizes)
        weight = self.node("Transpose", [weight], perm=[1, 0]) if self.turned else weight
        plain = out if out and linear.bias is None else ""
        x = self.node("MatMul", [x, weight], [plain] if plain else 1)
        return x if linear.bias is None else self.node("Add", [x, self.constant(f"{name}.bias", linear.bias)])


class TurnedBytes(Dequantized):
    codes_of, turned = "uint8", True


class PerOutput(Dequantized):
    codes_of, turned, blocks = "int8", True, False


class LongTexts(GenAiGraph):
    """Other tables for texts longer than half of the positions, as of Phi-3 with 128k tokens."""

    def attention(self, x: str, weights: LayerWeights, index: int) -> str:
        if "which" not in self.constants:
            short, long = (self.facts.positions // 2, self.facts.positions)
            tables = [table[:, : table.shape[1] // 2] for table in self.facts.rotaries[0].tables(long)]
            branches = []
            for name, cut in (("long", slice(None)), ("short", slice(short))):
                values = [(table * np.float32(1 if name == "short" else 0.5))[cut] for table in tables]
                made = [helper.make_tensor_value_info(f"{end}_{name}", 1, v.shape) for end, v in zip("cs", values)]
                held = [helper.make_node("Constant", [], [info.name], value=numpy_helper.from_array(v))
                        for info, v in zip(made, values)]  # fmt: skip
                branches.append(helper.make_graph(held, name, [], made))
            longer = self.node("Greater", ["total_seq_len", self.constant("which", np.array(short, np.int32))])
            self.node("If", [longer], ["cos_cache", "sin_cache"], then_branch=branches[0], else_branch=branches[1])
        return super().attention(x, weights, index)

    def constant(self, name: str, values: np.ndarray) -> str:
        return name if name in ("cos_cache", "sin_cache") else super().constant(name, values)


class CodedTable(GenAiGraph):
    """The table of embeddings in codes, which GatherBlockQuantized reads."""

    def node(self, kind: str, inputs: list[str], outputs: list[str] | int = 1, **attributes: object) -> str:
        if kind == "Gather" and inputs[1] == "input_ids":
            table = self.model.embedding().astype(np.float32)
            made = in_precision(
                LinearLayer(table, table.shape[1]), Precision("f32", 4, group_size=16), 4, "table"
            ).weight
            assert isinstance(made, PackedWeights) and made.zero_point is not None
            parts = {"data": made.codes, "scale": made.scale, "zero": packed(made.zero_point, 4)}
            data, scale, zero = (self.constant(f"table.{end}", part) for end, part in parts.items())
            return super().node("GatherBlockQuantized", [data, inputs[1], scale, zero], bits=4, block_size=16)
        return super().node(kind, inputs, outputs, **attributes)


class CodedRows(GenAiGraph):
    """Rows of bytes, which DequantizeLinear scales behind Gather, as dynamic quantization of ONNX Runtime leaves it."""

    def node(self, kind: str, inputs: list[str], outputs: list[str] | int = 1, **attributes: object) -> str:
        if kind != "Gather" or inputs[1] != "input_ids":
            return super().node(kind, inputs, outputs, **attributes)
        table = self.model.embedding().astype(np.float32)
        scale = np.ptp(table) / np.float32(255)
        zero = np.rint(-table.min() / scale).astype(np.uint8)
        codes = np.clip(np.rint(table / scale) + zero, 0, 255).astype(np.uint8)
        rows = super().node(kind, [self.constant("codes", codes), inputs[1]])
        return super().node("DequantizeLinear", [rows, self.constant("step", scale), self.constant("middle", zero)])


class Opset23(GenAiGraph):
    """Attention, RotaryEmbedding and RMSNormalization of ONNX itself; turned: heads before tokens."""

    turned, mask = True, ""

    def norm(self, x: str, added: str, factors: np.ndarray, name: str) -> tuple[str, str]:
        total = self.node("Add", [x, added]) if added else x
        return self.node("RMSNormalization", [total, self.constant(name, factors)], epsilon=self.facts.epsilon), total

    def attention(self, x: str, weights: LayerWeights, index: int) -> str:
        root, facts = f"model.layers.{index}.attn", self.facts
        counts = {"q": facts.heads, "k": facts.kv_heads, "v": facts.kv_heads}
        tables = [table[:, : table.shape[1] // 2] for table in facts.rotaries[index].tables(facts.positions)]
        tables = [self.constant(f"{name}_table", table) for name, table in zip(("cos", "sin"), tables)]
        parts = []
        for part, count in counts.items():
            y = self.linear(x, getattr(weights, part), f"{root}.{part}_proj", self.bits)
            if self.turned:
                shape = self.constant(f"heads_{count}", np.array([0, -1, count, facts.head_dim]))
                y = self.node("Transpose", [self.node("Reshape", [y, shape])], perm=[0, 2, 1, 3])
            if part != "v":
                heads = {} if self.turned else {"num_heads": count}
                y = self.node("RotaryEmbedding", [y, *tables, "position_ids"], domain="", **heads)
            parts.append(y)
        past = [f"past_key_values.{index}.{each}" for each in ("key", "value")]
        outs = [f"{root}/out", *(f"present.{index}.{each}" for each in ("key", "value"))]
        heads = {} if self.turned else {"q_num_heads": facts.heads, "kv_num_heads": facts.kv_heads}
        y = self.node("Attention", [*parts, self.mask, *past], outs, is_causal=1, **heads)
        if self.turned:
            flat = self.constant("flat", np.array([0, -1, facts.heads * facts.head_dim]))
            y = self.node("Reshape", [self.node("Transpose", [y], perm=[0, 2, 1, 3]), flat])
        return self.linear(y, weights.o, f"{root}.o_proj", self.bits)


class Opset23Flat(Opset23):
    turned = False


def written(kind: type[GenAiGraph], folder: Path, **how: Any) -> tuple[LanguageModel, Path]:
    """The file of a small model in a form, and what is read of it."""
    config = small_config(torch_dtype="float16", **how.pop("config", {}))
    model = open_model(write_folder(folder / "model", config, small_tensors(config, np.float16)))
    graph = kind(model, dtype="float32", **how)
    graph.opset = 23 if isinstance(graph, Opset23) else 21
    onnx.save(graph.build(), folder / "x.onnx")
    return model, folder / "x.onnx"


@pytest.mark.parametrize(
    "kind, how",
    [
        (Interleaved, {"config": {"model_type": "qwen3"}, "bits": 4}),
        (PartlyTurned, {"config": {"model_type": "qwen2", "head_dim": 32}}),
        (Dequantized, {"config": {"model_type": "qwen2"}, "joined": True}),
        (TurnedBytes, {}),
        (PerOutput, {}),
        (CodedTable, {}),
        (CodedRows, {}),
        (Opset23, {"rotary_ops": True}),
        (Opset23Flat, {"rotary_ops": True, "bits": 4}),
    ],
)
def test_a_form_means_what_the_runtime_computes(kind: type[GenAiGraph], how: dict[str, Any], tmp_path: Path) -> None:
    _, file = written(kind, tmp_path, **how)
    model = FloatModel(open_model(file))
    np.testing.assert_allclose(model.logits(model.states(PROMPT)), computed(file, PROMPT), rtol=1e-4, atol=1e-4)
    packed_kinds = [isinstance(model.model.layer(1).q.weight, PackedWeights)]
    assert packed_kinds == [issubclass(kind, Dequantized) or bool(how.get("bits"))]


@pytest.mark.parametrize(
    "kind",
    [Neighbours, pytest.param(CodedTable, marks=pytest.mark.sweep), pytest.param(CodedRows, marks=pytest.mark.sweep)],
)
def test_the_bundle_of_a_form_is_that_of_a_folder(kind: type[GenAiGraph], tmp_path: Path) -> None:
    """Byte for byte; of the folder with the numbers of the table where it is codes."""
    folder, file = written(kind, tmp_path, bits=4, config={"model_type": "qwen2", "num_hidden_layers": 1})
    found, config = open_model(file), json.loads((folder.path / "config.json").read_text())
    tensors = small_tensors(config, np.float16) | {"model.embed_tokens.weight": found.embedding()}
    plain = open_model(write_folder(tmp_path / "plain", config, tensors))
    options = BundleOptions(Precision("f16", 4), length=4, cache=12, logits=False, check="never")
    one, other = (b"".join(map(bytes, compile_bundle(each, options).model.parts())) for each in (plain, found))
    assert one == other


def test_tables_for_longer_texts_are_chosen_by_the_length_of_a_bundle(tmp_path: Path) -> None:
    _, file = written(LongTexts, tmp_path)
    found, ids = open_model(file), PROMPT * 5
    assert found.architecture.positions == 64
    for rows, prompt in ((32, PROMPT), (64, ids)):
        model = FloatModel(found, rows)
        np.testing.assert_allclose(model.logits(model.states(prompt)), computed(file, prompt), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kind, change, said",
    [
        (Opset23, {"is_causal": 0}, "is not causal"),
        (LongTexts, {"cos_cache": None}, "has no constant tables of a rotary embedding"),
        (Dequantized, {"block_size": 32}, "scales and zero points of shape [4, 64] should have [2, 64]"),
    ],
)
def test_forms_that_are_not_read_are_one_sentence(
    kind: type[GenAiGraph], change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    _, file = written(kind, tmp_path, rotary_ops=kind is Opset23)
    model = onnx.load(file)
    for node in model.graph.node:
        for each in node.attribute:
            if each.name in change:
                each.i = change[each.name]
        if node.op_type == "If" and "cos_cache" in change:
            node.op_type = "Where"
    onnx.save(model, file)
    with pytest.raises(BMError, match=r"x\.onnx") as raised:
        open_model(file).layer(0)
    assert said in str(raised.value) and not re.search(r"\n", str(raised.value))
