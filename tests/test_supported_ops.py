"""SUPPORTED_OPS.md against the declarations; the tables of source ops, which take a minute, are `make docs-check`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bmcompiler.frontends.caffe.layer import find_converter as find_layer
from bmcompiler.frontends.onnx.registry import known_types

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "SUPPORTED_OPS.md").read_text(encoding="utf-8")


def rows(section: str) -> list[list[str]]:
    """Cells of the table under a heading."""
    body = TEXT.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in body.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_declared_part_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from supported_ops.page import declared

    fresh = declared()
    monkeypatch.delitem(sys.modules, "supported_ops.page")
    assert TEXT.split("\n## TensorOps\n", 1)[1] == fresh.split("## TensorOps\n", 1)[1], "run `make docs`"


def test_every_listed_layer_has_a_converter() -> None:
    layers = [row[0] for row in rows("Caffe")]
    assert len(layers) > 40 and all(find_layer(name) for name in layers)


RUNTIMES_OWN = {"SimplifiedLayerNormalization"}
"""Ops that ONNX Runtime has put into the standard domain, whose schemas do not know them."""


def test_listed_onnx_ops_are_those_that_import() -> None:
    listed = {row[0]: row for row in rows("ONNX")}
    assert len(listed) > 120
    assert {"Conv", "Gemm", "LayerNormalization", "Softmax"} <= listed.keys()
    assert listed["Conv"][2] == "conv" and listed["Conv"][3].startswith("native")
    assert set(known_types()) - RUNTIMES_OWN <= listed.keys()
