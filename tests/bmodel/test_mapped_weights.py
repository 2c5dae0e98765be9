"""Weights of files that are mapped do not stay in memory once they were looked at as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from bmcompiler.bmodel.model import digest
from bmcompiler.files.store import map_file

_SIZE = 64 << 20


def _mapped() -> int:
    """Bytes of files that this process has in memory."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        pytest.skip("only Linux says what is mapped")
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssFile:"))


def test_what_a_digest_read_leaves_memory(tmp_path: Path) -> None:
    """A bundle of 7 billion parameters had 4 GB in memory to say how large its weights are."""
    file = tmp_path / "weights"
    with open(file, "wb") as stream:
        stream.truncate(_SIZE)
    data = map_file(file)
    before = _mapped()
    digest(data[16:])
    assert _mapped() - before < _SIZE // 4
