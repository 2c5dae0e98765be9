"""The functions of BMNet for C. What each does beyond its table's words is in `builder`, `layer` and `inst`."""

from __future__ import annotations

import ctypes
from typing import Any

from bmcompiler.bmnet.builder import BM_CHIP_BM1880, CaffeBuilder
from bmcompiler.bmnet.c_fields import values_of
from bmcompiler.bmnet.c_handles import BMNET_C, BuilderHandle, CpuLayer, LayerHandle, OpHandle, call_program
from bmcompiler.bmnet.layer import CustomizedCaffeLayer
from bmcompiler.bmnet.tensor_op import TensorOp
from bmcompiler.errors import UsageError
from bmcompiler.files.store import StrPath
from bmcompiler.plugins.custom_layers import cpu_function, register_cpu_function
from bmcompiler.target import find_target

CHIPS = {3: BM_CHIP_BM1880}
"""Chips by the vendor's numbers (bm1880.md 12.3)."""
_SUCCESS = 0


# Builders.


@BMNET_C.checked
def bmnet_builder_create(
    ver: int,
    modified_proto: StrPath | None,
    caffemodel: StrPath,
    weight_bin: StrPath | None = None,
    in_ctable: StrPath | None = None,
    out_ctable: StrPath | None = None,
) -> tuple[int, BuilderHandle]:
    """Begin a compilation of a Caffe net for chip `ver`, BM_CHIP_BM1880. Files are read by bmnet_builder_build.

    modified_proto is the net's structure (NULL: caffemodel holds it, too), in_ctable a calibration table; weight_bin
    and out_ctable are written: packed weights, and thresholds of the optimised net. End it with bmnet_builder_destroy.
    """
    if ver not in CHIPS:
        raise UsageError(f"bmnet_builder_create: ver is {ver}, no chip version", remedy="pass BM_CHIP_BM1880")
    files = (modified_proto, caffemodel, weight_bin, in_ctable, out_ctable)
    return _SUCCESS, BuilderHandle(CaffeBuilder(CHIPS[ver], *files))


@BMNET_C.checked
def bmnet_builder_destroy(builder: BuilderHandle) -> None:
    """End a compilation. What it has written stays. Refused while bmnet_builder_build runs."""
    _idle(builder, "bmnet_builder_destroy")
    builder.destroyed = True


@BMNET_C.checked
def bmnet_builder_add_layer(builder: BuilderHandle, layer_name: str, codegen: int, user: int | None = None) -> int:
    """Let a function convert the layers of a type in this builder.

    It reads the layer and its input shapes, and adds output shapes and parameters to the op, whose sub type is the
    layer's type unless it sets another. It returns 0, or anything else where the build is to fail.
    """

    class Registered(CustomizedCaffeLayer):
        def layer_name(self) -> str:
            return layer_name

        def dump(self) -> None:
            pass

        def codegen(self, op: TensorOp) -> None:
            call_program(codegen, f"the conversion of layer type '{layer_name}'", user, OpHandle(op), LayerHandle(self))

    builder.builder.addCustomizedLayer(Registered)
    return _SUCCESS


@BMNET_C.checked
def bmnet_builder_add_inst(builder: BuilderHandle, inst_name: str, encode: int, user: int | None = None) -> int:
    """Let a function issue the commands for ops of a sub type in this builder.

    It calls bmk1880 functions on the context that it gets. All of local memory is free, and must be free afterwards. It
    returns 0, or anything else where the build is to fail.
    """
    base: Any = find_target(builder.builder.ver.value).custom_inst

    class Registered(base):  # type: ignore[misc]
        def inst_name(self) -> str:
            """The sub type."""
            return inst_name

        def dump(self) -> None:
            """Nothing: the program prints what it likes."""

        def encode(self) -> None:
            """Call the program."""
            inputs = [one.threshold_y[0] for one in self.m_inputCalibrationParameter]
            op = OpHandle(self.op_, thresholds=(inputs, self.m_calibrationParameter.threshold_y))
            call_program(encode, f"the instructions of '{inst_name}'", user, op, self.ctx)

    builder.builder.addCustomizedTensorInst(Registered)
    return _SUCCESS


@BMNET_C.checked
def bmnet_builder_build(builder: BuilderHandle, n: int, c: int, h: int, w: int, opt: int) -> int:
    """Compile for an input of shape n, c, h, w. opt: OPT_NONE or a BM_OPT constant.

    Refused while it runs already, as in a callback.
    """
    _idle(builder, "bmnet_builder_build")
    builder.building = True
    try:
        builder.builder.build(n, c, h, w, opt)
    finally:
        builder.building = False
    return _SUCCESS


def _idle(builder: BuilderHandle, function: str) -> None:
    if builder.building:
        raise UsageError(f"{function}: builder is being built", remedy="call it after bmnet_builder_build has returned")


@BMNET_C.checked
def bmnet_builder_store_prototxt(builder: BuilderHandle, dst: StrPath) -> int:
    """Write the optimised net as text."""
    builder.builder.store_prototxt(dst)
    return _SUCCESS


@BMNET_C.checked
def bmnet_builder_store_model(
    builder: BuilderHandle, net_name: str, dst: StrPath, plugin_path: StrPath | None = None
) -> int:
    """Write the model file.

    plugin_path: a shared object, or a folder of them, to put into the model for the vendor's runtime.
    """
    builder.builder.store_model(net_name, dst, plugin_path)
    return _SUCCESS


@BMNET_C.checked
def bmnet_register_cpu_layer(sub_type: str, function: int, user: int | None = None) -> int:
    """Let a function compute custom layers of a sub type on the host, in this process.

    It is called when nets run, and where the compiler needs to know what the layer does; from any thread. It reads
    bmnet_op_input_data, fills bmnet_op_output_data, all in real numbers, and returns 0. Another function for the same
    sub type is refused.
    """
    layer = CpuLayer(sub_type, function, user)
    known = cpu_function(sub_type)
    if known is not None and known != layer:
        raise UsageError(f"bmnet_register_cpu_layer: layer type '{sub_type}' has another CPU function already")
    register_cpu_function(sub_type, layer)
    return _SUCCESS


# Ops.


@BMNET_C.checked
def bmnet_op_inputs(op: OpHandle) -> int:
    """Number of inputs."""
    return op.op.input_shape_size()


@BMNET_C.checked
def bmnet_op_outputs(op: OpHandle) -> int:
    """Number of outputs so far."""
    return op.op.output_shape_size()


@BMNET_C.checked
def bmnet_op_input_dims(op: OpHandle, index: int) -> int:
    """Number of dimensions of an input."""
    return op.op.input_shape(index).dim_size()


@BMNET_C.checked
def bmnet_op_input_dim(op: OpHandle, index: int, axis: int) -> int:
    """A dimension of an input."""
    return op.op.input_shape(index).dim(axis)


@BMNET_C.checked
def bmnet_op_output_dims(op: OpHandle, index: int) -> int:
    """Number of dimensions of an output so far."""
    return op.op.output_shape(index).dim_size()


@BMNET_C.checked
def bmnet_op_output_dim(op: OpHandle, index: int, axis: int) -> int:
    """A dimension of an output."""
    return op.op.output_shape(index).dim(axis)


@BMNET_C.checked
def bmnet_op_add_output(op: OpHandle) -> int:
    """A further output, without dimensions."""
    op.op.add_output_shape()
    return _SUCCESS


@BMNET_C.checked
def bmnet_op_add_output_dim(op: OpHandle, index: int, value: int) -> int:
    """A further dimension of an output, at the end."""
    op.op.output_shape(index).add_dim(value)
    return _SUCCESS


@BMNET_C.checked
def bmnet_op_input_threshold(op: OpHandle, index: int) -> float:
    """The real magnitude that 128 stands for in an input; 0 where it is not known."""
    return _one(op.thresholds[0], index, "an instruction has thresholds; input")


@BMNET_C.checked
def bmnet_op_output_threshold(op: OpHandle, index: int) -> float:
    """The real magnitude that 128 stands for in an output; 0 where it is not known."""
    return _one(op.thresholds[1], index, "an instruction has thresholds; output")


@BMNET_C.checked
def bmnet_op_global_input(op: OpHandle, index: int) -> int:
    """Offset of an input in device memory, for bmk1880 calls with CTRL_NEURON, or CTRL_WEIGHT if it is constant."""
    return op.op.global_input(index)


@BMNET_C.checked
def bmnet_op_global_output(op: OpHandle, index: int) -> int:
    """Offset of an output in device memory, for bmk1880 calls with CTRL_NEURON."""
    return op.op.global_output(index)


@BMNET_C.checked
def bmnet_op_input_data(op: OpHandle, index: int) -> int:
    """The numbers of an input, dense, for a CPU function; until it returns."""
    return _one(op.inputs, index, "a CPU function has data; input").ctypes.data


@BMNET_C.checked
def bmnet_op_output_data(op: OpHandle, index: int) -> int:
    """Where a CPU function writes the numbers of an output, dense, zeros at first; until it returns."""
    return _one(op.outputs, index, "a CPU function has data; output").ctypes.data


@BMNET_C.checked
def bmnet_op_sub_type(op: OpHandle) -> int:
    """The sub type, until the callback returns."""
    return _kept(op.kept, op.op.tg_customized_param().sub_type())


@BMNET_C.checked
def bmnet_op_set_sub_type(op: OpHandle, name: str) -> int:
    """Name the custom layer, which instructions and CPU functions are found by."""
    op.op.mutable_tg_customized_param().set_sub_type(name)
    return _SUCCESS


@BMNET_C.checked
def bmnet_op_i32_params(op: OpHandle) -> int:
    """Number of integer parameters."""
    return op.op.tg_customized_param().i32_param_size()


@BMNET_C.checked
def bmnet_op_f32_params(op: OpHandle) -> int:
    """Number of real parameters."""
    return op.op.tg_customized_param().f32_param_size()


@BMNET_C.checked
def bmnet_op_i32_param(op: OpHandle, index: int) -> int:
    """An integer parameter."""
    return op.op.tg_customized_param().i32_param(index)


@BMNET_C.checked
def bmnet_op_f32_param(op: OpHandle, index: int) -> float:
    """A real parameter."""
    return op.op.tg_customized_param().f32_param(index)


@BMNET_C.checked
def bmnet_op_add_i32_param(op: OpHandle, value: int) -> int:
    """A further integer parameter."""
    op.op.mutable_tg_customized_param().add_i32_param(value)
    return _SUCCESS


@BMNET_C.checked
def bmnet_op_add_f32_param(op: OpHandle, value: float) -> int:
    """A further real parameter."""
    op.op.mutable_tg_customized_param().add_f32_param(value)
    return _SUCCESS


@BMNET_C.checked
def bmnet_op_fail(op: OpHandle, reason: str) -> None:
    """Let the callback that runs fail with this reason, unless it has one already."""
    op.reason = op.reason or reason


# Layers.


@BMNET_C.checked
def bmnet_layer_count(layer: LayerHandle, field: str) -> int:
    """How many values a field of the layer's LayerParameter has, such as "elu_param.alpha" or "custom.value".

    Of a field that is not repeated, 1 where the net's file sets it.
    """
    return len(values_of(layer.layer, field, stated=True))


@BMNET_C.checked
def bmnet_layer_number(layer: LayerHandle, field: str, index: int) -> float:
    """A value of a field that holds numbers, booleans or enums; its default where the file does not set it."""
    found = _one(values_of(layer.layer, field), index, f"field '{field}': value")
    if not isinstance(found, (int, float)):
        raise UsageError(f"bmnet_layer_number: field '{field}' holds no number", remedy="call bmnet_layer_text")
    return float(found)


@BMNET_C.checked
def bmnet_layer_text(layer: LayerHandle, field: str, index: int) -> int:
    """A value of a field that holds text, its default where the file does not set it; until the callback returns."""
    found = _one(values_of(layer.layer, field), index, f"field '{field}': value")
    if not isinstance(found, (str, bytes)):
        raise UsageError(f"bmnet_layer_text: field '{field}' holds no text", remedy="call bmnet_layer_number")
    return _kept(layer.kept, found)


def _one(values: Any, index: int, what: str) -> Any:
    if not 0 <= index < len(values):
        raise UsageError(f"{what} {index} does not exist, there are {len(values)}")
    return values[index]


def _kept(kept: list[Any], value: str | bytes) -> int:
    """The address of a C string that lasts as long as the list."""
    kept.append(ctypes.create_string_buffer(value.encode() if isinstance(value, str) else value))
    return ctypes.addressof(kept[-1])
