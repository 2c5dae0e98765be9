"""Local memory of a chip that was just switched on, with and without room for temporary files."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bmcompiler.runtime.simulator.bm168x import local

Full = Callable[..., Any]


class _ShortFile:
    """A file on a disk with room for a few bytes."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, data: bytes) -> int:
        return min(len(data), 100)

    def close(self) -> None:
        self.closed = True


def _no_room(**options: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    local._pattern.cache_clear()
    yield
    local._pattern.cache_clear()


@pytest.mark.parametrize("full", [None, _no_room, lambda **options: _ShortFile()])
def test_each_begins_with_the_word_and_is_its_own(full: Full | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if full is not None:
        monkeypatch.setattr(tempfile, "TemporaryFile", full)
    first, second = (local._copy(4096) for _ in range(2))
    first[:4] = 0
    wanted = np.full(1024, 0xDEADBEEF, "<u4").view(np.uint8)
    assert first[4:].tobytes() == wanted[4:].tobytes() and not first[:4].any()
    assert second.tobytes() == wanted.tobytes()


def test_a_file_that_found_no_room_does_not_keep_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full: other programs wait for these bytes."""
    file = _ShortFile()
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: file)
    assert local._pattern(4096) is None and file.closed
