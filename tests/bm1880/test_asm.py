"""Disassembler, assembler and record iterator."""

from __future__ import annotations

import struct

import golden_cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1880.asm import assemble, disassemble
from bmcompiler.backends.bm1880.cmdbuf import normalised, pack_cpu, records
from bmcompiler.backends.bm1880.isa import CPU, CPU_PAYLOAD, GDMA, HEADER, TIU, Engine
from bmcompiler.errors import EncodingError, FileFormatError

SIZES = {Engine.TPU: (112,), Engine.GDMA: (64,), Engine.CPU: (48, 224, 228, 400)}


@st.composite
def any_record(draw: st.DrawFn) -> bytes:
    engine = draw(st.sampled_from(list(SIZES)))
    size = draw(st.sampled_from(SIZES[engine]))
    payload = draw(st.binary(min_size=size, max_size=size))
    if engine is Engine.CPU and draw(st.booleans()):
        payload = payload[:28] + b"DetectOutput".ljust(16, b"\0") + payload[44:]
    short = size < 256 and draw(st.booleans())
    bits = {name: draw(st.integers(0, 1)) for name in ("neuron", "weight")}
    return HEADER.encode_one(engine=engine, len=size if short else 0, mask=0 if short else size, **bits) + payload


@settings(max_examples=150, deadline=None)
@given(st.lists(any_record(), max_size=4))
def test_any_valid_buffer_survives_the_round_trip(rows: list[bytes]) -> None:
    cmdbuf = b"".join(rows)
    assert assemble(disassemble(cmdbuf)) == cmdbuf


@pytest.mark.parametrize("case", golden_cases.CASES)
def test_golden_programs_survive_the_round_trip(case: str) -> None:
    cmdbuf = golden_cases.build(case)[0]
    text = disassemble(cmdbuf)
    assert assemble(text) == cmdbuf
    assert ".raw" not in text
    assert "reserved" not in text


def test_lines_name_the_instruction_and_what_differs_from_reset() -> None:
    lines = disassemble(golden_cases.build("mul i8 rsh5")[0]).splitlines()
    assert [line.split()[1] for line in lines] == ["gdma.load", "gdma.load", "tpu.mul", "gdma.store"]
    assert "id=1 wait=2 tsk_opd_num=2 opt_right_shift=5" in lines[2]
    assert "src_addr=0x100000000" in lines[0]
    assert "opt_relu" not in lines[2]
    text = disassemble(golden_cases.build("gdma_lrn_shift right step2")[0])
    assert "gdma.copy_lmem.lrn" in text
    assert "lrn_step=2" in text


def test_text_may_be_written_by_hand() -> None:
    text = (
        "# a comment\n\n tpu.conv id=1 wait=0 res0_c=0x28 # another\ncpu.plugin name=softmax params=0102 param_size=2\n"
    )
    tpu, cpu = list(records(assemble(text)))
    fields = TIU.unpack(tpu[1])
    assert (tpu[0], fields["res0_c"], fields["opt_relu"], fields["tsk_typ"]) == (Engine.TPU, 40, 0, 0)
    assert cpu[1] == pack_cpu("softmax", b"\1\2")[8:]


def test_names_of_functions_have_one_to_fifteen_characters() -> None:
    for name in ("a", "a" * 15):
        assert f"name={name}\n" in disassemble(pack_cpu(name, b""))
    for name in ("", "a" * 16, "ä", "a\0b"):
        with pytest.raises(EncodingError, match="1 to 15 ASCII"):
            pack_cpu(name, b"")


@pytest.mark.parametrize(
    ("line", "error", "reason"),
    [
        ("tpu.convolve", FileFormatError, "'tpu.convolve' is not a mnemonic"),
        ("tpu.conv id", FileFormatError, "'id' is not a field=value"),
        ("tpu.conv id=1 id=2", FileFormatError, "repeats"),
        ("tpu.conv id=x", FileFormatError, "cannot be read"),
        ("tpu.conv name=x", FileFormatError, "neither a name nor params"),
        ("tpu.conv res0_n=4096", EncodingError, "value 4096 of field 'res0_n' does not fit 12 bits"),
        ("tpu.conv nothing=1", EncodingError, "no field is called 'nothing'"),
        ("cpu.plugin params=0g", FileFormatError, "cannot be read"),
        ("cpu.plugin len=4", FileFormatError, "does not fit"),
    ],
)
def test_unreadable_text_names_its_line(line: str, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match="line 2: .*" + reason.replace("(", r"\(")):
        assemble("tpu.conv id=1\n" + line)


def test_garbage_in_the_header_nibble_is_cleared() -> None:
    cmdbuf = golden_cases.build("copy")[0]
    dirty = bytearray(cmdbuf)
    dirty[2] |= 0x70
    assert normalised(bytes(dirty)) == cmdbuf
    assert assemble(disassemble(bytes(dirty))) == cmdbuf


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda b: b[:-1], "record 2 at offset 192: payload is cut off, 63 of 64 bytes"),
        (lambda b: b[:75], "record 1 at offset 72: header is cut off"),
        (lambda b: b[:72] + b"\0" + b[73:], "record 1 at offset 72: magic byte is 0x00"),
        (lambda b: b[:73] + b"\x6f" + b[74:], "record 1 at offset 72: TPU payload has 111 bytes instead of 112"),
        (lambda b: b[:74] + b"\x03" + b[75:], "record 1 at offset 72: engine id 3"),
        (lambda b: b"\xa5\0\1\0" + struct.pack("<I", 0xFFFFFFF0), "record 0 at offset 0: payload is cut off"),
        (lambda b: b"\xa5\0\1\0" + struct.pack("<I", 5), "record 0 at offset 0: CPU payload of 5 bytes"),
        (lambda b: b"\xa5\0\1\0" + struct.pack("<I", CPU.size - 4), "record 0 at offset 0: CPU payload of"),
        (lambda b: b"\xa5\0\1\0" + struct.pack("<I", CPU.size + 2), "record 0 at offset 0: CPU payload of"),
    ],
)
def test_malformed_buffers_name_record_and_offset(change, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(FileFormatError, match=reason):
        disassemble(change(golden_cases.build("copy")[0]))


@given(st.binary(max_size=300))
def test_random_bytes_are_refused_or_assemble_to_themselves(data: bytes) -> None:
    for start in (b"", b"\xa5\x70", b"\xa5\x40\x02\0\0\0\0\0"):
        try:
            text = disassemble(start + data)
        except FileFormatError:
            continue
        assert assemble(text) == start + data


def test_a_record_of_the_host_may_have_no_parameters() -> None:
    """Encoders of others write fewer bytes than ours, which fill up."""
    plain = CPU.encode_one()
    data = b"".join(HEADER.encode_one(engine=Engine.CPU, len=len(body)) + body for body in (plain, plain + bytes(4)))
    assert records(data).length.tolist() == [CPU.size, CPU.size + 4]


def test_records_index_a_buffer() -> None:
    index = records(golden_cases.build("mul i8 rsh5")[0])
    assert index.engine.tolist() == [2, 2, 0, 2]
    assert index.length.tolist() == [64, 64, 112, 64]
    assert index.offset.tolist() == [8, 80, 152, 272]
    assert index.payloads(Engine.GDMA).shape == (3, 64)
    assert GDMA.decode(index.payloads(Engine.GDMA))["direction"].tolist() == [0, 0, 1]
    assert len(records(b"")) == 0


@pytest.mark.parametrize("around", [CPU_PAYLOAD, 255, 256, 512])
def test_records_of_the_host_hold_their_parameters_in_whole_words(around: int) -> None:
    """Those as long as the shortest payload, as what a header says in a byte, some fewer and some more."""
    for size in range(max(0, around - CPU.size - 9), around - CPU.size + 9):
        params = bytes((7 * i + 1) % 256 for i in range(size))
        data = pack_cpu("softmax", params) + pack_cpu("other", b"\1")
        found = records(data)
        start, length = int(found.offset[0]), int(found.length[0])
        assert len(found.offset) == 2 and length % 4 == 0
        assert length == max(CPU_PAYLOAD, CPU.size + size + -(CPU.size + size) % 4)
        assert data[start + CPU.size : start + length] == params.ljust(length - CPU.size, b"\0")
