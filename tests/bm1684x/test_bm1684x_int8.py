"""int8 on the BM1684X: the simulator gives the bits of evaluation, and integers stay near the float net."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bm1684x_nets import check

import bmcompiler
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import TensorType, Value
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime.session import Session
from bmcompiler.testing import check_op

CHIP = "bm1684x"


class Net:
    """Ops with reproducible random weights."""

    def __init__(self, b: Builder) -> None:
        self.b, self.rng = b, np.random.default_rng(0)

    def w(self, *shape: int) -> Value:
        values = self.rng.normal(0, 1, shape) / np.sqrt(np.prod(shape[1:]))
        return self.b.weight(values.astype(np.float32), "w")

    def conv(self, x: Value, *shape: int, **attributes: Any) -> Value:
        return self.b.conv(x, self.w(*shape), self.w(shape[0]), **attributes)


Case = tuple[Callable[..., Value], list[tuple[int, ...]], str]
AROUND = {"pads": (1, 1, 1, 1)}
CASES: dict[str, Case] = {
    "conv": (lambda n, x: n.conv(x, 20, 5, 3, 3, **AROUND), [(1, 5, 9, 11)], "conv"),
    "more than a group of input channels, more channels than lanes, strides": (
        lambda n, x: n.b.relu(n.conv(x, 130, 70, 3, 3, **AROUND, strides=(2, 2))),
        [(2, 70, 9, 11)],
        "conv",
    ),
    "a quarter of a group of input channels": (
        lambda n, x: n.conv(x, 64, 16, 3, 3, **AROUND),
        [(1, 16, 9, 11)],
        "conv",
    ),
    "most of a group of input channels": (lambda n, x: n.conv(x, 150, 48, 3, 3, **AROUND), [(1, 48, 7, 5)], "conv"),
    "two groups and a half of input channels": (lambda n, x: n.conv(x, 400, 160, 1, 1), [(1, 160, 5, 6)], "conv"),
    "depthwise": (lambda n, x: n.b.relu(n.conv(x, 70, 1, 3, 3, **AROUND, group=70)), [(1, 70, 9, 11)], "conv"),
    "groups": (lambda n, x: n.conv(x, 12, 3, 3, 3, **AROUND, group=4), [(1, 12, 9, 11)], "conv"),
    "dilation": (lambda n, x: n.conv(x, 6, 3, 3, 3, dilations=(2, 3)), [(1, 3, 12, 14)], "conv"),
    "padding that is a zero point": (
        lambda n, x: n.conv(n.b.elu(x), 20, 5, 3, 3, **AROUND),
        [(1, 5, 9, 11)],
        "conv",
    ),
    "a zero point and no padding": (lambda n, x: n.conv(n.b.elu(x), 20, 70, 1, 1), [(1, 70, 9, 11)], "conv"),
    "deconv": (
        lambda n, x: n.b.deconv(x, n.w(8, 6, 4, 4), n.w(6), **AROUND, strides=(3, 2), dilations=(2, 1)),
        [(1, 8, 5, 6)],
        "deconv",
    ),
    "deconv by phases": (
        lambda n, x: n.b.deconv(x, n.w(8, 6, 4, 4), n.w(6), **AROUND, strides=(3, 2)),
        [(1, 8, 5, 6)],
        "conv",
    ),
    "inner product of one row": (lambda n, x: n.b.matmul(x, n.w(100, 70), n.w(70)), [(1, 100)], "matmul"),
    "inner product of a map of one pixel, which stays where it is": (
        lambda n, x: n.b.matmul(n.b.reshape(n.b.relu(n.conv(x, 100, 4, 5, 5)), shape=(1, 100)), n.w(100, 70), n.w(70)),
        [(1, 4, 5, 5)],
        "matmul",
    ),
    "inner product of rows": (
        lambda n, x: n.b.matmul(x, n.w(70, 100), n.w(70), transpose_right=True),
        [(5, 100)],
        "matmul",
    ),
    "product of tensors": (lambda n, x, y: n.b.matmul(x, y), [(2, 70, 30), (2, 30, 80)], "matmul"),
    "product with a transposed tensor": (
        lambda n, x, y: n.b.matmul(x, y, transpose_right=True),
        [(2, 3, 70, 30), (2, 1, 80, 30)],
        "matmul",
    ),
    "average": (
        lambda n, x: n.b.avg_pool(n.b.relu(n.conv(x, 8, 4, 1, 1)), kernel=(7, 7)),
        [(1, 4, 7, 7)],
        "avg_pool",
    ),
    "maximum": (
        lambda n, x: n.b.max_pool(n.conv(x, 8, 4, 1, 1), kernel=(3, 3), strides=(2, 2), **AROUND),
        [(1, 4, 8, 8)],
        "max_pool",
    ),
    "sum": (
        lambda n, x: n.b.relu(n.b.add(n.conv(x, 8, 4, 1, 1), n.conv(x, 8, 4, 1, 1))),
        [(1, 4, 8, 8)],
        "mac_shift",
    ),
}


@pytest.fixture
def all_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers also where the float program is quicker."""
    usual = type(TARGET).pipeline

    def pipeline(self: Any, precision: str, level: int) -> str:
        return usual(self, precision, level).replace("quantize{", "quantize{mode=channel,")

    monkeypatch.setattr(type(TARGET), "pipeline", pipeline)


@pytest.mark.usefixtures("all_integers")
@pytest.mark.parametrize("name", CASES)
def test_a_layer_of_integers(name: str) -> None:
    make, shapes, kind = CASES[name]
    checked = check_op(lambda b, *x: make(Net(b), *x), shapes, target=CHIP, quantize="int8", seeds=1, close=0.03)
    (op,) = [op for op in checked.result.module.main.ops if op.short_name == kind][:1]
    assert op.operands[0].dtype in ("i8", "u8")
    assert {row.where for row in checked.result.rows} == {CHIP}


@pytest.mark.usefixtures("all_integers")
@pytest.mark.parametrize(("precision", "item"), [("int8", 1), ("f16", 2)])
@pytest.mark.parametrize(("shape", "more"), [((64, 16, 3, 3), 1), ((150, 48, 3, 3), 3), ((400, 160, 1, 1), 1)])
def test_gaps_between_weights_are_not_moved(precision: str, item: int, shape: tuple[int, ...], more: int) -> None:
    """A lane gets the weights of its channels, and `more` rows with their biases and factors, as long as a run."""
    n = Net(Builder.new("net"))
    x = n.b.input("x", TensorType((1, shape[1], 16, 16), "f32"))
    module = n.b.outputs([n.conv(x, *shape)], ["y"])
    data = {"data": {"x": n.rng.standard_normal((2, *x.shape[1:]), np.float32)}} if precision == "int8" else {}
    found = bmcompiler.compile_module(module, target=CHIP, quantize=precision, **data)
    (conv,) = (row for row in found.rows if row.kind == "conv")
    full = -(-shape[0] // 64) * 64
    rows = full * np.prod(shape[2:]) + 64 * more
    gaps = shape[1] * item % 64
    assert conv.weights <= rows * shape[1] * item if gaps else conv.weights <= 64 * item * np.prod(shape)


def test_inner_products_read_the_rows_that_others_leave() -> None:
    def make(n: Net, x: Value) -> Value:
        up = n.b.relu(n.b.matmul(x, n.w(48, 100), n.w(100)))
        return n.b.matmul(up, n.w(100, 48), n.w(48))

    checked = check_op(lambda b, x: make(Net(b), x), [(70, 48)], target=CHIP, quantize="int8", seeds=1, close=0.03)
    rows = checked.result.rows
    assert [row.kind for row in rows if row.kind == "matmul"] == ["matmul"] * 2
    assert sum(row.loaded - row.weights for row in rows) == 4 * 70 * 48
    assert sum(row.stored for row in rows) == 4 * 70 * 48


@pytest.mark.usefixtures("all_integers")
@pytest.mark.parametrize(("slices", "parts"), [((1, 1, 3, 1), 3), ((1, 1, 1, 3), 3), ((1, 1, 3, 3), 9)])
def test_rows_and_columns_of_integers_are_computed_apart(slices: tuple[int, ...], parts: int) -> None:
    """Of products by constants, and of what goes to integers before them and back to floats behind."""
    n = Net(Builder.new("net"))
    x = n.b.input("x", TensorType((1, 190, 48), "f32"))
    up = n.b.relu(n.b.matmul(x, n.w(48, 130), n.w(130)))
    module = n.b.outputs([n.b.matmul(up, n.w(130, 192), n.w(192))], ["y"])
    data = {"x": n.rng.standard_normal((2, 190, 48), np.float32)}
    module = bmcompiler.compile_module(module, target=CHIP, quantize="int8", data=data).module
    ops = [op for op in module.main.ops if op.short_name in ("quantize", "matmul", "dequantize")]
    assert [op.short_name for op in ops] == ["quantize", "matmul", "matmul", "dequantize"]
    whole = check(module)
    for op in ops:
        op.attributes[GROUP], op.attributes[SLICES] = 0, slices
    cut = check(module)
    assert {row.tiles for row in cut.rows if row.kind in ("matmul", "dequantize")} >= {parts}
    assert sum(row.weights for row in cut.rows) == sum(row.weights for row in whole.rows)


MODELS = Path(__file__).resolve().parents[2] / "models"
NETWORKS: dict[str, tuple[list[str], tuple[int, ...]]] = {
    "lenet": (["lenet/deploy.prototxt", "lenet/lenet.caffemodel"], (1, 28, 28)),
    "resnet8": (["resnet8/resnet8_mnist.onnx"], (1, 28, 28)),
    "mtcnn_rnet": (["third_party/mtcnn_rnet.onnx"], (24, 24, 3)),
    "ppocr_v2_cls": (["third_party/ppocr_v2_cls.onnx"], (3, 48, 192)),
    "light_resnet50": (["third_party/light_resnet50.onnx"], (3, 224, 224)),
}
MARKS = {"mtcnn_rnet": [pytest.mark.slow], "ppocr_v2_cls": [pytest.mark.slow], "light_resnet50": [pytest.mark.sweep]}


@pytest.mark.usefixtures("all_integers")
@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in NETWORKS])
def test_networks_wholly_of_integers(name: str) -> None:
    """Every layer is on the chip, the simulator gives the bits of evaluation, outputs stay near those in float."""
    files, shape = [MODELS / file for file in NETWORKS[name][0]], NETWORKS[name][1]
    if not all(file.exists() for file in files):
        pytest.skip(f"{files[0].name} is not fetched: run `make models`")
    data = np.random.default_rng(7).standard_normal((6, *shape)).astype(np.float32)
    module = bmcompiler.load_network(*files, shapes=[(1, *shape)])
    (name_in,) = module.main.input_names
    result = bmcompiler.compile_module(module, target=CHIP, quantize="int8", data={name_in: data})
    layers = [op for op in result.module.main.ops if op.short_name in ("conv", "matmul")]
    assert layers and all(op.attributes.get("mode") == "channel" for op in layers)
    assert {row.where for row in result.rows} <= {CHIP, "view", "alias"}
    inputs = {name_in: data[:1]}
    found = Session(result.model).run(inputs, raw=True)
    for output, expected in run_module(result.module, inputs, target=TARGET).items():
        assert found[output].tobytes() == expected.tobytes(), f"output {output} differs"
    exact = run_module(module, inputs)
    for output, reals in exact.items():
        assert np.linalg.norm(found[output].reshape(reals.shape) - reals) < 0.15 * np.linalg.norm(reals)
