"""Cycles against the samples of the vendor's compiler (bm1684x.md 8)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import prod
from typing import Any

import numpy as np
import pytest
from bm1684x_golden import DATA

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Precision, Sfu
from bmcompiler.backends.bm1684x.cycles import DIVIDE_STEPS, CycleTable
from bmcompiler.backends.bm1684x.timing_profile import PROFILE, TimingProfile
from bmcompiler.runtime.simulator.bm1684x.cost import moves

_TABLE = CycleTable(PROFILE)
_TYPES = {"f32": (4, 2), "f16": (2, 1), "bf16": (2, 5), "i8": (1, 0), "i16": (2, 3), "i32": (4, 4)}


def _operands(text: str) -> list[tuple[list[int], str]]:
    found = (re.fullmatch(r"([\dx]+?)x?([su]?)(f32|f16|bf16|i8|i16|i32)", word) for word in text.split())
    return [([int(size) for size in one[1].split("x")], one[3]) for one in found if one]


def _pair(text: str, name: str) -> tuple[int, int]:
    found = re.search(rf"{name}\[(\d+), (\d+)\]", text)
    assert found
    return int(found[1]), int(found[2])


def _cycles(op: str, text: str, parameters: str) -> Any:
    operands = _operands(text)
    (n, c, h, w), _ = operands[-1] if len(operands[-1][0]) == 4 else ([1, 1, *operands[-1][0]], "")
    kind = Precision(_TYPES[operands[0][1]][1])
    if op == "conv.normal":
        taps = prod(_pair(parameters, "k"))
        return _TABLE.convolution(n, c, h * w, taps, operands[0][0][1], kind)
    if op.startswith("mm2"):
        depth = operands[0][0][1]
        return _TABLE.row_matrix(h, depth, w, kind)
    if op == "mm.normal":
        # samples do not say how wide sections are
        return [_TABLE.matrix(h, operands[0][0][1], 1, width, len(operands) > 3) for width in range(16, w + 16, 16)]
    item = max(_TYPES[name][0] for _, name in operands)
    vectors = _TABLE.vectors(n, c, h * w, item)
    if op.startswith("pord"):
        return _TABLE.window(vectors, prod(_pair(parameters, "k")), _pair(parameters, "s")[1])
    if op == "arith.div":
        return vectors * DIVIDE_STEPS
    if op.startswith("sfu"):
        unit = {"sfu.taylor_4x": Sfu.TAYLOR, "sfu.normalize": Sfu.NORMALIZE, "sfu.rsqrt": Sfu.RSQRT}[op]
        return _TABLE.special(vectors, unit, operands[1][0][3] if unit == Sfu.TAYLOR else 0)
    return _TABLE.element_wise(vectors, False)


@pytest.fixture(scope="module")
def hits() -> dict[str, Counter[bool]]:
    with np.load(DATA / "bm1684x_timing.npz") as file:
        rows = file["samples"].tolist()
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    for op, text, parameters, cycles in rows:
        if op.split(".")[0] in ("conv", "pord", "mm", "mm2", "arith", "quant", "cmp", "sfu"):
            allowed = {int(one) for one in cycles.split("/")}
            estimates = {int(one) * shared for one in np.atleast_1d(_cycles(op, text, parameters)) for shared in (1, 2)}
            found[op.split(".")[0]][bool(allowed & estimates)] += 1
    return found


@pytest.mark.parametrize(
    ("kind", "exact"),
    [("conv", 1.0), ("mm2", 1.0), ("mm", 0.85), ("pord", 0.9), ("arith", 0.98), ("quant", 0.98), ("cmp", 1.0)],
)
def test_estimates_are_those_of_the_vendor(hits: dict[str, Counter[bool]], kind: str, exact: float) -> None:
    """Twice the estimate counts, too: samples do not say which operands share a bank."""
    right, wrong = hits[kind][True], hits[kind][False]
    assert right >= exact * (right + wrong) > 0


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (_TABLE.tensor(150, 50, True, False), 56),
        (_TABLE.tensor(350208, 76 * 288 * 4, True, False), 6483),
        (_TABLE.tensor(576, 48, False, True), 299),
        (_TABLE.tensor(10368, 576, False, True), 337),
        (_TABLE.wide(48, 40, True), 211),
        (_TABLE.wide(6 * 64, 2048, True), 13559),
        (_TABLE.wide(10, 96, False), 58),
        (_TABLE.wide(1, 20, True), 22),
    ],
)
def test_transfers_take_what_the_samples_say(found: Any, wanted: int) -> None:
    assert abs(int(found) - wanted) <= max(1, 0.01 * wanted)


@pytest.mark.parametrize("op", ["dma.tensor.S2L", "dma.tensor.L2S"])
def test_runs_of_transfers_end_with_their_lane(op: str) -> None:
    """Also where the elements of the next lane follow without a gap; 3 of the 40 samples say something else."""
    with np.load(DATA / "bm1684x_timing.npz") as file:
        rows = [row for row in file["samples"].tolist() if row[0] == op]
    right = 0
    for _, text, parameters, cycles in rows:
        ((shape, kind),) = _operands(text)
        fields = {f"src_{axis}": size for axis, size in zip("nchw", shape)}
        fields |= {"stride_enable": 1, "nchw_copy": 1, "data_format": _TYPES[kind][1]}
        for side, strides in zip(("src", "dst"), re.findall(r"\[([\d,]+)\]", parameters), strict=True):
            fields |= {f"{side}_{axis}_str": int(stride) for axis, stride in zip("nchw", strides.split(","))}
        outside, inside = ("src", "dst") if op.endswith("S2L") else ("dst", "src")
        fields |= {f"{outside}_addr_hi": 1, f"{inside}_addr_lo": CHIP.lmem_window}
        found = moves({name: np.array([value]) for name, value in fields.items()}, 1, _TABLE).cycles
        right += abs(int(found[0]) - int(cycles)) <= max(1, 0.01 * int(cycles))
    assert right >= len(rows) - 2 == 18


def test_every_parameter_is_said_and_must_be_positive() -> None:
    assert "1000 MHz" in " ".join(PROFILE.assumptions())
    with pytest.raises(ValueError, match="load_rate must be positive"):
        TimingProfile(load_rate=0)


def test_rates_are_bytes_per_second() -> None:
    assert (PROFILE.load_rate / PROFILE.clock_hz, PROFILE.store_rate / PROFILE.clock_hz) == (
        13.51,
        10.245,
    )  # bm1684x.md 8, exactly
    assert "13.51 (loads)" in " ".join(PROFILE.assumptions())
    with pytest.raises(ValueError, match=r"load_rate is in bytes per second, 13\.51 cannot be"):
        TimingProfile(load_rate=13.51)
