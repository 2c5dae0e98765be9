"""Which test reaches which statement, and how long it takes: recorded once per test file, kept beside the checkout.

A record is made again where its test file changed, or a module that it reaches is gone. Statements are known by their
text, so a module may change elsewhere; one that no record knows is asked of all tests that reach its module, and a new
module of those that reach its neighbours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mutation.targets import ROOT, every_module

FOLDER = ROOT / ".mutation"


def key(module: str, function: str, statement: str) -> str:
    """A statement's name in records."""
    return hashlib.sha256(f"{module}\0{function}\0{statement}".encode()).hexdigest()[:12]


def module_key(module: str) -> str:
    """The name under which records say that a test reaches anything of a module."""
    return key(module, "", "")


def digest_of(file: Path) -> str:
    """Of a test file's text."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


@cache
def module_keys() -> frozenset[str]:
    """Of all modules that there are."""
    return frozenset(map(module_key, every_module()))


def record_of(file: Path, folder: Path = FOLDER) -> Path:
    """Where a test file's record is."""
    return folder / (str(file.relative_to(ROOT)).replace("/", "-") + ".json")


def write(file: Path, tests: dict[str, tuple[float, set[str]]], folder: Path = FOLDER) -> None:
    """Keep the record of a file: of each test that passed its seconds and the statements it reaches."""
    statements = sorted({name for _, reached in tests.values() for name in reached})
    index = {name: 1 << number for number, name in enumerate(statements)}
    rows = {
        test: [round(seconds, 3), f"{sum(index[name] for name in reached):x}"]
        for test, (seconds, reached) in tests.items()
    }
    path = record_of(file, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    modules = sorted(module_keys() & index.keys())
    record = {"digest": digest_of(file), "modules": modules, "statements": statements, "tests": rows}
    path.write_text(json.dumps(record), encoding="utf-8")


def files_of(tests: Iterable[str]) -> list[Path]:
    """Files with tests in these folders and files."""
    paths = [ROOT / name for name in tests]
    found = [file for path in paths for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]
    return [file for file in dict.fromkeys(found) if file.exists()]


def recorded_rows(file: Path, folder: Path) -> dict[str, object] | None:
    """The record of a file, None where there is none of its text, or one of modules that are gone."""
    path = record_of(file, folder)
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    today = record.get("digest") == digest_of(file) and module_keys().issuperset(record["modules"])
    return record if today else None


def stale(tests: Iterable[str], folder: Path = FOLDER) -> list[str]:
    """Test files of these folders and files without a record of today's text."""
    return [str(file.relative_to(ROOT)) for file in files_of(tests) if recorded_rows(file, folder) is None]


def recorded(tests: Iterable[str], folder: Path = FOLDER) -> list[str]:
    """Test files of these folders and files with tests in their record."""
    rows = {file: recorded_rows(file, folder) for file in files_of(sorted(tests))}
    return [str(file.relative_to(ROOT)) for file, row in rows.items() if row and row["tests"]]


@dataclass(frozen=True)
class Timed:
    """A test by its id, with the seconds it took."""

    id: str
    seconds: float

    @property
    def file(self) -> str:
        """Its file."""
        return self.id.partition("::")[0]


@dataclass
class Reach:
    """All records of some folders, statement -> tests."""

    folder: Path = FOLDER
    _files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def _record(self, path: Path) -> dict[str, Any]:
        if path.name not in self._files:
            loaded = json.loads(path.read_text(encoding="utf-8"))
            loaded["index"] = {name: number for number, name in enumerate(loaded["statements"])}
            loaded["tests"] = [
                (Timed(test, seconds), int(mask, 16)) for test, (seconds, mask) in loaded["tests"].items()
            ]
            self._files[path.name] = loaded
        return self._files[path.name]

    def _records(self, within: Iterable[str]) -> Iterator[dict[str, Any]]:
        names = tuple(name.replace("/", "-") for name in within)
        for path in sorted(self.folder.glob("*.json")):
            if path.name.startswith(names):
                yield self._record(path)

    def every(self, within: Iterable[str]) -> list[Timed]:
        """All tests of these folders and files."""
        return [test for record in self._records(within) for test, _ in record["tests"]]

    def tests(self, statement: str, within: Iterable[str]) -> list[Timed]:
        """Tests of these folders and files that reach a statement."""
        found: list[Timed] = []
        for record in self._records(within):
            number = record["index"].get(statement)
            if number is not None:
                found += [test for test, mask in record["tests"] if mask >> number & 1]
        return found
