"""Each question finds a fault that is planted for it, and holds without one."""

from __future__ import annotations

import itertools
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import bmcompiler
from bmcompiler.analysis.profile import Timing
from bmcompiler.result import Result
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.analysis import ProgramAnalysis

from . import costs, elsewhere, given, growth, identity, trial
from .blocks import Net, drawn_net
from .checks import CHECKS
from .elsewhere import Compilation
from .found import COST, NOTED, WRONG, outcome
from .trial import Trial

Patch = pytest.MonkeyPatch
_KEPT: dict[tuple[str, str], Trial] = {}


def _classifier(net: Net) -> list[str]:
    x = net.conv(net.conv(net.image(), 8), 8)
    return [net.dense(net.flat(net.mean(x)), 5)]


def _trial(chip: str = "bm1684", precision: str = "f32") -> Trial:
    """A fresh trial of a network that is drawn once."""
    key = chip, precision
    if key not in _KEPT:
        net = drawn_net(np.random.default_rng(0), ((12, 16),), (2,))
        net.exporter, net.act = "torch", "Relu"
        net.g.outputs = _classifier(net)
        data = {name: np.concatenate([value, value]) for name, value in net.g.inputs.items()}
        _KEPT[key] = Trial(net.g.model(), data, dict(net.g.inputs), chip, precision, 2)
        _KEPT[key].compiled()
    kept = _KEPT[key]
    return replace(kept, kept=dict(kept.kept))


def _found(check: str, asked: Trial) -> tuple[str, str] | None:
    finding = outcome(asked, check)
    return None if finding is None else (finding.kind, finding.weight)


@pytest.mark.parametrize("check", [name for name in CHECKS if "linear" not in name])
def test_a_sound_network_has_no_finding(check: str) -> None:
    """Or the question cannot be asked of it, for it takes less than 50 us."""
    assert (_found(check, _trial()) or ("not asked", ""))[0] == "not asked"


def test_a_bit_that_differs_is_found(monkeypatch: Patch) -> None:
    run = Session.run

    def wrong(session: Session, *args: Any, **more: Any) -> dict[str, np.ndarray]:
        return {name: np.nextafter(value, np.float32(9e9)) for name, value in run(session, *args, **more).items()}

    monkeypatch.setattr(Session, "run", wrong)
    assert _found("program = evaluate", _trial()) == ("differs", WRONG)
    assert _found("every program of a file", _trial())[0] == "refused WrongProgramError"  # type: ignore[index]


def test_a_larger_program_that_is_wrong_is_found(monkeypatch: Patch) -> None:
    """Also where the proof inside a compilation does not look."""
    run = Session.run

    def wrong(session: Session, given: Any, **more: Any) -> dict[str, np.ndarray]:
        shift = 1 if len(next(iter(given.values()))) == 4 else 0
        return {name: value + np.float32(shift) for name, value in run(session, given, **more).items()}

    def unproven(**more: Any) -> Result:
        result = anew(**more | {"check": "never"})
        return replace(result, checked=bmcompiler.proof.prove.Proof(1, False, 2, 0.0))

    asked = _trial()
    anew = asked.compiled_anew
    monkeypatch.setattr(asked, "compiled_anew", unproven)
    assert _found("every program of a file", asked) is None
    monkeypatch.setattr(Session, "run", wrong)
    assert _found("every program of a file", asked) == ("differs", WRONG)


@pytest.mark.parametrize("check, kind", [("same bytes", "bytes"), ("same bytes after others", "bytes after others")])
def test_bytes_that_depend_on_the_past_are_found(check: str, kind: str, monkeypatch: Patch) -> None:
    """A number that counts compilations stands for a cache."""
    number = itertools.count()
    written = trial.bytes_of

    monkeypatch.setattr(identity, "bytes_of", lambda result: written(result) + bytes([next(number)]))
    assert _found(check, _trial()) == (kind, WRONG)


def test_bytes_that_depend_on_the_process_are_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(identity, "digest", lambda content: elsewhere.digest(content + b"here"))
    assert _found("same bytes in another process", _trial()) == ("bytes in another process", WRONG)


def test_a_cliff_is_noted_and_silence_about_it_is_found(monkeypatch: Patch) -> None:
    """A layer that takes a million cycles more than it does."""
    as_it_is = ProgramAnalysis.timing

    def slowed(analysis: ProgramAnalysis) -> Timing:
        timing = as_it_is(analysis)
        slow = max(timing.layers, key=lambda layer: layer.cycles)
        layers = [replace(each, cycles=each.cycles + 10**6 * (each is slow)) for each in timing.layers]
        return replace(timing, layers=tuple(layers), cycles=timing.cycles + 10**6)

    assert _found("no cliffs", _trial()) is None
    monkeypatch.setattr(ProgramAnalysis, "timing", slowed)
    asked = _trial()
    layer, kind = next((layer.name, layer.kind) for layer in asked.timing.layers if layer.cycles > 10**6)
    assert [cliff[:2] for cliff in costs.cliffs(asked.compiled(), asked.timing)] == [(layer, kind)]
    assert _found("no cliffs", asked) == (f"cliff of {kind}", NOTED)
    assert _found("cliffs are said", asked) is None
    data = costs.report_data
    monkeypatch.setattr(costs, "report_data", lambda result: data(result) | {"cliffs": []})
    assert _found("cliffs are said", asked) == ("cliff unsaid", COST)


def test_ops_in_one_run_have_the_bytes_of_their_largest() -> None:
    """The DV700 names such a run after all of them; it is not said to be slow for want of bytes."""
    asked = _trial()
    names = list(dict.fromkeys(op.label for op in asked.compiled().module.main.ops if op.label))[:2]
    run = replace(max(asked.timing.layers, key=lambda layer: layer.cycles), name=", ".join(names), kind="conv+conv")
    slow = replace(run, compute_bound=0.0, cycles=10**6, compute=10**6, transfer=0)
    found = costs.cliffs(asked.compiled(), replace(asked.timing, layers=(slow,), cycles=10**6))
    assert [(layer, kind) for layer, kind, times, _ in found if times < 10**5] == [(slow.name, slow.kind)]


def test_a_row_without_a_bound_is_found(monkeypatch: Patch) -> None:
    data = costs.report_data

    def unbounded(result: Result) -> dict[str, Any]:
        found = data(result)
        max(found["layers"], key=lambda row: row["cycles"])["bound_alone"] = 0.0
        return found

    monkeypatch.setattr(costs, "report_data", unbounded)
    assert _found("every row has a bound", _trial()) == ("no bound", COST)


def _slowed(monkeypatch: Patch, factor: Callable[[Result], float]) -> None:
    """Programs take many times as long as they do."""
    timing_of = trial.timing_of

    def slowed(result: Result) -> Timing:
        found = timing_of(result)
        return replace(found, cycles=int(factor(result) * 1e6))

    for module in (trial, costs):
        monkeypatch.setattr(module, "timing_of", slowed)


def test_twice_the_batch_in_more_than_twice_the_time_is_found(monkeypatch: Patch) -> None:
    _slowed(monkeypatch, lambda result: 2.2 if result.model.stages()[0].inputs[0].shape[0] == 4 else 1)
    assert _found("twice the batch", _trial()) is None
    _slowed(monkeypatch, lambda result: 2.4 if result.model.stages()[0].inputs[0].shape[0] == 4 else 1)
    assert _found("twice the batch", _trial()) == ("twice the batch", COST)


def test_integers_slower_than_floats_are_found(monkeypatch: Patch) -> None:
    asked = _trial(chip="bm1684", precision="int8")
    _slowed(monkeypatch, lambda result: 1.5 if result.precision == "int8" else 1.6)
    assert _found("int8 not slower", asked) is None
    asked = _trial(chip="bm1684", precision="int8")
    _slowed(monkeypatch, lambda result: 1.5 if result.precision == "int8" else 1.4)
    assert _found("int8 not slower", asked) == ("int8 slower", COST)
    assert _found("int8 not slower", replace(asked, level=1)) == ("not asked", "not asked")


@pytest.mark.parametrize("check", ["linear in depth", "linear in pixels"])
def test_a_compilation_that_grows_with_the_square_is_found(check: str, monkeypatch: Patch) -> None:
    """Figures of a compiler that takes a second for 60 nodes, then 16 of them or 4."""

    def taken(seconds: float, peak: int) -> Callable[..., list[Compilation]]:
        one = Compilation("", 1.0, 100 << 20)
        return lambda *_, **__: [one, one, Compilation("", seconds, peak)]

    asked = _trial()
    convs = asked.model.graph
    assert sum(node.op_type == "Conv" for node in convs.node) == 2
    for seconds, peak, kind in ((4.5, 450 << 20, None), (16.0, 400 << 20, "time"), (4.0, 1600 << 20, "memory")):
        monkeypatch.setattr(growth, "compiled_elsewhere", taken(seconds, peak))
        assert _found(check, asked) == (kind and (f"compile {kind}", COST))


def test_a_machine_that_does_more_beside_it_is_no_finding(monkeypatch: Patch) -> None:
    """Rounds of 1 and 4 seconds in which one or the other takes longer than it needs: the least of each counts."""
    seconds = iter([(1.0, 9.0), (1.1, 8.0), (1.5, 4.4)])

    def taken(*_: Any, **__: Any) -> list[Compilation]:
        small, large = next(seconds)
        return [Compilation("", 3.0, 0), Compilation("", small, 0), Compilation("", large, 0)]

    monkeypatch.setattr(growth, "compiled_elsewhere", taken)
    assert _found("linear in depth", _trial()) is None


def test_a_compilation_that_hangs_elsewhere_costs_its_processor_time(monkeypatch: Patch) -> None:
    monkeypatch.setattr(elsewhere.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], -signal.SIGXCPU))
    assert _found("linear in depth", _trial()) == ("compile time", COST)


def test_compilations_elsewhere_say_what_they_take() -> None:
    asked = _trial()
    first, second = elsewhere.compiled_elsewhere(asked, [(asked.model, asked.data)] * 2, check="never")
    assert first.digest == second.digest == elsewhere.digest(trial.bytes_of(asked.compiled()))
    assert second.seconds > 0.001 and first.peak > 1 << 20


def test_the_most_memory_is_measured_though_it_was_given_back() -> None:
    before = elsewhere._memory(fresh=True)
    np.ones(400 << 20, np.uint8).sum()  # much more than a system takes back meanwhile of what is not used
    assert 300 << 20 < elsewhere._memory() - before < 440 << 20


def test_a_given_network_is_proven_and_its_faults_are_named(monkeypatch: Patch, tmp_path: Path) -> None:
    asked, mode = _trial(), ("bm1684", "f32", 0)
    path, run = tmp_path / "net.onnx", Session.run
    onnx.save(asked.model, path)
    assert given.answer(path, asked.data, None, mode).startswith("proven error ")
    assert given.answer(path, asked.data, [[1, 2]], mode).startswith("refused ")
    monkeypatch.setattr(given, "compared", lambda found, wanted, result: found[""])
    assert given.answer(path, asked.data, None, mode).startswith("traceback ")
    monkeypatch.setattr(Session, "run", lambda *args, **more: {k: v + 1 for k, v in run(*args, **more).items()})
    assert given.answer(path, asked.data, None, mode).startswith("differs ")
