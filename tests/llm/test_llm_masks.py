"""Masks that a graph computes itself: causal ones are known by what they show, others are refused in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from test_llm_genai import PROMPT, computed
from test_llm_graph_forms import Opset23, written

from bmcompiler.errors import BMError
from bmcompiler.llm.float_model import FloatModel
from bmcompiler.llm.model import open_model

LEAST = float(np.finfo(np.float32).min)


class Masked(Opset23):
    """Keys and values behind those of the cache by Concat; the mask is nodes' work, made once."""

    causal = 0

    def number(self, value: int | float) -> str:
        return self.constant(f"number_{value}", np.array(value, np.float32 if isinstance(value, float) else np.int64))

    def size(self, name: str, axis: int) -> str:
        return self.node("Gather", [self.node("Shape", [name]), self.number(axis)])

    def rows(self) -> str:
        """Places of the tokens, (1, 1, tokens, 1)."""
        return self.node("Unsqueeze", ["position_ids", self.constant("axes_13", np.array([1, 3]))])

    def unpadded(self) -> str:
        there = self.node("Cast", ["attention_mask"], to=TensorProto.BOOL)
        return self.node("Unsqueeze", [there, self.constant("axes_12", np.array([1, 2]))])

    def keys(self) -> str:
        return self.node("Range", [self.number(0), self.size("attention_mask", 1), self.number(1)])

    def seen(self) -> str:
        return self.node("And", [self.node("LessOrEqual", [self.keys(), self.rows()]), self.unpadded()])

    def node(self, kind: str, inputs: list[str], outputs: list[str] | int = 1, **attributes: object) -> str:
        if kind == "Attention":
            assert isinstance(outputs, list)
            self.mask = self.mask or self.seen()
            parts = zip(inputs[4:], inputs[1:3], outputs[1:])
            caches = [super(Masked, self).node("Concat", [old, new], [out], axis=2) for old, new, out in parts]
            attributes["is_causal"] = self.causal
            inputs, outputs = [inputs[0], *caches, self.mask], outputs[:1]
        return super().node(kind, inputs, outputs, **attributes)


class Narrow(Masked):
    """The last three tokens."""

    def seen(self) -> str:
        first = self.node("Sub", [self.rows(), self.number(3)])
        return self.node("And", [super().seen(), self.node("Greater", [self.keys(), first])])


class Terms(Masked):
    """The least number above a diagonal that lies behind the cache, places by the size of the embeddings."""

    def seen(self) -> str:
        table = next(node.output[0] for node in self.nodes if "input_ids" in node.input)
        tokens, past = self.size(table, 1), self.size("past_key_values.0.key", 2)
        total, one = self.node("Add", [tokens, past]), self.constant("axis_0", np.array([0]))
        shape = [self.node("Unsqueeze", [each, one]) for each in (tokens, total)]
        full = self.node("Expand", [self.number(LEAST), self.node("Concat", shape, axis=0)])
        upper = self.node("Trilu", [full, self.node("Add", [past, self.number(1)])], upper=1)
        return self.node("Where", [self.unpadded(), upper, self.number(LEAST)])


class PaddingAlone(Masked):
    """Causal by the attribute; the mask says which tokens are none."""

    causal = 1

    def seen(self) -> str:
        rows = self.node("Equal", [self.rows(), self.rows()])
        return self.node("And", [rows, self.unpadded()])


class Both(PaddingAlone):
    """Tokens see those behind them."""

    causal = 0


class Slopes(Masked):
    """Scores get less with the distance."""

    def seen(self) -> str:
        far = self.node("Cast", [self.node("Sub", [self.keys(), self.rows()])], to=TensorProto.FLOAT)
        return self.node("Where", [super().seen(), far, self.number(LEAST)])


class Strict(Masked):
    """Tokens do not see themselves."""

    def seen(self) -> str:
        return self.node("And", [super().seen(), self.node("Less", [self.keys(), self.rows()])])


class Prefix(Masked):
    """The first two tokens see each other."""

    def seen(self) -> str:
        return self.node("Or", [super().seen(), self.node("Less", [self.keys(), self.number(2)])])


class Given(Masked):
    """The mask is an input."""

    mask = "mask"

    def build(self) -> onnx.ModelProto:
        model = super().build()
        shape = ["batch", "tokens", "total"]
        model.graph.input.append(onnx.helper.make_tensor_value_info("mask", TensorProto.BOOL, shape))
        return model


@pytest.mark.parametrize("kind, window", [(Masked, None), (Narrow, 3), (Terms, None), (PaddingAlone, None)], ids=str)
def test_a_causal_mask_means_what_the_runtime_computes(kind: type[Masked], window: int | None, tmp_path: Path) -> None:
    _, file = written(kind, tmp_path, rotary_ops=True)
    model = FloatModel(open_model(file))
    assert model.model.architecture.windows == (window, window)
    np.testing.assert_allclose(model.logits(model.states(PROMPT)), computed(file, PROMPT), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kind, said",
    [
        (Both, "is not causal"),
        (Strict, "is not causal"),
        (Prefix, "is not causal"),
        (Slopes, "adds to scores, where it should hide"),
        (Given, "is not known before 'mask' is given"),
    ],
)
def test_other_masks_are_refused_in_a_sentence(kind: type[Masked], said: str, tmp_path: Path) -> None:
    _, file = written(kind, tmp_path, rotary_ops=True)
    with pytest.raises(BMError, match=r"x\.onnx: layer '.*' \(Attention\): ") as raised:
        open_model(file)
    assert said in str(raised.value) and not re.search(r"\n", str(raised.value))
