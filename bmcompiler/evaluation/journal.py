"""What has been computed of an evaluation, line by line in a file, so that an interrupted one goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.evaluation.job import PartResult
from bmcompiler.files.store import check_regular


class Journal:
    """A text file of JSON lines: first what is evaluated, then a line per part with the digest of its samples.

    A line that was cut off when the process ended is computed again.
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        """Open or begin.

        Raises:
            UsageError: the file is about another model, metric or size of parts.
            FileFormatError: it is no journal, or no regular file.
        """
        self._known: dict[int, tuple[str, PartResult]] = {}
        if path.exists():
            check_regular(path)
        whole = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        lines = [line for line in whole if line.endswith(b"\n")]
        if lines:
            self._read(path, about, lines)
        self._stream: IO[bytes] = path.open("wb")
        self._stream.writelines(lines or [_line(about)])
        self._stream.flush()

    def _read(self, path: Path, about: dict[str, Any], lines: list[bytes]) -> None:
        try:
            first, *rest = map(json.loads, lines)
            self._known = {
                int(each["part"]): (str(each["digest"]), PartResult(each["device"], each["float"])) for each in rest
            }
        except (ValueError, KeyError, TypeError):
            remedy = "give the file of an interrupted bmnet-eval, or a new name"
            raise FileFormatError("not a journal of an evaluation", file=path, remedy=remedy) from None
        if first != about:
            different = ", ".join(
                sorted(key for key in about if not isinstance(first, dict) or first.get(key) != about[key])
            )
            raise UsageError(
                f"{path} belongs to another evaluation (different: {different})", remedy="give another --resume file"
            )

    def known(self, number: int, digest: str) -> PartResult | None:
        """The result of a part of exactly these samples, None where it is not there."""
        found = self._known.get(number)
        return found[1] if found is not None and found[0] == digest else None

    def add(self, number: int, digest: str, result: PartResult) -> None:
        """Write a result; it is on disk when this returns."""
        line = {"part": number, "digest": digest, "device": result.device, "float": result.float}
        self._stream.write(_line(line))
        self._stream.flush()

    def close(self) -> None:
        """Close the file, which stays."""
        self._stream.close()


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
