"""Kernels as layers of networks: of ONNX, Caffe and BMLang, in the place of a pattern; what is refused or wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from layer_kernels import SHAPE, racing, registered, too_large, weighted, weighted_sum
from onnx import TensorProto, helper
from plugin_packages import install, on_path

import bmcompiler
from bmcompiler import bmlang, testing
from bmcompiler.analysis.estimate import estimate
from bmcompiler.bmlang import BOTH, Tensor, UserCpuParam
from bmcompiler.errors import WrongProgramError
from bmcompiler.frontends.caffe import caffe_layer
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.registry import PluginError
from bmcompiler.result import Result
from bmcompiler.runtime import Session
from bmcompiler.target import find_target


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What a test registers stays in it."""
    with on_path():
        yield


def onnx_net() -> onnx.ModelProto:
    """sigmoid(weighted(relu(x), gate)), the middle by a node of a domain of one's own."""
    names = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", "gate", "y")}
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"], "relu"),
        helper.make_node("Weighted", ["positive", "gate"], ["sum"], "mix", domain="my.layers", factor=0.3),
        helper.make_node("Sigmoid", ["sum"], ["y"], "squash"),
    ]
    graph = helper.make_graph(nodes, "net", [names["x"], names["gate"]], [names["y"]])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.layers", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def made(builder: Builder, a: Value, b: Value, factor: float = 0.3, name: str = "Weighted") -> Value:
    return builder.customized(a, b, sub_type=name, output_shapes=[a.shape], f32_params=[factor])


def converted(node: Node, b: Builder) -> Value:
    return made(b, node.input(0), node.input(1), node.float("factor", 1.0))


def of_onnx(level: int = 2) -> Result:
    onnx_op("Weighted", domain="my.layers")(converted)
    return bmcompiler.compile(onnx_net(), target="bm1684x", opt=level, check=1)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_an_onnx_node_becomes_the_commands_of_a_kernel(level: int) -> None:
    """Program = evaluate, and both = the reference, whose every bit the kernel computes."""
    registered()
    result = of_onnx(level=level)
    assert [(row.kind, row.where) for row in result.rows if row.kind == "Weighted"] == [("Weighted", "bm1684x")]
    assert result.checked is not None and result.checked.samples == 1
    rng = np.random.default_rng(level)
    given = {name: rng.normal(size=SHAPE).astype(np.float32) for name in ("x", "gate")}
    got = Session(result.model).run(given)["y"]
    middle = weighted_sum([np.maximum(given["x"], 0), given["gate"]], (), (0.3,))
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-middle.astype(float))), rtol=1e-6)


def test_reports_know_the_layer_and_plans_its_cycles() -> None:
    registered()
    result = of_onnx()
    row = next(row for row in estimate(result).layers if row.name == "mix")  # type: ignore[union-attr]
    assert row.kind == "Weighted" and row.compute > 0 and row.transfer > 0
    assert "# 'mix' ('Weighted')\n" in find_target("bm1684x").disassemble(result.model)
    op = next(op for op in result.module.main.ops if op.short_name == "customized")
    planned = find_target("bm1684x").cycles(op)
    assert planned is not None and 0.9 * planned <= row.cycles <= 1.1 * planned


def test_local_memory_stays_the_kernels_and_halves_stay_halves() -> None:
    """Between ops of other groups, with constants among what it reads; f16 stays outside of a kernel of f32."""
    registered()

    def net(b: Builder, x: Value) -> Value:
        w = b.weight(np.linspace(-1, 1, x.type.size, dtype=np.float32).reshape(x.shape))
        return b.add(b.sigmoid(made(b, b.exp(x), w)), b.relu(made(b, x, b.tanh(x), -2.0)))

    for quantize in ("f32", "f16"):
        checked = testing.check_op(net, [SHAPE], target="bm1684x", quantize=quantize, seeds=1, levels=(1, 2))
        assert [row.where for row in checked.result.rows if row.kind == "Weighted"] == ["bm1684x"] * 2


def test_a_caffe_layer_becomes_the_commands_of_a_kernel(tmp_path: Path) -> None:
    registered()
    caffe_layer("Weighted")(lambda layer: made(layer.b, layer.inputs[0], layer.inputs[1]))
    shape = " ".join(f"dim: {size}" for size in SHAPE)
    tops = [f'input: "{name}" input_shape {{ {shape} }}\n' for name in "ab"]
    text = f'name: "net"\n{"".join(tops)}layer {{ name: "mix" type: "Weighted" bottom: "a" bottom: "b" top: "y" }}\n'
    (tmp_path / "net.prototxt").write_text(text)
    result = bmcompiler.compile(tmp_path / "net.prototxt", target="bm1684x", check=1)
    assert [(row.layer, row.kind, row.where) for row in result.rows] == [("mix", "Weighted", "bm1684x")]


def test_an_operator_of_bmlang_becomes_the_commands_of_a_kernel(tmp_path: Path) -> None:
    registered()
    with bmlang.init(BOTH, "BM1684X", tmp_path) as program:
        a, b = (Tensor(name, data=np.full(SHAPE, value, np.float32)) for name, value in (("a", 2), ("b", 3)))
        param = UserCpuParam("Weighted", (SHAPE,), f32_params=(0.5,))
        (y,) = bmlang.customed_ops([a, b], [Tensor("y")], param, 64)
        compiled = program.compile_with_check("net", [a, b], [y])
        assert compiled.host == []
        assert (y.get_data() == 3.5).all()


PATTERN = """
from dataclasses import dataclass
from bmcompiler.passes.replacing import ReplacePattern

@dataclass(frozen=True)
class Mixed(ReplacePattern):
    name, canonicalize_after = "mixed", "fuse-norms"
    pattern, layer = ("add", "a", ("leaky_relu", "b")), "Weighted"

    def numbers(self, total, leaky):
        return ((), (0.5,)) if leaky.slope == 0.5 else None
"""


def test_a_kernel_takes_the_place_of_a_pattern(tmp_path: Path) -> None:
    """Of what the numbers of the pass allow, and of what nobody else reads."""
    registered()
    install(tmp_path, "own-kernels", {"passes": {"mixed": "own_kernels:Mixed"}}, own_kernels=PATTERN)

    def net(b: Builder, x: Value, z: Value) -> list[Value]:
        read_twice = b.leaky_relu(z, slope=0.5)
        taken = b.add(x, b.leaky_relu(b.tanh(z), slope=0.5))
        return [b.add(taken, b.leaky_relu(x, slope=0.25)), b.add(x, read_twice), read_twice]

    with on_path(tmp_path):
        checked = testing.check_op(net, [SHAPE, SHAPE], target="bm1684x", seeds=1, levels=(2,))
        kinds = [row.kind for row in checked.result.rows]
        assert kinds.count("Weighted") == 1 and kinds.count("leaky_relu") == 2


def test_a_kernel_that_is_not_its_reference_is_not_compiled() -> None:
    registered("Off", lambda call: weighted(call._replace(f32_params=(0.25,))), tolerance=1e-3)
    with pytest.raises(WrongProgramError) as caught:
        bmcompiler.compile_module(of_one("Off"), target="bm1684x", check=1)
    said = str(caught.value)
    assert "kernel 'Off' is further from its reference than its tolerance of 0.001 allows: " in said
    assert "error of the plugin that brings 'Off'" in said


def of_one(name: str) -> Module:
    builder = Builder.new("net")
    a, b = (builder.input(each, TensorType(SHAPE, "f32")) for each in "ab")
    with builder.at("mix"):
        y = made(builder, a, b, name=name)
    return builder.outputs([y], ["y"])


def test_a_tolerance_is_that_of_the_largest_value() -> None:
    registered("Near", lambda call: weighted(call._replace(f32_params=(0.2999,))), tolerance=1e-3)
    assert bmcompiler.compile_module(of_one("Near"), target="bm1684x", check=1).rows[0].where == "bm1684x"


def test_what_a_kernel_refuses_the_host_computes_and_says_why() -> None:
    registered("TooLarge", too_large)
    row = bmcompiler.compile_module(of_one("TooLarge"), target="bm1684x", check=1).rows[0]
    assert row.where == "cpu" and row.reason.startswith("no 262144 bytes are free in a lane: ")


def test_races_and_what_is_no_program_are_errors_of_the_plugin() -> None:
    registered("Racing", racing)
    with pytest.raises(PluginError, match=r"layer 'mix'.*the kernel of layer 'Racing' races: command"):
        bmcompiler.compile_module(of_one("Racing"), target="bm1684x")
    registered("Nothing", lambda call: None)
    with pytest.raises(PluginError, match="the kernel of layer 'Nothing' gives no program"):
        bmcompiler.compile_module(of_one("Nothing"), target="bm1684x")
    registered("Broken", lambda call: 1 // 0)
    with pytest.raises(PluginError, match="the kernel of layer 'Broken' failed: ZeroDivisionError"):
        bmcompiler.compile_module(of_one("Broken"), target="bm1684x")
