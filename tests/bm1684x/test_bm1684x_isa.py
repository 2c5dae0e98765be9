"""Instruction tables: recorded commands and vendor programs as fields and text and back, byte for byte."""

from __future__ import annotations

import time

import pytest
from bm1684x_golden import PROGRAMS, Case, all_cases, cases, manifest, program, streams
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684x.asm import assemble, disassemble
from bmcompiler.backends.bm1684x.isa import FORMAT_OF, FORMATS, LAR, SYS
from bmcompiler.backends.bm1684x.stream import end_mark, ended, split
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.bmodel.bm168x_kernels import KernelGroup
from bmcompiler.errors import BMError, EncodingError
from bmcompiler.instructions.isa import Format
from bmcompiler.instructions.order import STREAMS, Engine, Polled

_EVERY_FORMAT = [(engine, layout) for engine, layouts in FORMATS.items() for layout in layouts]


def encoded(engine: Engine, data: bytes) -> bytes:
    stream = split(engine, data)
    rows = zip(stream.formats, stream.fields())
    return b"".join(layout.pack(fields) for layout, fields in rows) + bytes(stream.padding)


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_recorded_commands_survive_fields_and_text(case: Case) -> None:
    assert len(split(case.engine, case.command)) == 1
    assert encoded(case.engine, case.command) == case.command
    text = disassemble([streams(case)])
    assert assemble(text) == [streams(case)]
    assert "reserved" not in text
    assert ".raw" not in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_survive_fields_and_text(name: str) -> None:
    _, groups = program(name)
    text = disassemble(groups)
    assert assemble(text) == groups
    assert "reserved" not in text
    for group in groups:
        for engine, data in zip(STREAMS, group):
            assert encoded(engine, data) == data
            stream = split(engine, data)
            ids = [fields["cmd_id"] for fields in stream.fields()]
            assert ids == list(range(1, len(ids) + 1))
            *commands, _ = (data[start : start + layout.size] for start, layout in zip(stream.starts, stream.formats))
            assert ended(engine, commands) == data


def test_fields_have_the_recorded_values() -> None:
    for case, facts in zip(cases("cube"), manifest("cube")):
        (fields,) = split(Engine.TIU, case.command).fields()
        if "lane_mask_lo" in fields:
            fields["tsk_lane_num"] = fields["lane_mask_lo"] | fields["lane_mask_hi"] << 32
        assert {name: fields[name] for name in facts["fields"]} == facts["fields"]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_fields_of_any_format_survive(data: st.DataObject) -> None:
    engine, layout = data.draw(st.sampled_from(_EVERY_FORMAT))
    values = {f.name: data.draw(st.integers(0, (1 << f.width) - 1), f.name) for f in layout.fields}
    command = layout.pack(values | _keys_of(engine, layout))
    found = split(engine, command)
    assert found.formats == [layout]
    assert encoded(engine, command) == command
    group = {
        Engine.TIU: CommandGroup(command, b""),
        Engine.GDMA: CommandGroup(b"", command),
        Engine.HAU: KernelGroup(b"", b"", Polled(command)),
    }[engine]
    (again,) = assemble(disassemble([group]))
    assert (again, again.polled) == (group, group.polled)


def _keys_of(engine: Engine, layout: Format) -> dict[str, int]:
    """Values that make a command one of this format."""
    if engine is Engine.HAU:
        return {"head": 1}
    names = ("cmd_short", "cmd_type") if engine is Engine.GDMA else ("cmd_short", "tsk_typ", "tsk_eu_typ")
    short = layout.by_name["cmd_short"].default
    for kind in range(16):
        for unit in range(32 if engine is Engine.TIU else 1):
            keys = dict(zip(names, (short, kind, unit)))
            try:
                if FORMAT_OF[engine](int.from_bytes(layout.pack(keys)[:8], "little")) is layout:
                    return keys
            except EncodingError:
                continue
    raise AssertionError(f"no class has format {layout.name}")


def test_ten_thousand_commands_are_decoded_within_a_second() -> None:
    commands = [case.command for case in cases("vector") + cases("cube")]
    data = b"".join((commands * 40)[:10000])
    best = min(_seconds(data) for _ in range(3))
    assert best < 1


def _seconds(data: bytes) -> float:
    start = time.process_time()
    assert len(split(Engine.TIU, data).fields()) == 10000
    return time.process_time() - start


@pytest.mark.parametrize(
    ("engine", "data", "reason"),
    [
        (Engine.TIU, (8 << 41).to_bytes(16, "little"), "class 8 do not exist"),
        (Engine.TIU, b"\1" + bytes(40), r"\(conv\): it has 64 bytes, of which 41 are there"),
        (Engine.GDMA, (9 << 32).to_bytes(96, "little"), "type 9 do not exist"),
        (Engine.GDMA, (8 | 7 << 32).to_bytes(96, "little"), "type 7 have no short form"),
        (Engine.TIU, end_mark(Engine.TIU, 1) + b"\1", "follow its end mark at byte 16"),
    ],
)
def test_bytes_that_are_no_commands_are_refused(engine: Engine, data: bytes, reason: str) -> None:
    with pytest.raises(EncodingError, match=reason):
        split(engine, data)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(list(STREAMS)))
def test_any_bytes_are_split_or_refused(data: bytes, engine: Engine) -> None:
    try:
        assert encoded(engine, data) == data
    except BMError as error:
        assert str(error)


def test_end_marks_are_those_of_the_vendor() -> None:
    assert end_mark(Engine.TIU, 47).hex(" ", 1) == "5e 00 00 00 00 fe 03 00" + " 00" * 8
    assert end_mark(Engine.GDMA, 3).hex() == "28060000060000000000000000000000"
    assert len(end_mark(Engine.TIU, 1)) == SYS.size == LAR.size == 16


def test_values_that_do_not_fit_are_named() -> None:
    with pytest.raises(EncodingError, match="'res0_c' does not fit 16 bits"):
        assemble(f"conv.normal id=1 wait=0 res0_c={1 << 16}")
