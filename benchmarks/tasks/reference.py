"""The networks elsewhere: float32, and static int8 with scales per channel, by ONNX Runtime.

Caffe files, which it does not read, are evaluated in float32 as imported.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnx import version_converter
from onnxruntime.quantization import CalibrationDataReader, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import bmcompiler
from bmcompiler.interpreter import run_module
from tasks.material import Array
from tasks.networks import Network, Run

_CHANNELS_SINCE = 13
"""The opset whose QuantizeLinear has an axis."""


def imported(net: Network) -> Run:
    """The network as imported, in float32; each sample is computed once."""
    module = bmcompiler.load_network(*net.files, shapes=[net.shape])
    known: dict[bytes, list[Array]] = {}

    def run(x: Array) -> list[Array]:
        key = x.tobytes()
        if key not in known:
            known[key] = list(run_module(module, {module.main.input_names[0]: x}).values())
        return known[key]

    return run


def float32(net: Network) -> Run:
    return _session(net, _model(net)) if _is_onnx(net) else imported(net)


def int8(net: Network, count: int) -> Run | None:
    """Calibrated with so many samples; None for Caffe files."""
    if not _is_onnx(net):
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        onnx.save(_model(net), path)
        quant_pre_process(path, path, skip_symbolic_shape=True)
        quantize_static(path, path, _Samples(net.calibration(count)), per_channel=True)
        return _session(net, onnx.load(path))


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    """One sample after the other, as ONNX Runtime asks for them."""

    def __init__(self, data: dict[str, Array]) -> None:
        self.rows: Iterator[dict[str, Array]] = (
            {name: array[k : k + 1]} for name, array in data.items() for k in range(len(array))
        )

    def get_next(self) -> dict[str, Array] | None:
        return next(self.rows, None)


def _is_onnx(net: Network) -> bool:
    return net.files[0].suffix == ".onnx"


def _model(net: Network) -> Any:
    """The file with the shape of its one input fixed, that of outputs open, at an opset that has scales per channel."""
    model = onnx.load(net.files[0])
    if model.opset_import[0].version < _CHANNELS_SINCE:
        model = version_converter.convert_version(model, _CHANNELS_SINCE)
    graph = model.graph
    for repeated in [each for each in graph.input if each.name != net.input]:
        graph.input.remove(repeated)  # initializers that are listed as inputs, too
    del graph.value_info[:]
    (given,) = graph.input
    given.CopyFrom(onnx.helper.make_tensor_value_info(net.input, onnx.TensorProto.FLOAT, net.shape))
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


def _session(net: Network, model: Any) -> Run:
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {net.input: x})
