"""bmnet-run: arrays in, arrays out, timing, trace and race check; broken inputs give one line and no file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bmcompiler import bmodel
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    FMT_I8,
    bmk1880_acquire_cmdbuf,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_parallel_disable,
    bmk1880_parallel_enable,
    bmk1880_register,
    bmk1880_relu_param_t,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_relu,
    shape_t4,
)
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.cli.common import run
from bmcompiler.cli.run import cli

SAMPLE = (3, 4, 5)
SIZE = 60


def relu_net(batch: int, *, racy: bool = False, names: tuple[str, str] = ("x", "file")) -> Command:
    """y = relu(x) with thresholds 4 and 4; `racy` leaves out the order of its three commands."""
    ctx = bmk1880_register()
    t = bmk1880_tl_prealloc_align(ctx, 0, shape_t4(batch, *SAMPLE), FMT_I8)
    if racy:
        bmk1880_parallel_enable(ctx)
    bmk1880_gdma_load(ctx, t, 0, CTRL_NEURON)
    bmk1880_tpu_relu(ctx, bmk1880_relu_param_t(t, t))
    bmk1880_gdma_store(ctx, t, batch * SIZE, CTRL_NEURON)
    if racy:
        bmk1880_parallel_disable(ctx)
    source = TensorInfo(names[0], (batch, *SAMPLE), threshold=4.0)
    result = TensorInfo(names[1], (batch, *SAMPLE), offset=batch * SIZE, threshold=4.0)
    layers = encode_layers([LayerSpan("act", "relu", 0, 3)])
    return Command([source], [result], bmk1880_acquire_cmdbuf(ctx), 2 * batch * SIZE, layers=layers)


Save = Callable[..., str]


@pytest.fixture
def net(tmp_path: Path) -> Save:
    """Writes a model of the given batches, returns its path."""

    def save(*batches: int, racy: bool = False) -> str:
        path = tmp_path / "net.bmodel"
        bmodel.save(Bm1880Model("net", [relu_net(b, racy=racy) for b in batches or (2,)], []), path)
        return str(path)

    return save


@pytest.fixture
def data(tmp_path: Path) -> Callable[..., str]:
    def save(**arrays: np.ndarray) -> str:
        np.savez(tmp_path / "in.npz", **arrays)
        return str(tmp_path / "in.npz")

    return save


def samples(count: int) -> np.ndarray:
    return np.random.default_rng(count).uniform(-3.9, 3.9, (count, *SAMPLE)).astype(np.float32)


def bmnet_run(*args: str) -> int:
    return run(cli, "bmnet-run", args)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_real_values_in_steps(
    net: Save, data: Save, tmp_path: Path, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    x, out = samples(count), tmp_path / "out.npz"
    assert bmnet_run(net(2), "--data", data(x=x), "-o", str(out)) == 0
    with np.load(out, allow_pickle=False) as arrays:
        y = arrays["file"]
    assert y.dtype == np.float32 and y.shape == x.shape
    np.testing.assert_allclose(y, np.maximum(x, 0), atol=4 / 128)
    text = capsys.readouterr()
    assert f"file    {count}x3x4x5  float32" in text.out and f"wrote {out}" in text.out
    assert f"{-(-count // 2)} step" in text.out and text.err == ""


def test_outputs_are_compared_with_references(
    net: Save, data: Save, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, reference = data(x=samples(4)), tmp_path / "ref.npz"
    assert bmnet_run(net(), "--data", given, "-o", str(reference)) == 0
    assert bmnet_run(net(), "--data", given, "--compare", str(reference)) == 0
    assert "100.0%" in capsys.readouterr().out.split("against the reference")[1]
    np.savez(tmp_path / "other.npz", y=samples(4), z=samples(4))
    assert bmnet_run(net(), "--data", given, "--compare", str(tmp_path / "other.npz")) == 1
    assert "the model has no output 'y'. Remedy: name arrays like: file" in capsys.readouterr().err
    np.save(tmp_path / "few.npy", samples(3))
    out = tmp_path / "out.npz"
    assert bmnet_run(net(), "--data", given, "--compare", str(tmp_path / "few.npy"), "-o", str(out)) == 1
    assert not out.exists()  # status 1: nothing is written
    assert "have shapes" in capsys.readouterr().err


def test_raw_values(net: Save, data: Save, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-128, 128, (2, *SAMPLE)).astype(np.int8)
    out = tmp_path / "out.npz"
    assert bmnet_run(net(), "--data", data(x=x), "-o", str(out), "--raw") == 0
    with np.load(out, allow_pickle=False) as arrays:
        assert arrays["file"].dtype == np.int8
        np.testing.assert_array_equal(arrays["file"], np.maximum(x, 0))


def test_equal_inputs_give_equal_files(net: Save, data: Save, tmp_path: Path) -> None:
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path in paths:
        assert bmnet_run(net(), "--data", data(x=samples(2)), "-o", str(path)) == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_timing_shows_host_and_chip(net: Save, data: Save, capsys: pytest.CaptureFixture[str]) -> None:
    assert bmnet_run(net(1, 4), "--data", data(x=samples(4)), "--timing") == 0
    out = capsys.readouterr().out
    assert "1 step in " in out and "s per step)" in out
    assert "cycles" in out and "at 1000 MHz" in out and "assumed: clock 1000 MHz" in out
    assert "act    relu         3" in out
    assert "240 bytes of activations" in out  # those of the program for batch 4


def test_the_timing_profile_can_be_given(net: Save, data: Save, capsys: pytest.CaptureFixture[str]) -> None:
    args = (net(), "--data", data(x=samples(2)), "--timing", "--timing-profile")
    assert bmnet_run(*args, "clock_hz=5e8,gdma_start=7") == 0
    assert "at 500 MHz" in (out := capsys.readouterr().out) and "start-up 7 cycles per transfer" in out
    assert bmnet_run(*args, "speed=3") == 2
    assert "the timing profile of bm1880 has no parameter 'speed'. Remedy: it has clock_hz" in capsys.readouterr().err
    assert bmnet_run(*args, "help") == 0
    assert "clock_hz=1000000000\nddr_rate=8000000000\n" in capsys.readouterr().out


def test_trace_is_written(net: Save, data: Save, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    assert bmnet_run(net(), "--data", data(x=samples(2)), "--trace", str(trace)) == 0
    slices = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    assert {event["name"] for event in slices if event["cat"] == "layer"} == {"act"}
    commands = [event["name"] for event in slices if event["cat"] == "command"]
    assert commands == ["gdma.load", "tpu.max", "gdma.store"]


def test_race_check(net: Save, data: Save, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bmnet_run(net(), "--data", data(x=samples(2)), "--check-races") == 0
    assert "no races" in capsys.readouterr().out
    out, trace = tmp_path / "out.npz", tmp_path / "trace.json"
    args = ("--data", data(x=samples(2)), "-o", str(out), "--trace", str(trace), "--check-races")
    assert bmnet_run(net(racy=True), *args) == 1
    err = capsys.readouterr().err
    assert "net.bmodel: 2 races; the result depends on timing" in err
    assert "command 0 (GDMA, gdma.load of layer 'act') and command 1 (TPU, tpu.max of layer 'act')" in err
    assert not out.exists() and not trace.exists()


def broken_npz(kind: str, tmp_path: Path) -> str:
    path = tmp_path / "in.npz"
    x = samples(2)
    arrays = {
        "other name": {"y": x},
        "one too many": {"x": x, "z": x},
        "wrong shape": {"x": x[:, :2]},
        "no sample": {"x": x[:0]},
        "NaN": {"x": np.where(x > 3, np.nan, x)},
        "text": {"x": np.array(["a", "b"])},
        "pickled": {"x": np.array([{}, None], object)},
        "truncated": {"x": x},
    }
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "no zip":
        path.write_bytes(b"PK\3\4 but no more")
    elif kind != "missing":
        np.savez(path, **arrays[kind])
        if kind == "truncated":
            path.write_bytes(path.read_bytes()[:-40])
    return str(path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "No such file"),
        ("empty", "not an npz"),
        ("no zip", "not an npz"),
        ("truncated", "not an npz"),
        ("pickled", "'x' cannot be read"),
        ("text", "not numbers"),
        ("other name", "input 'x' is missing"),
        ("one too many", "no input 'z'"),
        ("wrong shape", "do not fit"),
        ("no sample", "leading axis is 0"),
        ("NaN", "contains NaN"),
    ],
)
def test_broken_inputs(net: Save, tmp_path: Path, kind: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, trace = tmp_path / "out.npz", tmp_path / "trace.json"
    source = broken_npz(kind, tmp_path)
    before = sorted(tmp_path.iterdir())
    path = net()
    assert bmnet_run(path, "--data", source, "-o", str(out), "--trace", str(trace), "--timing") == 1
    err = capsys.readouterr().err
    assert message in err and "in.npz" in err and err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == sorted([*before, Path(path)])


def test_broken_models_and_outputs(net: Save, data: Save, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = data(x=samples(2))
    other = tmp_path / "chip.bmodel"
    bmodel.save(Bm1880Model("net", [relu_net(2)], [], chip=9999), other)
    cases = (
        ((str(tmp_path / "none.bmodel"), "--data", source), "none.bmodel: No such file"),
        ((source, "--data", source), "not a model file"),
        ((str(other), "--data", source), "bm9999"),
        ((net(), "--data", source, "--device", "99"), "no device 99"),
        ((net(), "--data", source, "-o", str(tmp_path / "no/out.npz")), "folder does not exist"),
        ((net(), "--data", source, "--trace", str(tmp_path)), "is a folder"),
    )
    for args, message in cases:
        assert bmnet_run(*args) == 1
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1
    assert bmnet_run(net()) == 2


def test_help_is_quick_and_shows_examples() -> None:
    code = "import sys; from bmcompiler.cli.run import main; sys.argv = ['bmnet-run', '--help']; main()"
    before = os.times()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = os.times()
    assert after.children_user - before.children_user < 2  # 0.1 s on an idle machine
    assert "Examples:" in done.stdout and "--check-races" in done.stdout
    lazy = "import sys; import bmcompiler.cli.run; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", lazy], check=True)
