"""A program depends on what it is compiled from alone: not on compilations before it, nor on those beside it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.timing_profile import profile_for
from bmcompiler.errors import UsageError
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import installed_passes
from bmcompiler.plugins.registry import entry_points
from bmcompiler.target import find_target

Case = tuple[str, str, list[str]]
CASES: list[Case] = [
    ("bm1880", "int8", []),
    ("bm1880", "int8", ["ddr_rate=1e9,gdma_start=2000"]),
    ("bm1684", "int8", []),
    ("bm1684", "int8", ["vendor"]),
    ("bm1684x", "f16", []),
    ("bm1684x", "f16", ["wide_load_rate=1e9"]),
    ("dv700", "f16", []),
    ("dv700", "f16", ["clock_hz=1e8"]),
]
"""Chip, precision, and settings of a profile: the chip's own, and one that makes a way of moving bytes a multiple
slower than the others, so that plans which ask it must choose otherwise."""
THREADS = 8


def _net() -> Module:
    """A product whose sections, and layers whose views, depend on cycles."""
    b, rng = Builder.new("net"), np.random.default_rng(0)

    def w(*shape: int) -> object:
        return b.weight((rng.standard_normal(shape) / 10).astype(np.float32), f"w{shape}")

    x = b.input("x", TensorType((1, 256)))
    image = b.input("image", TensorType((1, 3, 20, 24)))
    with b.at("product"):
        y = b.softmax(b.matmul(x, w(256, 500)), axis=1)
    with b.at("conv"):
        z = b.relu(b.conv(image, w(40, 3, 3, 3), w(40), pads=(1, 1, 1, 1)))
    with b.at("gate"):
        z = b.mul(z, b.sigmoid(b.reduce(z, method="mean", axes=(2, 3), keepdims=True)))
    return b.outputs([y, z], ["y", "z"])


def _compiled(chip: str, precision: str, settings: list[str]) -> str:
    rng = np.random.default_rng(1)
    data = {"x": rng.standard_normal((4, 256)), "image": rng.standard_normal((4, 3, 20, 24))}
    result = bmcompiler.compile_module(
        _net(),
        target=chip,
        quantize=precision,
        data={name: array.astype(np.float32) for name, array in data.items()} if precision == "int8" else None,
        timing_profile=profile_for(chip, settings),
        check="never",
        log=lambda text: None,
    )
    with TemporaryDirectory() as folder:
        result.save(Path(folder) / "net.bmodel")
        return sha256((Path(folder) / "net.bmodel").read_bytes()).hexdigest()


def _import_all() -> None:
    """What compilations import, which takes longer than they do."""
    list(installed_passes())
    for chip, _, _ in CASES:
        find_target(chip).kernels()


def _in_processes() -> list[str]:
    """Each case in a process that has compiled nothing before: they have the imports in common."""
    code = """
import os, test_planning as test
test._import_all()
for case in test.CASES:
    if not os.fork():
        print(test._compiled(*case), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    return done.stdout.split()


@pytest.mark.slow
def test_eight_threads_with_two_profiles_of_four_chips_give_the_bytes_of_processes() -> None:
    """Each compiles all of them, one after the other, and begins with another one."""
    alone = _in_processes()
    for (chip, _, settings), own, other in zip(CASES[::2], alone[::2], alone[1::2]):
        assert not settings and (own == other) == (chip == "dv700"), f"{chip}: it would show nothing"
    together = Barrier(THREADS)

    def compile_all(first: int) -> list[str]:
        together.wait()
        found = [_compiled(*case) for case in CASES[first:] + CASES[:first]]
        return found[len(CASES) - first :] + found[: len(CASES) - first]

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(compile_all, range(THREADS))) == [alone] * THREADS


def test_what_is_found_out_stays_with_the_planner() -> None:
    """Plugins are objects that all compilations of a process share; they make planners, and learn nothing."""
    for chip, precision, settings in (CASES[1], CASES[5], CASES[6]):
        plugin = entry_points("bmcompiler.targets")[chip]()
        before = dict(vars(plugin))
        _compiled(chip, precision, settings)
        assert vars(plugin) == before


def test_planners_share_neither_kernels_nor_what_they_remember() -> None:
    profile = profile_for("bm1684", ["vendor"])
    first, again, other = find_target("bm1684"), find_target("bm1684"), find_target("bm1684", profile)
    assert (first.profile, again.profile, other.profile) == (None, None, profile)
    kernels = [{id(kernel) for kernel in target.kernels()} for target in (first, again, other)]
    assert not kernels[0] & kernels[1] and not kernels[0] & kernels[2]
    assert {id(kernel) for kernel in first.kernels()} == kernels[0], "they are made once for a planner"
    machines = [target.machine for target in (first, again, other)]  # type: ignore[attr-defined]
    assert len({id(one.tiler) for one in machines}) == len({id(one.cycles) for one in machines}) == 3
    assert machines[2].cycles.table.profile == profile != machines[0].cycles.table.profile


@pytest.mark.parametrize("chip, other", [("bm1684", "bm1684x"), ("bm1684x", "bm1684"), ("bm1880", "bm1684")])
def test_a_profile_of_another_chip_is_refused(chip: str, other: str) -> None:
    with pytest.raises(UsageError, match=f"is not one of {chip}: its parameters are those of another chip"):
        bmcompiler.compile_module(_net(), target=chip, timing_profile=profile_for(other, ["store_rate=9e9"]))


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_rates_in_another_unit_are_refused(chip: str) -> None:
    with pytest.raises(UsageError, match=r"load_rate is in bytes per second, 13\.5 cannot be"):
        profile_for(chip, ["load_rate=13.5"])
