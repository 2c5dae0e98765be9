"""Recipes of lane chips on the BM1684X: the commands compute what evaluation says, bit for bit, and rightly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from recipe_cases import CASES, Array, Case

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.cycles import CycleTable
from bmcompiler.backends.bm1684x.float_arithmetic import Bm1684xArithmetic
from bmcompiler.backends.bm1684x.instructions.operands import Command
from bmcompiler.backends.bm1684x.lane_commands import LaneCommandMaker
from bmcompiler.backends.bm1684x.recipe_tables import TableSpace, entries
from bmcompiler.backends.bm1684x.tile_cycles import TileCycles
from bmcompiler.backends.bm1684x.timing_profile import TimingProfile
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.lanes.facts import Range
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.recipes import Steps, activations, exponential, logic, powers, record, reductions
from bmcompiler.backends.lanes.tables import NORMAL_LIMIT, Table
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.errors import EncodingError
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import DT_FP32, FUNCTIONS, program_of, recording

SHAPE = (2, 70, 5, 9)
USABLE = CHIP.tile_bytes


class Maker(LaneCommandMaker):
    """Adds the commands on words to what is recorded."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def issue(self, command: Command, reads: Sequence[Range] = (), writes: Sequence[Range] = ()) -> None:
        self._recorder.add(command)


@pytest.fixture(scope="module")
def device() -> KernelDevice:
    return KernelDevice(1 << 22)


def recorded(recipe: Callable[..., Any], inputs: int, *arguments: Any, **named: Any) -> Steps:
    """The steps; nothing here asks for cycles."""
    timing: Any = None
    return record(CHIP, Bm1684xArithmetic(), timing, recipe, inputs, *arguments, **named)


def plane_bytes(shape: tuple[int, ...]) -> int:
    return shape[0] * CHIP.aligned((shape[0], shape[1], shape[2], shape[3]), 4)[0]


def on_chip(device: KernelDevice, steps: Steps, *arrays: Array) -> Array:
    """The result of the commands on tiles of the arrays' shape; reduced tiles are laid out behind them."""
    device.free_all()
    shape = arrays[0].shape
    result = steps.tile_shape(steps.steps[-1], shape)
    size = plane_bytes(shape)
    inputs = [i * size for i in range(len(arrays))]
    output = len(arrays) * size
    scratch = [output + (i + 1) * size for i in range(steps.registers + steps.small_registers)]
    assert not scratch or scratch[-1] + size <= USABLE
    with recording() as recorder:
        for place, array in zip(inputs, arrays):
            FUNCTIONS["tpu_gdma_cpy_S2L"](place, device.upload(array), shape, None, None, DT_FP32)
    wide, small = scratch[: steps.registers], scratch[steps.registers :]
    steps.emit(Maker(recorder), shape, inputs, output, wide, small)
    device.launch(program_of(recorder))
    return device.local(output, result, DT_FP32)


def samples(case: Case) -> NDArray[np.float32]:
    """Evenly spread values, both ends, and for wide ranges whole numbers and zeros."""
    count = math.prod(SHAPE)
    values = np.linspace(case.low, case.high, count).astype(np.float32)
    if case.low <= -10:
        values[5:15] = [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3]
    return values.reshape(SHAPE)


@pytest.mark.parametrize("name", CASES)
def test_commands_compute_what_evaluation_says(device: KernelDevice, name: str) -> None:
    case = CASES[name]
    steps, x = recorded(case.recipe, 1, *case.arguments), samples(case)
    found = steps.evaluate(x)
    np.testing.assert_array_equal(on_chip(device, steps, x).view(np.uint32), found.view(np.uint32))
    with np.errstate(all="ignore"):
        wanted = case.exact(x.astype(np.float64))
    fine = np.isfinite(wanted) & (abs(wanted) < 2.0**127)
    wanted = wanted[fine]
    assert (abs(found[fine] - wanted) <= case.relative * abs(wanted) + case.absolute).all()


SPECIAL = np.array([np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-40, 3e38, -3e38, 2**31, -(2**31), 1e-38], np.float32)


@pytest.mark.parametrize("name", CASES)
def test_special_numbers_agree_bit_for_bit(device: KernelDevice, name: str) -> None:
    case = CASES[name]
    steps, x = recorded(case.recipe, 1, *case.arguments), SPECIAL.reshape(1, 1, 1, -1)
    np.testing.assert_array_equal(on_chip(device, steps, x).view(np.uint32), steps.evaluate(x).view(np.uint32))


def test_gelu_is_what_it_nears_from_where_its_series_ends() -> None:
    """And never above 0 on the left, as the distribution is never below 0."""
    steps, x = recorded(activations.gelu, 1), np.linspace(NORMAL_LIMIT, 3e4, 4001, dtype=np.float32)
    np.testing.assert_array_equal(steps.evaluate(x), x)
    assert (steps.evaluate(-x) == 0).all()
    assert (steps.evaluate(np.linspace(-6, 0, 1 << 15, dtype=np.float32)) <= 0).all()


PASSES = {"gelu": 24, "sigmoid": 32, "swish": 34, "gelu_tanh": 41, "erf": 67}
"""Of f32, with two scratch planes (erf: four): a command that writes where it reads takes two."""


@pytest.mark.parametrize("name", PASSES)
def test_functions_take_few_passes(name: str) -> None:
    case, timing = CASES[name], TileCycles(CycleTable(TimingProfile()))
    steps = record(CHIP, Bm1684xArithmetic(), timing, case.recipe, 1, *case.arguments)
    tile = (1, CHIP.lanes, 4, CHIP.execution_units)
    assert steps.cycles(tile) <= 4 * PASSES[name]
    assert steps.registers <= (4 if name == "erf" else 2)


@pytest.mark.parametrize("recipe", [powers.power, powers.quotient, logic.greater_equal, logic.less, logic.equal])
def test_recipes_of_two_tiles(device: KernelDevice, recipe: Callable[..., Any]) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.uniform(0.1, 9, SHAPE).astype(np.float32) for _ in range(2))
    b[0, 0] = a[0, 0]
    steps = recorded(recipe, 2)
    np.testing.assert_array_equal(on_chip(device, steps, a, b), steps.evaluate(a, b))


REDUCED: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "mean": (reductions.mean, dict(count=45)),
    "softmax": (reductions.softmax, {}),
    "log_softmax": (reductions.log_softmax, {}),
    "lowest": (reductions.lowest, {}),
}


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("axes", [(2,), (2, 3)])
def test_reductions(device: KernelDevice, name: str, axes: tuple[int, ...]) -> None:
    recipe, named = REDUCED[name]
    x = np.random.default_rng(4).normal(size=SHAPE).astype(np.float32)
    steps = recorded(recipe, 1, axes=axes, **named)
    np.testing.assert_array_equal(on_chip(device, steps, x), steps.evaluate(x))


def test_tables_hold_what_their_commands_make(device: KernelDevice) -> None:
    for table in Table:
        recorder = Recorder()
        at = TableSpace(USABLE).place(table, recorder.add)
        device.launch(program_of(recorder))
        held = entries(table, 256)
        found = device.local(at, (1, 64, 1, len(held)), DT_FP32)
        assert len(held) >= 7 and (found[0, :, 0] == held).all()


def test_a_table_is_made_once() -> None:
    recorder = Recorder()
    space = TableSpace(USABLE)
    first = space.place(Table.POWERS_OF_E, recorder.add)
    count = len(recorder.commands)
    assert space.place(Table.POWERS_OF_E, recorder.add) == first and len(recorder.commands) == count > 0


def test_lookups_of_large_tiles_are_cut(device: KernelDevice) -> None:
    x = np.random.default_rng(5).uniform(-80, 80, (1, 66, 70, 60)).astype(np.float32)
    steps = recorded(exponential.exp, 1)
    np.testing.assert_array_equal(on_chip(device, steps, x), steps.evaluate(x))


def test_the_other_commands_on_words(device: KernelDevice) -> None:
    """Fill, copy, limit, weigh and transfer; a channel's weight repeats."""
    shape = (1, 64, 2, 8)
    recorder = Recorder()
    make = Maker(recorder)
    x, y, weights = Words(0, shape), Words(0x1000, shape), Words(0x2000, (1, 64, 1, 1))
    make.fill(x, 0x4000_0000)
    make.fill(weights, 0x4040_0000)
    make.weigh(y, x, weights, add=False)
    make.weigh(y, x, weights, add=True)
    make.limit(Unit.MIN, y, 0x4120_0000)
    make.copy(y, Words(0x3000, shape))
    make.transfer(Words(0x3000, shape), Words(0x4000, (1, 16, 1, 64), lane=7))
    make.combine(Unit.SHIFT, x, x, Immediate(1))
    device.launch(program_of(recorder))
    assert (device.local((7 << 18) + 0x4000, (1, 16, 1, 64), DT_FP32) == 10).all()
    assert (device.local(0, shape, DT_FP32).view(np.uint32) == 0x8000_0000).all()
    with pytest.raises(EncodingError, match="tables of programs"):
        make.series(y, x, 5, 4)
    with pytest.raises(EncodingError, match="tables of 64 entries"):
        make.lookup(y, x, Table.INTEGERS, 64)
