"""Float or integers by what whole programs take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from nets import Net

import bmcompiler
from bmcompiler.analysis.profile import Timing, analysis_of
from bmcompiler.analysis.trial import Trial
from bmcompiler.errors import UsageError
from bmcompiler.evaluation.measures import Count
from bmcompiler.ir import Module
from bmcompiler.numeric.arrays import Doubles
from bmcompiler.passes.quantization.choice.aim import Aim
from bmcompiler.passes.quantization.choice.cut import cheapest
from bmcompiler.passes.quantization.choice.measured import Measured
from bmcompiler.passes.quantization.choice.programs import unit_cycles
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.passes.quantization.choice.search import Found, Search
from bmcompiler.passes.quantization.choice.solve import FLOAT, Border, Option, Problem, eased, solve
from bmcompiler.passes.quantization.choice.summary import Choice
from bmcompiler.passes.quantization.choice.trials import Chosen, Trials
from bmcompiler.passes.quantization.choice.units import Unit, units
from bmcompiler.passes.quantization.choice.ways import Ways
from bmcompiler.passes.quantization.scale.scheme import Scales
from bmcompiler.passmanager import PassContext, Pipeline, run_pipeline
from bmcompiler.target import find_target

NOTHING = np.zeros(1)


def chain(seed: int) -> Module:
    """Branches that meet again: what reads a value may be of either kind."""
    n = Net(seed)
    a = n.conv(n.input(1, 4, 8, 8), n.w(4, 4, 1, 1))
    b, c = n.conv(a, n.w(4, 4, 1, 1)), n.conv(a, n.w(4, 4, 1, 1))
    d = n.add(b, c)
    return n.done(n.conv(n.add(d, a), n.w(4, 4, 1, 1)), n.sigmoid(d))


def problem(seed: int) -> Problem:
    """Random costs for all units of a net, a few without integers, a few without float."""
    rng = np.random.default_rng(seed)
    parts = units(chain(seed).main, ())
    options = {}
    for unit in parts:
        known = [Option(name, int(rng.integers(1, 100)), NOTHING) for name in (FLOAT, "low", "high")]
        options[unit] = known[:1] if rng.random() < 0.15 else known[1:] if rng.random() < 0.15 else known
    made = {value: unit for unit in parts for value in unit.results}
    reads = {unit: [made[v] for v in unit.operands if v in made] for unit in parts}
    return Problem(options, reads, {unit: Border(*map(int, rng.integers(0, 60, 2))) for unit in parts})


@pytest.mark.parametrize("seed", range(25))
def test_no_assignment_is_cheaper_than_the_cut(seed: int) -> None:
    known = problem(seed)
    all_of_them = (dict(zip(known.options, each)) for each in product(*known.options.values()))
    assert known.cycles(cheapest(known)) == min(map(known.cycles, all_of_them))


@pytest.mark.parametrize("seed", range(25))
def test_what_bounds_do_not_need_is_spared(seed: int) -> None:
    """Two clusters: one whose bound is between all and nothing, one without a bound, which gets no worse."""
    known, rng = problem(seed), np.random.default_rng(seed)
    options = {
        unit: [
            replace(o, energies=rng.uniform(0.1, 1, 2) * {FLOAT: 0.0, "low": 1.0, "high": 0.1}[o.name]) for o in each
        ]
        for unit, each in known.options.items()
    }
    known = replace(known, options=options)
    start = known.integers()
    bounds = np.array([0.3 * energies(start)[0], np.inf])
    before = solve(known, start, bounds)
    after = eased(known, before, bounds)
    assert (energies(after) <= np.maximum(np.where(np.isinf(bounds), 0, bounds), energies(before)) + 1e-12).all()
    assert known.cycles(after) <= known.cycles(before)
    for unit, each in options.items():
        for option in each:
            other = {**after, unit: option}
            fits = (energies(other) <= np.where(np.isinf(bounds), energies(after), bounds)).all()
            assert not fits or known.cycles(other) >= known.cycles(after)


def energies(chosen: Mapping[Unit, Option]) -> Doubles:
    return sum((option.energies for option in chosen.values()), np.zeros(2))


def test_an_integer_layer_alone_in_float_goes_where_it_only_converts() -> None:
    """Between two that became float for their errors: it was the cheapest as long as these were integers."""
    net = Net(1)
    x = net.input(1, 4, 8, 8)
    for _ in range(3):
        x = net.conv(x, net.w(4, 4, 1, 1))
    first, middle, last = parts = units(net.done(x).main, ())
    wrong = {first: 1.0, middle: 0.01, last: 1.0}
    options = {unit: [Option(FLOAT, 30, NOTHING), Option("low", 10, np.array([wrong[unit]]))] for unit in parts}
    known = Problem(options, {first: [], middle: [first], last: [middle]}, {unit: Border(20, 20) for unit in parts})
    bounds = np.array([0.1])
    found = solve(known, known.integers(), bounds)
    assert [found[unit].name for unit in parts] == [FLOAT, "low", FLOAT]
    assert [option.name for option in eased(known, found, bounds).values()] == [FLOAT] * 3


def small_net() -> Module:
    """Integers pay for the convolutions in the middle, hardly for what is around them."""
    n = Net(5)
    x = n.relu(n.conv(n.input(1, 3, 32, 32), n.w(32, 3, 3, 3), n.w(32)))
    for _ in range(3):
        x = n.relu(n.conv(x, n.w(32, 32, 3, 3), n.w(32), pads=(1, 1, 1, 1)))
    return n.done(n.softmax(n.reduce(x, method="mean", axes=(2, 3), keepdims=False)))


DATA = {"data": np.random.default_rng(1).normal(0, 1, (8, 3, 32, 32)).astype(np.float32)}


def cycles(
    module: Module, quantize: str, chip: str = "bm1684", data: dict[str, np.ndarray] = DATA, **options: float
) -> int:
    samples = data if quantize == "int8" else None
    result = bmcompiler.compile_module(module, target=chip, quantize=quantize, data=samples, **options)
    timing = analysis_of(chip, result.model)
    assert timing is not None
    return timing.timing().cycles


def classifier(batch: int) -> Module:
    """A product of flattened maps, which a later pass makes a convolution where its mode is low only."""
    n = Net(7)
    x = n.relu(n.conv(n.input(batch, 3, 24, 24), n.w(16, 3, 3, 3), n.w(16), pads=(1, 1, 1, 1)))
    x = n.relu(n.matmul(n.reshape(x, shape=(batch, 9216)), n.w(9216, 64), n.w(64)))
    return n.done(n.softmax(n.matmul(x, n.w(64, 10))))


def test_what_one_mode_takes_says_nothing_of_one_that_was_seen() -> None:
    """Twice the images took 6 times the cycles: of a mode in another form the choice took float to be quicker."""
    data = {"data": np.random.default_rng(3).normal(0, 1, (16, 3, 24, 24)).astype(np.float32)}
    assert cycles(classifier(16), "int8", data=data) < 2.3 * cycles(classifier(8), "int8", data=data)


def test_float_is_not_timed_where_integers_are_bound_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[bool] = []
    timing = Trial.timing

    def noted(trial: Trial, module: Module, behind: str) -> Timing | None:
        timed.append(any(op.short_name == "matmul" and op.operands[0].type.is_float for op in module.main.ops))
        return timing(trial, module, behind)

    monkeypatch.setattr(Trial, "timing", noted)
    heavy = Net(4)
    x = heavy.input(1, 2048)
    module = heavy.done(heavy.matmul(heavy.matmul(x, heavy.w(2048, 2048)), heavy.w(2048, 2048)))
    data = {"data": np.random.default_rng(2).normal(0, 1, (8, 2048)).astype(np.float32)}
    for max_error, wanted in ((50.0, [False]), (0.1, [False, True])):  # percent: of float is asked what accuracy takes
        timed.clear()
        bmcompiler.compile_module(module, target="bm1684x", quantize="int8", data=data, max_error=max_error)
        assert timed[:2] == wanted


@pytest.mark.parametrize("level", (0, 1, 2))
@pytest.mark.parametrize("chip, floats", [("bm1684", ("f32",)), ("bm1684x", ("f32", "f16"))])
def test_no_program_is_slower_than_the_float_one(
    chip: str, floats: tuple[str, ...], level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is timed, as what the passes behind quantize make of a net of which nothing became integers."""
    known: dict[bool, list[Timing | None]] = {True: [], False: []}
    timing = Trial.timing

    def noted(trial: Trial, module: Module, behind: str) -> Timing | None:
        has_integers = any(value.type.quant is not None for op in module.main.ops for value in op.results)
        known[has_integers].append(timing(trial, module, behind))
        return known[has_integers][-1]

    monkeypatch.setattr(Trial, "timing", noted)
    n = Net(3)
    x = n.add(n.conv(n.input(1, 3, 20, 20), n.w(6, 3, 3, 3)), n.w(1, 6, 1, 1))
    x = n.conv(n.mul(x, n.sigmoid(x)), n.w(10, 6, 3, 3), strides=(2, 2))
    module = n.done(n.softmax(n.reduce(x, method="mean", axes=(2, 3), keepdims=False)))
    samples = {"data": DATA["data"][:, :, :20, :20]}
    taken = cycles(module, "int8", chip=chip, data=samples, opt=level)
    assert known[True] and known[False] and None not in (*known[True], *known[False])
    for precision in floats:
        assert taken <= cycles(module, precision, chip=chip, opt=level)


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize(
    "left, right", [((8, 16, 16), (8, 16, 16)), ((64, 4, 8), (64, 8, 4)), ((5, 1551, 2), (5, 2, 2))]
)
def test_small_products_of_what_a_net_computes_are_float_where_that_is_quicker(
    chip: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    """A net without weights has no modes to choose, and yet two ways."""
    rng = np.random.default_rng(6)
    shapes = {"data": left, "other": right}
    n = Net(6)
    module = n.done(n.matmul(*(n.input(*shape, name=name) for name, shape in shapes.items())))
    data = {name: rng.normal(0, 1, (4 * shape[0], *shape[1:])).astype(np.float32) for name, shape in shapes.items()}
    assert cycles(module, "int8", chip=chip, data=data) <= cycles(module, "f32", chip=chip)


def test_a_trial_that_cannot_follow_the_passes_before_it_is_an_error() -> None:
    """It would look like a net that cannot be timed, and nothing would be compared with it."""
    target = find_target("bm1684")
    trial = Trial(target, Pipeline.parse(target.pipeline("int8", 2)), 2)
    module = small_net()
    run_pipeline(module, "calibrate", PassContext(target, data=DATA))
    with pytest.raises(UsageError, match="the net is calibrated"):
        trial.timing(module, "quantize")


def test_integers_are_taken_where_they_are_quicker() -> None:
    assert cycles(small_net(), "int8") < 0.75 * cycles(small_net(), "f32")


def test_where_nothing_may_be_spent_no_consequences_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("measured")

    for name in ("consequences", "own_errors"):
        monkeypatch.setattr(Reference, name, forbidden)
    assert cycles(small_net(), "int8", max_cycles=1.0) < 0.75 * cycles(small_net(), "f32")


def test_siblings_that_are_one_layer_of_the_program_share_its_cycles() -> None:
    """Convolutions of one input become one in float, which must not look as if one of them cost nothing."""
    n = Net(7)
    x = n.relu(n.conv(n.input(1, 16, 40, 40), n.w(48, 16, 1, 1)))
    made = [n.conv(x, n.w(count, 48, 3, 3), pads=(1, 1, 1, 1)) for count in (24, 20)]
    for number, value in enumerate(made):
        assert value.op is not None
        value.op.location = (f"conv{number}",)
    module = n.done(*made)
    result = bmcompiler.compile_module(module, target="bm1684", quantize="f32")
    timing = analysis_of("bm1684", result.model)
    assert timing is not None and sum(op.short_name == "conv" for op in result.module.main.ops) == 2
    parts = [unit for unit in units(module.main, ()) if unit.head.label in ("conv0", "conv1")]
    seen = unit_cycles(timing.timing(), {unit: {unit.head.label: 100} for unit in parts})
    joined = next(layer for layer in timing.timing().layers if layer.name == "conv0+conv1")
    assert len(parts) == 2 and all(seen[unit] >= joined.cycles // 2 > 1000 for unit in parts)


@pytest.mark.parametrize(("share", "least", "wanted"), [(0.74, 500, 740), (0.74, 900, 1000), (1.0, 500, 1000)])
def test_accuracy_may_cost_a_share_of_float_or_all_of_it_where_integers_take_more(
    share: float, least: int, wanted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, limits = problem(0), list[float]()
    start = Found({unit: each[0] for unit, each in known.options.items()}, Measured(NOTHING))
    trials = SimpleNamespace(cycles=lambda chosen: None)
    ways = Ways(Scales.conversions, (), timed=True, share=share)
    monkeypatch.setattr(Problem, "cycles", lambda self, chosen: least)
    monkeypatch.setattr(Search, "_within", lambda self, limit: (limits.append(limit), start)[1])
    Search(known, start, trials, ways, Aim(), 1000).aimed()  # type: ignore[arg-type]
    assert limits == [wanted]


def told(kept: float, cycles: int, error: float = 0.2) -> Choice:
    """A choice that keeps so many of 100 decisions."""
    return Choice(measured=Measured(np.array([error**2]), kept={"y": Count(kept, 100)}), cycles=cycles)


def test_of_two_choices_decisions_count_and_then_cycles() -> None:
    slow, quick, lossy, nonsense = told(99, 10), told(99.5, 5), told(90, 1), told(100, 1, error=0.9)
    assert slow.or_better(quick) is quick and quick.or_better(slow) is quick
    assert slow.or_better(lossy) is slow and lossy.or_better(slow) is slow
    assert slow.or_better(nonsense) is slow
    assert lossy.misses and not slow.misses and replace(slow, dear=True).misses


def test_a_choice_stays_where_another_could_only_be_quicker_and_is_not() -> None:
    """Whatever `or_better` would say of the other one: what it keeps is not known when it is given up."""
    few, many = told(98.8, 10), told(95, 10)
    assert few.stays(10) and few.stays(11) and not few.stays(9)
    assert not many.stays(11), "it loses so many decisions that others may be better by these"
    assert few.stays(None) and replace(few, cycles=None).stays(9) and replace(few, measured=None).stays(9)
    ours = [replace(told(kept, 10), dear=dear) for kept in np.linspace(95, 100, 21) for dear in (False, True)]
    others = [
        told(kept, cycles, error) for kept in (0, 97, 98.8, 99, 100) for cycles in (9, 10, 11) for error in (0, 0.3)
    ]
    for mine in ours:
        for other in others:
            assert mine.or_better(other) is mine or not mine.stays(other.cycles)


def test_a_second_choice_that_cannot_be_better_ends_at_its_cheapest_program(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, asked = list[int](), list[int | None]()
    real = Trials.measure

    def counted(self: Trials, chosen: Chosen) -> Measured:
        measured[-1] += 1
        return real(self, chosen)

    def stays(self: Choice, least: int | None) -> bool:
        asked.append(least)
        measured.append(0)
        return len(asked) == 1

    monkeypatch.setattr(Trials, "measure", counted)
    monkeypatch.setattr(Choice, "misses", property(lambda self: True))
    monkeypatch.setattr(Choice, "stays", stays)
    for _ in range(2):
        measured.append(0)
        cycles(small_net(), "int8")
    (first, ended), (again, whole) = measured[:2], measured[2:]
    assert first == again > 0 == ended < whole and len(asked) == 2 and None not in asked
