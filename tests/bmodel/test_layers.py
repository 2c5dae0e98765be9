"""The note in a model file that says which records belong to which layer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.backends.bm1880.asm import assemble
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    FMT_I8,
    bmk1880_acquire_cmdbuf,
    bmk1880_gdma_load,
    bmk1880_register,
    bmk1880_tl_prealloc_align,
    shape_t4,
)
from bmcompiler.bmodel import TensorInfo, load, save
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.bmodel.layers import LayerSpan, decode_layers, encode_layers, span_of
from bmcompiler.errors import FileFormatError
from bmcompiler.target import find_target

SPANS = [LayerSpan('a "quoted"\nname', "conv", 0, 2), LayerSpan("β", "relu", 3, 1, 90, 1200)]


def model(layers: str) -> Bm1880Model:
    ctx = bmk1880_register()
    for _ in range(4):
        bmk1880_gdma_load(ctx, bmk1880_tl_prealloc_align(ctx, 0, shape_t4(1, 3, 4, 5), FMT_I8), 0, CTRL_NEURON)
    info = TensorInfo("x", (1, 3, 4, 5))
    return Bm1880Model("net", [Command([info], [info], bmk1880_acquire_cmdbuf(ctx), 64, layers=layers)], [])


def test_names_survive_the_file(tmp_path: Path) -> None:
    save(model(encode_layers(SPANS)), tmp_path / "net.bmodel")
    loaded = load(tmp_path / "net.bmodel")
    assert isinstance(loaded, Bm1880Model)
    assert decode_layers(loaded.commands[0].layers, 4) == SPANS
    assert [span_of(SPANS, record) for record in range(5)] == [0, 0, -1, 1, -1]


def test_files_without_names_are_as_they_were(tmp_path: Path) -> None:
    save(model(""), tmp_path / "net.bmodel")
    assert b"relu" not in (tmp_path / "net.bmodel").read_bytes()
    assert decode_layers("", 4) == [] and encode_layers([]) == ""


def test_listings_show_the_names_as_comments() -> None:
    named = model(encode_layers(SPANS))
    text = find_target("bm1880").disassemble(named)
    lines = text.splitlines()
    assert lines[1] == "# 'a \"quoted\"\\nname' ('conv')" and lines[2].startswith("0: gdma.load")
    assert lines[5] == "# 'β' ('relu')" and lines[6].startswith("3: gdma.load")
    assert assemble("\n".join(lines[1:])) == named.commands[0].cmdbuf


@given(st.lists(st.tuples(st.text(), st.text(), st.integers(0, 3), st.integers(1, 5))))
def test_any_names_round_trip(rows: list[tuple[str, str, int, int]]) -> None:
    spans, end = [], 0
    for name, kind, gap, count in rows:
        spans.append(LayerSpan(name, kind, end + gap, count))
        end += gap + count
    assert decode_layers(encode_layers(spans), end) == spans


NUMBERS = ('[["a","b",0,1,5]]', '[["a","b",0,1,-1,0]]', '[["a","b",0,1,5,true]]', '[["a","b",0,1,5,6,7]]')


@pytest.mark.parametrize(
    "text", ["{", "3", "[1]", '[["a","b",0]]', '[["a","b",0,9]]', '[["a","b",2,1],["c","d",1,1]]', *NUMBERS]
)
def test_malformed_lists_are_refused(text: str) -> None:
    with pytest.raises(FileFormatError, match="layer"):
        decode_layers(text, 4)
    with pytest.raises(FileFormatError, match="layer"):
        find_target("bm1880").disassemble(model(text))
