"""Multiply-accumulates that summaries and reports count are the network's, whatever passes make of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from fetched import third_party

import bmcompiler
from bmcompiler.ir import Module

SHAPES = {"ppocr_v4_det": (1, 3, 64, 64), "centerface_480": (1, 3, 64, 64), "mtcnn_onet": (1, 48, 48, 3)}
KINDS = (("bm1684", "f32"), ("bm1684", "int8"), ("bm1684x", "int8"), ("bm1880", "int8"))


def of_network(name: str) -> int:
    return sum(op.macs() for op in loaded(name).main.ops)


def loaded(name: str) -> Module:
    return bmcompiler.load_network(third_party(f"{name}.onnx"), shapes=[list(SHAPES[name])])


def _cases() -> Iterator[Any]:
    for name, level, (chip, precision) in product(SHAPES, (0, 2), KINDS):
        on_host = name == "ppocr_v4_det" and chip == "bm1880"  # rows of the host count nothing
        quick = name == "mtcnn_onet" or (name, chip, precision, level) == ("centerface_480", "bm1684", "int8", 2)
        if not on_host:
            yield pytest.param(name, chip, precision, level, marks=() if quick else pytest.mark.sweep)


@pytest.mark.parametrize(("name", "chip", "precision", "level"), _cases())
def test_levels_and_precisions_count_the_same(name: str, chip: str, precision: str, level: int) -> None:
    options: dict[str, Any] = {"target": chip, "quantize": precision, "shapes": [list(SHAPES[name])], "opt": level}
    if precision == "int8":
        (source,) = loaded(name).main.input_names
        options["data"] = {source: np.random.default_rng(0).standard_normal((1, *SHAPES[name][1:]), np.float32)}
    rows = bmcompiler.compile(third_party(f"{name}.onnx"), **options).rows
    assert sum(row.macs for row in rows) == of_network(name)
