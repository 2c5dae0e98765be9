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

PROFILES: dict[str, list[list[str]]] = {
    "bm1684": [[], ["vendor"], ["load_rate=1e9", "start=900"]],
    "bm1684x": [[], ["wide_load_rate=1e9"], ["load_rate=4e11"]],
}
"""Each makes one way of moving the same bytes a multiple slower or quicker than the other (matrices and tensors, loads
and the arithmetic beside them), so that what weighs the two must choose the other."""


def _products() -> Module:
    """A product whose sections, and a net whose views, depend on cycles."""
    b, rng = Builder.new("net"), np.random.default_rng(0)

    def w(*shape: int) -> object:
        return b.weight((rng.standard_normal(shape) / 10).astype(np.float32), f"w{shape}")

    x = b.input("x", TensorType((1, 512)))
    image = b.input("image", TensorType((1, 3, 20, 24)))
    with b.at("product"):
        y = b.softmax(b.matmul(x, w(512, 1000)), axis=1)
    with b.at("conv"):
        z = b.relu(b.conv(image, w(40, 3, 3, 3), w(40), pads=(1, 1, 1, 1)))
    with b.at("gate"):
        z = b.mul(z, b.sigmoid(b.reduce(z, method="mean", axes=(2, 3), keepdims=True)))
    return b.outputs([y, z], ["y", "z"])


def _compiled(chip: str, precision: str, settings: list[str]) -> str:
    rng = np.random.default_rng(1)
    data = {"x": rng.standard_normal((4, 512)), "image": rng.standard_normal((4, 3, 20, 24))}
    result = bmcompiler.compile_module(
        _products(),
        target=chip,
        quantize=precision,
        data={name: array.astype(np.float32) for name, array in data.items()} if precision == "int8" else None,
        timing_profile=profile_for(chip, settings),
        log=lambda text: None,
    )
    with TemporaryDirectory() as folder:
        result.save(Path(folder) / "net.bmodel")
        return sha256((Path(folder) / "net.bmodel").read_bytes()).hexdigest()


def _in_a_process(chip: str, precision: str, settings: list[str]) -> str:
    code = f"import test_planning; print(test_planning._compiled({chip!r}, {precision!r}, {settings!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    return done.stdout.strip()


@pytest.mark.parametrize("chip, precision", [("bm1684", "int8"), ("bm1684", "f32"), ("bm1684x", "int8")])
def test_profiles_one_after_the_other_and_in_threads_give_the_bytes_of_processes(chip: str, precision: str) -> None:
    profiles = PROFILES[chip]
    alone = [_in_a_process(chip, precision, settings) for settings in profiles]
    assert len(set(alone)) == len(profiles), "a profile that changes nothing of this net shows nothing"
    assert [_compiled(chip, precision, settings) for settings in (*profiles, *profiles)] == alone + alone
    together = Barrier(len(profiles))

    def compile_together(settings: list[str]) -> list[str]:
        together.wait()
        return [_compiled(chip, precision, settings) for _ in range(2)]

    with ThreadPoolExecutor(len(profiles)) as pool:
        assert list(pool.map(compile_together, profiles)) == [[one, one] for one in alone]


@pytest.mark.parametrize("chip, other", [("bm1684", "bm1684x"), ("bm1684x", "bm1684"), ("bm1880", "bm1684")])
def test_a_profile_of_another_chip_is_refused(chip: str, other: str) -> None:
    with pytest.raises(UsageError, match=f"is not one of {chip}: its parameters are those of another chip"):
        bmcompiler.compile_module(_products(), target=chip, timing_profile=_profile_of(other))


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_rates_in_another_unit_are_refused(chip: str) -> None:
    with pytest.raises(UsageError, match=r"load_rate is in bytes per second, 13\.5 cannot be"):
        profile_for(chip, ["load_rate=13.5"])


def _profile_of(chip: str) -> object:
    """One with a value of its own."""
    return profile_for(chip, ["store_rate=9e9"])
