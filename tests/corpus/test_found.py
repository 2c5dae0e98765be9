"""What the corpus found stays mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import checks, found
from .cases import drawn
from .shrink import Sample
from .trial import CheckError, Trial


def cases() -> Iterator[object]:
    """What was found; a case whose facts say what it `waits` for is known to fail still."""
    for path in sorted(found.FOUND.glob("*.onnx")):
        waits = json.loads(path.with_suffix(".json").read_text(encoding="utf-8")).get("waits")
        marks = [pytest.mark.xfail(strict=True, reason=waits)] if waits else []
        yield pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", list(cases()))
def test_found_stays_mended(path: Path) -> None:
    finding = found.again(path)
    assert finding is None, f"{finding.kind}: {finding.text}"


def test_a_written_failure_fails_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that no pooling passes stands for a fault of the compiler."""

    def no_pooling(trial: Trial) -> None:
        if any(node.op_type == "MaxPool" for node in trial.model.graph.node):
            raise CheckError("pooled", "there is a pooling")

    monkeypatch.setitem(checks.CHECKS, "no pooling", checks.Check(no_pooling, 1))
    monkeypatch.setattr(found, "FOUND", tmp_path)
    case, mode = drawn(3, "unet"), ("bm1684", "f32", 2)
    sample = Sample(case.model, case.data)
    finding = found.asked(sample, mode, "no pooling")
    assert finding is not None and finding.kind == "pooled"
    small = found.smallest(sample, mode, "no pooling", finding.kind)
    path = found.write(small, mode, "no pooling", finding, case.seed)
    assert len(small.model.graph.node) == 1
    assert found.again(path) == finding
