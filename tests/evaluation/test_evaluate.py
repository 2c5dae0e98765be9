"""bmnet-eval: scores over a data set, the same for any number of workers, also when some of them die."""

from __future__ import annotations

import gc
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.cli.common import run
from bmcompiler.cli.evaluate import cli
from bmcompiler.errors import RuntimeUseError, UnsupportedError, UsageError
from bmcompiler.evaluation.dataset import Evaluated, evaluate
from bmcompiler.evaluation.job import Evaluation, Part, network_files
from bmcompiler.evaluation.labels import load_labels
from bmcompiler.evaluation.metrics import find_metric
from bmcompiler.parallel import Pool, Task, open_pool

MODELS = Path(__file__).resolve().parents[2] / "models"
LENET = (MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel")


@pytest.fixture(scope="module")
def digits() -> dict[str, np.ndarray]:
    stored = np.load(MODELS / "digits.npz")
    return {key: stored[key].astype(np.float32) / 255 if key != "labels" else stored[key] for key in stored}


@pytest.fixture(scope="module")
def lenet(tmp_path_factory: pytest.TempPathFactory, digits: dict[str, np.ndarray]) -> Path:
    path = tmp_path_factory.mktemp("lenet") / "lenet.bmodel"
    result = bmcompiler.compile(*LENET, target="bm1880", data={"data": digits["calib"]})
    bmodel.save(result.model, path)
    return path


@pytest.fixture(scope="module")
def task(lenet: Path) -> Evaluation:
    network = network_files(bmcompiler.load_network(*LENET))
    return Evaluation(lenet.read_bytes(), find_metric("top1"), network)


def over(task: Evaluation, digits: dict[str, np.ndarray], pool: Pool, **more: Any) -> Evaluated:
    return evaluate(task, {"data": digits["test"]}, digits["labels"], pool, **more)


def same(one: Evaluated, other: Evaluated) -> bool:
    return (one.score, one.float_score, one.values, one.float_values) == (
        other.score,
        other.float_score,
        other.values,
        other.float_values,
    )


def test_lenet_keeps_its_score_and_its_float_score(task: Evaluation, digits: dict[str, np.ndarray]) -> None:
    with open_pool() as pool:
        done = over(task, digits, pool)
    assert done.samples == 500
    assert done.score >= 0.96
    assert abs(done.score - (done.float_score or 0)) <= 0.01


def test_any_number_of_workers_and_any_size_of_parts_give_the_same(
    task: Evaluation, digits: dict[str, np.ndarray]
) -> None:
    with open_pool() as pool:
        alone = over(task, digits, pool)
    for workers, part in ((2, 32), (3, 7)):
        with open_pool(workers) as pool:
            assert same(over(task, digits, pool, part=part), alone)


class Killing(Task[None, tuple[Path, int], int]):
    """Doubles a number; the first worker that meets a part with a file removes the file and dies."""

    key = "killing"

    def load(self) -> None:
        return None

    def compute(self, state: None, part: tuple[Path, int]) -> int:
        path, number = part
        if path.exists():
            path.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return 2 * number


def test_a_killed_worker_changes_no_result(tmp_path: Path) -> None:
    fatal = {3, 11}
    for number in fatal:
        (tmp_path / str(number)).touch()
    with open_pool(2) as pool:
        found = dict(pool.run(Killing(), ((n, (tmp_path / str(n), n)) for n in range(20))))
    assert found == {number: 2 * number for number in range(20)}
    assert not any((tmp_path / str(number)).exists() for number in fatal)


class Fatal(Killing):
    key = "fatal"

    def compute(self, state: None, part: tuple[Path, int]) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


def test_workers_that_always_die_end_in_an_error(tmp_path: Path) -> None:
    with open_pool(2) as pool, pytest.raises(RuntimeUseError, match="died 4 times in a row"):
        list(pool.run(Fatal(), ((n, (tmp_path, n)) for n in range(3))))


class Thread:
    """Like a session of ONNX Runtime: it lets go of what only the process that made it can let go of."""

    def __init__(self) -> None:
        self.itself, self.process = self, os.getpid()

    def __del__(self) -> None:
        while os.getpid() != self.process:
            time.sleep(0.01)


class Collecting(Killing):
    key = "collecting"

    def compute(self, state: None, part: tuple[Path, int]) -> int:
        gc.collect()
        return part[1]


def test_workers_leave_the_garbage_of_their_parent_alone(tmp_path: Path) -> None:
    gc.disable()
    try:
        Thread()
        with open_pool(2) as pool:
            assert dict(pool.run(Collecting(), [(0, (tmp_path, 3))])) == {0: 3}
    finally:
        gc.enable()


class Refusing(Killing):
    key = "refusing"

    def compute(self, state: None, part: tuple[Path, int]) -> int:
        raise RuntimeUseError("part 1 is bad", file=part[0], remedy="mend it")


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_workers_arrive_whole(workers: int, tmp_path: Path) -> None:
    with open_pool(workers) as pool, pytest.raises(RuntimeUseError) as caught:
        list(pool.run(Refusing(), [(0, (tmp_path, 0))]))
    assert str(caught.value) == f"{tmp_path}: part 1 is bad. Remedy: mend it"


@pytest.fixture
def scheduler() -> Iterator[str]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.slow
def test_a_cluster_gives_the_same(task: Evaluation, digits: dict[str, np.ndarray], scheduler: str) -> None:
    with open_pool() as pool:
        alone = over(task, digits, pool)
    with open_pool(scheduler=scheduler) as pool:
        assert same(over(task, digits, pool), alone)


@pytest.mark.sweep
def test_a_killed_worker_of_a_cluster_changes_no_result(tmp_path: Path, scheduler: str) -> None:
    (tmp_path / "4").touch()
    with open_pool(scheduler=scheduler) as pool:
        found = dict(pool.run(Killing(), ((n, (tmp_path / str(n), n)) for n in range(12))))
    assert found == {number: 2 * number for number in range(12)}


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_named() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(UnsupportedError, match=r"tcp://127\.0\.0\.1:1 does not answer"):
        open_pool(scheduler="tcp://127.0.0.1:1")


def test_workers_and_a_scheduler_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"exclude each other\. Remedy: leave workers out"):
        open_pool(2, "tcp://127.0.0.1:8786")
    with pytest.raises(UsageError, match="1 or more"):
        open_pool(0)


def test_an_interrupted_evaluation_goes_on(task: Evaluation, digits: dict[str, np.ndarray], tmp_path: Path) -> None:
    journal = tmp_path / "lenet.journal"
    with open_pool() as pool:
        whole = over(task, digits, pool, journal=journal)
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:9]) + lines[9][:40])  # eight parts and a half
        again = over(task, digits, pool, journal=journal)
        changed = {"data": digits["test"].copy()}
        changed["data"][3] = 0
        other = evaluate(task, changed, digits["labels"], pool, journal=journal)
    assert same(whole, again)
    assert again.resumed == 8 * 32
    assert other.resumed == 500 - 32, "the part whose samples changed is computed again"


def test_a_journal_of_another_evaluation_is_refused(
    task: Evaluation, digits: dict[str, np.ndarray], tmp_path: Path
) -> None:
    journal = tmp_path / "j"
    few = {"data": digits["test"][:10], "labels": digits["labels"][:10]}
    with open_pool() as pool:
        evaluate(task, {"data": few["data"]}, few["labels"], pool, journal=journal)
        with pytest.raises(UsageError, match=r"another evaluation \(different: part\)"):
            evaluate(task, {"data": few["data"]}, few["labels"], pool, journal=journal, part=5)


def test_labels_from_text_by_line_and_by_name(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("3\n1\n")
    (tmp_path / "named.txt").write_text("b c.png 1\na.png 3\n")
    assert load_labels(str(tmp_path / "plain.txt")).tolist() == [3, 1]
    assert load_labels(str(tmp_path / "named.txt"), ["a.png", "b c.png"]).tolist() == [3, 1]
    with pytest.raises(RuntimeUseError, match=r"'d.png' has no label"):
        load_labels(str(tmp_path / "named.txt"), ["a.png", "d.png"])
    (tmp_path / "bad.txt").write_text("cat\n")
    with pytest.raises(RuntimeUseError, match="neither a number nor"):
        load_labels(str(tmp_path / "bad.txt"))


def test_cosine_and_own_metrics(lenet: Path, digits: dict[str, np.ndarray], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_metric_of_test.py").write_text(
        "def hits(outputs, labels):\n"
        "    (scores,) = outputs.values()\n"
        "    found = scores.reshape(len(scores), -1).argmax(1)\n"
        "    return {'right': found == labels, 'wrong': found != labels}\n"
        "hits.score = lambda sums: sums['right'] / (sums['right'] + sums['wrong'])\n"
    )
    np.savez("x.npz", data=digits["test"][:40])
    np.save("y.npy", digits["labels"][:40])
    arguments = [str(lenet), "--data", "x.npz", "--labels", "y.npy"]
    assert run(cli, "bmnet-eval", [*arguments, "--metric", "own_metric_of_test:hits", "-o", "r.json"]) == 0
    report = json.loads(Path("r.json").read_text())
    assert report["score"] == sum(report["values"]["right"]) / 40 >= 0.9
    network = ["--float", str(LENET[0]), "--weights", str(LENET[1])]
    assert run(cli, "bmnet-eval", [*arguments, "--metric", "cosine", *network, "-o", "c.json"]) == 0
    cosine = json.loads(Path("c.json").read_text())
    assert 0.97 < cosine["score"] <= 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "    if (labels == 7).any(): raise ValueError('a seven')",
            "raised ValueError for sample 3 of a piece: a seven",
        ),
        ("    if len(labels) > 1: raise KeyError('more')", "raised KeyError for all samples of a piece: 'more'"),
        ("    return", "must return"),
        ("    pass\nraise OSError('not found')", "cannot be loaded: OSError: not found"),
    ],
)
def test_what_a_metric_of_the_users_raises_is_a_sentence(
    body: str, message: str, lenet: Path, digits: dict[str, np.ndarray], tmp_path: Path, monkeypatch: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    module = f"raising_{abs(hash(body))}"
    (tmp_path / f"{module}.py").write_text(f"def bad(outputs, labels):\n{body}\n")
    np.savez("x.npz", data=digits["test"][:5])
    np.save("y.npy", np.array([1, 2, 3, 7, 7]))
    arguments = [str(lenet), "--data", "x.npz", "--labels", "y.npy", "--metric", f"{module}:bad"]
    assert run(cli, "bmnet-eval", arguments) != 0
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "./own.py:f"], "cannot be loaded"),
        (["--metric", "top1"], "needs --labels"),
        (["--metric", "cosine"], "name it with --float"),
        (["--metric", "nonsense"], "is no metric"),
        (["--metric", "no_such_module_x:f"], "cannot be loaded"),
        (["--labels", "LABELS", "--scored", "nothing"], "has no output 'nothing'"),
        (["--labels", "FEW"], "500 samples and 3 labels"),
        (["--labels", "LARGE"], "the model has 10 classes"),
        (["--labels", "LABELS", "--workers", "0"], "1 or more"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    arguments: list[str], message: str, lenet: Path, digits: dict[str, np.ndarray], tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", digits["test"])
    for name, labels in (("LABELS", digits["labels"]), ("FEW", digits["labels"][:3]), ("LARGE", digits["labels"] + 9)):
        np.save(tmp_path / f"{name}.npy", labels)
    given = [str(tmp_path / f"{word}.npy") if word in ("LABELS", "FEW", "LARGE") else word for word in arguments]
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    assert _said(str(lenet), "--data", str(tmp_path / "x.npy"), *given, wanted=message)


def _said(*arguments: str, wanted: str) -> bool:
    from contextlib import redirect_stderr
    from io import StringIO

    with redirect_stderr(StringIO()) as stream:
        status = run(cli, "bmnet-eval", arguments)
    text = stream.getvalue()
    return status in (1, 2) and wanted in text and "Traceback" not in text and len(text.splitlines()) == 1


def test_parts_of_equal_samples_have_equal_digests(digits: dict[str, np.ndarray]) -> None:
    rows = digits["test"][:4]
    assert Part({"data": rows}).digest == Part({"data": rows.copy()}).digest
    assert Part({"data": rows}).digest != Part({"data": rows[::-1]}).digest
    assert Part({"data": rows}).digest != Part({"data": rows}, np.zeros(4)).digest
