"""Input that cannot be right: exit status, one line that names file, layer, reason and remedy, and no output file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cli_files import PROTOTXT, SHAPE, command, onnx_model
from refusals import CAFFE, OUT, TABLE, Refused, folder, originals, refused

from bmcompiler.bmodel import load, save

__all__ = ["folder", "originals", "refused"]  # fixtures


# -- options ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("line", "status", "parts"),
    [
        (f"compile net.prototxt net.caffemodel {TABLE} {OUT}", 2, ["Missing option '--target'"]),
        (f"compile net.prototxt net.caffemodel --target bm9 {TABLE}", 1, ["'bm9'", "one of: bm1684, ", "dv700"]),
        (f"compile {CAFFE} {OUT}", 1, ["net.prototxt: int8 needs", "--data", "--calibration-table"]),
        (f"compile {CAFFE} {TABLE} {OUT} --quantize f32", 2, ["int8 only, not in f32", "--quantize int8"]),
        (f"compile {CAFFE} {TABLE} {OUT} --shapes hello", 2, ['"[[1,3,224,224]]"', "'hello'"]),
        (f"compile {CAFFE} {TABLE} {OUT} --shapes [[]]", 1, ["layer 'data' (Input)", "4 axes"]),
        (f"compile {CAFFE} {TABLE} {OUT} --shapes [[1,2,0,6]]", 2, ["whole number from 1"]),
        (f"compile {CAFFE} {TABLE} {OUT} --shapes [[1,2,6]]", 1, ["net.prototxt: layer 'data' (Input)", "4 axes"]),
        (f"compile {CAFFE} {TABLE} {OUT} --outputs nope", 2, ["'nope'", "Remedy: name one of the net's blobs"]),
        (f"compile {CAFFE} {TABLE} {OUT} --pipeline nope", 2, ["no pass 'nope'", "the passes are: "]),
        (f"compile {CAFFE} {TABLE} {OUT} --pipeline dead-code{{", 2, ["pipeline 'dead-code{'", "column"]),
        (f"compile {CAFFE} {TABLE} {OUT} --print-ir-after nope", 2, ["'nope'", "canonicalize"]),
        (f"compile {CAFFE} {TABLE} {OUT} --report x.pdf", 2, ["must end in .html, .json or .csv, got 'x.pdf'"]),
        ("calibrate net.prototxt net.caffemodel --data calib.npz", 2, ["Missing option '-o'"]),
        ("calibrate net.prototxt net.caffemodel --data calib.npz -o x --method best", 2, ["'best' is not one of"]),
        ("calibrate net.prototxt net.caffemodel --data calib.npz -o x --percentile 7", 2, ["50<=x<=100"]),
        ("opt net.mlir --pipeline nope -o x.mlir", 2, ["no pass 'nope'"]),
        ("opt net.mlir --pipeline canonicalize{x=1} -o x.mlir", 2, ["no option 'x'", "rounds"]),
        ("opt net.mlir --pipeline quantize -o x.mlir", 2, ["net.mlir: ", "the net is not calibrated", "Remedy"]),
        ("tool", 2, ["Missing command"]),
        ("tool bogus", 2, ["No such command 'bogus'"]),
        ("tool dis net.bmodel --program 7", 2, ["no program 7", "0 to 0"]),
        ("tool combine net.bmodel -o x.bmodel", 2, ["two or more"]),
        ("tool combine net.bmodel net.bmodel -o x.bmodel", 1, ["[1, 2, 6, 6] occurs twice"]),
    ],
)
def test_options_that_cannot_be(line: str, status: int, parts: list[str], refused: Refused) -> None:
    refused(line, status, *parts)


# -- outputs ----------------------------------------------------------------------------------------------------------
OUTPUTS = [
    f"compile {CAFFE} {TABLE} -o {{}}",
    f"compile {CAFFE} {TABLE} {OUT} --save-ir {{}}",
    f"compile {CAFFE} {TABLE} {OUT} --report {{}}",
    "calibrate net.prototxt net.caffemodel --data calib.npz -o {}",
    "opt net.mlir --pipeline canonicalize -o {}",
    "run net.bmodel --data calib.npz -o {}",
    "run net.bmodel --data calib.npz --trace {}",
    "tool dis net.bmodel -o {}",
    "tool combine net.bmodel other.bmodel -o {}",
]


@pytest.mark.parametrize("line", OUTPUTS)
def test_outputs_that_cannot_be_written(line: str, refused: Refused, folder: Path) -> None:
    model = load("net.bmodel")
    command_ = model.commands[0]  # type: ignore[attr-defined]
    inputs = [replace(command_.inputs[0], shape=(1, 1, 6, 6))]
    save(replace(model, commands=[replace(command_, inputs=inputs)]), "other.bmodel")  # type: ignore[type-var]
    refused(line.format("no/where.json"), 1, "no/where.json: cannot be written: the folder does not exist")
    (folder / "folder.json").mkdir()
    refused(line.format("folder.json"), 1, "folder.json: is a folder, a file name is needed")


def test_unwritable_outputs_are_noticed_before_the_work(refused: Refused) -> None:
    refused("compile missing.onnx --target bm1880 -o no/x.bmodel", 1, "no/x.bmodel: cannot be written")
    refused("calibrate missing.onnx --data calib.npz -o no/x.table", 1, "no/x.table: cannot be written")


def test_extract_needs_a_folder(refused: Refused) -> None:
    refused("tool extract net.bmodel -o net.table", 2, "net.table: is a file, a folder is needed")


# -- files that are not there or not what they should be --------------------------------------------------------------
READERS = [
    f"compile {{}}.prototxt net.caffemodel --target bm1880 {TABLE} {OUT}",
    f"compile net.prototxt {{}}.caffemodel --target bm1880 {TABLE} {OUT}",
    f"compile {{}}.onnx --target bm1880 {TABLE} {OUT}",
    f"compile {{}}.mlir --target bm1880 {TABLE} {OUT}",
    f"compile {CAFFE} {OUT} --calibration-table {{}}.table",
    f"compile {CAFFE} {OUT} --calibration-table {{}}.pb2",
    f"compile {CAFFE} {OUT} --data {{}}.npz",
    "calibrate net.prototxt net.caffemodel --data {}.npz -o x.table",
    "opt {}.mlir --pipeline canonicalize -o x.mlir",
    "run {}.bmodel --data calib.npz -o x.npz",
    "run net.bmodel --data {}.npz -o x.npz",
    "tool info {}.bmodel",
    "tool dis {}.bmodel",
    "tool extract {}.bmodel -o pieces",
    "tool combine net.bmodel {}.bmodel -o x.bmodel",
]


@pytest.mark.parametrize("line", READERS)
def test_missing_empty_foreign_and_binary_files(line: str, refused: Refused, folder: Path) -> None:
    name = next(word for word in line.split() if "{}" in word)
    path = folder / name.format("bad")
    refused(line.format("bad"), 1, f"{path.name}: ", "o such file")
    path.mkdir()
    refused(line.format("bad"), 1, f"{path.name}: ")
    path.rmdir()
    for content in (b"", b"\n", b"hello world\n", b"\x00\xff\xfe\x01" * 20, b"\x7fELF" + bytes(60)):
        path.write_bytes(content)
        refused(line.format("bad"), 1, f"{path.name}")


@pytest.mark.parametrize("line", [line for line in READERS if "{}.table" not in line])  # its lines stand alone
def test_truncated_files(line: str, refused: Refused, folder: Path) -> None:
    name = next(word for word in line.split() if "{}" in word)
    source = "calib.npz" if name.endswith(".npz") else name.format("net")
    whole = (folder / source).read_bytes().rstrip()
    shutil.copy("net.weights.npz", "bad.weights.npz")
    for share in (0.3, 0.9):
        (folder / name.format("bad")).write_bytes(whole[: int(len(whole) * share)])
        refused(line.format("bad"), 1)


# -- models -----------------------------------------------------------------------------------------------------------
def test_models_of_another_chip(refused: Refused) -> None:
    save(replace(load("net.bmodel"), chip=1682), "other.bmodel")  # type: ignore[type-var]
    refused("run other.bmodel --data calib.npz -o x.npz", 1, "other.bmodel: unknown device 'bm1682'", "bm1880")
    refused("tool dis other.bmodel", 1, "other.bmodel: unknown target 'bm1682'", "bm1880")
    refused("tool combine net.bmodel other.bmodel -o x.bmodel", 1, "different chips", "Remedy")


def test_command_buffers_that_are_cut_off(refused: Refused) -> None:
    model: Any = load("net.bmodel")
    whole = model.commands[0]
    save(replace(model, commands=[replace(whole, cmdbuf=whole.cmdbuf[:-30])]), "cut.bmodel")
    refused("run cut.bmodel --data calib.npz -o x.npz", 1, "cut.bmodel: command buffer: record", "cut off")
    refused("tool dis cut.bmodel", 1, "cut.bmodel: command buffer: record", "cut off")


def test_one_name_in_a_file_cannot_send_control_codes(refused: Refused, folder: Path) -> None:
    (folder / "bad.prototxt").write_bytes(PROTOTXT.replace('"ReLU"', '"Re\x1b[2JLU"').encode())
    refused(f"compile bad.prototxt net.caffemodel --target bm1880 {TABLE} {OUT}", 1, "\\x1b[2J")


def test_a_net_name_with_separators_is_no_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.prototxt").write_text(PROTOTXT.replace('name: "small"', 'name: "../a/b"', 1))
    assert command("compile", "odd.prototxt", "net.caffemodel", "--target", "bm1880", *TABLE.split()) == 0
    assert (folder / ".._a_b.bmodel").is_file() and "wrote .._a_b.bmodel" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_folders_without_write_permission(refused: Refused, folder: Path) -> None:
    (folder / "folder").chmod(0o500)
    refused(f"compile {CAFFE} {TABLE} -o folder/x.bmodel", 1, "folder/x.bmodel: cannot be written: Permission denied")


def test_a_full_device_is_named() -> None:
    from bmcompiler.files.kinds import BYTES
    from bmcompiler.files.store import atomic_output

    with pytest.raises(OSError, match="No space left") as found, atomic_output("/dev/full", BYTES) as stream:
        stream.write(b"x" * 100_000)
    assert found.value.filename == "/dev/full"


@pytest.mark.parametrize(
    "line",
    [
        "compile net.onnx --target bm1684 --quantize int8 --data calib.npz --quant-table /dev/zero",
        f"compile {CAFFE} --calibration-table /dev/zero",
        f"compile {CAFFE} {TABLE} --timing-profile /dev/zero",
        "opt /dev/zero --pipeline dead-code",
    ],
)
def test_a_device_that_never_ends_is_not_read(line: str, refused: Refused) -> None:
    refused(line, 1, "/dev/zero: not a regular file. Remedy: pass the path of a file on disk")


@pytest.mark.parametrize(("name", "called"), [("n\udcc3\udcbc", "n\xfc"), ("n\udcff", "n\ufffd")])
def test_names_of_files_need_not_be_readable(name: str, called: str, tmp_path: Path) -> None:
    """The first is UTF-8 as a locale of ASCII reads it, the second is none."""
    onnx.save(onnx_model(), tmp_path / f"{name}.onnx")
    out = tmp_path / f"{name}.bmodel"
    samples = tmp_path / f"{name}.npy"
    np.save(samples, np.random.default_rng(1).normal(0, 1, (2, *SHAPE[1:])).astype(np.float32))
    options = (
        "--target",
        "bm1684",
        "--quantize",
        "int8",
        "--data",
        samples,
        "--report",
        tmp_path / "report.html",
        "-o",
        out,
    )
    assert command("compile", tmp_path / f"{name}.onnx", *options, "--quiet") == 0
    assert [net.name for net in load(out).nets] == [called]
    assert called in (tmp_path / "report.html").read_text("utf-8")


def test_a_full_standard_output_is_named(folder: Path) -> None:
    command_line = [sys.executable, "-c", "from bmcompiler.cli.opt import main; main()", "-h"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command_line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "bmnet-opt: standard output: No space left on device"


def test_a_standard_output_that_is_closed_is_missed_by_nobody(folder: Path) -> None:
    words = f"{sys.executable} -c 'from bmcompiler.cli.tool import main; main()' --help >&-"
    done = subprocess.run(words, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
