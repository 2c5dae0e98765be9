"""Thresholds are by the method with the least errors, but where another clearly loses fewer decisions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bmcompiler.evaluation.measures import Count
from bmcompiler.passes.quantization.choice import thresholds
from bmcompiler.passes.quantization.choice.measured import Measured


class Net:
    """Two methods: `near` with the least errors of an output, `kept` with an eighth more; decisions lost of 400."""

    def __init__(self, near: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lost, self.given = {"near": near, "kept": kept}, ""
        self.steps = range(4)
        monkeypatch.setattr(thresholds, "set_thresholds", lambda function, method: setattr(self, "given", method))

    def measured(self, method: str, steps: object) -> Measured:
        error = {"near": 0.16, "kept": 0.18}[method]
        return Measured(np.array([error**2]), {}, {"boxes": 1.0}, {"boxes": Count(400 - self.lost[method], 400)})

    def output_errors(self, method: str, steps: object) -> Any:
        return self.measured(method, steps).energies

    def taken(self) -> tuple[str, str]:
        function: Any = SimpleNamespace(ops=[])
        reference: Any = self
        candidates: Any = {"near": "near", "kept": "kept"}
        lower: Any = lambda: self.given  # noqa: E731
        said = thresholds.best_method(function, candidates, reference, lower, 0.02)
        return self.given, said


@pytest.mark.parametrize(
    ("near", "kept", "taken"),
    [
        (45, 25, "kept"),
        (45, 40, "near"),  # a few less
        (45, 60, "near"),
        (6, 1, "kept"),
        (6, 4, "near"),  # two of so few are chance
        (4, 0, "near"),  # all that should be kept are
    ],
)
def test_the_method_that_clearly_keeps_more_decisions_is_taken(
    near: int, kept: int, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, said = Net(near, kept, monkeypatch).taken()
    assert found == taken
    assert said.startswith(f"thresholds by {taken}: ") and ("of decisions" in said) == (taken == "kept")
