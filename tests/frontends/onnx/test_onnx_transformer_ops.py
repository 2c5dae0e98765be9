"""Ops of language models: ONNX Runtime's own ones, and those of opset 23, as ONNX Runtime computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import bmcompiler
from bmcompiler.errors import BMError
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, verify_module
from bmcompiler.target import find_target

RNG = np.random.default_rng(0)
TABLES = np.cos(RNG.uniform(0, 3, (32, 8))).astype(np.float32), np.sin(RNG.uniform(0, 3, (32, 8))).astype(np.float32)
OPSETS = {"": 23, "com.microsoft": 1}


def data(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def one(
    op: str, inputs: list[np.ndarray | None], outputs: list[str], constants: tuple[int, ...], domain: str, **more: Any
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of a node, and what it is fed."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    fed = {n: a for i, (n, a) in enumerate(zip(names, inputs)) if a is not None and i not in constants}
    kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in fed.items()}
    graph = helper.make_graph(
        [helper.make_node(op, names, outputs, name="layer", domain=domain, **more)],
        "g",
        [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in fed.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
        [numpy_helper.from_array(inputs[i], names[i]) for i in constants],  # type: ignore[arg-type]
    )
    opsets = [helper.make_opsetid(name, version) for name, version in OPSETS.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), fed


def agrees(
    op: str,
    inputs: list[np.ndarray | None],
    outputs: tuple[str, ...] = ("y",),
    constants: tuple[int, ...] = (),
    domain: str = "com.microsoft",
    valid: Callable[[str, np.ndarray], np.ndarray] = lambda name, array: array,
    **more: Any,
) -> Module:
    """The import of a node gives what ONNX Runtime does; valid: what of an output means something."""
    model, fed = one(op, inputs, list(outputs), constants, domain, **more)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    named = [name for name in outputs if name]
    wanted = dict(zip(named, session.run(named, fed)))
    module = import_onnx(model)
    verify_module(module)
    found = run_module(module, fed)
    for name, want in wanted.items():
        assert found[name].shape == want.shape, name
        np.testing.assert_allclose(valid(name, found[name]), valid(name, want), rtol=2e-4, atol=2e-5, err_msg=name)
    return module


def kinds(module: Module) -> list[str]:
    return [op.short_name for op in module.walk()]


def test_norms_are_one_op() -> None:
    x, gamma = data(2, 3, 40), data(40)
    module = agrees("SimplifiedLayerNormalization", [x, gamma], constants=(1,), domain="", epsilon=0.01, axis=-1)
    assert "rms_norm" in kinds(module)
    both = ("y", "", "", "sum")
    assert "rms_norm" in kinds(agrees("SkipSimplifiedLayerNormalization", [x, x, gamma], both, (2,), epsilon=0.01))
    agrees("SkipSimplifiedLayerNormalization", [x, x, gamma, data(40)], both, (2, 3))
    agrees("SkipSimplifiedLayerNormalization", [x, x, gamma])


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape, more", [
    ((2, 5, 48), {}), ((2, 3, 5, 16), {}), ((2, 5, 72), {"num_heads": 3, "rotary_embedding_dim": 16}),
])  # fmt: skip
@pytest.mark.parametrize("first", [None, 7])
def test_rotary_embedding(shape: tuple[int, ...], more: dict[str, int], interleaved: int, first: int | None) -> None:
    places = np.array([first], np.int64) if first else RNG.integers(0, 32, (2, 5)).astype(np.int64)
    agrees("RotaryEmbedding", [data(*shape), places, *TABLES], constants=(2, 3), interleaved=interleaved, **more)


def attention(
    batch: int, tokens: int, past: int, total: int, lengths: list[int], **more: Any
) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    """Inputs of a GroupQueryAttention with 4 heads of 16 on 2, and its attributes."""
    qkv = more.pop("packed", False)
    rotary, bias = more.pop("rotary", True), more.pop("bias", False)
    first: list[np.ndarray | None] = [data(batch, tokens, 64), data(batch, tokens, 32), data(batch, tokens, 32)]
    if qkv:
        first = [data(batch, tokens, 128), None, None]
    caches: list[np.ndarray | None] = [data(batch, 2, past, 16), data(batch, 2, past, 16)] if past else [None, None]
    inputs = [
        *first,
        *caches,
        np.array(lengths, np.int32),
        np.array(total, np.int32),
        *(TABLES if rotary else (None, None)),
    ]
    if bias:
        inputs += [None, data(batch, 1, tokens, max(past, total))]
    return inputs, {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary), **more}


CASES: dict[str, tuple[tuple[int, int, int, int, list[int]], dict[str, Any]]] = {
    "prompt": ((1, 6, 0, 6, [5]), {}),
    "prompts of several lengths": ((2, 6, 0, 6, [5, 3]), {"rotary": False}),
    "packed, no angles, a scale": ((2, 6, 0, 6, [5, 5]), {"packed": True, "rotary": False, "scale": 0.3}),
    "neighbours are pairs": ((1, 6, 0, 6, [5]), {"rotary_interleaved": 1}),
    "softcap and window": ((1, 9, 0, 9, [8]), {"softcap": 2.0, "local_window_size": 4}),
    "bias": ((1, 6, 0, 6, [5]), {"bias": True}),
    "a token on a cache that grows": ((1, 1, 7, 8, [7]), {}),
    "tokens on a cache that grows": ((1, 3, 7, 10, [9]), {"local_window_size": 5}),
    "a token in a buffer": ((1, 1, 16, 9, [8]), {}),
    "tokens in a buffer of several": ((2, 1, 16, 9, [8, 5]), {"local_window_size": 3}),
    "a chunk in a buffer": ((1, 4, 16, 11, [10]), {}),
}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_grouped_queries(name: str, known: bool) -> None:
    sizes, more = CASES[name]
    inputs, attributes = attention(*sizes, **dict(more))
    _, tokens, _, total, lengths = sizes
    constants = (6, *((7, 8) if inputs[7] is not None else ()), *((5,) if known else ()))

    def valid(name: str, array: np.ndarray) -> np.ndarray:
        """Prompts end before their padding; behind what a cache holds the runtime leaves what was in its memory."""
        ends = [length + 1 for length in lengths]
        if name == "y":
            return np.concatenate([rows[: end if tokens == total else tokens] for rows, end in zip(array, ends)])
        return np.concatenate([rows[:, :end] for rows, end in zip(array, ends)], axis=1)

    agrees("GroupQueryAttention", inputs, ("y", "k", "v"), constants, valid=valid, **attributes)


def test_a_total_that_is_no_constant_is_said() -> None:
    inputs, attributes = attention(1, 1, 7, 8, [7])
    model, _ = one("GroupQueryAttention", inputs, ["y", "k", "v"], (7, 8), "com.microsoft", **attributes)
    with pytest.raises(BMError, match=r"layer.*input 6 \('x6'\) must be a constant"):
        import_onnx(model)


@pytest.mark.parametrize(
    "more, words",
    [({"smooth_softmax": 1}, "smooth_softmax is not supported"), ({"k_quant_type": "PER_TENSOR"}, "a quantized cache")],
)
def test_forms_that_are_not_computed_are_refused(more: dict[str, Any], words: str) -> None:
    inputs, attributes = attention(1, 1, 7, 8, [7])
    model, _ = one("GroupQueryAttention", inputs, ["y", "k", "v"], (6, 7, 8), "com.microsoft", **attributes, **more)
    with pytest.raises(BMError, match=words):
        import_onnx(model)


def test_outputs_for_training_are_refused() -> None:
    x, gamma = data(2, 3, 40), data(40)
    outputs = ["y", "", "deviation"]
    model, _ = one("SkipSimplifiedLayerNormalization", [x, x, gamma], outputs, (), "com.microsoft")
    with pytest.raises(BMError, match=r"output 2 \('deviation'\) is for training"):
        import_onnx(model)


def test_ops_of_opset_23_are_those_of_the_runtime() -> None:
    q, k = data(1, 4, 5, 16), data(1, 2, 5, 16)
    cos, sin = TABLES
    agrees("Attention", [q, k, data(1, 2, 5, 16)], domain="", is_causal=1)
    past = data(1, 2, 7, 16), data(1, 2, 7, 16)
    agrees("Attention", [q, k, data(1, 2, 5, 16), None, *past], ("y", "k", "v"), domain="")
    agrees("RMSNormalization", [data(2, 3, 40), data(40)], domain="", constants=(1,), epsilon=0.01)
    places = RNG.integers(0, 32, (1, 5)).astype(np.int64)
    agrees("RotaryEmbedding", [q, cos, sin, places], domain="", constants=(1, 2))
    agrees(
        "RotaryEmbedding", [data(1, 5, 48), cos, sin, places], domain="", constants=(1, 2), num_heads=3, interleaved=1
    )


@pytest.mark.parametrize("name", ["a token on a cache that grows", "prompt"])
def test_steps_whose_place_is_known_run_on_the_chip(name: str) -> None:
    sizes, more = CASES[name]
    inputs, attributes = attention(*sizes, **dict(more))
    model, fed = one("GroupQueryAttention", inputs, ["y", "k", "v"], (5, 6, 7, 8), "com.microsoft", **attributes)
    module = import_onnx(model)
    result = bmcompiler.compile_module(module, target="bm1684x", quantize="f16", check="always")
    assert [row.reason for row in result.rows if row.where == "cpu"] == []
    want = run_module(module, fed)
    for output, found in run_module(result.module, fed, target=find_target("bm1684x")).items():
        assert np.abs(found - want[output]).max() <= 0.02
