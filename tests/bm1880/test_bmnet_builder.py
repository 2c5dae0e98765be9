"""CaffeBuilder of the seed: from caffemodel and calibration table to a model file, with custom layers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler import bmodel
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_AL,
    CTRL_NEURON,
    FMT_I8,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_mul_const_param_t,
    bmk1880_tl_alloc,
    bmk1880_tl_free,
    bmk1880_tpu_mul_const,
    shape_t4,
)
from bmcompiler.backends.bm1880.custom import CustomizedTensorFixedInst
from bmcompiler.bmnet import BM_CHIP_BM1880, OPT_NONE, CaffeBuilder, TensorOp
from bmcompiler.errors import BMError, FileFormatError, UnsupportedError, UsageError
from bmcompiler.frontends.caffe import CustomizedCaffeLayer, caffe_pb2
from bmcompiler.frontends.caffe.textformat import parse_net
from bmcompiler.plugins.registry import PluginError
from bmcompiler.quant.table import load_table
from bmcompiler.runtime import Session

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 9 dim: 2 dim: 8 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "minus" type: "BuilderMinus" bottom: "conv" top: "minus" }
layer { name: "prob" type: "Softmax" bottom: "minus" top: "prob" }
"""
TABLE = "data 4\nconv 8\nminus 8\n"


class MinusLayer(CustomizedCaffeLayer):
    def layer_name(self) -> str:
        return "BuilderMinus"

    def dump(self) -> None:
        print(self.layer_.name)

    def codegen(self, op: TensorOp) -> None:
        op.add_output_shape().CopyFrom(op.input_shape(0))


class MinusInst(CustomizedTensorFixedInst):
    """-x, between equal thresholds."""

    def inst_name(self) -> str:
        return "BuilderMinus"

    def dump(self) -> None:
        print(self.op_.input_shape(0).dims())

    def encode(self) -> None:
        x = bmk1880_tl_alloc(self.ctx, shape_t4(*self.op_.input_shape(0).dims()), FMT_I8, CTRL_AL)
        bmk1880_gdma_load(self.ctx, x, self.op_.global_input(0), CTRL_NEURON)
        bmk1880_tpu_mul_const(self.ctx, bmk1880_mul_const_param_t(None, x, x, -1, True, 0))
        bmk1880_gdma_store(self.ctx, x, self.op_.global_output(0), CTRL_NEURON)
        bmk1880_tl_free(self.ctx, x)

    def compute(self, inputs: list[np.ndarray], function: Callable[..., Any] | None) -> np.ndarray:
        return np.clip(-inputs[0].astype(np.int32), -128, 127).astype(np.int8)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    net = caffe_pb2.NetParameter(name="small")
    layer = net.layer.add(name="conv", type="Convolution")
    for shape in ((4, 2, 3, 3), (4,)):
        layer.blobs.add(shape={"dim": shape}, data=rng.normal(0, 0.3, shape).astype(np.float32).ravel())
    (tmp_path / "net.caffemodel").write_bytes(net.SerializeToString())
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "in.table").write_text(TABLE)
    return tmp_path


def builder(files: Path) -> CaffeBuilder:
    names = ("net.prototxt", "net.caffemodel", "weight.bin", "in.table", "out.table")
    return CaffeBuilder(BM_CHIP_BM1880, *(files / name for name in names))


def test_a_net_with_a_custom_layer_is_built_stored_and_run(files: Path) -> None:
    for _ in range(2):  # custom layers belong to one builder: a second one is no conflict
        made = builder(files)
        made.addCustomizedLayer(MinusLayer())
        made.addCustomizedTensorInst(MinusInst())
        made.build(1, 2, 8, 8, OPT_NONE)
    made.store_model("renamed", files / "net.bmodel")
    made.store_prototxt(files / "optimised.prototxt")
    (stage,) = bmodel.load(files / "net.bmodel").stages()
    assert (stage.net, stage.inputs[0].shape) == ("renamed", (1, 2, 8, 8))
    assert (files / "weight.bin").stat().st_size == stage.weight_size
    written = load_table(files / "out.table").thresholds
    assert written["data"] == 4 and written["minus"] == 8
    x = np.random.default_rng(1).normal(0, 1, (1, 2, 8, 8)).astype(np.float32)
    prob = Session(files / "net.bmodel").run({"data": x})["prob"]
    assert prob.shape == (1, 4, 6, 6) and np.allclose(prob.sum(1), 1, atol=1e-5)


def test_the_stored_prototxt_is_prototxt_and_names_every_layer(files: Path) -> None:
    made = builder(files)
    made.addCustomizedLayer(MinusLayer)
    made.addCustomizedTensorInst(MinusInst)
    made.build(1, 2, 8, 8)
    made.store_prototxt(files / "optimised.prototxt")
    text = (files / "optimised.prototxt").read_text()
    net = parse_net(text, files / "optimised.prototxt").net
    assert [(layer.type, list(layer.bottom)) for layer in net.layer][:2] == [
        ("conv", ["data"]),
        ("customized", ["conv"]),
    ]
    assert list(net.layer[0].blobs[0].shape.dim) == [4, 2, 3, 3]
    assert 'quantization { dtype: "i8" threshold: 8.0 }' in text and 'sub_type: "BuilderMinus"' in text


def test_custom_layers_of_a_builder_stay_in_it(files: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"layer 'minus' \(BuilderMinus\): layers of type 'BuilderMinus'"):
        builder(files).build(1, 2, 8, 8)
    made = builder(files)
    made.addCustomizedLayer(MinusLayer)
    with pytest.raises(UnsupportedError, match="custom layer type 'BuilderMinus' can run neither"):
        made.build(1, 2, 8, 8)
    assert not (files / "out.table").exists() and not (files / "weight.bin").exists()


def test_a_caffemodel_alone_holds_the_structure(files: Path) -> None:
    net = caffe_pb2.NetParameter(name="alone", input=["data"])
    net.input_shape.add(dim=[7, 1, 1, 3])
    net.layer.add(name="relu", type="ReLU", bottom=["data"], top=["out"])
    (files / "alone.caffemodel").write_bytes(net.SerializeToString())
    (files / "in.table").write_text("data 4\nout 4\n")
    made = CaffeBuilder(BM_CHIP_BM1880, None, files / "alone.caffemodel", "", files / "in.table", "")
    made.build(1, 1, 1, 3)
    made.store_model("alone", files / "alone.bmodel")
    y = Session(files / "alone.bmodel").run({"data": np.array([[[[-1.0, 0.5, 2]]]])})["out"]
    np.testing.assert_array_equal(y, [[[[0, 0.5, 2]]]])


def test_cpu_plugins_go_into_the_model(files: Path) -> None:
    made = builder(files)
    made.addCustomizedLayer(MinusLayer)
    made.addCustomizedTensorInst(MinusInst)
    made.build(1, 2, 8, 8)
    plugins = files / "plugins"
    plugins.mkdir()
    with pytest.raises(UsageError, match=r"plugins: the folder holds no \.so file"):
        made.store_model("small", files / "a.bmodel", plugins)
    for name, machine in (("a", 62), ("b", 183)):
        (plugins / f"{name}.so").write_bytes(b"\x7fELF" + bytes(14) + machine.to_bytes(2, "little") + b"code")
    made.store_model("small", files / "a.bmodel", plugins)
    model = bmodel.load(files / "a.bmodel")
    assert [(each.name, bool(each.x86_64), bool(each.armv8)) for each in model.libraries] == [
        ("a", True, False),
        ("b", False, True),
    ]
    (plugins / "c.so").write_text("no ELF")
    with pytest.raises(FileFormatError, match=r"c.so: no shared object for x86-64 or Armv8"):
        made.store_model("small", files / "b.bmodel", plugins)
    assert not (files / "b.bmodel").exists()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.store_model("x", "x"), "nothing is built yet. Remedy: call build"),
        (lambda b: b.store_prototxt("x"), "nothing is built yet"),
        (lambda b: b.build(1, 2, 8, 8, 7), "opt 7 is unknown"),
        (lambda b: CaffeBuilder("bm1682", None, ""), "'bm1682' is no chip version. Remedy: pass BM_CHIP_BM1880"),
    ],
)
def test_wrong_use_is_reported(call: Callable[[CaffeBuilder], Any], message: str, files: Path) -> None:
    with pytest.raises(BMError, match=message):
        call(builder(files))


def test_a_build_inside_of_a_build_is_one_sentence(files: Path) -> None:
    class Again(MinusLayer):
        def codegen(self, op: TensorOp) -> None:
            inner().build(1, 2, 8, 8, OPT_NONE)

    outer = builder(files)
    outer.addCustomizedLayer(Again)
    inner: Callable[[], CaffeBuilder] = lambda: outer  # noqa: E731
    with pytest.raises(UsageError, match="CaffeBuilder::build: this builder is being built"):
        outer.build(1, 2, 8, 8, OPT_NONE)

    def another() -> CaffeBuilder:
        other = builder(files)
        other.addCustomizedLayer(Again)
        return other

    inner = another
    with pytest.raises(PluginError, match="layers of type 'BuilderMinus' calls itself without end") as caught:
        another().build(1, 2, 8, 8, OPT_NONE)
    assert "\n" not in str(caught.value)
