"""A choice of modes takes work in proportion to the net: ops evaluated, by the number of units."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from nets import Net, random_inputs

from bmcompiler.ir import Module
from bmcompiler.passes.quantization.choice import reference, tasks
from bmcompiler.passes.quantization.choice.clusters import looked_at
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.passes.quantization.choice.tasks import values_of
from bmcompiler.passes.quantization.choice.units import units


def chain(layers: int) -> Module:
    """Convolutions that keep the size of what they read."""
    n = Net(3)
    x = n.input(1, 8, 6, 6)
    for _ in range(layers):
        x = n.conv(x, n.constant(n.random.normal(0, 8**-0.5, (8, 8, 1, 1))))
    return n.done(x)


def weighed(module: Module) -> np.ndarray:
    """What a small error in each unit does to the output, (units,)."""
    random = np.random.default_rng(0)
    parts = units(module.main, set(module.main.ops))
    errors = {unit: [random.normal(0, 1e-3, unit.results[0].shape).astype(np.float32)] for unit in parts}
    found = Reference(module, module.main, [random_inputs(module)]).consequences(errors, [0])
    return np.array([found[unit].sum() for unit in parts])


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The ops that weighing evaluates."""
    seen: list[Any] = []
    plain = tasks.evaluate_op
    monkeypatch.setattr(tasks, "evaluate_op", lambda op, arrays: (seen.append(op), plain(op, arrays))[1])
    return seen


@pytest.mark.parametrize("most", [8, 1000])
def test_twice_the_units_are_twice_the_work_once_there_are_many(
    monkeypatch: pytest.MonkeyPatch, evaluated: list[Any], most: int
) -> None:
    monkeypatch.setattr(reference, "_MOST", most)
    work = []
    for layers in (16, 32, 64, 128):
        evaluated.clear()
        weighed(chain(layers))
        work.append(len(evaluated))
    growth = [after / before for before, after in pairwise(work)]
    assert max(growth) < 2.4 if most == 8 else min(growth) > 3.5


def test_units_that_are_disturbed_together_share_what_comes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = weighed(chain(60))
    monkeypatch.setattr(reference, "_MOST", 15)
    together = weighed(chain(60))
    assert len(alone) == len(together) == 60
    np.testing.assert_allclose(together.sum(), alone.sum(), rtol=0.25)
    assert np.median(np.abs(np.log(together / alone))) < np.log(1.5)


def test_large_nets_disturb_fewer_places(monkeypatch: pytest.MonkeyPatch, evaluated: list[Any]) -> None:
    weighed(chain(64))
    each = len(evaluated)
    evaluated.clear()
    monkeypatch.setattr(reference, "_PRODUCTS", 1)
    weighed(chain(64))
    assert len(evaluated) < each / 3


@pytest.mark.parametrize("shape", [(1, 4, 1024, 2048), (1, 1080, 1920, 3), (1, 2000, 4000), (5_000_000,)])
def test_of_large_outputs_all_channels_and_all_phases_of_places_are_looked_at(shape: tuple[int, ...]) -> None:
    places = np.indices(shape, np.int16 if max(shape) < 1 << 15 else np.int32)
    seen = [looked_at(axis) for axis in places]
    assert seen[0].size <= 1 << 20
    for axis, size in zip(seen, shape):
        kept = np.unique(axis)
        assert len(kept) == size if size < 256 else {*kept % 4} == {0, 1, 2, 3}


def test_small_outputs_are_looked_at_whole() -> None:
    array = np.zeros((1, 3, 300, 300), np.float32)
    assert looked_at(array) is array


def unchanged(module: Module) -> Any:
    """The float net as if it were an integer one."""

    class Same:
        new, ints, reals = module.main, {}, dict(zip(values_of(module.main), values_of(module.main)))

    Same.module = module  # type: ignore[attr-defined]
    return Same


@pytest.mark.parametrize("kept", [1 << 26, 1 << 20])
def test_decisions_are_told_by_whole_outputs_as_far_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """And errors by parts of them, in the float net and in an integer one."""
    monkeypatch.setattr(tasks, "_WHOLE", kept)
    n = Net(3)
    module = n.done(n.conv(n.input(1, 1, 1030, 1030), n.w(2, 1, 1, 1)))
    (value,), (name,) = module.main.returned, module.main.output_names
    net = Reference(module, module.main, [random_inputs(module)])
    whole, part = value.type.shape, looked_at(np.zeros(value.type.shape)).shape
    wanted = net.wanted[0][name]
    assert wanted.shape == (whole if kept > value.type.size else part) and whole != part
    assert net.outputs[0][name].shape == part
    same = net.measured(unchanged(module), [0])
    assert same.worst == 0 and same.signal[name] == pytest.approx(np.square(wanted, dtype=np.float64).sum())
