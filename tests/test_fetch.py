"""models/fetch.py without a network: what is checked, kept, and reported."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "models" / "fetch.py"


@pytest.fixture
def fetch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fetch", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def downloads(fetch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One item `thing` in a package that a stand-in for pip makes; returns the list of downloads."""
    package = fetch.Package("demo==1.0", "0" * 64)
    digest = hashlib.sha256(b"content").hexdigest()
    items = {
        "thing": (fetch.Item(package, "demo/thing.bin", digest, "thing.bin"),),
        "changed": (fetch.Item(package, "demo/thing.bin", "1" * 64, "changed.bin"),),
        "absent": (fetch.Item(package, "demo/none.bin", digest, "absent.bin"),),
    }
    monkeypatch.setattr(fetch, "ITEMS", items)
    made: list[str] = []

    def download(wanted: object, folder: Path) -> Path:
        made.append(str(wanted))
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / "demo.whl", "w") as wheel:
            wheel.writestr("demo/thing.bin", b"content")
        return folder / "demo.whl"

    monkeypatch.setattr(fetch, "download", download)
    return made


def test_a_file_is_fetched_once_and_repaired(fetch: ModuleType, downloads: list[str], tmp_path: Path) -> None:
    target = tmp_path / "thing.bin"
    assert fetch.fetch(["thing"], tmp_path) == [target] and target.read_bytes() == b"content"
    assert fetch.fetch(["thing"], tmp_path) == [] and len(downloads) == 1
    target.write_bytes(b"damaged")
    assert fetch.fetch(["thing"], tmp_path) == [target] and target.read_bytes() == b"content"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("changed", "has sha256"),
        ("absent", "holds no readable demo/none.bin"),
        ("other", "unknown: other; known: thing"),
    ],
)
@pytest.mark.usefixtures("downloads")
def test_failures_are_one_sentence_and_leave_nothing(name: str, part: str, fetch: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(fetch.FetchError, match=part):
        fetch.fetch([name], tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_was_not_fetched_is_named_and_the_rest_is_there(
    fetch: ModuleType,
    downloads: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = fetch.Package("gone==1.0", "0" * 64)
    lost = tuple(fetch.Item(gone, name, "0" * 64, name) for name in ("one.onnx", "two.onnx"))
    monkeypatch.setattr(fetch, "ITEMS", {"lost": lost, **fetch.ITEMS})
    placed = fetch.download

    def download(package: object, folder: Path) -> Path:
        if package is gone:
            downloads.append("gone")
            raise fetch.FetchError("pip could not download gone==1.0: no such release")
        return placed(package, folder)

    monkeypatch.setattr(fetch, "download", download)
    monkeypatch.setattr(fetch.fetch, "__defaults__", (None, tmp_path))
    assert fetch.main(["lost", "thing"]) == 1
    said = capsys.readouterr().err
    assert "not fetched: one.onnx, two.onnx. pip could not download gone==1.0: no such release" in said
    assert [path.name for path in tmp_path.iterdir()] == ["thing.bin"] and downloads.count("gone") == 1


def test_every_item_is_pinned(fetch: ModuleType) -> None:
    for items in fetch.ITEMS.values():
        for item in items:
            pinned = "@" if item.package.npm else "=="
            assert pinned in item.package.requirement and len(item.sha256) == len(item.package.sha256) == 64


def test_a_package_of_npm_needs_npm_and_the_pinned_hash(
    fetch: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    package = fetch.Package("thing@1.0", hashlib.sha256(b"content").hexdigest(), npm=True)
    with pytest.raises(fetch.FetchError, match=r"npm, which brings thing@1\.0, is not installed"):
        fetch.download(package, tmp_path / "a")
    npm = tmp_path / "npm"
    for content in ("content", "other"):
        # called as `npm pack REQUIREMENT --silent --pack-destination FOLDER`
        npm.write_text(f"#!/bin/sh\nprintf {content} > $5/thing.tgz\n")
        npm.chmod(0o755)
        if content == "content":
            assert fetch.download(package, tmp_path / "b").read_bytes() == b"content"
        else:
            with pytest.raises(fetch.FetchError, match=r"thing@1\.0 has sha256"):
                fetch.download(package, tmp_path / "c")
