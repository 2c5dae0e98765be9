"""Simulators refuse commands of more work than any layer has: what they count is what the timing models count."""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path

import pytest

from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.bm1684x.cube import conv, images, pool
from bmcompiler.runtime.simulator.bm1684x.cube import matrix as matrix_1684x
from bmcompiler.runtime.simulator.bm1684x.operands import Work
from bmcompiler.runtime.simulator.bm1684x.vector import special
from bmcompiler.runtime.simulator.bm1880 import matrix, windows

sys.path.append(str(Path(__file__).parent.parent))
from varied_commands import Command, analysis, commands, machine

CONVOLUTION, POOLING = 0, 1
"""Codes of tasks."""
SERIES = ((9, 12), (9, 13))
"""Task and code of special functions that are sums of a series; the BM1684X alone has them."""


def of_result(f: Fields) -> int:
    return prod(f[f"res0_{axis}"] for axis in "nchw")


def of_pixels(f: Fields) -> int:
    """Pixels of the images with what is around and between them."""
    rows = (f["opd0_h"] - 1) * (f["opd0_y_ins0"] + 1) + 1 + f["opd0_up_pad"] + f["opd0_dn_pad"]
    columns = (f["opd0_w"] - 1) * (f["opd0_x_ins0"] + 1) + 1 + f["opd0_lf_pad"] + f["opd0_rt_pad"]
    return f["res0_n"] * f["res0_c" if f["tsk_typ"] == POOLING else "opd0_c"] * rows * columns


def expected(chip: str, command: Command) -> dict[str, int]:
    """What is counted of a command: products, or taps of windows, and on the BM1684X what else takes memory or time."""
    f, task = command.fields, command.fields["tsk_typ"]
    macs = int(analysis(chip, command).costs.macs.sum())
    if f.get("opt_winograd") and task == CONVOLUTION:
        macs = macs * 4 // 9  # 16 products make the four sums of 3 x 3 taps
    found = {"products": macs}
    if task == POOLING:
        found["products"] = macs or of_result(f) * f["opd1_h"] * f["opd1_w"]
    if chip == "bm1684x" and task in (CONVOLUTION, POOLING):
        found["pixels"] = of_pixels(f)
    if chip == "bm1684x" and task == CONVOLUTION:
        found["weights"] = f["res0_c"] * f["opd0_c"] * f["opd1_h"] * f["opd1_w"]
    if (task, f["tsk_eu_typ"]) in SERIES:
        found["terms"] = of_result(f) * f["opd1_n"]
    return {what: count for what, count in found.items() if count}


@pytest.mark.parametrize("chip", ["bm1880", "bm1684x"])
def test_what_is_refused_is_counted_as_time_is(chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: dict[str, int] = {}

    def of_1880(count: int) -> None:
        noted["products"] = count

    def of_1684x(work: Work, *counts: int) -> None:
        noted[work.title if work.title in ("pixels", "weights", "terms") else "products"] = prod(counts)

    for module in (windows, matrix):
        monkeypatch.setattr(module, "check_work", of_1880)
    for module in (conv, images, pool, matrix_1684x, special):
        monkeypatch.setattr(module, "check_work", of_1684x)
    chip_with_data, met = machine(chip), set()
    for command in (one for kind in commands(chip).values() for one in kind if one.engine.name != Engine.GDMA.name):
        noted.clear()
        chip_with_data._plan(command)
        assert noted == expected(chip, command), command.fields
        met |= noted.keys()
    assert met == {"products"} | ({"pixels", "weights", "terms"} if chip == "bm1684x" else set())
