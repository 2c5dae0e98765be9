"""The toy chip as a user's plugin: its size, its tutorial, whole nets through the commands, random nets, rules."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bmcompiler
from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.bmodel.container import containers
from bmcompiler.bmodel.plain import Part
from bmcompiler.cli.common import run
from bmcompiler.errors import BMError, EncodingError, FileFormatError, SimulatorError, UnsupportedError, UsageError
from bmcompiler.instructions.assembly import assembled
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins import registry
from bmcompiler.runtime import Session
from bmcompiler.target import Compiled, find_target

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "toy_chip"
SOURCES = sorted(EXAMPLE.rglob("*.py"))
QUANT = Quant(1 / 64)
SMALL = 640
"""Bytes of local memory per lane that cut small nets into many tiles."""


@pytest.fixture(scope="module", autouse=True)
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package as if it were installed: its folder and a matching dist-info on the path."""
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "bmcompiler_toy_chip-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bmcompiler-toy-chip\nVersion: 0.1.0\n")
    text = (EXAMPLE / "pyproject.toml").read_text()
    groups = re.findall(r'^\[project\.entry-points\."(.+)"\]\n((?:[\w-]+ = ".+"\n)+)', text, re.MULTILINE)
    assert len(groups) == 4
    (info / "entry_points.txt").write_text("\n".join(f"[{group}]\n{lines}" for group, lines in groups).replace('"', ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.syspath_prepend(str(EXAMPLE))
        registry.declared.cache_clear()
        yield
    registry.declared.cache_clear()


def part(name: str) -> Any:
    return importlib.import_module(f"toy_chip.{name}")


# -- the package and its tutorial -------------------------------------------------------------------------------------
def test_a_complete_chip_takes_less_than_400_lines() -> None:
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES) < 400


def test_the_tutorial_shows_the_code_of_the_package_in_order() -> None:
    text = (ROOT / "docs" / "toy_chip.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", text, re.DOTALL)
    seen = dict.fromkeys(name for name, _ in blocks)
    assert {(EXAMPLE / name).resolve() for name in seen} == {
        path.resolve() for path in (*SOURCES, EXAMPLE / "pyproject.toml") if path.name != "__init__.py"
    }
    at = dict.fromkeys(seen, 0)
    for name, code in blocks:
        source = (EXAMPLE / name).read_text(encoding="utf-8")
        found = source.find(code.strip("\n"), at[name])
        assert found >= 0, f"{name} does not have, after the blocks before:\n{code}"
        at[name] = found + len(code.strip("\n"))


@pytest.mark.slow
def test_pip_installs_it(tmp_path: Path) -> None:
    """What the other tests take from pyproject.toml by reading it, an installation has, too."""
    shutil.copytree(EXAMPLE, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(tmp_path / "site")]
    subprocess.run([*pip, str(tmp_path / "source")], check=True, timeout=600)
    program = "from bmcompiler.target import find_target; print(find_target('toy').precisions)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "('int8',)\n"


# -- whole nets -------------------------------------------------------------------------------------------------------
def commands(*lines: list[str]) -> None:
    for name, *arguments in lines:
        cli = importlib.import_module(f"bmcompiler.cli.{name}").cli
        assert run(cli, name, arguments) == 0, arguments


def test_lenet_compiles_runs_and_is_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = np.load(ROOT / "models" / "digits.npz")
    np.savez(tmp_path / "calib.npz", data=digits["calib"].astype(np.float32))
    np.savez(tmp_path / "test.npz", data=digits["test"][:50].astype(np.float32))
    net = ROOT / "models" / "lenet"
    model, out, trace = (str(tmp_path / name) for name in ("net.bmodel", "out.npz", "trace.json"))
    files = [str(net / "deploy.prototxt"), str(net / "lenet.caffemodel"), "--data", str(tmp_path / "calib.npz")]
    commands(
        ["compile", *files, "--target", "toy", "-o", model, "--layers"],
        ["run", model, "--data", str(tmp_path / "test.npz"), "-o", out, "--timing", "--trace", trace, "--check-races"],
        ["tool", "info", model],
        ["tool", "dis", model],
        ["tool", "extract", model, "-o", str(tmp_path / "pieces")],
    )
    text = capsys.readouterr().out
    assert re.search(r"conv2 +conv +toy", text) and re.search(r"ip1 +matmul +toy", text)
    assert "no races" in text and "MACs     1,969,000," in text
    assert "chip: TOY" in text and "# 'pool1' ('max_pool')" in text and "compute.conv     id=1 wait=2" in text
    scores = np.load(out)["prob"].reshape(50, 10)
    assert (scores.argmax(1) == digits["labels"][:50]).mean() >= 0.98
    assert {"conv1", "compute.conv", "dma.load"} <= {
        one["name"] for one in json.loads(Path(trace).read_text())["traceEvents"]
    }


def test_a_residual_net_keeps_its_digits() -> None:
    """From ONNX: sums with multipliers, and a pooling that runs on the CPU between device layers."""
    digits = np.load(ROOT / "models" / "digits.npz")
    calib, test = (digits[name].astype(np.float32) / 255 for name in ("calib", "test"))
    net = ROOT / "models" / "resnet8" / "resnet8_mnist.onnx"
    result = bmcompiler.compile(net, target="toy", data={"x": calib})
    where = {row.kind: row.where for row in result.rows}
    assert (where["mac_shift"], where["avg_pool"], where["matmul"]) == ("toy", "cpu", "toy")
    session = Session(result.model)
    scores = session.run({"x": test[:100]})["logits"].reshape(100, 10)
    assert (scores.argmax(1) == digits["labels"][:100]).mean() >= 0.97
    integers = {"x": np.random.default_rng(0).integers(-128, 128, (1, 1, 28, 28)).astype(np.int8)}
    want = run_module(result.module, integers)["logits"]
    np.testing.assert_array_equal(session.run(integers, raw=True)["logits"], want)


# -- random nets ------------------------------------------------------------------------------------------------------
class Net:
    """An int8 net under construction with reproducible random weights."""

    def __init__(self, *shapes: tuple[int, ...], seed: int = 0) -> None:
        self.rng, self.b = np.random.default_rng(seed), Builder.new("net")
        self.inputs = [self.b.input(f"x{i}", TensorType(shape, "i8", QUANT)) for i, shape in enumerate(shapes)]

    def constant(self, dtype: type, *shape: int) -> Value:
        limit = 4000 if dtype is np.int16 else 128
        return self.b.weight(self.rng.integers(-limit, limit, shape).astype(dtype), "w")

    def conv(self, x: Value, count: int, window: tuple[int, int] = (3, 3), **attributes: Any) -> Value:
        weight = self.constant(np.int8, count, x.shape[1], *window)
        return self.b.conv(x, weight, self.constant(np.int16, count), rshift=9, **attributes)

    def module(self, *outputs: Value) -> Module:
        module = self.b.outputs(list(outputs), [f"y{i}" for i in range(len(outputs))])
        verify_module(module)
        return module


def check(module: Module, level: int = 2, lanes: int = SMALL) -> Compiled:
    """Compile for a chip with `lanes` bytes per lane, write, read, run twice like the interpreter; no races."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part("kernels").ToyKernel.tiler, "lane_bytes", lanes)
        compiled = find_target("toy").compile([module], level)
    data = b"".join(bytes(one) for one in compiled.model.parts())
    model = part("container").read(memoryview(data), "net.bmodel")
    assert b"".join(bytes(one) for one in model.parts()) == data
    session = Session(model)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        function = module.main
        shapes = [(name, value.shape) for name, value in zip(function.input_names, function.arguments)]
        inputs = {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes}
        got, want = session.run(inputs, raw=True), run_module(module, inputs)
        for name, array in want.items():
            np.testing.assert_array_equal(got[name], array.reshape(array.shape or (1,)), err_msg=name)
    analyze = find_analyzer("toy")
    assert analyze is not None
    assert analyze(model, 0).races() == []
    round_trip(model)
    return compiled


def round_trip(model: Any) -> None:
    """Commands survive being written as text."""
    text = find_target("toy").disassemble(model)
    streams = [bytes(one.data) for program in model.programs for one in program.parts if one.device]
    assert b"".join(assembled(part("isa").SYNTAX.values(), text)) == b"".join(streams)


@st.composite
def nets(draw: st.DrawFn) -> Module:
    n = Net((draw(st.integers(1, 3)), draw(st.integers(1, 9)), *draw(st.tuples(*2 * [st.integers(3, 14)]))))
    b, values = n.b, [*n.inputs]
    for _ in range(draw(st.integers(1, 6))):
        x = draw(st.sampled_from(values))
        step = draw(st.sampled_from(["conv", "pool", "relu", "add", "matmul", "tanh"]))
        if step == "conv" and x.type.rank == 4:
            window = draw(st.tuples(*(st.integers(1, min(3, size)) for size in x.shape[2:])))
            pads = tuple(draw(st.integers(0, size - 1)) for size in window for _ in range(2))
            strides = draw(st.tuples(st.integers(1, 2), st.integers(1, 3)))
            values.append(n.conv(x, draw(st.integers(1, 9)), window, pads=pads, strides=strides))
        elif step == "pool" and x.type.rank == 4:
            window = draw(st.tuples(*(st.integers(1, min(3, size)) for size in x.shape[2:])))
            values.append(b.max_pool(x, kernel=window, strides=(draw(st.integers(1, 3)), 1)))
        elif step == "matmul":
            flat, transposed = b.reshape(x, shape=(x.shape[0], x.type.size // x.shape[0])), draw(st.booleans())
            depth, count = flat.shape[1], draw(st.integers(1, 9))
            weight = n.constant(np.int8, *((count, depth) if transposed else (depth, count)))
            values.append(b.matmul(flat, weight, transpose_right=transposed, rshift=10))
        elif step == "add":
            y = draw(st.sampled_from([one for one in values if one.shape == x.shape]))
            factors = draw(st.tuples(*2 * [st.integers(-128, 127)]))
            values.append(b.mac_shift(x, y, multipliers=factors, rshift=draw(st.integers(0, 15))))
        elif step == "tanh":
            real = b.tanh(b.dequantize(x))
            values.append(b.quantize(real, out=TensorType(x.shape, "i8", QUANT)))
        else:
            values.append(b.relu(x))
        scaled = values[-1]
        scaled.type = TensorType(scaled.shape, "i8", QUANT)
    return n.module(*dict.fromkeys([values[-1], draw(st.sampled_from(values)), n.inputs[0]]))


@settings(max_examples=40, deadline=None)
@given(nets(), st.integers(0, 2), st.sampled_from([SMALL, 8192]))
def test_random_nets_compute_what_evaluate_says(module: Module, level: int, lanes: int) -> None:
    check(module, level, lanes)


def test_many_tiles_and_their_overlap() -> None:
    n = Net((2, 7, 30, 21))
    x = n.conv(n.inputs[0], 13, (3, 2), pads=(1, 1, 0, 1), strides=(1, 2))
    y = n.b.mac_shift(n.b.relu(x), x, multipliers=(-128, 127), rshift=7)
    module = n.module(n.b.max_pool(y, kernel=(3, 3), strides=(2, 1), pads=(1, 1, 1, 1)))
    for level in (0, 1, 2):
        compiled = check(module, level)
        assert [row.where for row in compiled.rows] == ["toy"] * 4
        assert min(row.tiles for row in compiled.rows) > 4


def test_outputs_may_be_inputs_constants_and_listed_twice() -> None:
    n = Net((1, 3, 5, 5))
    y = n.b.relu(n.inputs[0])
    check(n.module(n.inputs[0], y, y, n.b.reshape(y, shape=(75,)), n.constant(np.int8, 5000)))


# -- refusals ---------------------------------------------------------------------------------------------------------
def refused(make: Any, *shapes: tuple[int, ...]) -> str:
    n = Net(*shapes)
    compiled = check(n.module(make(n, *n.inputs)), lanes=8192)
    (row,) = [row for row in compiled.rows if row.where == "cpu"]
    return row.reason


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda n, x: n.conv(x, 4, strides=(16, 1)), "Windows must not be dilated"),
        (lambda n, x: n.conv(x, 4, dilations=(2, 1)), "Windows must not be dilated"),
        (lambda n, x: n.b.conv(x, n.constant(np.int8, 4, 2, 3, 3), group=2, rshift=7), "Products must be whole"),
        (lambda n, x: n.b.mac_shift(x, x, x, multipliers=(1, 2, 3)), "There must be two int8 operands"),
        (lambda n, x: n.b.mac_shift(x, x, multipliers=(1, 200)), "There must be two int8 operands"),
        (lambda n, x: n.conv(n.b.weight(np.ones((1, 4, 9, 9), np.int8), "w"), 4), "The input must be computed"),
        (lambda n, x: n.b.avg_pool(x, kernel=(2, 2), multiplier=64, rshift=8), "toy has no kernel for 'avg_pool'"),
    ],
)
def test_what_the_chip_does_not_run_goes_to_the_cpu_with_a_reason(make: Any, reason: str) -> None:
    assert refused(make, (1, 4, 9, 9)).startswith(reason)


def test_too_deep_products_do_not_fit() -> None:
    n = Net((1, 9000))
    y = n.b.matmul(n.inputs[0], n.constant(np.int8, 9000, 3), rshift=12)
    (row,) = check(n.module(y), lanes=8192).rows
    assert row.reason == "The smallest tile must fit local memory"


def test_other_precisions_models_and_programs_are_refused() -> None:
    target = find_target("toy")
    with pytest.raises(UsageError, match="int8 only, not in f32"):
        target.pipeline("f32", 2)
    n = Net((1, 8))
    model = target.compile([n.module(n.b.relu(n.inputs[0]))], 2).model
    with pytest.raises(UnsupportedError, match="toy programs only"):
        find_analyzer("toy")(object(), 0)  # type: ignore[misc]
    with pytest.raises(UsageError, match="there is no program 1"):
        find_analyzer("toy")(model, 1)  # type: ignore[misc]
    with pytest.raises(UnsupportedError, match="cannot run models for toy"):
        registry.lookup("bmcompiler.devices", "bm1880", "device")().load(model)
    assert "toy chip model" in [one.title for one in containers()]


# -- malformed programs -----------------------------------------------------------------------------------------------
@pytest.fixture
def model() -> Any:
    n = Net((1, 4, 6, 6))
    return find_target("toy").compile([n.module(n.b.relu(n.conv(n.inputs[0], 4)))], 2).model


def with_commands(model: Any, data: bytes) -> Any:
    program = model.programs[0]
    program.parts = [Part(True, data)]
    program.layers = ""
    return model


def test_a_piece_of_a_command_is_an_error(model: Any) -> None:
    broken = with_commands(model, bytes(model.programs[0].parts[0].data)[:-1])
    for use in (find_target("toy").disassemble, run_zeros, lambda one: find_analyzer("toy")(one, 0)):  # type: ignore[misc]
        with pytest.raises((FileFormatError, SimulatorError), match="not whole commands of 40 bytes"):
            use(broken)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("compute.raw op=2 id=1 n=1 out_c=1 out_h=1 out_w=9000", r"command 0 \(compute\): local tensor"),
        ("dma.load id=1 n=1 c=1 h=1 w=1 global_addr=0xffffff", r"command 0 \(dma\): global address"),
        ("dma.raw engine=1 op=3 id=1", r"command 0 \(dma\): operation 3 does not exist"),
        ("compute.max_pool id=1 n=1 in_c=1 in_h=1 in_w=1 out_c=1 out_h=1 out_w=1", "simulator, command 0 failed"),
    ],
)
def test_malformed_commands_are_named(model: Any, line: str, reason: str) -> None:
    data = b"".join(assembled(part("isa").SYNTAX.values(), line))
    with pytest.raises(BMError, match=reason):
        run_zeros(with_commands(model, data))


def test_races_and_endless_waits_are_found(model: Any) -> None:
    text = find_target("toy").disassemble(model)
    syntax = part("isa").SYNTAX.values()
    unordered = re.sub(r"wait=\d+", "wait=0", text)
    races = find_analyzer("toy")(with_commands(model, b"".join(assembled(syntax, unordered))), 0).races()  # type: ignore[misc]
    assert "dma.load" in str(races[0]) and "compute.conv" in str(races[0])
    waiting = with_commands(model, b"".join(assembled(syntax, "compute.relu id=1 wait=7")))
    with pytest.raises(SimulatorError, match=r"command 0 \(compute\) waits for dma id 7"):
        find_analyzer("toy")(waiting, 0)  # type: ignore[misc]


def run_zeros(model: Any) -> None:
    Session(model).run({info.name: np.zeros(info.shape, np.int8) for info in model.programs[0].inputs}, raw=True)


@pytest.mark.parametrize("line", ["compute.fold id=1", "dma.load id", "dma.load id=1 id=2", "dma.load id=x"])
def test_unreadable_text_names_its_line(line: str) -> None:
    with pytest.raises(FileFormatError, match="line 2: "):
        list(assembled(part("isa").SYNTAX.values(), f"dma.load id=1\n{line}"))
    with pytest.raises(EncodingError, match=r"line 1: .*does not fit 16 bits"):
        list(assembled(part("isa").SYNTAX.values(), "dma.load n=65536"))
