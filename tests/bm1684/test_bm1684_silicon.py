"""The timing model against kernels timed on real chips, and what the profile of these says of commands."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from bm1684_programs import NEURON, model

from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import local_address
from bmcompiler.backends.bm1684.isa import FORMATS, Direction, Eu, Precision, Task
from bmcompiler.backends.bm1684.timing_profile import SILICON, VENDOR, TimingProfile
from bmcompiler.bmodel.bm168x import TpuSubnet
from bmcompiler.errors import FileFormatError
from bmcompiler.instructions.order import STREAMS
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.runtime.simulator.bm1684.cost import cycles_of
from bmcompiler.runtime.simulator.bm1684.recorded import ByHand, Comparison, compare, microseconds, restored

RECORDED = Path(__file__).resolve().parent.parent / "data" / "bm1684_timing.npz"
BANK = 1 << 16


def errors(profile: TimingProfile) -> list[float]:
    return [one.error for one in compare(RECORDED, profile)]


def test_the_silicon_profile_agrees_with_measured_chips() -> None:
    found = errors(SILICON)
    assert len(found) == 24
    assert median(found) <= 1.08 and max(found) <= 1.35


def test_the_vendors_figures_do_not() -> None:
    found = errors(VENDOR)
    assert median(found) > 1.2 and max(found) > 2


def test_the_fastest_kernel_of_a_case_counts(tmp_path: Path) -> None:
    with np.load(RECORDED) as arrays:
        manifest = json.loads(arrays["manifest"].tobytes())
        keys = ("conv2d08_A", "conv2d08_B")
        kept = {name: arrays[name] for name in arrays.files if name.startswith(keys)}
    manifest["kernels"] = [kernel for kernel in manifest["kernels"] if kernel["key"] in keys]
    np.savez(tmp_path / "two.npz", manifest=np.frombuffer(json.dumps(manifest).encode(), np.uint8), **kept)
    (found,) = compare(tmp_path / "two.npz")
    assert found == Comparison("conv2d", 8, 3069, found.estimate, "conv2d08_B")


def test_other_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_text("nothing")
    with pytest.raises(FileFormatError, match=r"x\.npz holds no recorded command lists"):
        compare(tmp_path / "x.npz")


def cycles(build: CommandBuilder, profile: TimingProfile = SILICON) -> int:
    (found,) = analyze(model(TpuSubnet(build.groups(), [], [])), 0, profile).costs.cycles.tolist()
    return int(found)


def tiu(**fields: int) -> int:
    build = CommandBuilder()
    build.tiu(res0_n=1, res0_c=64, res0_h=4, res0_w=4, **fields)
    return cycles(build)


def conv(weights: int, channels: int = 64, **fields: int) -> int:
    return tiu(
        **{"tsk_typ": Task.CONV, "opd0_c": channels, "opd0_h": 4, "opd0_w": 4, "opd1_h": 1, "opd1_w": 1},
        **{"opd0_addr": local_address(0), "opd1_addr": local_address(weights)},
        **fields,
    )


def test_kernel_positions_cost_more_than_their_channels() -> None:
    """bm1684-timing.md 3: 16 results of a channel, 0.2 us before them."""
    assert conv(BANK) == 110 + 41  # 32 pairs + 7.1 + 1, rounded up
    assert conv(BANK, res_op_x_str=3) == 110 + 43  # two columns of stride above 1
    assert conv(BANK, opt_res_add=1) == 110 + 48  # 40.1 + 7.4
    assert conv(BANK, channels=3) == 110 + 11
    narrow = {f"opt_{name}_prec": Precision.INT8 for name in ("res0", "opd0", "opd1")}
    assert conv(BANK, **narrow) == 110 + 25  # 16 quads


def test_input_and_weights_in_one_bank_nearly_double_the_channels() -> None:
    assert conv(BANK // 2) == 110 + 70  # 32 * 1.92 + 8.1
    assert conv(BANK - 128) == 110 + 55  # weights of 256 bytes, of which half lie in the bank: 32 * 1.46 + 8.1


def test_arithmetic_on_two_tensors_costs_more() -> None:
    one, two = ({"tsk_typ": Task.TENSOR, "tsk_eu_typ": Eu.ADD, "opt_opd1_const": const} for const in (1, 0))
    assert (tiu(**one), tiu(**two)) == (112, 116)
    assert tiu(tsk_typ=Task.TENSOR, tsk_eu_typ=Eu.COPY) == 112


def load(channels: int, columns: int, pitch: int, **fields: int) -> int:
    build = CommandBuilder()
    sizes = {f"{side}_{axis}": n for side in ("src", "dst") for axis, n in zip("nchw", (1, channels, 1, columns))}
    steps = {
        "stride_enable": 1,
        "src_c_str": pitch,
        "src_h_str": pitch,
        "src_w_str": 1,
        "dst_c_str": 32,
        "dst_w_str": 1,
    }
    build.gdma(
        direction=Direction.SYSTEM_TO_LOCAL, src_addr=NEURON, dst_addr=local_address(0), **sizes, **steps, **fields
    )
    return cycles(build)


def test_short_runs_cost_as_long_ones() -> None:
    rate = SILICON.load_rate / SILICON.clock_hz
    assert load(64, 1000, 1000) == -int(-(275 + 256000 / rate) // 1)
    assert load(64, 8, 8) == -int(-(275 + 64 * 98 / rate) // 1)  # one run in global memory, 64 in lanes
    assert load(64, 8, 16) == -int(-(275 + 64 * 1061 / rate) // 1)


def test_a_processor_that_waits_after_each_command_has_nothing_at_once() -> None:
    """The time is the sum of what commands take alone and of what issues them; it waits in the time that they take."""
    by_hand = ByHand({}, issue=3.0, instruction=0.25)
    with np.load(RECORDED) as file:
        arrays = {name: file[name] for name in file.files if name.startswith("conv2d08_A")}
    engines = arrays["conv2d08_A_engine"]
    engines = engines[engines < 2]
    count = len(engines)
    every = {
        "engine": np.stack([engines, np.full(count, 2)], axis=1),
        "wait": np.zeros((count, 2), int),
        "issue": np.tile([4, 2], (count, 1)),
    }
    waiting = arrays | {f"conv2d08_A_{name}": rows.reshape(-1) for name, rows in every.items()}
    alone = 0.0
    for engine in STREAMS:
        fields = FORMATS[engine].decode(restored(arrays[f"conv2d08_A_{engine.name.lower()}"]).reshape(-1))
        alone += float(np.sum(cycles_of(engine, fields, SILICON))) / SILICON.clock_hz * 1e6
    found = microseconds(waiting, "conv2d08_A", SILICON, by_hand)
    assert count > 10 and found == pytest.approx(alone + count * (3.0 + 4 * 0.25))


@pytest.mark.parametrize("seed", range(8))
def test_a_kernel_ends_when_all_is_done(seed: int) -> None:
    """Drawn lists against what each record has to wait for, along every way from it back to the begin."""
    random, by_hand, key = np.random.default_rng(seed), ByHand({}, issue=1.0, instruction=0.5), "conv2d08_A"
    with np.load(RECORDED) as file:
        arrays = {name: file[name] for name in file.files if name.startswith(key)}
    count = 12
    engine = random.choice([0, 1, 2], count, p=[0.45, 0.45, 0.1])
    wait = np.array([random.integers(0, record + 1) * (engine[record] != 2) for record in range(count)])
    drawn = {"engine": engine, "wait": wait, "issue": random.integers(0, 9, count)}
    taken = {}
    for each in STREAMS:
        raw = np.resize(restored(arrays[f"{key}_{each.name.lower()}"]), (count, 128))
        drawn[each.name.lower()] = np.diff(raw, axis=0, prepend=np.zeros((1, 128), np.uint8)).T
        fields = FORMATS[each].decode(raw.reshape(-1))
        taken[int(each)] = iter((np.asarray(cycles_of(each, fields, SILICON)) / SILICON.clock_hz * 1e6).tolist())
    alone = [0.0 if each == 2 else next(taken[int(each)]) for each in engine]

    @cache
    def issued(record: int) -> float:
        """When the processor is done with a record: with the command, or with the wait for all before."""
        if record < 0:
            return 0.0
        now = issued(record - 1) + 0.5 * float(drawn["issue"][record])
        return max([now, *map(ended, range(record))]) if engine[record] == 2 else now + 1.0

    @cache
    def ended(record: int) -> float:
        if engine[record] == 2:
            return issued(record)
        before = [earlier for earlier in range(record) if engine[earlier] == engine[record]]
        awaited = [record - int(wait[record])] if wait[record] else []
        return max([issued(record), *map(ended, before + awaited)]) + alone[record]

    want = max([issued(count - 1), *map(ended, range(count))])
    found = microseconds(arrays | {f"{key}_{name}": column for name, column in drawn.items()}, key, SILICON, by_hand)
    assert found == pytest.approx(want)
