"""A bound is kept by measuring: what a model of errors expects too little of is corrected, and decisions count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nets import Net
from test_mode_choice import Counting, quantize

from bmcompiler.evaluation.measures import Count
from bmcompiler.ir import Module
from bmcompiler.ir.types import TensorType
from bmcompiler.passes.quantization.choice import summary
from bmcompiler.passes.quantization.choice.aim import Aim
from bmcompiler.passes.quantization.choice.measured import Goal, Measured, mean
from bmcompiler.passes.quantization.choice.search import Found, Search
from bmcompiler.passes.quantization.choice.solve import FLOAT, Border, Option, Problem
from bmcompiler.passes.quantization.choice.units import Unit
from bmcompiler.passes.quantization.choice.ways import Ways
from bmcompiler.passes.quantization.scale.scheme import Scales
from bmcompiler.report.accuracy import accuracy_section
from bmcompiler.text import at_least

LAYERS = 12


def problem() -> Problem:
    """Layers that each add an energy of 1 in low, 0.1 in high, for 10, 13 and in float 40 cycles."""
    n = Net()
    x = n.input(1, 4)
    for _ in range(LAYERS):
        x = n.relu(x)
    units = [Unit((op,)) for op in n.done(x).main.ops[:-1]]
    names = (("low", 10, 1e-4), ("high", 13, 1e-5), (FLOAT, 40, 0.0))
    options = {unit: [Option(name, cost, np.array([energy])) for name, cost, energy in names] for unit in units}
    return Problem(options, {unit: [] for unit in units}, {unit: Border(0, 0) for unit in units})


def search(measure: Callable[[Mapping[Unit, Option]], Measured], aim: Aim, whole: int | None = None) -> Search:
    known = problem()
    trials = SimpleNamespace(
        measure=measure, cycles=known.cycles, reference=SimpleNamespace(roots=["out"]), in_float={}, fixed={}
    )
    start: dict[Unit, Option] = {unit: each[0] for unit, each in known.options.items()}
    return Search(known, Found(start, measure(start)), trials, Ways(Scales.conversions, ()), aim, whole)  # type: ignore[arg-type]


def found_by(run: Search) -> Found:
    return run.decided(run.aimed())


@dataclass(frozen=True)
class OnSteps:
    """Decisions that only some samples show lost: one of a hundred of each layer in low, on steps beyond the second."""

    held_back: Sequence[int]
    cycles: Callable[[Mapping[Unit, Option]], int]
    reference: Any

    def measure(self, chosen: Mapping[Unit, Option]) -> Measured:
        lost = sum(option.name == "low" for option in chosen.values()) if len(self.held_back) > 2 else 0
        return Measured(np.array([1e-5]), {}, {}, {"out": Count(400 - lost, 400)})


def test_decisions_are_sought_on_all_samples_held_back_where_some_miss_what_is_lost() -> None:
    known = problem()
    start: dict[Unit, Option] = {unit: each[0] for unit, each in known.options.items()}
    trials = OnSteps(range(2), known.cycles, SimpleNamespace(roots=["out"]))
    run = Search(known, Found(start, trials.measure(start)), trials, Ways(Scales.conversions, ()), Aim(), None)  # type: ignore[arg-type]
    assert found_by(run).chosen == start
    everywhere, found = run.on(range(4), run.aimed())
    assert found.chosen == start and not found.measured.keeps and not everywhere.start.measured.keeps
    assert everywhere.decided(found).measured.keeps


def test_all_in_the_finest_form_is_tried_where_single_layers_do_not_tell_what_keeps_decisions() -> None:
    """Half of the layers are expected to gain nothing by it; together they do, and the host is not asked."""
    known = problem()
    units = [*known.options]
    for k, unit in enumerate(units):
        low, high, plain = known.options[unit]
        energies = low.energies if k % 2 else high.energies
        known.options[unit] = [low, replace(high, energies=energies), replace(plain, cycles=4000)]  # type: ignore[index]

    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        high = sum(option.name == "high" for option in chosen.values())
        kept = {LAYERS: 94.0, 0: 64.0}.get(high, 72.0) if FLOAT not in [o.name for o in chosen.values()] else 99.0
        return Measured(np.array([0.1]), {}, {}, {"out": Count(kept, 100)})

    trials = SimpleNamespace(
        measure=measure, cycles=known.cycles, reference=SimpleNamespace(roots=["out"]), in_float={}, fixed={}
    )
    start = {unit: each[0] for unit, each in known.options.items()}
    ways = Ways(Scales.conversions, ("low", "high"), on_host=True)
    found = Search(known, Found(start, measure(start)), trials, ways, Aim(), None).decided(Found(start, measure(start)))  # type: ignore[arg-type]
    assert {option.name for option in found.chosen.values()} == {"high"}
    assert found.measured.decisions == Count(94.0, 100)


def energy(chosen: Mapping[Unit, Option]) -> float:
    return float(sum(option.energies[0] for option in chosen.values()))


@pytest.mark.parametrize("underestimated", [1.0, 4.0, 50.0])
def test_the_bound_holds_where_the_expected_sum_is_too_small(underestimated: float) -> None:
    """And what is spent is near what a model would spend that knew: no other tried one is cheaper within the bound."""

    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        return Measured(np.array([underestimated * energy(chosen)]))

    bound = 0.03
    run = search(measure, Aim(error=bound))
    found = found_by(run)
    assert measure(run.start.chosen).worst > bound
    assert found.measured.worst <= bound
    least = min(13 * high + 40 * floats + 10 * (LAYERS - high - floats)
                for high in range(LAYERS + 1) for floats in range(LAYERS + 1 - high)
                if underestimated * (1e-4 * (LAYERS - high - floats) + 1e-5 * high) <= bound**2)  # fmt: skip
    assert run.problem.cycles(found.chosen) <= 1.35 * least


def test_what_is_asked_for_is_to_hold_of_other_samples_and_what_is_not_costs_nothing() -> None:
    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        return Measured(np.array([energy(chosen)]), larger=2.0)

    found = found_by(search(measure, Aim(error=0.03)))
    assert found.measured.worst <= found.measured.promised <= 0.03
    assert found.measured.promised == pytest.approx(2**0.5 * found.measured.worst)
    plain = found_by(search(lambda chosen: replace(measure(chosen), larger=1.0), Aim())).chosen
    default = found_by(search(measure, Aim())).chosen
    assert [option.name for option in default.values()] == [option.name for option in plain.values()]


def test_the_more_steps_differ_the_larger_errors_of_others_may_be() -> None:
    alike, apart = (mean([Measured(np.array([e]), {"out": e}, {"out": 1.0}) for e in each])
                    for each in ([1.0, 1.1, 0.9] * 4, [0.1, 2.5, 0.4] * 4))  # fmt: skip
    assert alike.worst == pytest.approx(apart.worst) == pytest.approx(alike.error("out"))
    assert 1 < alike.promised < 1.1 and 1.3 < apart.promised < 2
    assert mean([Measured(np.array([1.0]))]).promised == 1


@pytest.mark.parametrize(
    ("integers", "said"), [(0.035, "; at most 3.50% on others for 74% fewer cycles: max_error=3.5"), (0.1, "")]
)
def test_where_nothing_in_integers_is_within_the_bound_the_nearest_is_said(integers: float, said: str) -> None:
    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        floats = sum(option.name == FLOAT for option in chosen.values())
        return Measured(np.array([0.0 if floats == LAYERS else integers**2]))

    run = search(measure, Aim(error=0.03), whole=40 * LAYERS)
    found = found_by(run)
    assert found.measured.worst == 0
    assert summary._better(run, found) == said


def test_a_layer_in_integers_is_found_from_the_side_of_float() -> None:
    """Where any two ruin what one does not, the way from the cheapest assignment may end beyond it."""

    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        integers = sum(option.name != FLOAT for option in chosen.values())
        return Measured(np.array([(0.0, 1e-4, 0.2)[min(integers, 2)]]))

    run = search(measure, Aim(error=0.0101), whole=12 * LAYERS)
    options = {unit: [low, Option(FLOAT, 12, np.array([0.0]))] for unit, (low, *_) in run.problem.options.items()}
    near = replace(run, problem=Problem(options, run.problem.reads, run.problem.border))
    near.trials.cycles = near.problem.cycles  # type: ignore[method-assign]
    found = found_by(near)
    assert found.measured.worst == pytest.approx(0.01)
    assert near.problem.cycles(found.chosen) == 12 * LAYERS - 2


def test_an_error_of_the_whole_output_counts_where_clusters_are_near() -> None:
    """A softmax makes more of what is off before it than clusters show."""

    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        return Measured(np.array([energy(chosen)]), {"out": 25 * energy(chosen)}, {"out": 1.0})

    found = found_by(search(measure, Aim(error=0.05)))
    assert measure(search(measure, Aim()).start.chosen).worst < 0.05
    assert found.measured.error("out") <= 0.05


def flips(chosen: Mapping[Unit, Option]) -> Measured:
    """Errors that a norm does not mind, and of 1,000 decisions as many lost as they are large."""
    lost = 1000 * energy(chosen) ** 0.5
    return Measured(np.array([energy(chosen) / 100]), kept={"out": Count(1000 - round(lost), 1000)})


def test_by_default_decisions_are_kept_in_a_program_quicker_than_float() -> None:
    run = search(flips, Aim(), whole=40 * LAYERS)
    first, found = run.start.measured, found_by(run)
    assert first.worst < 0.02 and first.decisions.share < 0.97
    assert found.measured.decisions.share >= 0.99
    assert run.problem.cycles(found.chosen) < 40 * LAYERS


def test_decisions_may_cost_all_that_float_takes_where_integers_take_more_than_was_expected() -> None:
    """What the program of the cheapest assignment takes tells too little of one that is mostly float."""

    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        missing = max(10 - sum(option.name == FLOAT for option in chosen.values()), 0)
        return Measured(np.array([energy(chosen) / 100]), kept={"out": Count(1000 - 20 * missing, 1000)})

    def cycles(chosen: Mapping[Unit, Option]) -> int:
        return sum(option.cycles if option.name == FLOAT else option.cycles + 6 for option in chosen.values())

    whole = 42 * LAYERS
    run = search(measure, Aim(), whole=whole)
    first = run.problem.cycles(run.start.chosen) * whole / cycles(run.start.chosen)
    run.trials.cycles = cycles  # type: ignore[method-assign]
    found = found_by(run)
    assert found.measured.keeps and run.problem.cycles(found.chosen) > first
    assert cycles(found.chosen) < whole


@pytest.mark.parametrize(("share", "host"), [(0.4, True), (0.6, False)])
def test_the_host_keeps_decisions_where_integers_lose_more_than_they_keep(share: float, host: bool) -> None:
    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        floats = sum(option.name == FLOAT for option in chosen.values())
        kept = round(100 * (share + (1 - share) * floats / LAYERS))
        return Measured(np.array([energy(chosen) / 100]), kept={"out": Count(kept, 100)})

    run = search(measure, Aim())
    found = found_by(replace(run, ways=replace(run.ways, on_host=True, modes=("low", "high"))))
    assert any(option.name == FLOAT for option in found.chosen.values()) == found.measured.keeps == host


def test_decisions_that_cannot_be_kept_cost_nothing() -> None:
    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        return Measured(np.array([energy(chosen) / 100]), kept={"out": Count(900, 1000)})

    run = search(measure, Aim(), whole=40 * LAYERS)
    assert found_by(run).chosen == run.start.chosen


def test_what_an_output_needed_stays_while_another_is_brought_to_keep_its_decisions() -> None:
    """Every other layer is seen at each output; decisions of the second follow its errors slower than is expected."""
    known = problem()
    options = {
        unit: [replace(o, energies=o.energies[0] * np.eye(2)[number % 2]) for o in each]
        for number, (unit, each) in enumerate(known.options.items())
    }
    known = replace(known, options=options)

    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        energies = sum((option.energies for option in chosen.values()), np.zeros(2))
        lost = 100 * np.sqrt(energies / 3e-4), 100 * np.sqrt(np.sqrt(energies / 1e-4))
        kept = {name: Count(10_000 - round(float(each[k])), 10_000) for k, (name, each) in enumerate(zip("ab", lost))}
        return Measured(energies, kept=kept)

    trials = SimpleNamespace(measure=measure, cycles=known.cycles, reference=SimpleNamespace(roots=["a", "b"]))
    start: dict[Unit, Option] = {unit: each[0] for unit, each in known.options.items()}
    run = Search(known, Found(start, measure(start)), trials, Ways(Scales.conversions, ()), Aim(), None)  # type: ignore[arg-type]
    assert not run.start.measured.keeps and found_by(run).measured.keeps


def test_on_the_way_to_what_is_no_nonsense_an_exact_one_is_worth_a_quarter() -> None:
    """As where nothing is nonsense."""
    known = problem()
    first = {unit: each[0] for unit, each in known.options.items()}

    def measure(chosen: Mapping[Unit, Option]) -> Measured:
        floats = sum(option.name == FLOAT for option in chosen.values())
        return Measured(np.array([1.0 if floats < 2 else 0.1**2 if floats < 4 else 1e-8]))

    for price, error in ((40, 0.1), (12, 1e-4)):
        run = search(measure, Aim())
        options = {unit: [low, Option(FLOAT, price, np.array([0.0]))] for unit, (low, *_) in known.options.items()}
        dear = Search(Problem(options, known.reads, known.border), Found(first, measure(first)),
                      run.trials, run.ways, run.aim, None)  # fmt: skip
        assert found_by(dear).measured.worst == pytest.approx(error)


def test_nonsense_before_an_index_that_stays_is_worth_nothing() -> None:
    """A norm before argmax is nothing that users see: only errors count there; few are chance."""

    def kept(count: int, of: int) -> Callable[[Mapping[Unit, Option]], Measured]:
        return lambda chosen: Measured(np.array([2500 * energy(chosen)]), kept={"out": Count(count, of)})

    def cycles(run: Search) -> float:
        return run.problem.cycles(found_by(run).chosen) / run.problem.cycles(run.start.chosen)

    run, other, few = (search(kept(*counts), Aim()) for counts in ((400, 400), (200, 400), (4, 4)))
    assert run.start.measured.worst > 1 and cycles(run) <= 1.5
    for each in (other, few):
        assert found_by(each).measured.worst < 0.5 and cycles(each) > 2


def test_one_decision_of_few_is_chance() -> None:
    def kept(count: int, of: int) -> bool:
        return Measured(np.zeros(1), kept={"out": Count(count, of)}).keeps

    assert kept(12, 13) and not kept(11, 13)
    assert kept(495, 500) and not kept(494, 500)


def test_the_next_better_costs_more_and_is_much_better() -> None:
    run = search(lambda chosen: Measured(np.array([energy(chosen)])), Aim(cycles=1.05))
    found = found_by(run)
    other = run.next_better(found)
    assert other is not None
    assert run.problem.cycles(other.chosen) > run.problem.cycles(found.chosen)
    assert other.measured.worst < 0.7 * found.measured.worst


def test_the_next_better_is_sought_on_the_fewer_samples() -> None:
    """What is only told is not measured on all that are held back."""
    looked: list[int] = []

    @dataclass(frozen=True)
    class Watched:
        held_back: Sequence[int]
        cycles: Callable[[Mapping[Unit, Option]], int]
        reference: Any

        def measure(self, chosen: Mapping[Unit, Option]) -> Measured:
            looked.append(len(self.held_back))
            return Measured(np.array([energy(chosen)]))

    known = problem()
    start: dict[Unit, Option] = {unit: each[0] for unit, each in known.options.items()}
    trials = Watched(range(2), known.cycles, SimpleNamespace(roots=["out"]))
    run = Search(
        known, Found(start, trials.measure(start)), trials, Ways(Scales.conversions, ()), Aim(cycles=1.05), None
    )  # type: ignore[arg-type]
    everywhere, found = run.on(range(4), run.aimed())
    looked.clear()
    other = everywhere.next_better(found)
    assert other is not None and other.measured.worst < 0.7 * found.measured.worst
    assert {*looked} == {2}


def test_steps_add_up() -> None:
    one = Measured(np.array([1.0]), {"out": 1.0}, {"out": 4.0}, {"out": Count(1, 2)})
    two = Measured(np.array([3.0]), {"out": 0.0}, {"out": 0.0}, {"out": Count(3, 3)})
    both = mean([one, two])
    assert both.energies.tolist() == [2.0] and both.error("out") == 0.5 and both.decisions == Count(4, 5)
    assert Goal(["out"], decisions=True).over(both).tolist() == [1.0]


def classifier(seed: int = 5) -> Module:
    n = Net(seed)
    x = n.relu(n.conv(n.input(1, 3, 8, 8), n.w(8, 3, 3, 3), n.w(8)))
    return n.done(n.softmax(n.matmul(n.reshape(x, shape=(1, 288)), n.w(288, 5), n.w(5))))


def test_the_summary_says_decisions_and_what_the_next_better_costs() -> None:
    dear = Counting(low=100, high=140, asymmetric=150, float=1000)
    notes = quantize(classifier(), ",max_cycles=1.01", dear).notes
    (said,) = [note for note in notes if note.startswith("quantization modes")]
    assert "decisions kept" in said and "% more cycles: max_error=" in said


def test_samples_are_held_back_where_there_are_enough() -> None:
    import bmcompiler

    random = np.random.default_rng(2)
    assert classifier().main.arguments[0].type == TensorType((1, 3, 8, 8))
    for count, judged, unseen in ((32, 32, False), (64, 16, True), (66, 16, True)):
        data: dict[str, Any] = {"data": random.normal(0, 1, (count, 3, 8, 8)).astype(np.float32)}
        result = bmcompiler.compile_module(classifier(), target="bm1684", quantize="int8", data=data)
        assert result.accuracy is not None
        assert (result.accuracy.samples, result.accuracy.unseen) == (judged, unseen)
        (kept,) = result.accuracy.decisions
        assert kept.of == judged and (kept.least is None) == (not unseen)
        assert kept.least is None or 0.2 < kept.least < kept.kept / kept.of
        page = accuracy_section({"accuracy": asdict(result.accuracy)})
        assert ("held back" in str(result)) == ("held back" in page) == unseen
        assert ("of others)" in str(result)) == unseen
        assert at_least(kept.least) in str(result) and at_least(kept.least) in page


def test_all_that_are_held_back_judge_though_layers_are_looked_at_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import bmcompiler
    from bmcompiler.accuracy import check, statistics

    looked: list[int] = []
    add = statistics.LayerNumbers.add

    def watched(row: statistics.LayerNumbers, real: np.ndarray, found: np.ndarray) -> None:
        looked.append(id(row))
        add(row, real, found)

    monkeypatch.setattr(statistics.LayerNumbers, "add", watched)
    data: dict[str, Any] = {"data": np.random.default_rng(2).normal(0, 1, (64, 3, 8, 8)).astype(np.float32)}

    def compiled() -> Any:
        looked.clear()
        found = bmcompiler.compile_module(classifier(), target="bm1684", quantize="int8", data=data).accuracy
        assert found is not None
        return found

    whole, times = compiled(), len(looked)
    monkeypatch.setattr(check, "_PRODUCTS", 1)
    few = compiled()
    assert times == 16 * len(looked) and len({*looked}) == len(looked)
    assert (few.samples, few.decisions, few.outputs) == (whole.samples, whole.decisions, whole.outputs)
