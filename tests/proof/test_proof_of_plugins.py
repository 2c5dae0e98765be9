"""Layers of plugins are proven like all others, and what is wrong about them is said to be the plugin's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_packages import install_project, on_path

import bmcompiler
from bmcompiler.errors import WrongProgramError
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.target import find_target

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "custom_layer"
SHAPE = (1, 3, 8, 8)
DATA = {name: np.random.default_rng(1).normal(0, 1, (4, *SHAPE[1:])).astype(np.float32) for name in ("a", "b")}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path) -> Iterator[None]:
    """The package of docs/custom_layers.md."""
    install_project(tmp_path, EXAMPLE)
    with on_path(tmp_path, EXAMPLE):
        yield


def net(kind: str) -> Module:
    b = Builder.new("net")
    x, y = (b.input(name, TensorType(SHAPE)) for name in ("a", "b"))
    with b.at("mine"):
        if kind == "SoftGate":
            made: Any = b.soft_gate(x, y, alpha=2.0)
        else:
            made = b.customized(x, y, sub_type=kind, f32_params=[0.5], output_shapes=[SHAPE])
    return b.outputs([made], ["y"])


@pytest.mark.parametrize(("kind", "target"), [("SoftGate", "bm1684"), ("AbsDiff", "bm1880")])
def test_a_layer_of_a_plugin_is_proven(kind: str, target: str) -> None:
    result = bmcompiler.compile_module(net(kind), target=target, data=DATA, check="always")
    assert result.checked is not None and result.checked.samples == 1 and result.checked.of_data
    assert any(row.where == target for row in result.rows)


def test_a_wrong_kernel_of_a_plugin_is_the_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    module = net("SoftGate")
    kernel = type(find_target("bm1684").kernel_for(module.main.ops[0]))
    right = kernel.evaluate
    monkeypatch.setattr(kernel, "evaluate", lambda self, op, *arrays: right(self, op, *arrays) + np.float32(1))
    with pytest.raises(WrongProgramError, match=r"layer 'mine' .*an error of the plugin 'my_layers'"):
        bmcompiler.compile_module(module, target="bm1684")
