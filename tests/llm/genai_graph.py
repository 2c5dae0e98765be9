"""A model folder as a graph in the ops of ONNX Runtime GenAI, with past and present, as its builder writes them.

`python tests/llm/genai_graph.py FOLDER OUT.onnx [--bits 4]`
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bmcompiler.llm.linear import LinearLayer
from bmcompiler.llm.model import LanguageModel, LayerWeights, open_model
from bmcompiler.llm.precision import Precision, in_precision
from bmcompiler.numeric.packed_weights import PackedWeights, packed

_MICROSOFT = "com.microsoft"
_OURS = (
    "GatherBlockQuantized", "GroupQueryAttention", "MatMulNBits", "RotaryEmbedding", "SkipSimplifiedLayerNormalization"
)  # fmt: skip


class GenAiGraph:
    """Nodes and constants of a model. dtype: numpy's name of all floats.

    Args:
        bits: of weights, which have groups of 64; None for floats.
        joined: query, key and value are one product. rotary_ops: rotary embedding as nodes of its own.
        skip: sums and norms are one op.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        bits: int | None = None,
        dtype: str = "float16",
        joined: bool = False,
        rotary_ops: bool = False,
        skip: bool = True,
    ) -> None:
        self.model, self.facts, self.bits, self.dtype = model, model.architecture, bits, np.dtype(dtype)
        self.joined, self.rotary_ops, self.skip = joined, rotary_ops, skip
        self.opset = 21
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, values: np.ndarray) -> str:
        if name not in self.constants:
            kept = values.astype(self.dtype) if values.dtype.kind == "f" else values
            self.constants[name] = numpy_helper.from_array(np.asarray(kept, order="C"), name)
        return name

    def node(self, kind: str, inputs: list[str], outputs: list[str] | int = 1, **attributes: object) -> str:
        name = f"/{len(self.nodes)}/{kind}"
        outs = [f"{name}/output_{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        domain = attributes.pop("domain", _MICROSOFT if kind in _OURS else "")
        self.nodes.append(helper.make_node(kind, inputs, outs, name=name, domain=str(domain), **attributes))
        return outs[0]

    def norm(self, x: str, added: str, factors: np.ndarray, name: str) -> tuple[str, str]:
        """The norm of x + added, and the sum."""
        weight, epsilon = self.constant(name, factors), self.facts.epsilon
        if added and self.skip:
            outs = [f"{name}/output_0", "", "", f"{name}/output_3"]
            self.node("SkipSimplifiedLayerNormalization", [x, added, weight], outs, epsilon=epsilon)
            return outs[0], outs[3]
        total = self.node("Add", [x, added]) if added else x
        return self.node("SimplifiedLayerNormalization", [total, weight], epsilon=epsilon, axis=-1), total

    def linear(self, x: str, linear: LinearLayer, name: str, bits: int | None, out: str = "") -> str:
        """x by the weights of a layer, and its bias."""
        precision = Precision("f16" if self.dtype == np.float16 else "f32", bits, group_size=64)
        made = in_precision(linear, precision, bits, name).weight
        last = [out] if out and linear.bias is None else 1
        if isinstance(made, PackedWeights):
            x = self.node("MatMulNBits", [x, *self.codes(made, linear.depth, name)], last, K=linear.depth,
                          N=linear.outputs, bits=made.bits, block_size=made.group_size)  # fmt: skip
        else:
            x = self.node("MatMul", [x, self.constant(f"{name}.weight", made.T)], last)
        if linear.bias is None:
            return x
        return self.node("Add", [x, self.constant(f"{name}.bias", linear.bias)], [out] if out else 1)

    def codes(self, weights: PackedWeights, depth: int, name: str) -> list[str]:
        """Blocks of bytes (N, blocks, bytes of a block), scales, zero points packed by rows."""
        n, blocks = weights.scale.shape
        size = weights.group_size * weights.bits // 8
        codes = np.pad(weights.codes, [(0, 0), (0, blocks * size - weights.codes.shape[1])]).reshape(n, blocks, size)
        assert weights.zero_point is not None
        zero = packed(weights.zero_point, weights.bits)
        parts = {"weight_Q4": codes, "weight_scales": weights.scale.reshape(-1), "weight_zp": zero.reshape(-1)}
        return [self.constant(f"{name}.{part}", values) for part, values in parts.items()]

    def attention(self, x: str, weights: LayerWeights, index: int) -> str:
        root, facts = f"model.layers.{index}.attn", self.facts
        linears = [weights.q, weights.k, weights.v]
        if self.joined:
            bias = None if weights.q.bias is None else np.concatenate([each.bias for each in linears])
            whole = LinearLayer(np.concatenate([each.dense() for each in linears]), facts.hidden, bias)
            parts = [self.linear(x, whole, f"{root}.qkv_proj", self.bits), "", ""]
        else:
            parts = [self.linear(x, each, f"{root}.{name}_proj", self.bits) for name, each in zip("qkv", linears)]
        for i, factors in enumerate((weights.q_norm, weights.k_norm)):
            if factors is not None:
                parts[i] = self.head_norm(parts[i], factors, f"{root}.{'qk'[i]}_norm")
        cos, sin = (table[:, : table.shape[1] // 2] for table in facts.rotaries[index].tables(facts.positions))
        tables = [self.constant("cos_cache", cos), self.constant("sin_cache", sin)]
        if self.rotary_ops:
            parts[:2] = [self.node("RotaryEmbedding", [each, "position_ids", *tables]) for each in parts[:2]]
        outs = [f"{root}/out", *(f"present.{index}.{each}" for each in ("key", "value"))]
        past = [f"past_key_values.{index}.{each}" for each in ("key", "value")]
        window = facts.windows[index]
        self.node(
            "GroupQueryAttention", [*parts, *past, "seqlens_k", "total_seq_len", *([] if self.rotary_ops else tables)],
            outs, num_heads=facts.heads, kv_num_heads=facts.kv_heads, scale=facts.attention_scale,
            do_rotary=int(not self.rotary_ops), local_window_size=-1 if window is None else window,
        )  # fmt: skip
        return self.linear(outs[0], weights.o, f"{root}.o_proj", self.bits)

    def head_norm(self, x: str, factors: np.ndarray, name: str) -> str:
        heads = self.node("Reshape", [x, self.constant("by_heads", np.array([0, -1, len(factors)]))])
        heads = self.norm(heads, "", factors, name)[0]
        width = self.facts.heads if name.endswith("q_norm") else self.facts.kv_heads
        return self.node("Reshape", [heads, self.constant(f"of_{width}", np.array([0, -1, width * len(factors)]))])

    def mlp(self, x: str, weights: LayerWeights, index: int) -> str:
        root = f"model.layers.{index}.mlp"
        gate, up = (self.linear(x, getattr(weights, part), f"{root}.{part}_proj", self.bits) for part in ("gate", "up"))
        active = self.node("Mul", [gate, self.node("Sigmoid", [gate])])
        return self.linear(self.node("Mul", [active, up]), weights.down, f"{root}.down_proj", self.bits)

    def lengths(self) -> None:
        """How many tokens there are, of the mask."""
        total = self.node("ReduceSum", ["attention_mask", self.constant("axis_1", np.array([1]))])
        before = self.node("Sub", [total, self.constant("one", np.array([1]))])
        self.node("Cast", [before], ["seqlens_k"], to=TensorProto.INT32)
        shape = self.node("Gather", [self.node("Shape", ["attention_mask"]), self.constant("place_1", np.array(1))])
        self.node("Cast", [shape], ["total_seq_len"], to=TensorProto.INT32)

    def build(self) -> onnx.ModelProto:
        facts, kind = self.facts, helper.np_dtype_to_tensor_dtype(self.dtype)
        self.lengths()
        table = self.constant("model.embed_tokens.weight", self.model.embedding())
        x, added = self.node("Gather", [table, "input_ids"]), ""
        for index in range(facts.layers):
            weights = self.model.layer(index)
            assert weights.attention_norm is not None and weights.mlp_norm is not None
            root = f"model.layers.{index}"
            y, x = self.norm(x, added, weights.attention_norm, f"{root}.input_layernorm.weight")
            added = self.attention(y, weights, index)
            y, x = self.norm(x, added, weights.mlp_norm, f"{root}.post_attention_layernorm.weight")
            added = self.mlp(y, weights, index)
        y, _ = self.norm(x, added, self.model.final_norm(), "model.norm.weight")
        self.linear(y, self.model.head(), "lm_head", None, "logits")
        caches = [(index, each) for index in range(facts.layers) for each in ("key", "value")]
        ids = [("input_ids", "tokens"), ("attention_mask", "total")]
        ids += [("position_ids", "tokens")] if self.rotary_ops else []
        shape = ["batch", facts.kv_heads, "past", facts.head_dim]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", size]) for name, size in ids]
        inputs += [helper.make_tensor_value_info(f"past_key_values.{i}.{n}", kind, shape) for i, n in caches]
        outputs = [helper.make_tensor_value_info("logits", kind, ["batch", "tokens", facts.vocabulary])]
        outputs += [helper.make_tensor_value_info(f"present.{i}.{n}", kind, [*shape[:2], "all", shape[3]])
                    for i, n in caches]  # fmt: skip
        graph = helper.make_graph(self.nodes, "main_graph", inputs, outputs, list(self.constants.values()))
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="genai_graph")


def main() -> None:
    parser = argparse.ArgumentParser(description="A model folder as a graph in the ops of ONNX Runtime GenAI.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--bits", type=int, choices=(4, 8))
    asked = parser.parse_args()
    onnx.save(GenAiGraph(open_model(asked.folder), bits=asked.bits).build(), asked.out)


if __name__ == "__main__":
    main()
