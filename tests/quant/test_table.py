"""Calibration tables: three kinds of file, one meaning, and clear words about bad ones."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmcompiler.errors import BMError, CalibrationError
from bmcompiler.quant import table as t
from bmcompiler.quant.table import CalibrationTable, LayerEntry, load_table, save_table

KINDS = ("table", "pb2", "prototxt")
F32 = st.floats(min_value=2.0**-100, max_value=2.0**100, width=32)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)

VENDOR_TEXT = """
name: "LeNet"
layer {
  name: "conv1"
  threshold_y: 1.39
  right_shift_width: 8
  blob_param { name: "conv1" threshold_y: 1.39 }
  bottom_unsigned: false
  top_unsigned: true
  convolution_param { relu_param { gt_scale: 64 le_scale: 102 gt_right_shift_width: 6 le_right_shift_width: 10 } }
}
layer {
  name: "pool1"
  threshold_y: 2.5
  right_shift_width: 8
  threshold_x_quantized: 160
  blob_param { name: "pool1" threshold_y: 2.5 }
  pooling_param { }
  field_of_a_newer_tool: 3
}
layer { name: "relu_in_place" blob_param { name: "conv1" threshold_y: 1.25 } }
layer { name: "concat" concat_param { right_shift_width: 3 right_shift_width: 4 threshold_x_quantized: 9 } }
layer { name: "label" threshold_y: 0 }
"""


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def vendor_table(tmp_path: Path) -> CalibrationTable:
    return load_table(write(tmp_path / "lenet.prototxt", VENDOR_TEXT))


def test_vendor_fields_are_read(vendor_table: CalibrationTable) -> None:
    conv, pool = vendor_table.layer("conv1"), vendor_table.layer("pool1")
    assert conv is not None and pool is not None
    assert vendor_table.name == "LeNet"
    assert conv.right_shift_width == 8 and conv.top_unsigned == (True,)
    assert conv.convolution_param == t.ConvolutionParameter(relu_param=t.ReLUParameter(64, 102, 6, 10))
    assert (pool.threshold_x_quantized, pool.pooling_param) == ((160,), t.PoolingParameter())


def test_the_last_writer_of_a_tensor_counts_and_zero_is_unknown(vendor_table: CalibrationTable) -> None:
    assert vendor_table.thresholds == {"conv1": 1.25, "pool1": 2.5}


@pytest.mark.parametrize("kind", ["pb2", "prototxt"])
def test_vendor_forms_keep_everything(kind: str, vendor_table: CalibrationTable, tmp_path: Path) -> None:
    path = tmp_path / f"out.{kind}"
    save_table(vendor_table, path)
    assert load_table(path) == vendor_table


@pytest.mark.parametrize("kind", KINDS)
def test_thresholds_survive_every_form(kind: str, tmp_path: Path) -> None:
    values = {
        "data": 1.0,
        "conv 1": 0.0078125,
        "#odd": 1e-20,
        'a\nb\t"c"': 3.5,
        "层": 2.0,
        "1 2 3": 4.0,
        "x 1.5": 2.5,
        'name:"q': 1.5,
    }
    path = tmp_path / f"out.{kind}"
    save_table(CalibrationTable.of(values, "net"), path)
    table = load_table(path)
    assert table.name == "net"
    assert table.thresholds == pytest.approx(values)
    assert list(table.thresholds) == list(values)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.dictionaries(NAMES, F32, min_size=1, max_size=6), kind=st.sampled_from(KINDS))
def test_any_names_and_values_survive(values: dict[str, float], kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{kind}"
    save_table(CalibrationTable.of(values), path)
    assert load_table(path).thresholds == values


def test_the_kind_is_told_by_content_not_by_name(vendor_table: CalibrationTable, tmp_path: Path) -> None:
    save_table(vendor_table, tmp_path / "a.pb2")
    (tmp_path / "a.pb2").rename(tmp_path / "a.txt")
    assert load_table(tmp_path / "a.txt") == vendor_table


def test_tables_of_newer_vendor_tools_read(tmp_path: Path) -> None:
    text = "# generated time: now\n# op_name threshold min max\nin  2.5 -2.5 2.25\nblock 1 out 4 -4.0 4e0\n"
    assert load_table(write(tmp_path / "t", text)).thresholds == {"in": 2.5, "block 1 out": 4.0}


def test_windows_line_ends_and_a_byte_order_mark_read(tmp_path: Path) -> None:
    assert load_table(write(tmp_path / "t", b"\xef\xbb\xbf# net: n\r\na 1\r\n\r\nb 2.5\r\n")).thresholds == {
        "a": 1,
        "b": 2.5,
    }


def test_float32_values_are_written_exactly(tmp_path: Path) -> None:
    value = float(np.float32(0.1))
    save_table(CalibrationTable.of({"a": value}), tmp_path / "t")
    assert load_table(tmp_path / "t").thresholds["a"] == value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("# nothing\n", "holds no tensor"),
        ("a 1\nb -2\n", "line 2: threshold -2.0 is not a positive number"),
        ("a nan\n", "line 1: threshold nan"),
        ("a 1e999\n", "line 1: threshold inf"),
        ("a 0\n", "line 1: threshold 0.0"),
        ("a 1\na 2\n", "line 2: tensor 'a' occurs twice"),
        ("a 1\nhello\n", "line 2 is no 'name threshold'"),
        ("a one\n", "line 1 is no 'name threshold'"),
        ('"a 1\n', "line 1: the quoted name does not end"),
        ('"a" x\n', "line 1 is no"),
        ('name: "n"\nlayer { name: "a" threshold_y: -1 }', "layer 'a': threshold -1.0"),
        ('layer { name: "a" threshold_y: nan }', "threshold nan"),
        ('layer { name: "a" }\nlayer { name: "a" }', "layer 'a': the layer occurs twice"),
        ('layer { name: "a"\n  right_shift_width: many }', "line 2"),
        ('layer { name: "a"\n', "line"),
        ("layer { threshold_y: 1 }", "layer 0 has no readable name"),
        ('layer { name: "a" blob_param { threshold_y: 1 } }', "output has no readable name"),
        ('name: "only"', "holds no layer"),
        ("layer { x " + "{ a " * 3000, "cannot be read|line"),
        (b"\x00\x01\x02", "not a calibration table"),
        (b"\xff" * 100, "not a calibration table"),
        (b"\xa2\x06\x04\x0a\x02\xff\xfe", "no readable name|not a calibration table"),
    ],
)
def test_bad_tables_say_where_and_what_to_do(content: str | bytes, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t", content)
    with pytest.raises(CalibrationError, match=words) as caught:
        load_table(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "Remedy: " in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_tables_end_in_success_or_a_reported_error(
    kind: str, vendor_table: CalibrationTable, tmp_path: Path
) -> None:
    save_table(vendor_table, tmp_path / f"good.{kind}")
    good = (tmp_path / f"good.{kind}").read_bytes()
    rng = random.Random(11)
    for _ in range(300):
        data = bytearray(good)
        for _ in range(rng.choice((1, 3))):
            place = rng.randrange(len(data) or 1)
            data[place : place + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
            if rng.random() < 0.1:
                del data[place:]
        try:
            table = load_table(write(tmp_path / "bad", bytes(data)))
            save_table(table, tmp_path / "again.pb2")
        except BMError as error:
            assert str(tmp_path / "bad") in str(error)


def test_a_layer_without_blobs_names_its_output_like_itself() -> None:
    assert CalibrationTable("n", (LayerEntry("fc", threshold_y=(2.0,)),)).thresholds == {"fc": 2.0}
