"""Notes of several programs in one file: a name once, and the same notes for each program when it is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.bmodel.layers import SIZES, LayerSpan, decode_layers, encode_layers, with_note
from bmcompiler.bmodel.shared_notes import apart, together
from bmcompiler.errors import FileFormatError

_names = st.sampled_from(["conv1", 'a "quoted"\nname', "β", ""])


@st.composite
def _notes(draw: st.DrawFn) -> str:
    spans, at = [], 0
    for name in draw(st.lists(_names, max_size=4)):
        at += draw(st.integers(0, 3))
        count = draw(st.integers(1, 3))
        sizes = draw(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)) | st.just((None, None)))
        spans.append(LayerSpan(name, "conv", at, count, *sizes))
        at += count
    return with_note(encode_layers(spans), SIZES, draw(st.sampled_from(["", '{"axes":[[0,1]]}'])))


@given(st.lists(_notes(), max_size=4))
def test_what_is_put_together_comes_apart(notes: list[str]) -> None:
    held = together(notes)
    assert len(held) == len(notes) and apart(held, "net") == notes


def test_a_name_stands_once() -> None:
    program = encode_layers([LayerSpan("a long name", "conv", 2 * k, 2) for k in range(5)])
    held = together([program, program, program])
    assert held[0].count("a long name") == 1 and held[1:] == ["", ""]
    assert together([program]) == [program]


def test_notes_of_other_tools_stay_as_they_are() -> None:
    ours = encode_layers([LayerSpan("a", "conv", 0, 2)])
    for other in ('[{"file":"x"}]', "not JSON"):
        assert together([ours, other]) == [ours, other] and apart([other, ours], "net") == [other, ours]


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: whole["programs"].pop(),
        lambda whole: whole["names"].pop(),
        lambda whole: whole.pop("programs"),
        lambda whole: whole["programs"].__setitem__(0, 3),
        lambda whole: whole["programs"][0].append(3),
    ],
)
def test_damaged_notes_are_refused(change) -> None:
    program = encode_layers([LayerSpan("a", "conv", 0, 2)])
    whole = json.loads(together([program, program])[0])
    assert decode_layers(apart([json.dumps(whole, separators=(",", ":")), ""], "net")[1], 2)
    change(whole)
    with pytest.raises(FileFormatError, match=r"^net: the notes of "):
        apart([json.dumps(whole, separators=(",", ":")), ""], "net")
