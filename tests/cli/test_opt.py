"""bmnet-opt: text in, text out, with and without weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler.cli.common import run
from bmcompiler.cli.opt import cli
from bmcompiler.files.mlir import load_module, save_module
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder


def net() -> Module:
    b = Builder.new("net")
    x = b.input("data", TensorType((1, 2, 4, 4)))
    with b.at("conv1"):
        x = b.conv(x, b.weight(np.arange(6, dtype=np.float32).reshape(3, 2, 1, 1), "kernel"))
    with b.at("bn1"):
        vectors = [b.weight(np.full(3, v, np.float32), name) for v, name in ((2, "g"), (1, "b"), (0, "m"), (4, "v"))]
        x = b.batch_norm(x, *vectors, epsilon=0.0)
    with b.at("flat"):
        x = b.reshape(b.reshape(b.relu(x), shape=(3, 16)), shape=(1, 48))
    return b.outputs([x], ["out"])


@pytest.fixture
def ir(tmp_path: Path) -> Path:
    save_module(net(), tmp_path / "net.mlir")
    return tmp_path / "net.mlir"


def opt(*args: object) -> int:
    return run(cli, "bmnet-opt", [str(a) for a in args])


def test_writes_text_and_weights_that_compute_the_same(ir: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mlir"
    assert opt(ir, "--pipeline", "canonicalize", "-o", out, "--verify-each") == 0
    module = load_module(out)
    assert [op.short_name for op in module.walk() if op.short_name not in ("weight", "return")] == [
        *("conv", "relu", "reshape")
    ]
    inputs = {"data": np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32)}
    np.testing.assert_allclose(run_module(module, inputs)["out"], run_module(net(), inputs)["out"], rtol=1e-5)


def test_text_goes_to_stdout_and_printed_ir_and_times_to_stderr(ir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt(ir, "--pipeline", "merge-reshapes,dead-code", "--print-ir-after", "dead-code", "--timing") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith('"builtin.module"') and printed.out.count("tensorop.reshape") == 1
    assert "// IR after dead-code" in printed.err and "merge-reshapes" in printed.err and "ms" in printed.err


def test_text_without_weights_is_rewritten_and_keeps_its_constants(ir: Path, tmp_path: Path) -> None:
    (tmp_path / "net.weights.npz").unlink()
    out = tmp_path / "out.mlir"
    assert opt(ir, "--pipeline", "canonicalize", "-o", out, "--verify-each") == 0
    text = out.read_text()
    assert text.count("tensorop.reshape") == 1 and "tensorop.batch_norm" in text and "sha256" in text
    assert not (tmp_path / "out.weights.npz").exists()


def test_lists_passes_with_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt("--list-passes") == 0
    assert "canonicalize\n    Run the target-independent rewrites" in (out := capsys.readouterr().out)
    assert "rounds: int = 10" in out


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        ("fold-constant", ["no pass 'fold-constant'", "did you mean fold-constants"]),
        ("canonicalize{round=2}", ["no option 'round'", "rounds: int = 10"]),
        ("canonicalize{rounds=many}", ["rounds must be int", "'many'"]),
        ("canonicalize{rounds=0}", ["rounds must be at least 1"]),
        ("canonicalize{rounds=1,rounds=2}", ["given twice"]),
        ("dead-code canonicalize", ["expected ',' between passes", "column 10"]),
        ("canonicalize{rounds", ["expected '=' after option rounds"]),
    ],
)
def test_bad_pipelines_are_usage_errors_that_name_what_is_known(
    ir: Path, pipeline: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt(ir, "--pipeline", pipeline) == 2
    message = capsys.readouterr().err
    assert all(word in message for word in words) and message.count("\n") == 1


def test_bad_files_are_one_line_errors_and_leave_nothing_behind(
    ir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, out = tmp_path / "broken.mlir", tmp_path / "out.mlir"
    broken.write_text(ir.read_text().replace("tensor<1x48xf32>", "tensor<1x47xf32>"))
    assert opt(broken, "--pipeline", "dead-code", "-o", out) == 1
    assert opt(tmp_path / "missing.mlir", "--pipeline", "dead-code", "-o", out) == 1
    assert opt(ir, "--pipeline", "dead-code", "--print-ir-after", "canonicalize", "-o", out) == 2
    assert capsys.readouterr().err.count("\n") == 3 and not out.exists()


def test_saved_ir_is_compiled_as_it_is(ir: Path, tmp_path: Path) -> None:
    """What `--save-ir` wrote is quantized: it needs neither data nor a table, and gives the same model."""
    data = {"data": np.random.default_rng(0).normal(size=(32, 2, 4, 4)).astype(np.float32)}
    paths = [tmp_path / "first.bmodel", tmp_path / "again.bmodel"]
    bmcompiler.compile(ir, target="bm1880", data=data, save_ir=tmp_path / "saved.mlir", output=paths[0])
    bmcompiler.compile(tmp_path / "saved.mlir", target="bm1880", output=paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_saved_ir_that_stayed_in_float_is_compiled_as_it_is(tmp_path: Path) -> None:
    """Where float is as quick nothing is integers, which says as much of what passes have run."""
    b = Builder.new("net")
    x = b.input("data", TensorType((1, 4, 2, 2)))
    with b.at("scores"):
        module = b.outputs([b.softmax(x)], ["y"])
    save_module(module, tmp_path / "net.mlir")
    data = {"data": np.random.default_rng(0).normal(size=(8, 4, 2, 2)).astype(np.float32)}
    paths = [tmp_path / "first.bmodel", tmp_path / "again.bmodel"]
    saved, asked = tmp_path / "saved.mlir", {"target": "bm1684", "quantize": "int8"}
    first = bmcompiler.compile(tmp_path / "net.mlir", data=data, save_ir=saved, output=paths[0], **asked)
    assert not any(value.type.quant for op in first.module.main.ops for value in op.results)
    bmcompiler.compile(saved, output=paths[1], **asked)
    assert paths[0].read_bytes() == paths[1].read_bytes()
