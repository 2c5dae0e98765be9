"""The planner's cycles of a tile are those of the timing model for the commands that compute it, for every kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bm1684_nets import BM1684, FULL, Net
from cycle_nets import BYTES, FLOATS, Make
from hypothesis import example, given, settings
from hypothesis import strategies as st
from int_samples import Sums, sums
from planned_cycles import check, computations, kernels_met, taken, tile_kernels

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.kernels import MatmulKernel
from bmcompiler.backends.bm1684.packed import int_short
from bmcompiler.backends.bm1684.row_products import RowMatmulKernel
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.backends.bm1684.timing_profile import SILICON, TimingProfile
from bmcompiler.backends.lanes.recipes.int_numbers import Ending, Numbers, find_numbers
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.ir import TensorType, Value
from bmcompiler.runtime.simulator.bm1684.analysis import analyze

SHAPES = st.tuples(st.integers(1, 5), st.integers(2, 130), st.integers(3, 20), st.integers(3, 30))
LANES = st.sampled_from([FULL, FULL, 16384])


def compare(make: Make, shape: tuple[int, ...], dtype: str, lanes: int, level: int, profile: str) -> None:
    net = Net([shape], 0, dtype)
    made = make(net, net.inputs[0])
    module = net.module([made] if isinstance(made, Value) else list(made))
    chip = BM1684.planner(TimingProfile.NAMED[profile])
    with chip.local_memory(lanes), computations() as found:
        chip.target.compile([module], level)
    check(found, chip.target.profile)


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@pytest.mark.parametrize("name", FLOATS)
@given(shape=SHAPES, lanes=LANES, level=st.sampled_from([0, 2]))
@settings(max_examples=4, deadline=None)
def test_floats(name: str, profile: str, shape: tuple[int, ...], lanes: int, level: int) -> None:
    compare(FLOATS[name], shape, "f32", lanes, level, profile)


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@pytest.mark.parametrize("name", BYTES)
@given(shape=SHAPES, lanes=LANES, level=st.sampled_from([0, 2]))
@settings(max_examples=4, deadline=None)
def test_bytes(name: str, profile: str, shape: tuple[int, ...], lanes: int, level: int) -> None:
    compare(BYTES[name], shape, "i8", lanes, level, profile)


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@given(sums(), SHAPES, st.integers(1, 3), LANES, st.sampled_from([0, 2]))
@settings(max_examples=25, deadline=None)
def test_convolutions_of_bytes(
    profile: str, case: Sums, shape: tuple[int, ...], kernel: int, lanes: int, level: int
) -> None:
    def make(net: Net, x: Value) -> Value:
        weight, out = net.integers(case.weight, 70, x.shape[1], kernel, kernel), [s - kernel + 1 for s in x.shape[2:]]
        bias = case.constant_bias(net, 70)
        factors = case.factors(net, 70)
        return net.b.conv(x, weight, bias, factors, out=case.out((x.shape[0], 70, *out)), **case.modes)

    compare(make, shape, case.data, lanes, level, profile)


@pytest.mark.parametrize("form", ["none", "clipped"])
@pytest.mark.parametrize("mode", ["high", "asymmetric"])
@given(shape=SHAPES, dtype=st.sampled_from(["i8", "u8"]))
@settings(max_examples=6, deadline=None)
def test_convolutions_whose_weights_allow_no_short_end(
    form: str, mode: str, shape: tuple[int, ...], dtype: str
) -> None:
    """Which numbers there are for a short end follows from weights; plans read them, too."""
    modes: dict[str, Any] = {"mode": mode, "scale": 0.0123}
    if mode == "asymmetric":
        modes["zero_points"] = (3, -5, 40)

    def make(net: Net, x: Value) -> Value:
        weight, bias = net.integers("i8", 70, x.shape[1], 3, 3), net.integers("i16", 70)
        out = TensorType((x.shape[0], 70, *x.shape[2:]), dtype)
        return net.b.conv(x, weight, bias, pads=(1, 1, 1, 1), out=out, **modes)

    def forced(end: Ending, bounds: Any) -> Numbers | None:
        found = find_numbers(end, bounds)
        return None if form == "none" or found is None else replace(found, clipped=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(int_short, "find_numbers", forced)
        compare(make, shape, dtype, FULL, 2, "vendor")


def test_what_banks_cost_follows_from_where_a_program_puts_a_tile() -> None:
    """No op knows: one tile at two places. Plans of programs, which have placed it, count it by `TileWork.apart`."""
    net = Net([(1, 64, 28, 28)])
    conv = net.b.conv(net.inputs[0], net.f32(64, 64, 5, 5), pads=(2, 2, 2, 2))
    module, bank = net.module([conv]), CHIP.lmem_bank_size
    assert conv.op is not None
    with computations() as found:
        for weights in (bank // 4, bank):
            work = TARGET.kernel_for(conv.op).whole(conv.op)  # type: ignore[union-attr]
            work.compute(Build(MemoryPlan(), Coefficients(module)), [0, weights], [2 * bank], [])
    beside, apart = (taken(one.commands, placed=True) for one in found)
    assert [one.planned for one in found] == [apart, apart]
    assert apart < beside == apart + work.apart[0].cycles


def test_tables_are_made_once_for_a_program() -> None:
    """No op knows whether it is the first that needs one."""
    net = Net([(4, 5, 9, 30)])
    x = net.inputs[0]
    with computations() as found:
        TARGET.compile([net.module([net.b.swish(net.b.mul(net.b.swish(x), x))])], 2)
        first, _, second = found
        assert first.planned == second.planned == taken(second.commands, placed=True)
        assert first.planned == taken(first.commands) < taken(first.commands, placed=True)


def test_no_kernel_is_left_out() -> None:
    row = Net([(1, 600)])  # commands of matrices have one
    met = kernels_met(TARGET, row.module([row.b.matmul(row.inputs[0], row.f32(600, 600))]))
    for nets, dtype in ((FLOATS, "f32"), (BYTES, "i8")):
        for make in nets.values():
            net = Net([(2, 70, 9, 11)], 0, dtype)
            made = make(net, net.inputs[0])
            met |= kernels_met(TARGET, net.module([made] if isinstance(made, Value) else list(made)))
    assert tile_kernels(TARGET) <= met


def test_plans_follow_the_profile() -> None:
    net = Net([(1, 64, 56, 56)])
    net_module = net.module([net.b.conv(net.inputs[0], net.f32(64, 64, 5, 5), pads=(2, 2, 2, 2))])
    found = {}
    for name, profile in TimingProfile.NAMED.items():
        compiled = TARGET.planner(profile).compile([net_module], 2)
        assert isinstance(compiled.model, Bm168xModel)
        found[name] = analyze(compiled.model, 0, SILICON).timing().cycles
    assert found["silicon"] < 0.75 * found["vendor"]  # input and weights no longer share a bank
    assert TARGET.machine.tiler.bytes_per_cycle == SILICON.bus_bytes_per_cycle


@pytest.mark.parametrize("profile", TimingProfile.NAMED)
@given(
    rows=st.integers(1, 40),
    depth=st.integers(2049, 9000),
    columns=st.integers(1, 300),
    kind=st.sampled_from(["constant", "activations", "transposed"]),
    lanes=LANES,
    level=st.sampled_from([0, 2]),
)
@example(rows=1, depth=2049, columns=49, kind="constant", lanes=FULL, level=2)  # a run of a section is half a burst
@settings(max_examples=15, deadline=None)
def test_deep_products(profile: str, rows: int, depth: int, columns: int, kind: str, lanes: int, level: int) -> None:
    """Rows of sections are loaded while others are multiplied: both, and what waits for what, are planned."""
    right = (columns, depth) if kind == "transposed" else (depth, columns)
    net = Net([(rows, depth)] + [right] * (kind != "constant"))
    operand = net.f32(*right) if kind == "constant" else net.inputs[1]
    made = net.b.matmul(net.inputs[0], operand, transpose_right=kind == "transposed", activation="relu")
    chip = BM1684.planner(TimingProfile.NAMED[profile])
    with chip.local_memory(lanes), computations() as found:
        chip.target.compile([net.module([made])], level)
    check(found, chip.target.profile)
    assert made.op is not None
    forms = chip.target.kernel_for(made.op)
    by_rows = isinstance(forms, MatmulKernel) and isinstance(forms.form(made.op), RowMatmulKernel)
    assert lanes != FULL or by_rows or all(one.stream is not None for one in found)


def test_what_is_streamed_counts_among_the_bytes() -> None:
    with computations() as found:
        net = Net([(1, 9000)])
        compiled = TARGET.compile([net.module([net.b.matmul(net.inputs[0], net.f32(9000, 40))])], 2)
    (one,) = [one for one in found if one.stream is not None]
    assert 0 < one.planned < taken(one.commands)
    assert isinstance(compiled.model, Bm168xModel)
    (row,) = (row for row in compiled.rows if row.weights)
    assert row.weights == analyze(compiled.model, 0).timing().weights  # of all chunks, in whole sections


@pytest.mark.parametrize("name", FLOATS)
def test_estimates_of_ops_agree_with_programs_of_them_alone(name: str) -> None:
    net = Net([(2, 96, 40, 40)])
    made = FLOATS[name](net, net.inputs[0])
    compiled = TARGET.compile([net.module([made])], 1)
    assert isinstance(compiled.model, Bm168xModel)
    planned = [TARGET.cycles(op) for op in compiled_ops(made)]
    if None not in planned and len(planned) == 1:  # values of several would stay in local memory
        assert 0.9 <= sum(filter(None, planned)) / analyze(compiled.model, 0).timing().cycles <= 1.1


def compiled_ops(value: Value) -> list[Any]:
    """The ops that make a value, constants left out."""
    if value.op is None or value.op.short_name == "weight":
        return []
    return [op for operand in value.op.operands for op in compiled_ops(operand)] + [value.op]
