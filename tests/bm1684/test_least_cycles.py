"""benchmarks/least_cycles.py: what it says is below what programs take, and above all multipliers at work."""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path
from typing import Any

import pytest
from fetched import third_party

from bmcompiler.backends.bm1684.machine import machine_for

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
# channels in and out, rows, columns, taps down and across, steps
DENSE = (
    (3, 16, 64, 60, 3, 3, (2, 1)),
    (24, 96, 30, 30, 1, 1, (1, 1)),
    (64, 64, 13, 13, 3, 3, (1, 1)),
    (96, 200, 26, 26, 3, 3, (2, 2)),
)
SINGLE = ((1, 96, 60, 60, 3, 3, (1, 1)), (1, 200, 30, 30, 5, 5, (2, 2)), (1, 64, 20, 20, 3, 3, (2, 2)))
ITEMS = {"FLOATS": 4, "BYTES": 1}


@pytest.fixture
def least(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import least_cycles

    yield least_cycles
    for name in ("least_cycles", "bench_groups"):
        sys.modules.pop(name, None)


def _results(least: Any, kind: str, shape: Any) -> tuple[int, int, int, int]:
    """As the commands make them, of bytes in four bands."""
    bands = getattr(least, kind).images
    return bands, shape.outside, -(-shape.height // bands), shape.width


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("sizes", DENSE)
def test_no_command_of_a_dense_convolution_takes_less(least: Any, sizes: Any, kind: str) -> None:
    shape = least.Shape(*sizes)
    found = least.dense(shape, getattr(least, kind))
    plain = machine_for().cycles.convolution(
        _results(least, kind, shape), shape.down * shape.across, shape.inside, ITEMS[kind], shape.steps[1]
    )
    products = prod(sizes[:6]) / getattr(least, kind).peak
    cheaper = (
        4 if kind == "FLOATS" and shape.steps == (1, 1) and shape.down == 3 else 1
    )  # Winograd's products are fewer
    assert products / cheaper <= found.cycles <= plain
    assert 0 < found.besides < found.cycles


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("sizes", SINGLE)
def test_no_command_of_windows_per_channel_takes_less(least: Any, sizes: Any, kind: str) -> None:
    shape = least.Shape(*sizes)
    taps = shape.down, shape.across
    command = machine_for().cycles.window(_results(least, kind, shape), taps, shape.steps[1], True, ITEMS[kind])
    found = least.windows(shape, getattr(least, kind))
    assert prod(sizes[1:6]) / getattr(least, kind).peak < found <= command


@pytest.mark.parametrize(
    ("net", "precision"),
    [
        ("ppocr_v2_cls", "f32"),
        ("mtcnn_onet", "int8"),
        pytest.param("light_squeezenet", "int8", marks=pytest.mark.sweep),
    ],
)
def test_no_layer_of_a_program_takes_less(least: Any, net: str, precision: str, tmp_path: Path) -> None:
    third_party(f"{net}.onnx")
    one = least.measure(least.Case(net, "bm1684", precision, 1, 2), tmp_path, False)
    found = least.Least(one)
    taken: dict[str, int] = {}
    for layer in one.timing.layers:
        taken[layer.name] = taken.get(layer.name, 0) + layer.compute
    for label in found.of:
        form, windows = found.layer(label)
        assert 0 < form.cycles + windows <= taken[label]
    assert sum(found.parts()) < one.timing.cycles
    _, *listed = least.excess(one, len(taken))
    assert len(listed) == len(taken) and float(listed[0].split()[0]) > 0
    kinds = {found.kind(label) for label in found.of}
    assert kinds <= {least.FLOATS} if precision == "f32" else least.BYTES in kinds
