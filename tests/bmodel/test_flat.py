"""FlatBuffers from a schema text: what is written is read, and what does not fit is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.bmodel.flat import FlatError, Reader, Writer, parse_schema
from bmcompiler.bmodel.model import Buffer

SCHEMA = parse_schema(
    """
    struct Binary { start: uint64; size: uint64; }
    table Leaf { text: string (required); numbers: [int64]; ratio: float32 = 1.5; }
    table Root {
      leaves: [Leaf];
      one: Leaf;
      bytes: [uint8];
      words: [string];
      blob: Binary;
      blobs: [Binary];
      small: int8 = -1;
      large: uint64;
    }
    root_type Root;
    """
)
LEAVES = st.fixed_dictionaries(
    {"text": st.text(max_size=9)},
    optional={
        "numbers": st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=5),
        "ratio": st.floats(width=32, allow_nan=False).filter(lambda value: value != 1.5),
    },
)
BLOBS = st.binary(max_size=9)
ROOTS = st.fixed_dictionaries(
    {},
    optional={
        "leaves": st.lists(LEAVES, max_size=4),
        "one": LEAVES,
        "bytes": st.binary(max_size=9),
        "words": st.lists(st.text(max_size=5), max_size=3),
        "blob": BLOBS,
        "blobs": st.lists(BLOBS, max_size=3),
        "small": st.integers(-128, 127).filter(lambda value: value != -1),
        "large": st.integers(1, (1 << 64) - 1),
    },
)


def write(values: dict[str, Any]) -> tuple[bytes, bytes]:
    section = bytearray()

    def place(data: Buffer) -> tuple[int, int]:
        section.extend(data)
        return len(section) - len(data), len(data)

    return Writer(SCHEMA, place).finish(values), bytes(section)


@settings(max_examples=60, deadline=None)
@given(ROOTS)
def test_what_is_written_is_read(values: dict[str, Any]) -> None:
    description, section = write(values)
    assert Reader(SCHEMA, memoryview(description), memoryview(section)).root() == values


def test_defaults_take_no_space() -> None:
    assert len(write({"small": -1, "large": 0})[0]) == len(write({})[0]) < len(write({"large": 1})[0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"small": 128}, "Root.small: 128 does not fit"),
        ({"large": -1}, "Root.large: -1 does not fit"),
        ({"one": {"text": "a", "ratio": 1e300}}, "Leaf.ratio: 1e\\+300 does not fit"),
        ({"one": {}}, "Leaf lacks its text"),
        ({"leaves": [{"text": "a"}, {"text": None}]}, "Leaf lacks its text"),
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(FlatError, match=message):
        write(values)


def test_a_required_field_must_be_in_the_file() -> None:
    lax = parse_schema("table Leaf { text: string; } table Root { leaves: [Leaf]; one: Leaf; } root_type Root;")
    data = Writer(lax, lambda _: (0, 0)).finish({"one": {}})
    with pytest.raises(FlatError, match="Leaf lacks its text"):
        Reader(SCHEMA, memoryview(data), memoryview(b"")).root()


def test_text_must_be_text() -> None:
    data = write({"words": ["abc"]})[0].replace(b"abc", b"a\xffc")
    with pytest.raises(FlatError, match=r"Root\.words is not text"):
        Reader(SCHEMA, memoryview(data), memoryview(b"")).root()
