"""The BMNet chapter of the vendor's API text: every class, member and argument is there under its name, and works."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler import bmnet
from bmcompiler.errors import UsageError
from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.runtime import Session

# Class -> (base class, member -> arguments). Members without arguments listed as None are variables.
NAMES: dict[str, tuple[str | None, dict[str, tuple[str, ...] | None]]] = {
    "TensorOp": (
        None,
        {
            "input_shape_size": (),
            "output_shape_size": (),
            "input_shape": ("index",),
            "output_shape": ("index",),
            "add_output_shape": (),
            "global_input": ("index",),
            "global_output": ("index",),
            "mutable_tg_customized_param": (),
            "tg_customized_param": (),
        },
    ),
    "Layer": (None, {"layer_name": (), "dump": (), "codegen": ("op",), "add_output_offset": ("offset",)}),
    "CaffeLayer": ("Layer", {"layer_": None}),
    "CustomizedCaffeLayer": (
        "CaffeLayer",
        {"layer_name": (), "dump": (), "setup": ("op",), "codegen": ("op",), "add_output_offset": ("offset",)},
    ),
    "TensorInst": (None, {"inst_name": (), "dump": (), "encode": (), "op_": None}),
    "TensorFixedInst": (
        "TensorInst",
        {
            "SetCalibrationParameter": ("calibration_parameter",),
            "AddInputCalibrationParameter": ("calibration_parameter",),
            "m_calibrationParameter": None,
            "m_inputCalibrationParameter": None,
        },
    ),
    "CustomizedTensorFixedInst": (
        "TensorFixedInst",
        {
            "inst_name": (),
            "dump": (),
            "encode": (),
            "get_global_neuron_base": (),
            "get_global_weight_base": (),
            "op_": None,
        },
    ),
    "TGCustomizedParameter": (
        None,
        {
            "i32_param_size": (),
            "f32_param_size": (),
            "i32_param": ("index",),
            "f32_param": ("index",),
            "add_i32_param": ("value",),
            "add_f32_param": ("value",),
            "set_sub_type": ("name",),
        },
    ),
    "TensorShape": (None, {"CopyFrom": ("source",), "dim_size": (), "dim": ("index",), "add_dim": ("value",)}),
    "Builder": (
        None,
        {
            "__init__": ("ver",),
            "addCustomizedTensorInst": ("inst",),
            "build": ("n", "c", "h", "w", "opt"),
            "store_prototxt": ("dst",),
            "store_model": ("net_name", "dst", "plugin_path"),
        },
    ),
    "CaffeBuilder": (
        "Builder",
        {
            "__init__": ("ver", "modified_proto", "caffemodel", "weight_bin", "in_ctable", "out_ctable"),
            "addCustomizedLayer": ("layer",),
            "addCustomizedTensorInst": ("inst",),
            "build": ("n", "c", "h", "w", "opt"),
            "store_prototxt": ("dst",),
            "store_model": ("net_name", "dst", "plugin_path"),
        },
    ),
}
CONSTANTS = ("BM_CHIP_BM1880", "OPT_NONE", "BM_OPT_LAYER_GROUP", "BM_OPT_LAYER_GROUP_WITH_WEIG")
NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 dim: 8 dim: 8 } } }
layer { name: "act" type: "NamesRelu" bottom: "data" top: "act" relu_param { negative_slope: 0.25 } }
"""
used: set[str] = set()


def concrete(name: str) -> Any:
    """An object of a class; abstract methods do nothing."""
    cls = getattr(bmnet, name)
    if name == "TensorOp":
        return cls([(1, 2)])
    if "Builder" in name:
        return cls(bmnet.BM_CHIP_BM1880, *(("a.prototxt", "a.caffemodel", "w", "in", "out") if "Caffe" in name else ()))
    return type(name, (cls,), dict.fromkeys(getattr(cls, "__abstractmethods__", ()), lambda self: ""))()


@pytest.mark.parametrize("name", NAMES)
def test_the_class_has_its_members(name: str) -> None:
    cls, (base, members) = getattr(bmnet, name), NAMES[name]
    assert base is None or getattr(bmnet, base) in cls.__mro__[1:]
    for member, arguments in members.items():
        if arguments is None:
            assert hasattr(concrete(name), member), member
        else:
            parameters = list(inspect.signature(getattr(cls, member)).parameters)
            assert parameters == ["self", *arguments], member


def test_all_names_are_exported() -> None:
    assert {*NAMES, *CONSTANTS} <= set(bmnet.__all__)
    assert all(getattr(bmnet, name) is not None for name in bmnet.__all__)
    assert not hasattr(bmnet, "Tensor")


def test_only_the_last_argument_of_build_and_store_model_may_be_left_out() -> None:
    for method, needed in ((bmnet.Builder.build, "nchw"), (bmnet.Builder.store_model, ("net_name", "dst"))):
        parameters = inspect.signature(method).parameters.values()
        assert [p.name for p in parameters if p.default is p.empty][1:] == list(needed)
    assert inspect.signature(bmnet.Builder.build).parameters["opt"].default == bmnet.BM_OPT_LAYER_GROUP_WITH_WEIG


class Relu(bmnet.CustomizedCaffeLayer):
    """Leaky for x < 0, written with nothing but names of the library."""

    def layer_name(self) -> str:
        return "NamesRelu"

    def dump(self) -> None:
        used.add("Layer.dump")

    def setup(self, op: bmnet.TensorOp) -> None:
        super().setup(op)
        assert op.tg_customized_param().sub_type() == "NamesRelu"
        used.add("Layer.setup")

    def codegen(self, op: bmnet.TensorOp) -> None:
        assert (op.input_shape_size(), op.output_shape_size()) == (1, 0)
        copy = bmnet.TensorShape()
        copy.CopyFrom(op.input_shape(0))
        out = op.add_output_shape()
        for index in range(copy.dim_size()):
            out.add_dim(copy.dim(index))
        self.add_output_offset(0)
        param = op.mutable_tg_customized_param()
        param.add_f32_param(self.layer_.relu_param.negative_slope)
        param.add_i32_param(op.output_shape_size())
        used.add("Layer.codegen")


class ReluInst(bmnet.CustomizedTensorFixedInst):  # type: ignore[misc,name-defined]  # the target's class
    """x * slope for x < 0 in steps of 1/4."""

    def inst_name(self) -> str:
        return "NamesRelu"

    def dump(self) -> None:
        used.add("TensorInst.dump")

    def encode(self) -> None:
        from bmcompiler.backends.bm1880 import bmkernel as bmk

        param, y = self.op_.tg_customized_param(), self.m_calibrationParameter
        assert (param.i32_param_size(), param.f32_param_size(), param.i32_param(0)) == (1, 1, 1)
        assert (param.f32_param(0), y.threshold_y, y.name) == (0.25, (4.0,), "act")
        assert [each.threshold_y for each in self.m_inputCalibrationParameter] == [(4.0,)]
        shape = bmk.shape_t4(*(self.op_.output_shape(0).dim(i) for i in range(4)))
        source = self.get_global_neuron_base() + self.op_.global_input(0)
        with self.local_tensors(shape, 2) as (x, low):
            bmk.bmk1880_gdma_load(self.ctx, x, source, bmk.CTRL_NEURON)
            bmk.bmk1880_tpu_mul_const(self.ctx, bmk.bmk1880_mul_const_param_t(None, low, x, 1, True, 2))
            bmk.bmk1880_tpu_max(self.ctx, bmk.bmk1880_max_param_t(x, x, low))
            bmk.bmk1880_gdma_store(self.ctx, x, self.op_.global_output(0), bmk.CTRL_NEURON)
        assert self.get_global_weight_base() == 0
        used.add("TensorInst.encode")

    def compute(self, inputs: list[np.ndarray], function: Any) -> np.ndarray:
        x = inputs[0].astype(np.int32)
        return np.maximum(x, (x + 2) >> 2).astype(np.int8)


@pytest.mark.parametrize("opt", [bmnet.OPT_NONE, bmnet.BM_OPT_LAYER_GROUP, bmnet.BM_OPT_LAYER_GROUP_WITH_WEIG])
def test_a_net_is_built_with_every_name(opt: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.prototxt").write_text(NET)
    weights = caffe_pb2.NetParameter(name="small")
    weights.layer.add(name="act", type="NamesRelu")
    Path("net.caffemodel").write_bytes(weights.SerializeToString())
    Path("in.table").write_text("data 4\nact 4\n")
    used.clear()
    builder = bmnet.CaffeBuilder(
        bmnet.BM_CHIP_BM1880, "net.prototxt", "net.caffemodel", "weight.bin", "in.table", "out.table"
    )
    builder.addCustomizedLayer(Relu())
    builder.addCustomizedTensorInst(ReluInst())
    builder.build(1, 2, 8, 8, opt)
    builder.store_prototxt("optimised.prototxt")
    builder.store_model("named", "net.bmodel")
    assert used == {"Layer.setup", "Layer.codegen", "TensorInst.encode"}
    assert Path("out.table").exists() and Path("weight.bin").exists() and Path("optimised.prototxt").exists()
    x = np.random.default_rng(0).integers(-128, 128, (1, 2, 8, 8)).astype(np.int8)
    got = Session("net.bmodel").run({"data": x}, raw=True)["act"]
    np.testing.assert_array_equal(got, np.maximum(x, (x.astype(np.int32) + 2) >> 2))


def test_instructions_can_be_given_their_thresholds_and_op() -> None:
    inst = ReluInst(bmnet.TensorOp([(1, 2)]))
    inst.SetCalibrationParameter(bmnet.LayerCalibrationParameter("y", (2.0,)))
    inst.AddInputCalibrationParameter(bmnet.LayerCalibrationParameter("x", (3.0,)))
    assert (inst.op_.input_shape(0).dims(), inst.m_calibrationParameter.threshold_y) == ((1, 2), (2.0,))
    assert [each.threshold_y[0] for each in inst.m_inputCalibrationParameter] == [3.0]
    for dump in (inst.dump, Relu().dump):
        dump()
    with pytest.raises(UsageError, match="known during code generation only"):
        inst.op_.global_output(0)
