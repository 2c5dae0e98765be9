"""int8 keeps the tasks of real networks: scores of programs beside float32, as in `benchmarks/accuracy.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import bmcompiler
from bmcompiler.runtime.session import Session

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MAY_LOSE = {"bm1684": 0.01, "bm1880": 0.02}
"""Of the score of float32, which is 0 to 1."""
SAMPLES = 32
TASKS = (
    "mtcnn_pnet",
    "mtcnn_rnet",
    "mtcnn_onet",
    "ppocr_v2_cls",
    "ppocr_v4_det",
    "ppocr_v4_rec",
    "res10_ssd_face",
    "centerface",
    "blazeface_front",
    "yolox_chars",
)

pytestmark = [pytest.mark.slow, pytest.mark.sweep]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the networks with a task; the description of the tasks lies beside the checkout, or nowhere."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import tasks_of_networks

    if not tasks_of_networks.TASKS.exists():
        pytest.skip(f"no description of tasks at {tasks_of_networks.TASKS}: set TASKS")
    for name in ("skimage", "matplotlib", "cv2", "onnxruntime"):
        pytest.importorskip(name)
    yield tasks_of_networks
    sys.modules.pop("tasks_of_networks", None)


@pytest.mark.parametrize("target", MAY_LOSE)
@pytest.mark.parametrize("name", TASKS)
def test_int8_keeps_the_task(tasks: Any, name: str, target: str) -> None:
    net = tasks.networks()[name]
    if not net.there:
        pytest.skip(f"{name} is not fetched: run `make models`")
    wanted = tasks.reference(net, SAMPLES)["float"]
    data = tasks.calibration(net, SAMPLES)
    result = bmcompiler.compile(*net.files, target=target, quantize="int8", data=data, shapes=[net.shape])
    session = Session(result.model)
    (given,) = session.inputs
    found = net.metric(lambda x: list(session.run({given.name: x}).values()))
    assert found >= wanted - MAY_LOSE[target]
