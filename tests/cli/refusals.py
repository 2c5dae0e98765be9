"""Commands that must fail: fixtures for a working folder, and what a refusal has to be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_files import command, write_all

CAFFE = "net.prototxt net.caffemodel --target bm1880"
TABLE = "--calibration-table net.table"
OUT = "-o out.bmodel"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    write_all(folder)
    return folder


@pytest.fixture
def folder(originals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of the commands, a fresh copy of all files."""
    shutil.copytree(originals, tmp_path / "work")
    (tmp_path / "work" / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


class Refused:
    """Runs a command that must fail: checks status, number of lines, and that the folder is as before."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def __call__(self, line: str, status: int, *parts: str) -> None:
        name, *arguments = line.split()
        before = self._files()
        self.capsys.readouterr()
        assert command(name, *arguments) == status
        message = self.capsys.readouterr().err
        assert message.startswith(f"bmnet-{name}: "), message
        assert message.count("\n") == 1 and message.endswith("\n"), message
        for part in parts:
            assert part in message
        assert self._files() == before, "an output file was left behind or an input changed"

    def _files(self) -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    return Refused(folder, capsys)
