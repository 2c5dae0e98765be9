"""Bit-field tables: encode, decode, range checks, and the BM1880 formats built from them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1880 import isa
from bmcompiler.backends.bm1880.isa import CPU, GDMA, HEADER, TIU
from bmcompiler.errors import EncodingError
from bmcompiler.instructions.isa import Field, Format

FORMATS = (HEADER, TIU, GDMA, CPU)
SMALL = Format(
    "small", 64, (Field("a", 0, 5, default=3), Field("b", 5, 12), Field("wide", 20, 32), Field("top", 63, 1))
)


@pytest.mark.parametrize("layout", FORMATS, ids=lambda f: f.name)
def test_every_bit_belongs_to_one_field(layout: Format) -> None:
    assert sum(field.width for field in layout.fields) == layout.bits


@pytest.mark.parametrize("layout", FORMATS, ids=lambda f: f.name)
@settings(max_examples=30)
@given(data=st.data())
def test_any_bytes_survive_decode_and_encode(layout: Format, data: st.DataObject) -> None:
    raw = data.draw(st.binary(min_size=3 * layout.size, max_size=3 * layout.size))
    table = layout.decode(np.frombuffer(raw, np.uint8).reshape(3, -1))
    assert layout.encode(table).tobytes() == raw
    one = layout.unpack(raw[: layout.size])
    assert one == {name: int(column[0]) for name, column in table.items()}
    assert layout.encode_one(**one) == raw[: layout.size]


def test_fields_are_little_endian_and_lsb_first() -> None:
    assert SMALL.encode_one() == (3).to_bytes(8, "little")
    assert SMALL.encode_one(a=0, b=0xABC, wide=0x12345678, top=1) == (
        (0xABC << 5) | (0x12345678 << 20) | (1 << 63)
    ).to_bytes(8, "little")


def test_columns_broadcast_and_missing_fields_take_their_default() -> None:
    words = SMALL.encode({"b": np.array([1, 2, 3]), "wide": 7})
    assert words.shape == (3, 8)
    table = SMALL.decode(words)
    assert table["a"].tolist() == [3, 3, 3]
    assert table["b"].tolist() == [1, 2, 3]
    assert table["wide"].tolist() == [7, 7, 7]
    assert SMALL.encode(SMALL.defaults(2)).tobytes() == SMALL.encode_one() * 2


@pytest.mark.parametrize("value", [32, -1])
def test_value_too_wide_names_format_field_value_and_width(value: int) -> None:
    for call in (lambda: SMALL.encode_one(a=value), lambda: SMALL.encode({"a": [1, value]})):
        with pytest.raises(EncodingError, match=rf"small: value {value} of field 'a' does not fit 5 bits"):
            call()


def test_unknown_fields_and_non_integers_are_refused() -> None:
    with pytest.raises(EncodingError, match="no field is called 'z'"):
        SMALL.encode_one(z=1)
    with pytest.raises(EncodingError, match="no field is called 'z'"):
        SMALL.encode({"z": [1]})
    with pytest.raises(EncodingError, match="field 'b' needs an integer"):
        SMALL.encode_one(b=1.5)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="9 bytes"):
        SMALL.decode(np.zeros(9, np.uint8))


@pytest.mark.parametrize(
    "fields",
    [
        (Field("a", 0, 5), Field("b", 4, 2)),
        (Field("a", 30, 3),),
        (Field("a", 0, 1), Field("a", 1, 1)),
        (Field("a", 0, 2, default=4),),
        (Field("a", 0, 0),),
    ],
    ids=["overlap", "outside", "twice", "default", "empty"],
)
def test_wrong_tables_are_refused_at_construction(fields: tuple[Field, ...]) -> None:
    with pytest.raises(ValueError, match="bad"):
        Format("bad", 32, fields)


def test_reset_values_of_the_tiu() -> None:
    reset = TIU.unpack(TIU.encode_one())
    assert (reset["tsk_opd_num"], reset["opt_right_shift"], reset["opt_left_shift"]) == (3, 10, 2)
    assert (reset["res0_w"], reset["opd2_c_str"], reset["opd1_h_str"], reset["opd0_w_str"]) == (16, 16, 0, 1)


def test_ten_thousand_commands_encode_and_decode_quickly() -> None:
    values = TIU.unpack(bytes(range(112)))
    start = time.process_time()
    raw = b"".join(TIU.pack(values) for _ in range(10_000))
    TIU.decode(np.frombuffer(raw, np.uint8))
    assert time.process_time() - start < 2


def test_control_bits_are_those_that_programs_in_c_say() -> None:
    bits = {"AL": 0, "RA": 2, "BN": 3, "TP": 5, "ADDR_ALIGN": 7, "RELU": 8, "KFLIP": 9, "WEIGHT": 10, "NEURON": 11}
    assert {name: getattr(isa, f"CTRL_{name}") for name in bits} == {name: 1 << bit for name, bit in bits.items()}
    assert (isa.CTRL_NULL, isa.CTRL_WINOGRAD, isa.FMT_I8, isa.FMT_U8) == (0, 1 << 12, 4, 9)
