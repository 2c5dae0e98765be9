"""Recurrent layers on the chips: nothing on the host, each program proven, results as ONNX Runtime gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.interpreter import run_module
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.result import Result
from bmcompiler.target import find_target, unsupported_reason

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
CHIPS = [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16"), ("bm1684x", "bf16")]
NEAR = {"f32": 5e-6, "f16": 5e-3, "bf16": 4e-2}
BOTH = {"activation_alpha": [0.3, 1.2], "activation_beta": [0.5, 0.7]}
Arrays = dict[str, np.ndarray]


def layer(
    kind: str, steps: int, images: int, features: int, hidden: int, direction: str = "forward", **attributes: Any
) -> tuple[onnx.ModelProto, Arrays]:
    """A network of one layer that is given its first states, and inputs for it."""
    random, ways = np.random.default_rng(steps + hidden), 1 + (direction == "bidirectional")
    rows, wide = GATES[kind] * hidden, hidden**-0.5
    weights = {
        "w": random.uniform(-1, 1, (ways, rows, features)) * features**-0.5,
        "r": random.uniform(-wide, wide, (ways, rows, hidden)),
        "b": random.uniform(-0.5, 0.5, (ways, 2 * rows)),
    }
    if attributes.pop("peepholes", False):
        weights["p"] = random.uniform(-0.5, 0.5, (ways, 3 * hidden))
    lengths, known, begun = (
        attributes.pop("lengths", None),
        attributes.pop("known", True),
        attributes.pop("begun", True),
    )
    states = ["h0", "c0"][: 1 + (kind == "LSTM")] if begun else []
    inputs = {"x": (steps, images, features)} | {name: (ways, images, hidden) for name in states}
    names = ["x", "w", "r", "b", "lengths" if lengths else "", *states, *["p"] * ("p" in weights)]
    numbers = {} if known or not lengths else {"lengths": np.int32(lengths)}
    results = ["y", "h", "c"][: 2 + (kind == "LSTM")]
    node = helper.make_node(kind, names, results, hidden_size=hidden, direction=direction, **attributes)
    shapes = [[steps, ways, images, hidden], *[[ways, images, hidden]] * 2]
    constants = [numpy_helper.from_array(np.float32(array), name) for name, array in weights.items()]
    constants += [numpy_helper.from_array(np.int32(lengths), "lengths")] if lengths and not numbers else []
    graph = helper.make_graph(
        [node],
        "layer",
        [
            *(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()),
            *(helper.make_tensor_value_info(name, TensorProto.INT32, array.shape) for name, array in numbers.items()),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(results, shapes)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, {name: np.float32(random.uniform(-1, 1, shape)) for name, shape in inputs.items()} | numbers


def on_chip(model: onnx.ModelProto, given: Arrays, chip: str, precision: str, **options: Any) -> Result:
    """The network compiled, proven, without a layer on the host, near ONNX Runtime."""
    made = bmcompiler.compile(model, target=chip, quantize=precision, check="always", **options)
    assert not [row for row in made.rows if row.where == "cpu"]
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    for got, expected in zip(made.run(given).values(), want):
        np.testing.assert_allclose(got, expected, atol=NEAR[precision])
    return made


@given(
    kind=st.sampled_from(sorted(GATES)),
    steps=st.sampled_from([1, 2, 3, 6, 10]),
    images=st.sampled_from([1, 2, 3, 9]),
    hidden=st.sampled_from([1, 7, 24, 64, 67, 100, 130]),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    after=st.booleans(),
    where=st.sampled_from(CHIPS),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_layers_of_all_sizes_run_on_the_chip(
    kind: str, steps: int, images: int, hidden: int, direction: str, after: bool, where: tuple[str, str]
) -> None:
    more = {"linear_before_reset": int(after)} if kind == "GRU" else {}
    on_chip(*layer(kind, steps, images, 12, hidden, direction, **more), *where)


@pytest.mark.parametrize("chip, precision", CHIPS[:3])
@pytest.mark.parametrize(
    "kind, attributes",
    [
        ("LSTM", {"peepholes": True}),
        ("LSTM", {"lengths": [3, 5], "direction": "bidirectional"}),
        ("LSTM", {"clip": 0.7, "input_forget": 1}),
        ("LSTM", {"activations": ["HardSigmoid", "Softsign", "ScaledTanh"], **BOTH}),
        ("GRU", {"linear_before_reset": 1, "activations": ["Sigmoid", "Relu"]}),
        ("RNN", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}),
    ],
)  # fmt: skip
def test_what_the_steps_do_not_know_runs_one_by_one(
    kind: str, attributes: dict[str, Any], chip: str, precision: str
) -> None:
    on_chip(*layer(kind, 5, 2, 8, 24, **attributes), chip, precision)


@pytest.mark.parametrize("chip, precision", CHIPS[:3])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind, begun", [("LSTM", False), ("LSTM", True), ("GRU", True), ("RNN", True)])
def test_sequences_may_end_before_the_last_step_when_inputs_say_so(
    kind: str, begun: bool, direction: str, chip: str, precision: str
) -> None:
    made = on_chip(*layer(kind, 6, 3, 8, 24, direction, lengths=[4, 6, 1], known=False, begun=begun), chip, precision)
    at_once = [row for row in made.rows if row.kind == "recurrence"]
    unknown = kind == "RNN" or (kind == "LSTM" and begun and direction != "forward")
    assert bool(at_once) != unknown, "only where gates can keep what a sequence began with"


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_a_sequence_without_a_step_ends_with_what_it_began_with(kind: str) -> None:
    model, given = layer(kind, 6, 3, 8, 24, lengths=[0, 6, 1], known=False)
    made = bmcompiler.compile(model, target="bm1684x", quantize="f32", check="always")
    y, h, *c = made.run(given).values()
    assert not y[:, 0, 0].any()
    for last, name in zip((h, *c), ("h0", "c0")):
        np.testing.assert_allclose(last[0, 0], given[name][0, 0], atol=1e-6)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_layer_that_is_too_long_is_cut_in_time(backwards: bool) -> None:
    b, random = Builder.new("net"), np.random.default_rng(0)
    gates = b.input("gates", TensorType((5000, 1, 64)))
    weight = b.weight(np.float32(random.uniform(-0.2, 0.2, (64, 16))), "weight")
    first = b.input("h0", TensorType((1, 16))), b.input("c0", TensorType((1, 16)))
    module = b.outputs(list(b.recurrence(gates, weight, *first, cell="lstm", backwards=backwards)), ["y", "h", "c"])
    named = zip(module.main.input_names, module.main.arguments)
    feeds = {name: np.float32(random.uniform(-1, 1, value.shape)) for name, value in named}
    whole = run_module(module, feeds)
    run_pipeline(module, "legalize{form=same}", PassContext(target=find_target("bm1684x")))
    parts = [op for op in module.main.ops if op.short_name == "recurrence"]
    assert 1 < len(parts) < 9
    assert {unsupported_reason(find_target("bm1684x"), op) for op in parts} == {None}
    for name, array in run_module(module, feeds).items():
        np.testing.assert_array_equal(array, whole[name])


def test_weights_are_loaded_once_for_all_steps() -> None:
    """LSTM 512x512, 100 steps: 4.2 MB of weights; 3.8 and 7.8 M cycles where each step loads them anew."""
    for precision, most in (("f16", 210_000), ("f32", 500_000)):
        made = bmcompiler.compile(
            layer("LSTM", 100, 1, 512, 512)[0], target="bm1684x", quantize=precision, check="never"
        )
        analysis = analysis_of("bm1684x", made.model)
        assert analysis is not None
        timing = analysis.timing()
        assert timing.weights < 1.01 * timing.compulsory
        assert timing.cycles < most


@pytest.mark.parametrize("lengths", [None, [12, 5]])
def test_a_network_of_bytes_keeps_its_states_in_float(lengths: list[int] | None) -> None:
    model, given = layer("GRU", 12, 2, 16, 32, lengths=lengths, known=False)
    samples = {
        name: np.float32(np.random.default_rng(0).uniform(-1, 1, (4 * len(a), *a.shape[1:])))
        for name, a in given.items()
    }
    samples |= {name: np.tile(given[name], 4) for name in ("lengths",) if lengths}
    for chip in ("bm1684", "bm1684x"):
        made = bmcompiler.compile(model, target=chip, quantize="int8", data=samples, check="always")
        assert {row.kind for row in made.rows if row.where == "cpu"} == set()
        want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
        for got, expected in zip(made.run(given).values(), want):
            np.testing.assert_allclose(got, expected, atol=0.1)
