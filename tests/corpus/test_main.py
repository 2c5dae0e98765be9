"""The run over cases: what a case may take is its processor time, and which findings give exit status 1."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from . import __main__ as corpus
from .found import COST, WRONG


def _status(monkeypatch: pytest.MonkeyPatch, case: Callable[..., list[dict[str, Any]]], fail_on: str = WRONG) -> int:
    """Exit status of a run over one case that is this function."""
    monkeypatch.setattr(corpus, "findings", case)
    options = argparse.Namespace(seconds=60, jobs=1, timeout=1, family=None, chip=None, fail_on=fail_on, log=None)
    return corpus._run(iter([7]), options)


def _nothing(*_: object) -> list[dict[str, Any]]:
    return []


def test_a_case_that_computes_for_too_long_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def endless(*_: object) -> list[dict[str, Any]]:
        while True:
            pass

    assert _status(monkeypatch, endless) == 0
    assert "timeout:   seed 7: more than 1 s" in capsys.readouterr().out
    assert _status(monkeypatch, endless, "any") == 1


def test_a_case_that_waits_for_the_machine_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(*_: object) -> list[dict[str, Any]]:
        time.sleep(1.5)
        return []

    assert _status(monkeypatch, waits, "any") == 0


def test_a_case_that_dies_is_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _status(monkeypatch, lambda *_: os._exit(3)) == 1
    assert "died:   seed 7" in capsys.readouterr().out


@pytest.mark.parametrize("weight, fail_on, status", [(COST, WRONG, 0), (COST, "any", 1), (WRONG, WRONG, 1)])
def test_findings_give_the_status_that_is_asked_for(
    weight: str, fail_on: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _status(monkeypatch, lambda *_: [corpus._fault(7, "something", "of it", weight)], fail_on) == status
    assert _status(monkeypatch, _nothing, fail_on) == 0
