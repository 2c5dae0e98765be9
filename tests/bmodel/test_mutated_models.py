"""Damaged model files end in success or one clear error, never in anything else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from bmcompiler.bmodel import load, save
from bmcompiler.bmodel.bm1880 import Bm1880Model
from bmcompiler.errors import BMError

from .test_bm1880_json import HEADER, write

COUNT = 600


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Flips, cuts, insertions, repeated blocks and extreme bytes, the same ones every run."""
    rng = random.Random(seed)
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = rng.randrange(len(changed) or 1)
            kind = rng.randrange(5)
            if kind == 0 and changed:
                changed[place] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del changed[place:]
            elif kind == 2:
                changed[place:place] = rng.randbytes(rng.randrange(1, 9))
            elif kind == 3:
                changed[place : place + 4] = rng.choice((b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"))
            else:
                changed[place:place] = changed[place : place + rng.randrange(1, 64)]
        yield bytes(changed)


def walk(path: Path, content: bytes) -> bool:
    """Load and use a file; True when that worked."""
    path.write_bytes(content)
    try:
        model = load(path)
        model.stages()
        list(model.pieces())
        save(model, path.with_suffix(".again"))
        load(path.with_suffix(".again"))
    except BMError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
        return False
    return True


@pytest.mark.parametrize("kind", ["bm1880", "json"])
def test_mutated_files_end_in_success_or_a_reported_error(kind: str, model: Bm1880Model, tmp_path: Path) -> None:
    path = tmp_path / "good"
    if kind == "json":
        write(path, HEADER)
    else:
        save(model, path)
    good = path.read_bytes()
    results = [walk(tmp_path / "bad", content) for content in mutations(good, COUNT, seed=1880)]
    assert 0 < sum(results) < COUNT  # some changes are harmless (weights), most are not


def test_every_truncation_is_noticed(model: Bm1880Model, tmp_path: Path) -> None:
    save(model, tmp_path / "good")
    good = (tmp_path / "good").read_bytes()
    assert not any(walk(tmp_path / "bad", good[:size]) for size in range(len(good)))
