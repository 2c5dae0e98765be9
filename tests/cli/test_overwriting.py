"""No command replaces what it reads: refused before it reads anything, by whatever spelling; what was there stays."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click import Command, Group

import bmcompiler
from bmcompiler.cli import accuracy, calibrate, capi, compile, evaluate, llm, opt, run, tool
from bmcompiler.cli import common as cli
from bmcompiler.errors import UsageError
from bmcompiler.files.mlir import side_file

MODELS = Path(__file__).resolve().parents[2] / "models"
LENET = MODELS / "lenet"
MODULES = (accuracy, calibrate, capi, compile, evaluate, opt, run, tool)
CASES = (
    (compile.cli, "net.prototxt w.caffemodel --target bm1684 -o w.caffemodel"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1684 -o ./net.prototxt"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1684 -o deeper/../w.caffemodel"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1684 -o link.bmodel"),
    (compile.cli, "net.prototxt hard --target bm1684 -o w.caffemodel"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1684 --report net.prototxt"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1684 -o x.bmodel --report x.bmodel"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1880 --data samples -o samples/a.npz"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1880 --images samples -o samples/a.npz"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1880 --data data.npz -o data.npz"),
    (compile.cli, "net.mlir --target bm1684 --save-ir net.mlir"),
    (compile.cli, "net.mlir --target bm1684 -o net.weights.npz"),
    (calibrate.cli, "net.prototxt w.caffemodel --data data.npz -o data.npz"),
    (accuracy.cli, "net.prototxt w.caffemodel --target bm1880 --data data.npz --report data.npz"),
    (accuracy.cli, "net.prototxt w.caffemodel --target bm1880 --data data.npz --suggest w.caffemodel"),
    (run.cli, "a.bmodel --data data.npz -o data.npz"),
    (run.cli, "a.bmodel --data data.npz --trace a.bmodel"),
    (evaluate.cli, "a.bmodel --data data.npz -o data.npz"),
    (evaluate.cli, "a.bmodel --data data.npz --labels labels.npz:l -o labels.npz"),
    (evaluate.cli, "a.bmodel --data data.npz --labels labels.npz:l --resume new.json -o ./new.json"),
    (compile.cli, "net.prototxt w.caffemodel --target bm1684 --timing-profile profile.json -o profile.json"),
    (opt.cli, "net.mlir --pipeline canonicalize -o net.mlir"),
    (tool.cli, "combine a.bmodel b.bmodel -o ./b.bmodel"),
    (tool.cli, "static a.bmodel -o a.bmodel"),
    (tool.cli, "dis a.bmodel -o a.bmodel"),
    (llm.cli, "compile llama -o llama/config.json"),
    (llm.cli, "compile llama -o ./deeper/../llama/model.safetensors"),
    (llm.cli, "compile llama --samples profile.json -o profile.json"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    shutil.copy(LENET / "deploy.prototxt", folder / "net.prototxt")
    shutil.copy(LENET / "lenet.caffemodel", folder / "w.caffemodel")
    shutil.copytree(MODELS / "small_llama", folder / "llama", ignore=shutil.ignore_patterns("valid.txt"))
    (folder / "samples").mkdir()
    (folder / "deeper").mkdir()
    (folder / "profile.json").write_text('{"clock_hz": 5e8}')
    for path in ("data.npz", "samples/a.npz", "labels.npz"):
        np.savez(folder / path, data=np.zeros((2, 1, 28, 28), np.float32))
    net = (folder / "net.prototxt", folder / "w.caffemodel")
    bmcompiler.compile(*net, target="bm1684", output=folder / "a.bmodel", save_ir=folder / "net.mlir", check="never")
    shutil.copy(folder / "a.bmodel", folder / "b.bmodel")
    (folder / "link.bmodel").symlink_to("w.caffemodel")
    (folder / "hard").hardlink_to(folder / "w.caffemodel")
    return folder


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "words"), CASES, ids=[words for _, words in CASES])
def test_an_output_is_no_input(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: Command, words: str
) -> None:
    monkeypatch.chdir(made)
    before = _contents(made)
    assert cli.run(command, "bmnet", words.split()) == 2
    assert "give the output another name" in capsys.readouterr().err
    assert _contents(made) == before


@pytest.mark.parametrize(
    ("command", "words"),
    [(calibrate.cli, "net.prototxt w.caffemodel -o run.toml"), (run.cli, "a.bmodel --trace deeper/../run.toml")],
)
def test_an_output_is_no_file_of_options(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: Command, words: str
) -> None:
    monkeypatch.chdir(made)
    text = 'data = "data.npz"\n'
    Path("run.toml").write_text(text)
    assert cli.run(command, "bmnet", [*words.split(), "--config", "run.toml"]) == 2
    assert "run.toml: is an input, which the output would replace" in capsys.readouterr().err
    assert Path("run.toml").read_text() == text


def test_pieces_do_not_replace_the_model(made: Path, tmp_path: Path) -> None:
    model = tmp_path / "a.bmodel"
    shutil.copy(made / "a.bmodel", model)
    assert cli.run(tool.cli, "bmnet-tool", ["extract", str(model), "-o", str(tmp_path / "out")]) == 0
    piece = next((tmp_path / "out").iterdir())
    shutil.copy(model, piece)
    assert cli.run(tool.cli, "bmnet-tool", ["extract", str(piece), "-o", str(tmp_path / "out")]) == 2
    assert piece.read_bytes() == model.read_bytes()


def test_programs_lose_nothing_either(made: Path) -> None:
    net = (made / "net.prototxt", made / "w.caffemodel")
    before = _contents(made)
    with pytest.raises(UsageError, match=r"w\.caffemodel: is an input"):
        bmcompiler.compile(*net, target="bm1684", output=made / "deeper" / ".." / "w.caffemodel")
    with pytest.raises(UsageError, match="lies in the input folder"):
        bmcompiler.compile(*net, target="bm1880", data=made / "samples", output=made / "samples" / "a.npz")
    assert _contents(made) == before


def test_standard_input_and_output_are_no_files(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (made / "net.mlir").read_text(encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO(text))
        patch.chdir(made)
        cli.run(opt.cli, "bmnet-opt", ["-", "--pipeline", "dead-code"])
    assert "is an input" not in capsys.readouterr().err


def test_the_file_behind_a_link_is_written(made: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "old.txt", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    assert cli.run(tool.cli, "bmnet-tool", ["dis", str(made / "a.bmodel"), "-o", str(link)]) == 0
    assert link.is_symlink() and target.read_text() != "old"


def test_devices_take_everything_and_stay_devices(made: Path, tmp_path: Path) -> None:
    data = ["--data", str(made / "data.npz")]
    assert cli.run(run.cli, "bmnet-run", [str(made / "a.bmodel"), *data, "-o", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()
    assert side_file("/dev/null") == Path("/dev/null")


def _commands(command: Command) -> Iterator[Command]:
    if isinstance(command, Group):
        for each in command.commands.values():
            yield from _commands(each)
    else:
        yield command


def test_every_path_that_a_command_writes_is_declared_as_an_output() -> None:
    """Options named like outputs; `--quant-table` and `--resume` are read where they are there, and count as inputs."""
    named = {"output", "report", "trace", "html", "suggest", "dump_layers", "save_ir", "keep_bad", "folder"}
    for module in MODULES:
        for command in _commands(module.cli):
            for each in command.params:
                assert (each.name in named) == isinstance(each.type, cli.Output), (command.name, each.name)


NET = "net.prototxt w.caffemodel"
OTHERS = (
    (compile.cli, f"{NET} --target bm1684 --check never -o FILE", "model file"),
    (compile.cli, f"{NET} --target bm1684 --check never -o x.bmodel --save-ir FILE", "text"),
    (compile.cli, f"{NET} --target bm1684 --check never -o x.bmodel --report FILE.html", "HTML page"),
    (compile.cli, f"{NET} --target bm1684 --check never -o x.bmodel --report FILE.json", "JSON file"),
    (calibrate.cli, f"{NET} --data data.npz -o FILE", "table"),
    (accuracy.cli, f"{NET} --target bm1880 --data data.npz --report FILE", "HTML page"),
    (accuracy.cli, f"{NET} --target bm1880 --data data.npz --suggest FILE", "table"),
    (run.cli, "a.bmodel --data data.npz -o FILE", r"file of arrays (.npz)"),
    (run.cli, "a.bmodel --data data.npz --trace FILE", "JSON file"),
    (evaluate.cli, "a.bmodel --data data.npz --labels labels.npz -o FILE", "JSON file"),
    (opt.cli, "net.mlir --pipeline canonicalize -o FILE", "text"),
    (tool.cli, "static a.bmodel -o FILE", "model file"),
    (tool.cli, "dis a.bmodel -o FILE", "text"),
)
CONTENTS = {
    "onnx": b"\x08\x08\x12\x07pytorch:\xc8\x01\n\x04Conv",
    "raw": np.arange(1, 300, dtype=np.float32).tobytes(),  # external data of a network
    "jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
    "prototxt": b'name: "net"\nlayer {\n  name: "a"\n}\n',
    "python": b"import torch\n\ndef f(x):\n    return x\n",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize(("command", "words", "kind"), OTHERS, ids=[words for _, words, _ in OTHERS])
def test_a_file_of_another_kind_is_not_replaced(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: bytes, command: Command,
    words: str, kind: str,
) -> None:  # fmt: skip
    given = words.replace("FILE", "other.dat").split()
    name = next(word for word in given if word.startswith("other.dat"))
    monkeypatch.chdir(made)
    (made / name).write_bytes(content)
    try:
        assert cli.run(command, "bmnet", given) == 2
        assert f"{name}: holds something else than a {kind}, which would be lost" in capsys.readouterr().err
        assert (made / name).read_bytes() == content
    finally:
        (made / name).unlink()


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_programs_do_not_replace_it_either(made: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    net = (made / "net.prototxt", made / "w.caffemodel")
    result = bmcompiler.compile(*net, target="bm1684", check="never")
    with pytest.raises(UsageError, match="holds something else than a model file"):
        result.save(path)
    with pytest.raises(UsageError, match="holds something else than a model file"):
        bmcompiler.compile_module(result.source(), target="bm1684", output=path)
    assert path.read_bytes() == content
    path.write_bytes(b"")  # what tempfile makes
    result.save(path)
    result.save(path)


STDIO = {opt.cli: "-o FILE", run.cli: "-o FILE", compile.cli: "-o FILE", tool.cli: "dis "}
"""Which words of which commands take - for standard output."""
DASHED = [row[:2] for row in OTHERS if STDIO.get(row[0], "no such") not in row[1] and "FILE." not in row[1]]


def test_links_that_lead_to_themselves_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop").symlink_to("loop")
    words = [str(tmp_path / "loop"), "--target", "bm1684", "-o", str(tmp_path / "x.bmodel")]
    assert cli.run(compile.cli, "bmnet-compile", words) == 1
    assert "loop: no such file" in capsys.readouterr().err and not (tmp_path / "x.bmodel").exists()


@pytest.mark.parametrize(("command", "words"), DASHED, ids=[words for _, words in DASHED])
def test_no_file_is_called_dash(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: Command, words: str
) -> None:
    monkeypatch.chdir(made)
    assert cli.run(command, "bmnet", words.replace("FILE", "-").split()) == 2
    assert "it is not written to standard output. Remedy: name a file" in capsys.readouterr().err
    assert not (made / "-").exists()


def test_what_a_command_wrote_is_replaced_when_it_runs_again(made: Path, tmp_path: Path) -> None:
    net = [str(made / "net.prototxt"), str(made / "w.caffemodel")]
    data = str(tmp_path / "real.npz")
    np.savez(data, data=np.linspace(0, 1, 2 * 28 * 28, dtype=np.float32).reshape(2, 1, 28, 28))
    for target in ("bm1684", "bm1880", "bm1684x", "dv700"):
        kept = ["-o", f"{tmp_path}/{target}.bmodel", "--save-ir", f"{tmp_path}/{target}.mlir"]
        for report in ("html", "json", "csv"):
            samples = ["--data", data] if target == "bm1880" else []
            given = [
                *net,
                "--target",
                target,
                *samples,
                "--check",
                "never",
                *kept,
                "--report",
                f"{tmp_path}/r.{report}",
            ]
            assert [cli.run(compile.cli, "bmnet", given) for _ in range(2)] == [0, 0]
    for table in ("t.table", "t.pb2", "t.prototxt"):
        given = [*net, "--data", data, "-o", str(tmp_path / table)]
        assert [cli.run(calibrate.cli, "bmnet", given) for _ in range(2)] == [0, 0]


@pytest.mark.parametrize(
    ("command", "words"),
    [(compile.cli, "net.prototxt w.caffemodel --target bm1880 -o new/"), (run.cli, "a.bmodel --data d.npz -o new/")],
)
def test_a_folder_is_no_name_of_a_file(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: Command, words: str
) -> None:
    monkeypatch.chdir(made)
    assert cli.run(command, "bmnet", words.split()) == 2
    assert "'new/' names a folder, and a file is written" in capsys.readouterr().err
    assert not (made / "new").exists()
