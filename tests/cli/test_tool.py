"""bmnet-tool and what all commands share."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from bmcompiler.bmodel import TensorInfo, load, save
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.cli.common import format_table, printable, progress, run
from bmcompiler.cli.tool import cli
from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.files.kinds import BYTES, TEXT
from bmcompiler.files.store import atomic_output
from bmcompiler.plugins import registry

WEIGHTS = bytes(range(128))


def model(height: int, name: str = "tiny") -> Bm1880Model:
    size = height * 4
    command = Command(
        [TensorInfo("data", (1, 1, height, 4), threshold=2.0)],
        [TensorInfo("prob", (1, 10, 1, 1), offset=size, threshold=1.0)],
        bytes([height]) * 64,
        size + 10,
    )
    return Bm1880Model(name, [command], [WEIGHTS])


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two files of one net for two input heights."""
    paths = [tmp_path / f"{height}.bmodel" for height in (8, 16)]
    for path, height in zip(paths, (8, 16), strict=True):
        save(model(height), path)
    return [str(path) for path in paths]


def tool(*args: str) -> int:
    return run(cli, "bmnet-tool", args)


def test_info_names_inputs_outputs_and_sizes(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("info", files[0]) == 0
    out = capsys.readouterr().out
    assert "chip: BM1880" in out and "net 0: [tiny]  static" in out
    assert "input: data, [1, 1, 8, 4], int8, scale: 64, threshold: 2" in out
    assert "output: prob, [1, 10, 1, 1], int8, scale: 0.0078125, threshold: 1" in out
    assert "device mem size: 234 (weight: 128, instruct: 64, runtime: 42)" in out


def test_info_json_holds_the_same_facts(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("info", files[1], "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    (program,) = facts["programs"]
    assert (facts["container"], program["net"], program["neuron_size"]) == ("bm1880", "tiny", 74)
    assert program["inputs"][0]["shape"] == [1, 1, 16, 4]
    assert facts["weights"][0]["size"] == 128


def test_info_cannot_be_made_to_send_control_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(model(8, "a\x1b[2Jb\nchip: FAKE"), tmp_path / "m")
    assert tool("info", str(tmp_path / "m")) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\nchip: FAKE" not in out


def test_dis_asks_the_target(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = SimpleNamespace(disassemble=lambda model: f"{len(model.commands)} command(s) of {model.net_name}")
    only_targets(monkeypatch, bm1880=lambda: target)
    assert tool("dis", files[0]) == 0
    assert capsys.readouterr().out == "1 command(s) of tiny\n"
    assert tool("dis", files[0], "--net", "0", "-o", str(tmp_path / "out.txt")) == 0
    assert (tmp_path / "out.txt").read_text() == "1 command(s) of tiny\n"
    assert tool("dis", files[0], "--net", "5") == 2


def only_targets(monkeypatch: pytest.MonkeyPatch, **targets: Callable[[], object]) -> None:
    """These are the targets that are installed; all other plugins stay."""
    known = registry.entry_points
    monkeypatch.setattr(registry, "entry_points", lambda group: targets if group.endswith("targets") else known(group))


def test_dis_without_the_target_lists_those_there_are(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only_targets(monkeypatch, other=lambda: None)
    assert tool("dis", files[0]) == 1
    message = f"bmnet-tool: {files[0]}: unknown target 'bm1880'. Remedy: choose one of: other\n"
    assert capsys.readouterr().err == message


def test_extract_writes_every_piece(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    assert tool("extract", files[0], "-o", str(folder)) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["net0_stage0.cmdbuf", "net0_stage0.json", "weight0.bin"]
    assert (folder / "weight0.bin").read_bytes() == WEIGHTS
    assert (folder / "net0_stage0.cmdbuf").read_bytes() == bytes([8]) * 64
    assert json.loads((folder / "net0_stage0.json").read_text())["outputs"][0]["name"] == "prob"
    assert "weight0.bin" in capsys.readouterr().out


def test_combine_stores_equal_weights_once(files: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "both.bmodel")
    assert tool("combine", *files, "-o", out) == 0
    both = load(out)
    assert [stage.inputs[0].shape for stage in both.stages()] == [(1, 1, 8, 4), (1, 1, 16, 4)]
    assert len(both.weight_sets) == 1


def test_combine_refuses_another_net_unless_named(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(model(32, "other"), tmp_path / "other.bmodel")
    args = ["combine", files[0], str(tmp_path / "other.bmodel"), "-o", str(tmp_path / "out")]
    assert tool(*args) == 1
    assert "different names ('tiny', 'other'). Remedy: pass --name" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert tool(*args, "--name", "x") == 0
    assert tool("combine", files[0], "-o", str(tmp_path / "o")) == 2


def test_errors_are_one_line_with_the_right_status(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut").write_bytes(Path(files[0]).read_bytes()[:50])
    cases: list[tuple[list[str], int]] = [
        (["info", str(tmp_path / "missing")], 1),
        (["info", str(tmp_path)], 1),
        (["info", str(tmp_path / "cut")], 1),
        (["combine", *files, "-o", str(tmp_path / "no" / "folder" / "x")], 1),
        (["combine", *files, "-o", str(tmp_path)], 1),
        (["nonsense"], 2),
        (["info"], 2),
        (["info", files[0], "--no-such-option"], 2),
    ]
    for args, status in cases:
        assert tool(*args) == status
        err = capsys.readouterr().err
        assert err.startswith("bmnet-tool: ") and err.count("\n") == 1, err


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (FileFormatError("bad", file="f"), 1, "prog: f: bad\n"),
        (UsageError("no"), 2, "prog: no\n"),
        (MemoryError(), 1, "prog: not enough memory for this model\n"),
        (RecursionError(), 1, "prog: the input is nested too deeply to be read\n"),
        (KeyboardInterrupt(), 130, "prog: interrupted\n"),
        (PermissionError(13, "Permission denied", "f"), 1, "prog: f: Permission denied\n"),
        (FileFormatError("bad\x1b[0m name"), 1, "prog: bad\\x1b[0m name\n"),
    ],
)
def test_every_failure_has_its_status(
    error: BaseException, status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def fails() -> None:
        raise error

    assert run(fails, "prog", []) == status
    assert capsys.readouterr().err.lstrip("\n") == words


def test_a_closed_pipe_is_silent(files: list[str]) -> None:
    code = (
        "import sys; from bmcompiler.cli.tool import cli; from bmcompiler.cli.common import run;"
        "run(cli, 'p', ['info', sys.argv[1]])"
    )
    arguments = [sys.executable, "-c", code, files[0]]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from bmcompiler.cli.tool import cli; cli.main(['--help'], standalone_mode=False);"
        "print(sorted({'numpy', 'google.protobuf', 'onnx', 'networkx', 'importlib.metadata'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_output_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    os.chmod(path, 0o640)
    with pytest.raises(KeyError), atomic_output(path, BYTES) as stream:
        stream.write(b"half")
        raise KeyError
    assert path.read_text() == "old"
    with atomic_output(path, TEXT) as stream:
        stream.write("new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, int]] = []
    replace = os.replace

    def synced(handle: int) -> None:
        done.append(("fsync", os.fstat(handle).st_size))

    def replaced(source: str, target: Path) -> None:
        done.append(("replace", os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    with atomic_output(tmp_path / "net.bmodel", BYTES) as stream:
        stream.write(b"x" * 5000)
    assert done == [("fsync", 5000), ("replace", 5000)]


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError, match="the folder does not exist") as caught,
        atomic_output(tmp_path / "a" / "b", BYTES),
    ):
        pass
    assert caught.value.filename == str(tmp_path / "a" / "b")


def test_a_device_stays_a_device() -> None:
    with atomic_output(os.devnull, BYTES) as stream:
        stream.write(b"x")
    assert not Path(os.devnull).is_file()


def test_the_bar_shows_on_terminals_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.StringIO()
    assert list(progress(range(3), "work", stream=terminal)) == [0, 1, 2]
    assert list(progress(range(3), "work", stream=pipe)) == [0, 1, 2]
    assert "work" in terminal.getvalue() and pipe.getvalue() == ""


def test_tables_align_numbers_at_the_right() -> None:
    text = format_table(("layer", "bytes", "ms"), [("conv1", 1234567, 0.25), ("fc", 10, None)])
    assert text.splitlines() == [
        "layer      bytes    ms",
        "-----  ---------  ----",
        "conv1  1,234,567  0.25",
        "fc            10",
    ]
    assert format_table(("a", "b"), []) == "a  b\n-  -\n"


def test_printable_keeps_letters_of_all_languages() -> None:
    assert printable("größe 层") == "größe 层"
    assert printable("a\nb\x00") == "a\\nb\\x00"


def entry(value: str) -> Callable[..., list[EntryPoint]]:
    points = [EntryPoint("broken", part, "bmcompiler.analyzers") for part in value.split()]
    return lambda group: points


def test_a_plugin_that_fails_to_import_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.declared.cache_clear()
    monkeypatch.setattr(registry, "installed_entry_points", entry("no_such_package.at_all:X"))
    loaders = registry.entry_points("bmcompiler.analyzers")
    with pytest.raises(registry.PluginError, match=r"'broken' \(no_such_package.at_all:X\) of .* cannot be imported"):
        loaders["broken"]()
    registry._failed.clear()
    registry.declared.cache_clear()


def test_two_plugins_of_one_name_are_refused_but_one_listed_twice_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, works in (("json:loads json:loads", True), ("json:loads json:dumps", False)):
        registry.declared.cache_clear()
        monkeypatch.setattr(registry, "installed_entry_points", entry(value))
        loader = registry.entry_points("bmcompiler.analyzers")["broken"]
        if works:
            assert loader() is json.loads
        else:
            with pytest.raises(registry.PluginError, match="declared more than once"):
                loader()
    registry._failed.clear()
    registry.declared.cache_clear()


def test_info_of_a_large_file_is_quick(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = replace(model(8), weights=[bytes(64 << 20)])
    save(big, tmp_path / "big")
    start = time.process_time()
    assert tool("info", str(tmp_path / "big")) == 0
    assert time.process_time() - start < 1
    assert "weight: 67108864" in capsys.readouterr().out
