"""Calibration by several processes gives the table that one gives."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bmcompiler
import bmcompiler.parallel
from bmcompiler.cli.calibrate import cli
from bmcompiler.cli.common import run
from bmcompiler.files.carried import Carried
from bmcompiler.parallel.task import InlinePool, P, R, Task
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.calibration import CountMagnitudes
from bmcompiler.quant.histogram import Histogram

MODELS = Path(__file__).resolve().parents[2] / "models"
ARRAYS = st.lists(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=20), min_size=1, max_size=6)


@given(ARRAYS, st.sampled_from([128, 512, 2048]))
def test_merged_histograms_are_one_histogram_of_all(arrays: list[list[float]], bins: int) -> None:
    whole, merged = Histogram(bins), Histogram(bins)
    for values in arrays:
        whole.add(np.array(values, np.float32))
        part = Histogram(bins)
        part.add(np.array(values, np.float32))
        merged.merge(part)
    assert (whole.limit, whole.largest, whole.zeros) == (merged.limit, merged.largest, merged.zeros)
    assert (whole.counts == merged.counts).all()


@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_gives_the_same_table(workers: int, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", data=np.load(MODELS / "digits.npz")["calib"].astype(np.float32) / 255)
    net = (str(MODELS / "lenet/deploy.prototxt"), str(MODELS / "lenet/lenet.caffemodel"))
    tables = []
    for count in (1, workers):
        table = tmp_path / f"{count}.table"
        assert (
            run(
                cli, "bmnet-calibrate", [*net, "--data", f"{tmp_path}/x.npz", "--workers", str(count), "-o", str(table)]
            )
            == 0
        )
        tables.append(table.read_bytes())
    assert tables[0] == tables[1]


def test_the_task_reaches_other_processes_whole() -> None:
    module = bmcompiler.load_network(MODELS / "resnet8/resnet8_mnist.onnx")
    task = CountMagnitudes(Carried(module), 2048)
    sent = pickle.loads(pickle.dumps(task))
    samples = np.random.default_rng(0).random(module.main.arguments[0].shape, np.float32)
    here, there = (each((0, {module.main.input_names[0]: samples})) for each in (task, sent))
    for one, other in zip(here, there):
        assert (one is None) == (other is None)
        assert one is None or other is None or (one.counts == other.counts).all()


def test_a_bad_sample_is_named_the_same_way_by_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = np.load(MODELS / "digits.npz")["calib"].astype(np.float32)
    digits[70] = np.nan
    np.savez(tmp_path / "x.npz", data=digits)
    net = (str(MODELS / "lenet/deploy.prototxt"), str(MODELS / "lenet/lenet.caffemodel"))
    said = []
    for count in ("1", "2"):
        arguments = [*net, "--data", f"{tmp_path}/x.npz", "--workers", count, "-o", f"{tmp_path}/t"]
        assert run(cli, "bmnet-calibrate", arguments) == 1
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert "NaN" in said[0]
    assert not (tmp_path / "t").exists()


class Counting(InlinePool):
    """Counts the parts it is given."""

    parts = 0

    def run(self, task: Task[Any, P, R], parts: Iterable[tuple[int, P]]) -> Iterator[tuple[int, R]]:
        for each in super().run(task, parts):
            self.parts += 1
            yield each


@pytest.mark.parametrize("method", ["kl", "auto"])
def test_the_samples_run_in_the_pool_that_is_given(method: str) -> None:
    pool, module = Counting(), bmcompiler.load_network(MODELS / "resnet8/resnet8_mnist.onnx")
    data = {module.main.input_names[0]: np.random.default_rng(0).random((3, 1, 28, 28), np.float32)}
    run_pipeline(module, f"calibrate{{method={method}}}", PassContext(data=data, pool=pool))
    assert pool.parts > 0


def test_the_command_gives_its_workers_to_the_calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pool = Counting()
    monkeypatch.setattr(bmcompiler.parallel, "open_pool", lambda workers, scheduler: pool)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).random((3, 1, 28, 28), np.float32))
    net = str(MODELS / "resnet8/resnet8_mnist.onnx")
    given = [net, "--data", str(tmp_path / "x.npz"), "-o", str(tmp_path / "t.table"), "--workers", "2"]
    assert run(cli, "bmnet-calibrate", given) == 0
    assert pool.parts > 0
