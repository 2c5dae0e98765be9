"""The choice of modes by several processes is that of one."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from nets import Net

import bmcompiler
from bmcompiler.files.carried import Carried
from bmcompiler.ir import Module
from bmcompiler.parallel import open_pool
from bmcompiler.parallel.task import InlinePool, P, Pool, R, Task
from bmcompiler.passes.quantization.choice.clusters import Clusters
from bmcompiler.passes.quantization.choice.tasks import RunStep, Weigh, values_of, watched

SAMPLES = {"data": np.random.default_rng(0).normal(size=(8, 4, 12, 12)).astype(np.float32)}


def net() -> Module:
    n = Net(3)
    x = n.relu(n.conv(n.input(1, 4, 12, 12), n.w(16, 4, 3, 3), n.w(16)))
    return n.done(n.conv(n.add(x, n.conv(x, n.w(16, 16, 1, 1))), n.w(8, 16, 3, 3)))


class Named(InlinePool):
    """Keeps the kinds of tasks it was given, and sends each the way it goes to another process."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()

    def run(self, task: Task[object, P, R], parts: Iterable[tuple[int, P]]) -> Iterator[tuple[int, R]]:
        self.kinds.add(type(task).__name__)
        yield from super().run(pickle.loads(pickle.dumps(task)), parts)


def compiled(folder: Path, pool: Pool | None) -> bytes:
    module = net()
    data = {module.main.input_names[0]: SAMPLES["data"]}
    (folder / "modes").unlink(missing_ok=True)
    found = bmcompiler.compile_module(
        module, target="bm1684", quantize="int8", data=data, quant_table=folder / "modes", pool=pool
    )
    found.save(folder / "net.bmodel")
    return (folder / "net.bmodel").read_bytes()


@pytest.mark.slow
def test_two_processes_make_the_same_program(tmp_path: Path) -> None:
    with open_pool(2) as pool:
        assert compiled(tmp_path, pool) == compiled(tmp_path, None)


def test_calibration_measurement_and_weighing_are_given_to_the_pool_and_can_be_sent(tmp_path: Path) -> None:
    pool = Named()
    assert compiled(tmp_path, pool) == compiled(tmp_path, None)
    assert pool.kinds == {"CountMagnitudes", "Weigh", "RunStep"}


def test_an_error_weighs_what_it_changes_in_the_outputs() -> None:
    module = net()
    step = {module.main.input_names[0]: SAMPLES["data"][:1]}
    (name,) = watched(module.main)
    exact = bmcompiler.interpreter.run_module(module, step)[module.main.output_names[0]]
    groups = Clusters([{name: exact}])
    last = next(n for n, op in reversed(list(enumerate(module.main.ops))) if op.results)
    task = Weigh(Carried(module), groups, [step])
    energies, (own,) = task((0, {last: np.full(exact.shape, 0.5, np.float32)}))
    assert energies == pytest.approx(groups.energies({name: exact + np.float32(0.5)}, {name: exact}))
    assert own == pytest.approx(float(np.square(exact, dtype=np.float64).sum()))


def test_a_step_gives_the_values_that_are_asked_for() -> None:
    module = net()
    step = {module.main.input_names[0]: SAMPLES["data"][:1]}
    place = values_of(module.main).index(module.main.returned[0])
    (found,) = RunStep(Carried(module), [place], [True])(step)
    assert (found == bmcompiler.interpreter.run_module(module, step)[module.main.output_names[0]]).all()
