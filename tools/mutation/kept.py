"""Answers that are kept beside the records, so that an interrupted run goes on where it ended.

An answer holds while the broken module, and the files of the tests that gave it, have the same text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from mutation.reach import FOLDER, digest_of
from mutation.targets import ROOT, file_of

NAME = "answers"


@dataclass(frozen=True)
class Said:
    """What came of one fault: the test that found it, or "" where it survived `ran` tests; `seconds` of asking."""

    found: str
    why: str
    ran: int
    seconds: float

    def then(self, later: Said) -> Said:
        """What came of both questions, of which the first found nothing."""
        return Said(later.found, later.why, self.ran + later.ran, self.seconds + later.seconds)


def state(module: str, tests: Iterable[str]) -> str:
    """A digest of a module and of files of tests, or of whatever else has that name."""
    words = [digest_of(file_of(module))]
    for test in sorted(set(tests)):
        file = ROOT / test.partition("::")[0]
        words += [test, digest_of(file) if file.is_file() else ""]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


class Kept:
    """All answers, by the place's name; every new one is written at once."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.path = folder / NAME
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        self.answers = {row["place"]: row for row in map(json.loads, lines)}

    def get(self, place: str, module: str, asked: Iterable[str]) -> Said | None:
        """The answer where it holds: found by a test that is as it was, or survived just these tests."""
        row = self.answers.get(place)
        if row is None or row["state"] != state(module, [row["said"]["found"]] if row["said"]["found"] else asked):
            return None
        return Said(**row["said"])

    def put(self, place: str, module: str, asked: Iterable[str], said: Said) -> None:
        """Keep one."""
        row = {"place": place, "state": state(module, [said.found] if said.found else asked), "said": asdict(said)}
        self.answers[place] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
