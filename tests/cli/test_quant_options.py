"""--quant-table and --io-dtype of bmnet-compile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from cli_files import SHAPE, command, onnx_model

from bmcompiler import bmodel
from bmcompiler.driver import load_network
from bmcompiler.interpreter import run_module
from bmcompiler.runtime import Session
from bmcompiler.target import find_target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """net.onnx, x.npz."""
    onnx.save(onnx_model(), tmp_path / "net.onnx")
    np.savez(tmp_path / "x.npz", data=np.random.default_rng(0).normal(0, 1, (6, *SHAPE[1:])).astype(np.float32))
    return tmp_path


def compile_net(folder: Path, *options: object) -> int:
    net = ("compile", folder / "net.onnx", "--target", "bm1684", "--quantize", "int8", "--data", folder / "x.npz")
    return command(*net, "-o", folder / "net.bmodel", "--quiet", *options)


def test_a_quantization_table_is_written_and_then_obeyed(folder: Path) -> None:
    table = folder / "net.modes"
    assert compile_net(folder, "--quant-table", table) == 0
    first = (folder / "net.bmodel").read_bytes()
    lines = table.read_text().splitlines()
    assert lines[0] == "# bmcompiler quantization table 1" and len(lines) > 4
    assert compile_net(folder, "--quant-table", table) == 0
    assert (folder / "net.bmodel").read_bytes() == first
    table.write_text("\n".join(f"{line.split()[0]} high" for line in lines[2:] if "has no int8" not in line))
    assert compile_net(folder, "--quant-table", table, "--save-ir", folder / "net.mlir") == 0
    module = load_network(folder / "net.mlir")
    assert {op.attributes["mode"] for op in module.main.ops if "mode" in op.attributes} == {"high"}


def test_a_table_names_layers_in_two_terms_and_on_the_host(folder: Path) -> None:
    net = ("compile", folder / "net.onnx", "--target", "bm1880", "--data", folder / "x.npz", "--quiet")
    table, out = folder / "net.modes", ("-o", folder / "net.bmodel", "--save-ir", folder / "net.mlir")
    assert command(*net, *out, "--quant-table", table) == 0
    rows = [line.split() for line in table.read_text().splitlines() if not line.startswith("#")]
    layers = [row[0] for row in rows if row[1] in ("int8", "double") and row[2] != "-"]
    assert layers
    for mode, key, wanted in (("double", "quantize.mode", "double"), ("float", "place.cpu", "the quantization table")):
        table.write_text("".join(f"{layer} {mode}\n" for layer in layers))
        assert command(*net, *out, "--quant-table", table) == 0
        module = load_network(folder / "net.mlir")
        notes = [str(op.attributes[key]) for op in module.main.ops if key in op.attributes]
        assert sum(wanted in note for note in notes) >= 1, (mode, str(module))


def test_a_wrong_table_is_one_line_with_the_line_number(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "net.modes").write_text("\nip1 sideways\n")
    assert compile_net(folder, "--quant-table", folder / "net.modes") == 1
    message = capsys.readouterr().err
    assert "net.modes: line 2: unknown mode 'sideways'" in message and message.count("\n") == 1


@pytest.mark.parametrize(("io", "dtype"), [("float", "float32"), ("f32", "float32"), ("int8", "int8")])
def test_inputs_are_float_or_integers(folder: Path, io: str, dtype: str) -> None:
    assert compile_net(folder, "--io-dtype", io, "--save-ir", folder / "net.mlir") == 0
    module = load_network(folder / "net.mlir")
    (argument,) = module.main.arguments
    assert argument.type.numpy == dtype
    session = Session(bmodel.load(folder / "net.bmodel"))
    x = np.load(folder / "x.npz")["data"][:1]
    raw = {"data": x.astype(dtype)}
    for name, array in run_module(module, raw).items():
        np.testing.assert_allclose(session.run(raw, raw=True)[name], array, rtol=1e-5)
    real = session.run({"data": x})
    wanted = run_module(load_network(folder / "net.onnx"), {"data": x})
    assert all(np.abs(real[name] - array).max() < 0.05 for name, array in wanted.items())


@pytest.mark.parametrize("option", [("--io-dtype", "int8"), ("--quant-table", "t")])
def test_options_of_int8_are_refused_elsewhere(
    folder: Path, option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    net = ("compile", folder / "net.onnx", "--data", folder / "x.npz", "-o", folder / "net.bmodel")
    chip = "bm1880" if option[0] == "--io-dtype" else "dv700"
    assert command(*net, "--target", chip, "--quantize", "int8", *option) == 2
    assert f"{chip} in int8 has none" in capsys.readouterr().err
    assert command(*net, "--target", "bm1684", "--quantize", "f32", *option) == 2
    assert "bm1684 in f32 has none" in capsys.readouterr().err


def test_saved_integer_ir_compiles_to_the_same_model(folder: Path) -> None:
    (folder / "net.modes").write_text("act1 low\npool1 low\nip1 high\n")
    assert compile_net(folder, "--save-ir", folder / "net.mlir", "--quant-table", folder / "net.modes") == 0
    again = ("compile", folder / "net.mlir", "--target", "bm1684", "--quantize", "int8", "--quiet")
    assert command(*again, "-o", folder / "again.bmodel") == 0
    assert (folder / "again.bmodel").read_bytes() == (folder / "net.bmodel").read_bytes()


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x", "bm1880", "dv700"])
def test_commands_take_every_precision_that_a_chip_has(chip: str, folder: Path) -> None:
    assert find_target(chip).precisions
    for precision in find_target(chip).precisions:
        chosen = ("--target", chip, "--quantize", precision, "--data", folder / "x.npz", "--quiet")
        assert command("compile", folder / "net.onnx", *chosen, "-o", folder / "net.bmodel") == 0
        assert f"precision {precision}" in bmodel.load(folder / "net.bmodel").producer
