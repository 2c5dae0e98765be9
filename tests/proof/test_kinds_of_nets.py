"""What a proof is made of: samples of every kind of input, all programs, parts on the host, and what is no proof."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bmcompiler
from bmcompiler.cli.common import run
from bmcompiler.cli.compile import cli as compile_command
from bmcompiler.cli.run import cli as run_command
from bmcompiler.errors import UnsupportedError, WrongProgramError
from bmcompiler.ir import Module, TensorType
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.proof import cost, prove
from bmcompiler.proof.compare import Wrong, compare
from bmcompiler.proof.sample import drawn, samples_of
from bmcompiler.report.summary import summary
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.bm1684 import windows
from bmcompiler.target import find_target

RNG = np.random.default_rng(0)
PROVEN = "program = evaluate, every bit"


def chain(cpu: bool = False) -> Module:
    """Three layers: a convolution, max pooling, a convolution; if wanted with a softmax on the host behind pooling."""
    b = Builder.new("chain")
    y = b.input("x", TensorType((1, 4, 8, 8)))
    with b.at("first"):
        y = b.conv(y, b.weight(RNG.normal(0, 0.2, (4, 4, 1, 1)).astype(np.float32), "w0"))
    with b.at("pool"):
        y = b.max_pool(y, kernel=(2, 2), strides=(2, 2))
        if cpu:
            y = b.softmax(y, axis=1)
            y.op.attributes[PLACE_CPU] = "the test wants it"
    with b.at("second"):
        y = b.conv(y, b.weight(RNG.normal(0, 0.2, (4, 4, 1, 1)).astype(np.float32), "w1"))
    return b.outputs([y], ["y"])


def onnx_net(path: Path) -> Path:
    """Max pooling of maps of any size, behind a convolution."""
    weight = numpy_helper.from_array(RNG.normal(0, 0.2, (4, 4, 1, 1)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("MaxPool", ["c"], ["y"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 4, "h", "w"]) for n in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "net", shapes[:1], shapes[1:], [weight])), path)
    return path


SHAPES = [[(1, 4, 8, 8)], [(3, 4, 16, 16)]]


def test_every_program_of_a_file_is_proven(tmp_path: Path) -> None:
    result = bmcompiler.compile(onnx_net(tmp_path / "net.onnx"), target="bm1684", shapes=SHAPES, check="always")
    assert f"1 sample of each of 2 programs: {PROVEN}" in summary(result)


def test_a_fault_in_the_second_program_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = windows._max_pooling

    def wrong(ops: Any, window: Any) -> Any:
        step = right(ops, window)
        return (lambda: None) if ops.fields["res0_h"] == 8 else step

    monkeypatch.setattr(windows, "_max_pooling", wrong)
    net = onnx_net(tmp_path / "net.onnx")
    bmcompiler.compile(net, target="bm1684", shapes=SHAPES[:1], check="always")
    with pytest.raises(WrongProgramError, match="pool") as caught:
        bmcompiler.compile(net, target="bm1684", shapes=SHAPES, check="always", output=tmp_path / "net.bmodel")
    assert caught.value.part is not None and caught.value.part.inputs["in0"].shape == (3, 4, 16, 16)
    assert not (tmp_path / "net.bmodel").exists()


def test_data_of_one_shape_serve_the_program_of_that_shape(tmp_path: Path) -> None:
    data = {"x": RNG.normal(0, 1, (3, 4, 8, 8)).astype(np.float32)}
    result = bmcompiler.compile(
        onnx_net(tmp_path / "net.onnx"), target="bm1880", data=data, shapes=SHAPES, check="always"
    )
    assert result.checked is not None and result.checked.programs == 2 and not result.checked.of_data


def test_indices_are_drawn_within_the_axis_that_they_pick_from() -> None:
    b = Builder.new("table")
    tokens = b.input("tokens", TensorType((2, 50), "i64"))
    rows = b.gather(b.weight(RNG.normal(0, 1, (5, 8)).astype(np.float32), "rows"), b.reshape(tokens, shape=(100,)))
    module = b.outputs([rows], ["y"])
    for seed in range(3):
        values = drawn(module.main, seed)["tokens"]
        assert values.min() >= 0 and values.max() == 4 and values.dtype == np.int64
    result = bmcompiler.compile_module(module, target="bm1684", check="always")
    assert result.checked is not None and result.checked.samples == 1


def test_the_first_samples_of_the_data_are_quantized_as_the_device_holds_them() -> None:
    data = {"x": RNG.normal(0, 1, (3, 4, 8, 8)).astype(np.float32)}
    result = bmcompiler.compile_module(chain(), target="bm1880", data=data)
    (value,) = result.module.main.arguments
    samples, of_data = samples_of(result.module.main, data, 2)
    assert of_data and len(samples) == 2 and value.type.quant is not None
    for number, sample in enumerate(samples):
        real = sample["x"].astype(np.float32) * value.type.quant.scale
        assert sample["x"].dtype == np.int8
        assert np.abs(real - data["x"][number]).max() < 3 * value.type.quant.scale + np.abs(data["x"]).max() / 4


@pytest.mark.parametrize("target", ["bm1880", "bm1684", "bm1684x", "dv700"])
def test_what_the_host_computes_is_covered(target: str) -> None:
    data = {"x": RNG.normal(0, 1, (3, 4, 8, 8)).astype(np.float32)} if target == "bm1880" else None
    result = bmcompiler.compile_module(chain(cpu=True), target=target, data=data, check="always")
    assert any(row.where == "cpu" and row.layer == "pool" for row in result.rows)
    assert PROVEN in summary(result)


def test_a_fault_of_several_ops_together_names_the_last_and_keeps_only_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_together(session: Any, module: Module, *_: Any) -> list[Wrong]:
        layers = [op.label for op in module.main.ops if isinstance(op, TensorOp)]
        return [Wrong("y", 1, 9, 1.0, (0,), 1.0, 2.0)] if {"pool", "second"} <= set(layers) else []

    monkeypatch.setattr(prove, "difference", wrong_together)
    with pytest.raises(WrongProgramError, match="layer 'second'") as caught:
        bmcompiler.compile_module(chain(), target="bm1684")
    part = caught.value.part
    assert part is not None
    assert [op.short_name for op in part.module.main.ops] == ["weight", "max_pool", "conv", "return"]


def test_an_evaluate_that_fails_is_an_error_with_a_layer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: Any) -> None:
        raise TypeError("no such type")

    net = chain()
    pool = next(op for op in net.main.ops if op.label == "pool")
    monkeypatch.setattr(type(find_target("bm1684").kernel_for(pool)), "evaluate", broken)
    with pytest.raises(WrongProgramError, match=r"layer 'pool' .*cannot be computed.*no such type"):
        bmcompiler.compile_module(net, target="bm1684", keep_bad=tmp_path / "bad")
    assert sorted(each.name for each in (tmp_path / "bad").iterdir()) == ["README.txt", "part.mlir", "sample.npz"]


@pytest.mark.usefixtures("races_allowed")  # the watch would meet the broken simulator first
def test_a_program_that_fails_in_the_simulator_is_an_error_with_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise IndexError("out of everything")

    monkeypatch.setattr(windows, "_max_pooling", broken)
    with pytest.raises(WrongProgramError, match=r"layer 'pool' .*fails in the simulator.*out of everything"):
        bmcompiler.compile_module(chain(), target="bm1684")


def test_auto_says_why_it_does_not_and_how_to_force_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "expected_seconds", lambda *_, **__: 100.0)
    result = bmcompiler.compile_module(chain(), target="bm1684")
    assert 'no: would take about 100 s; check="always" does it' in summary(result)
    assert PROVEN in summary(bmcompiler.compile_module(chain(), target="bm1684", check="always"))


def test_waiting_for_a_busy_machine_is_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof is not begun because a compilation was kept waiting: it would wait, too."""
    clock = count(0.0, 1e4)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(cost, "expected_seconds", lambda *_, **__: 100.0)
    assert "no: would take about 100 s" in summary(bmcompiler.compile_module(chain(), target="bm1684"))


@pytest.mark.parametrize(
    ("expected", "spent", "integer", "done"),
    [
        (1.9, 0, False, True),
        (2.1, 0, False, False),
        (2.1, 11, False, True),
        (9.9, 0, True, True),
        (10.1, 40, True, False),
    ],
)
def test_auto_keeps_to_its_rule(
    expected: float, spent: float, integer: bool, done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "expected_seconds", lambda *_, **__: expected)
    monkeypatch.setattr(cost, "is_integer", lambda *_: integer)
    chip = find_target("bm1684")
    assert (cost.way_of("auto", [], 0, spent, chip)[1] == "") == done
    assert cost.way_of("always", [], 0, spent, chip) == cost.way_of(3, [], 0, spent, chip) == (False, "")


def test_a_chip_without_simulator_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "entry_points", lambda _: {})
    assert "no: no simulator runs programs for bm1684" in summary(bmcompiler.compile_module(chain(), target="bm1684"))
    with pytest.raises(UnsupportedError, match="cannot be checked: no simulator"):
        bmcompiler.compile_module(chain(), target="bm1684", check="always")


def test_what_counts_as_the_same_bits() -> None:
    one = np.array([1.0, np.nan, 0.0, np.inf], np.float32)
    payload = one.copy()
    payload.view(np.uint32)[1] |= 5
    assert payload.tobytes() != one.tobytes() and not compare({"y": payload}, {"y": one})
    (zero,) = compare({"y": one * np.float32([1, 1, -1, 1])}, {"y": one})
    assert (zero.count, zero.size, zero.at, zero.largest) == (1, 4, (2,), 0.0)
    (number,) = compare({"y": np.float32([1, 2, 0, np.inf])}, {"y": one})
    assert number.count == 1 and np.isnan(number.wanted)
    (integers,) = compare({"y": np.array([[3, -120]], np.int8)}, {"y": np.array([[3, 120]], np.int8)})
    assert (integers.count, integers.largest, integers.at) == (1, 240.0, (0, 1))
    assert not compare({"y": np.array([7], np.int32)}, {"y": np.array(7, np.int64)})
    assert compare({"y": one}, {"y": one.reshape(2, 2)})[0].note and compare({}, {"y": one})[0].note == "is missing"


def test_a_file_is_asked_with_its_ir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, ir = tmp_path / "net.bmodel", tmp_path / "net.mlir"
    net = str(onnx_net(tmp_path / "net.onnx"))
    words = [
        net,
        "--target",
        "bm1684",
        "--shapes",
        "[[2,4,8,8]]",
        "--check",
        "3",
        "--save-ir",
        str(ir),
        "-o",
        str(model),
    ]
    assert run(compile_command, "bmnet-compile", words) == 0
    assert f"checked   3 samples: {PROVEN} (drawn" in capsys.readouterr().out
    assert run(run_command, "bmnet-run", [str(model), "--check-ir", str(ir)]) == 0
    assert f"checked   1 sample: {PROVEN} (drawn" in capsys.readouterr().out
    np.savez(tmp_path / "x.npz", x=RNG.normal(0, 1, (2, 4, 8, 8)).astype(np.float32))
    assert run(run_command, "bmnet-run", [str(model), "--check-ir", str(ir), "--data", str(tmp_path / "x.npz")]) == 0
    said = capsys.readouterr().out
    assert f"checked   1 sample: {PROVEN}\n" in said and "least" in said, "and the inputs are run as ever"
    assert run(run_command, "bmnet-run", [str(model), "--check-ir", str(ir), "--fast"]) == 2
    assert "--fast" in capsys.readouterr().err
    other = tmp_path / "other.bmodel"
    onnx_net(tmp_path / "net.onnx")  # drawn anew: other weights
    words = [net, "--target", "bm1684", "--shapes", "[[2,4,8,8]]", "-o", str(other), "--quiet"]
    assert run(compile_command, "bmnet-compile", words) == 0
    assert run(run_command, "bmnet-run", [str(other), "--check-ir", str(ir)]) == 1
    assert "this IR does not compile to the program of the file" in capsys.readouterr().err
    words[2] = "bm1684x"
    assert run(compile_command, "bmnet-compile", words) == 0
    assert run(run_command, "bmnet-run", [str(other), "--check-ir", str(ir)]) == 1
    said = capsys.readouterr().err
    assert "another compilation (chip, network, --opt, timing profile or version). Remedy: give the IR" in said


_CONSTANT = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 2, 3, 4)


def _without_inputs() -> Module:
    b = Builder.new("net")
    with b.at("relu"):
        return b.outputs([b.relu(b.weight(_CONSTANT, "constant"))], ["y"])


def test_the_bm1880_gives_no_constants() -> None:
    with pytest.raises(UnsupportedError, match=r"an output of the net is a constant\. Remedy: leave it out"):
        bmcompiler.compile_module(_without_inputs(), target="bm1880", data={})


@pytest.mark.parametrize("target", ["bm1684", "bm1684x", "dv700"])
def test_a_net_without_inputs_runs_and_is_proven(target: str, tmp_path: Path) -> None:
    result = bmcompiler.compile_module(_without_inputs(), target=target, data={})
    assert PROVEN in summary(result)
    assert np.array_equal(result.session().run({})["y"], np.maximum(_CONSTANT, 0))
    assert result.session().program_for({}) == 0
    with pytest.raises(UnsupportedError, match=r"without inputs gives constants, and model files have none. Remedy"):
        result.save(tmp_path / "net.bmodel")
    assert not (tmp_path / "net.bmodel").exists()


def test_a_scalar_input_takes_a_number(tmp_path: Path) -> None:
    b = Builder.new("net")
    x, factor = b.input("x", TensorType((1, 2, 2), "f32")), b.input("factor", TensorType((), "f32"))
    module = b.outputs([b.mul(x, factor)], ["y"])
    bmcompiler.compile_module(module, target="bm1684").save(tmp_path / "net.bmodel")
    session, given = Session(tmp_path / "net.bmodel"), np.ones((1, 2, 2), np.float32)
    for number in (3.0, np.float32(3), np.array(3, np.float32), np.array([3], np.float32)):
        assert (session.run({"x": given, "factor": number})["y"] == 3).all()
