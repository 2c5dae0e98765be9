"""bmnet-compile --test-input --test-reference, and words of other compilers' commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from cli_files import SHAPE, command, onnx_model

from bmcompiler import load_network
from bmcompiler.bmodel import load
from bmcompiler.evaluation.job import run_network
from bmcompiler.evaluation.similarity import named_outputs, similarity


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """net.onnx, in.npz, and ref.npz with its outputs in float."""
    onnx.save(onnx_model(), tmp_path / "net.onnx")
    x = np.random.default_rng(0).normal(0, 1, (3, *SHAPE[1:])).astype(np.float32)
    np.savez(tmp_path / "in.npz", data=x)
    np.savez(tmp_path / "ref.npz", **run_network(load_network(tmp_path / "net.onnx"), {"data": x}))
    return tmp_path


def compiled(folder: Path, *options: object, reference: str = "ref.npz") -> int:
    given = ("--test_input", folder / "in.npz", "--test_reference", folder / reference)
    return command("compile", folder / "net.onnx", "--chip", "BM1684X", *given, "-o", folder / "net.bmodel", *options)


def output_of(folder: Path) -> tuple[str, np.ndarray]:
    with np.load(folder / "ref.npz") as stored:
        ((name, array),) = stored.items()
    return name, array


def test_a_program_as_its_reference_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled(folder) == 0
    assert "beside the reference" in capsys.readouterr().out
    assert load(folder / "net.bmodel").target == "bm1684x"


def test_one_that_differs_is_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, array = output_of(folder)
    np.savez(folder / "other.npz", **{name: array[::-1]})
    assert compiled(folder, reference="other.npz") == 1
    said = capsys.readouterr().err
    assert f"other.npz: the program differs in {name}" in said and "differs" in said.splitlines()[2]
    assert not (folder / "net.bmodel").exists()
    assert compiled(folder, "--tolerance", "-1,-5", reference="other.npz") == 0


def test_names_with_the_type_of_the_op_are_those_of_the_outputs(folder: Path) -> None:
    name, array = output_of(folder)
    np.savez(folder / "typed.npz", **{f"{name}_Softmax": array, "pool1_MaxPool": array, "data": array})
    assert compiled(folder, reference="typed.npz") == 0
    np.savez(folder / "none.npz", pool1_MaxPool=array, data=array)
    assert compiled(folder, reference="none.npz") == 1


def test_named_outputs() -> None:
    assert named_outputs(["y"], ["anything"]) == {"y": "anything"}
    assert named_outputs(["y", "z"], ["y", "y_Add", "z_Conv"]) == {"y": "y", "z": "z_Conv"}
    assert named_outputs(["y", "z"], ["z", "y_Add", "y_Conv"]) == {"z": "z"}  # which of the two is not known
    assert named_outputs(["y", "z"], ["z", "y_1"]) == {"z": "z"}


def test_verdicts() -> None:
    a = np.array([1.0, 2.0, 3.0])
    assert similarity(a, a, (1, 1)).verdict == "equal"
    assert similarity(a, a * 1.0005, (1, 1)).verdict == "close"
    found = similarity(a, a + np.array([0, 0, 0.3]), (0.99, 0.9))
    assert found.verdict == "similar"
    assert found.cosine == pytest.approx(14.9 / (14**0.5 * 15.89**0.5))
    assert found.euclid == pytest.approx(1 - 0.3 / (1 + 4 + 3.15**2) ** 0.5)
    assert similarity(a, a + np.array([0, 0, 0.3]), (0.99, 0.95)).verdict == "differs"
    assert similarity(a, -a, (-1, -9)).euclid == 0
    assert similarity(a, [1, 2, np.nan], (0, 0)).verdict == "differs"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--test-input", "in.npz"], "belong together"),
        (["--tolerance", "0.9,0.9"], "belong together"),
        (["--tolerance", "1"], "not like 0.99,0.9"),
        (["--tolerance", "2,0"], "cosine is from -1 to 1"),
    ],
)
def test_what_is_no_test(folder: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [folder / word if word.endswith(".npz") else word for word in options]
    assert command("compile", folder / "net.onnx", "--target", "bm1684", "-o", folder / "net.bmodel", *words) == 2
    assert said in capsys.readouterr().err


def test_another_size_and_a_file_that_is_no_reference(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(folder / "short.npz", **{output_of(folder)[0]: output_of(folder)[1][:2]})
    assert compiled(folder, reference="short.npz") == 1
    assert "short.npz: output" in capsys.readouterr().err
    assert compiled(folder, reference="net.onnx") == 1
    assert "net.onnx" in capsys.readouterr().err


def test_words_of_other_compilers(folder: Path) -> None:
    words = ["--processor", "bm1684x", "--quantize", "F16", "--model_name", "mine", "--input_shapes", "[[2,2,6,6]]"]
    assert command("compile", folder / "net.onnx", *words, "--quiet", "-o", folder / "net.bmodel") == 0
    (stage,) = load(folder / "net.bmodel").stages()
    assert (stage.net, stage.inputs[0].shape) == ("mine", (2, 2, 6, 6))


def test_values_of_other_compilers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("compile", folder / "net.onnx", "--chip", "bm1684", "--pixel_format", "BGR") == 1  # two channels
    assert "no image of 1 or 3 channels" in capsys.readouterr().err
    assert command("compile", folder / "net.onnx", "--chip", "bm1684", "--pixel_format", "rgbd") == 2


def test_a_command_keeps_its_own_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled(folder) == 0
    capsys.readouterr()
    assert command("tool", "--chip", folder / "net.bmodel") == 0
    assert capsys.readouterr().out == "BM1684X\n"
    assert command("compile", folder / "net.onnx", "--keep_aspect_ratio") == 2  # it cuts there, and fills elsewhere


def test_a_table_of_tpu_mlir(folder: Path) -> None:
    assert command("calibrate", folder / "net.onnx", "--data", folder / "in.npz", "-o", folder / "ours.table") == 0
    lines = [line.split() for line in (folder / "ours.table").read_text("utf-8").splitlines() if line[0] != "#"]
    types = {"data": "", "conv1": "_Conv", "act1": "_Relu", "pool1": "_MaxPool", "flat": "_Flatten", "ip1": "_Gemm"}
    rows = [f"{name}{types.get(name, '_Softmax')} {value} -{value} {value}" for name, value in lines]
    (folder / "theirs.table").write_text("\n".join(["# histogram number: 2048", "###", *rows]), "utf-8")
    for name in ("ours", "theirs"):
        table = ("--calibration_table", folder / f"{name}.table", "-o", folder / f"{name}.bmodel")
        assert command("compile", folder / "net.onnx", "--chip", "bm1684", "--quantize", "INT8", *table) == 0
    ours, theirs = (load(folder / f"{name}.bmodel") for name in ("ours", "theirs"))
    assert ours.weight_sets == theirs.weight_sets
