"""Damaged BM168x files end in success or one clear error, and cost no more than their size allows."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import numpy as np
import pytest

from bmcompiler.bmodel import load
from bmcompiler.bmodel.bm168x_message import schema
from bmcompiler.bmodel.flat import FlatError, Reader
from bmcompiler.errors import FileFormatError

from .test_bm168x_file import VENDOR, Bm168xModel, Bm168xNet, stage
from .test_mutated_models import mutations, walk

COUNT = 500


def good(kind: str) -> bytes:
    if kind == "ours":
        return b"".join(Bm168xModel([Bm168xNet("tiny", [stage()])]).parts())
    return VENDOR[kind].tobytes()


@pytest.mark.parametrize("kind", ["ours", "cpu_f32"])
def test_mutated_files_end_in_success_or_a_reported_error(kind: str, tmp_path: Path) -> None:
    content = good(kind)
    used = struct.unpack_from("<I", content, 8)[0]
    # Damage falls on the header and description; the zeros behind it tell nothing.
    end = 64 + len(content[64 : 64 + used].rstrip(b"\0"))
    results = [
        walk(tmp_path / "bad.bmodel", changed + content[len(changed) :])
        for changed in mutations(content[:end], COUNT, seed=1684)
    ]
    assert 0 < sum(results) < COUNT


def test_every_number_may_be_extreme(tmp_path: Path) -> None:
    """Every aligned word of the description in turn is zero, the largest number, and the largest signed one."""
    content = good("ours")
    description = content[64 : 64 + struct.unpack_from("<I", content, 8)[0]].rstrip(b"\0")
    section = memoryview(content)[64 + struct.unpack_from("<I", content, 8)[0] :]
    for at in range(0, len(description), 4):
        for word in (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"):
            changed = description[:at] + word + description[at + 4 :]
            try:
                Reader(schema(), memoryview(changed), section).root()
            except FlatError as error:
                assert "\n" not in str(error)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    content = good("ours")
    for size in (*range(1, 64), *range(64, len(content), 509)):
        (tmp_path / "cut.bmodel").write_bytes(content[:size])
        with pytest.raises(FileFormatError):
            load(tmp_path / "cut.bmodel")


def test_a_description_that_shares_its_parts_without_end_is_refused_at_once() -> None:
    """Each list holds the same table many times: 200 ** 4 tensors in 4 KB."""
    data = bytearray(4)

    def table(slots: dict[int, int], size: int) -> int:
        """A table whose fields at `slots` hold offsets to `targets`, to be filled in; place of the table."""
        vtable = len(data)
        entries = [4 + 4 * list(slots).index(n) if n in slots else 0 for n in range(size)]
        data.extend(struct.pack(f"<HH{size}H", 4 + 2 * size, 4 + 4 * len(slots), *entries))
        data.extend(bytes(-len(data) % 4))
        place = len(data)
        data.extend(struct.pack("<i", place - vtable))
        for _ in slots:
            data.extend(bytes(4))
        return place

    def point(at: int, target: int) -> None:
        struct.pack_into("<I", data, at, target - at)

    def vector(count: int) -> int:
        place = len(data)
        data.extend(struct.pack("<I", count) + bytes(4 * count))
        return place

    many = 200
    model = table({0: 0, 1: 0, 2: 0, 3: 0, 4: 0}, 5)
    struct.pack_into("<I", data, 0, model)
    nets = vector(many)
    net = table({0: 0, 3: 0}, 4)
    stages = vector(many)
    parameter = table({0: 0, 1: 0}, 2)
    tensors = vector(many)
    tensor = table({0: 0}, 1)
    text = len(data)
    data.extend(struct.pack("<I", 1) + b"B\0\0\0")
    for slot in range(4):
        point(model + 4 + 4 * slot, text)
    point(model + 20, nets)
    point(net + 4, text)
    point(net + 8, stages)
    point(parameter + 4, tensors)
    point(parameter + 8, tensors)
    point(tensor + 4, text)
    for list_, item in ((nets, net), (stages, parameter), (tensors, tensor)):
        for index in range(many):
            point(list_ + 4 + 4 * index, item)
    start = time.process_time()
    with pytest.raises(FlatError, match="shared more often"):
        Reader(schema(), memoryview(bytes(data)), memoryview(b"")).root()
    assert time.process_time() - start < 1


def test_overlapping_pieces_are_refused(tmp_path: Path) -> None:
    content = bytearray(good("ours"))
    where = content.index(struct.pack("<QQ", 4096, 256))
    content[where : where + 16] = struct.pack("<QQ", 0, np.frombuffer(content, np.uint32, 4)[3])
    (tmp_path / "bad.bmodel").write_bytes(content)
    with pytest.raises(FileFormatError, match="overlap"):
        load(tmp_path / "bad.bmodel")
