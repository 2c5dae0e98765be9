"""Programs with layers in two terms: the bytes of the interpreter on every level, and what the choice of them costs."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.bm1880.analysis import analyze
from bmcompiler.target import find_target

SHAPE = (1, 12, 20, 20)
DOUBLE = find_target("bm1880").pipeline("int8", 2).replace("quantize,", "quantize{mode=double},")
DATA = {"data": np.random.default_rng(1).normal(0, 1, (12, *SHAPE[1:])).astype(np.float32)}


class Layers:
    """Random layers, one after the other. spread: how small the smallest weights are, on average."""

    def __init__(self, spread: float) -> None:
        self.random, self.b = np.random.default_rng(0), Builder.new("net")
        self.spread, self.count = spread, 0

    def weight(self, *shape: int) -> Value:
        self.count += 1
        array = self.random.uniform(-0.1, 0.1, shape) * self.random.uniform(self.spread, 1, shape)
        return self.b.weight(array.astype(np.float32), f"w{self.count}")

    def layer(self, kind: str, x: Value, *shape: int, group: int = 1, **attributes: object) -> Value:
        outputs = {"deconv": shape[1] * group, "matmul": shape[-1]}.get(kind, shape[0])
        grouped = {"group": group} if group > 1 else {}
        with self.b.at(f"{kind}{self.count}"):
            out: Value = getattr(self.b, kind)(x, self.weight(*shape), self.weight(outputs), **grouped, **attributes)
            return out


def all_kinds() -> Module:
    n = Layers(0.05)
    x = n.b.input("data", TensorType(SHAPE))
    x = n.b.relu(n.layer("conv", x, 40, 12, 3, 3, pads=(1, 1, 1, 1)))
    x = n.b.relu(n.layer("conv", x, 40, 1, 3, 3, pads=(1, 1, 1, 1), group=40, strides=(2, 2)))
    x = n.layer("conv", x, 48, 20, 1, 1, group=2)
    x = n.layer("deconv", x, 48, 6, 2, 2, strides=(2, 2))
    x = n.layer("conv", x, 8, 6, 3, 3, dilations=(2, 2))
    head = n.layer("matmul", n.b.reshape(x, shape=(1, 8 * 256)), 8 * 256, 10)
    return n.b.outputs([head, x], ["head", "map"])


def chosen() -> Module:
    """A large layer, and one whose results are one input each, and small parts of many others."""
    n = Layers(1.0)
    x = n.b.relu(n.layer("conv", n.b.input("data", TensorType(SHAPE)), 96, 12, 5, 5))
    parts = n.random.uniform(-0.02, 0.02, (96, 96)) + np.eye(96)
    with n.b.at("small"):
        weight = n.b.weight(parts.reshape(96, 96, 1, 1).astype(np.float32), "parts")
        return n.b.outputs([n.b.conv(x, weight)], ["out"])


def doubled(module: Module) -> list[str]:
    return [op.label for op in module.main.ops if op.attributes.get("quantize.mode") == "double"]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_program_has_the_bytes_of_the_interpreter(level: int) -> None:
    result = bmcompiler.compile_module(all_kinds(), target="bm1880", data=DATA, opt=level, pipeline=DOUBLE)
    assert len(doubled(result.module)) == 6
    assert analyze(result.model, 0).races() == []
    session = Session(result.model)
    for seed in range(2):
        fed = {"data": np.random.default_rng(seed).integers(-128, 128, SHAPE).astype(np.int8)}
        wanted = run_module(result.module, fed)
        for name, array in session.run(fed, raw=True).items():
            assert array.any() and array.tobytes() == wanted[name].tobytes()


def test_a_layer_that_matters_is_doubled_for_what_its_program_may_take() -> None:
    """The sentence in the summary says what programs say."""
    plain = bmcompiler.compile_module(chosen(), target="bm1880", data=DATA, max_cycles=1)
    better = bmcompiler.compile_module(chosen(), target="bm1880", data=DATA)
    assert doubled(plain.module) == [] and doubled(better.module) == ["small"]
    taken = [analyze(result.model, 0).timing().cycles for result in (plain, better)]
    (note,) = [note for note in better.notes if note.startswith("quantization modes: 1 int8, 1 double")]
    assert f"of which the choice takes {taken[1] / taken[0]:.2f} times" in note
    assert taken[1] <= 1.25 * taken[0]
