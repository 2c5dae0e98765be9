"""A small network as every kind of file the commands read, and a way to run a command in this process."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bmcompiler.cli.common import run
from bmcompiler.frontends.caffe import caffe_pb2

SHAPE = (1, 2, 6, 6)
PROTOTXT = """name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 dim: 6 dim: 6 } } }
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 3 kernel_size: 3 pad: 1 stride: 1 }
}
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer {
  name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1" inner_product_param { num_output: 4 } }
layer { name: "prob" type: "Softmax" bottom: "ip1" top: "prob" }
"""


def command(name: str, *args: object) -> int:
    """Exit status of `bmnet-NAME ARGS`."""
    return run(import_module(f"bmcompiler.cli.{name}").cli, f"bmnet-{name}", [str(arg) for arg in args])


def weights() -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(3)
    shapes = {"conv1": [(3, 2, 3, 3), (3,)], "ip1": [(4, 27), (4,)]}
    return {name: [rng.normal(0, 0.4, s).astype(np.float32) for s in each] for name, each in shapes.items()}


def caffemodel(arrays: dict[str, list[np.ndarray]]) -> bytes:
    net = caffe_pb2.NetParameter(name="small")
    for name, blobs in arrays.items():
        layer = net.layer.add(name=name, type="Any")
        for blob in blobs:
            layer.blobs.add(shape={"dim": blob.shape}, data=blob.ravel())
    return net.SerializeToString()


def onnx_model(shape: Sequence[int | str] = SHAPE, op: str = "Relu") -> onnx.ModelProto:
    (conv, conv_bias), (ip, ip_bias) = weights().values()
    arrays = {"w": conv, "b": conv_bias, "v": ip, "c": ip_bias}
    nodes = [
        helper.make_node("Conv", ["data", "w", "b"], ["conv1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node(op, ["conv1"], ["act1"], "act1"),
        helper.make_node("MaxPool", ["act1"], ["pool1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool1"], ["flat"], "flat"),
        helper.make_node("Gemm", ["flat", "v", "c"], ["ip1"], "ip1", transB=1),
        helper.make_node("Softmax", ["ip1"], ["prob"], "prob", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("prob", TensorProto.FLOAT, [shape[0], 4])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def write_all(folder: Path) -> None:
    """net.prototxt, .caffemodel, .onnx, .mlir with weights, .bmodel, calib.npz and a table of each kind (net.table,
    net.pb2, table.prototxt) in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(4).normal(0, 1, (4, *SHAPE[1:])).astype(np.float32)
    np.savez(folder / "calib.npz", data=samples)
    (folder / "net.prototxt").write_text(PROTOTXT)
    (folder / "net.caffemodel").write_bytes(caffemodel(weights()))
    onnx.save(onnx_model(), folder / "net.onnx")
    net = (folder / "net.prototxt", folder / "net.caffemodel")
    for table in ("net.table", "net.pb2", "table.prototxt"):
        assert command("calibrate", *net, "--data", folder / "calib.npz", "--method", "max", "-o", folder / table) == 0
    outputs = ("-o", folder / "net.bmodel", "--save-ir", folder / "int8.mlir", "--quiet")
    table_option = ("--calibration-table", folder / "net.table")
    assert command("compile", *net, "--target", "bm1880", *table_option, *outputs) == 0
    from bmcompiler.driver import load_network
    from bmcompiler.files.mlir import save_module

    save_module(load_network(*net), folder / "net.mlir")
