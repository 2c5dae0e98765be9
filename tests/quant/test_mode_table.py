"""Quantization tables: what is written reads back, and a bad line is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.errors import FileFormatError
from bmcompiler.quant.mode_table import TABLE_MODES, Row, load_modes, save_modes

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
ROWS = st.builds(
    Row,
    layer=NAMES,
    mode=st.sampled_from(TABLE_MODES),
    error=st.none() | st.floats(0, 10),
    cycles=st.none() | st.integers(0, 10**9),
    why=st.text(max_size=20),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROWS, max_size=6, unique_by=lambda row: row.layer))
def test_a_table_reads_back_whatever_the_layers_are_called(rows: list[Row], tmp_path: Path) -> None:
    path = tmp_path / "net.quant"
    save_modes(path, rows)
    assert {name: entry.mode for name, entry in load_modes(path).items()} == {row.layer: row.mode for row in rows}


def test_comments_and_further_columns_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "net.quant"
    path.write_text('# by hand\n\nconv1 low\n  "fc 1"\tfloat because I say so # really\nfc2 f32\n', encoding="utf-8")
    found = load_modes(path)
    assert {name: (entry.mode, entry.line) for name, entry in found.items()} == {
        "conv1": ("low", 3),
        "fc 1": ("float", 4),
        "fc2": ("float", 5),
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"conv1 low\nconv2\n", r"line 2 is not 'layer mode': 'conv2'.*Remedy: write one"),
        (
            b"conv1 lower\n",
            r"line 1: unknown mode 'lower'.*the modes are low, high, asymmetric, channel, int8, double, float",
        ),
        (b'"\\q" low\n', r'line 1: "\\q" is no JSON string'),
        (b"conv1 low\nconv1 high\n", r"line 2: layer 'conv1' has a line already"),
        (b"\xff\xfe\x00", r"is no text"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "net.quant"
    path.write_bytes(text)
    with pytest.raises(FileFormatError, match=rf"net\.quant: {reason}"):
        load_modes(path)
