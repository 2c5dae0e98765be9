"""Optimisation levels: other programs, the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from level_nets import Network

import bmcompiler
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.bm1880.analysis import analyze

SHAPE = (1, 16, 90, 90)


def net() -> Module:
    """Two convolutions in several tiles each, joined by a concatenation."""
    rng = np.random.default_rng(0)
    b = Builder.new("net")
    x = b.input("data", TensorType(SHAPE))
    branches = []
    for name in ("left", "right"):
        with b.at(name):
            weight = b.weight(rng.normal(0, 0.1, (40, 16, 3, 3)).astype(np.float32), name)
            branches.append(b.relu(b.conv(x, weight, pads=(1, 1, 1, 1))))
    with b.at("join"):
        joined = b.concat(*branches, axis=1)
    with b.at("pool"):
        return b.outputs([b.max_pool(joined, kernel=(2, 2), strides=(2, 2))], ["out"])


@pytest.fixture(scope="module")
def results() -> list[bmcompiler.Result]:
    data = {"data": np.random.default_rng(1).normal(0, 1, (4, *SHAPE[1:])).astype(np.float32)}
    return [
        bmcompiler.compile_module(net(), target="bm1880", data=data, opt=level, method="max") for level in (0, 1, 2)
    ]


def test_levels_differ_in_commands_only(results: list[bmcompiler.Result]) -> None:
    images = np.random.default_rng(2).integers(-128, 128, SHAPE).astype(np.int8)
    serial, overlapped, best = (Session(result.model).run({"data": images}, raw=True)["out"] for result in results)
    assert serial.any()
    assert serial.tobytes() == overlapped.tobytes() == best.tobytes()
    assert len({result.model.commands[0].cmdbuf for result in results}) == 3


def test_each_level_is_faster(results: list[bmcompiler.Result]) -> None:
    cycles = [analyze(result.model, 0).timing().cycles for result in results]
    assert cycles[0] > cycles[1] > cycles[2]


def test_higher_levels_join_without_a_copy(results: list[bmcompiler.Result]) -> None:
    stored = [sum(row.stored for row in result.rows if row.kind == "concat") for result in results]
    assert stored[0] > stored[1] == stored[2] == 0


NETS = ("mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "light_squeezenet")
"""Larger ones have the same bars in `tests/test_group_bars.py`."""
QUICK = ("lenet", "resnet8")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in NETS)])
def test_networks_move_a_third_of_their_features_in_two_thirds_of_the_time(name: str, shared: Path) -> None:
    network = Network(name, "bm1880", "int8", shared)
    timings = []
    for level in (0, 2):
        analysis = analyze(network.at(level).model, 0)
        assert analysis.races() == []
        timings.append(analysis.timing())
    plain, best = timings
    assert best.loaded + best.stored <= 0.35 * (plain.loaded + plain.stored)
    assert 1.5 * best.cycles <= plain.cycles
