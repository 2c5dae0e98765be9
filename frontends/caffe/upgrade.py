"""Older files in today's form: V1 `layers` and V0 nested layers become `layer`, input headers become Input layers.

After `upgrade_net` only `net.layer` is filled, in source order. Weights are read apart (`weights.py`), so blobs are not
moved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.frontends.caffe import caffe_pb2

_V1 = caffe_pb2.V1LayerParameter

# V1 enum name -> layer type; the names that are not simply capitalised
_V1_TYPES = {
    "ABSVAL": "AbsVal", "ACCURACY": "Accuracy", "ARGMAX": "ArgMax", "BNLL": "BNLL", "CONCAT": "Concat",
    "CONTRASTIVE_LOSS": "ContrastiveLoss", "CONVOLUTION": "Convolution", "DECONVOLUTION": "Deconvolution",
    "DATA": "Data", "DROPOUT": "Dropout", "DUMMY_DATA": "DummyData", "EUCLIDEAN_LOSS": "EuclideanLoss",
    "ELTWISE": "Eltwise", "EXP": "Exp", "FLATTEN": "Flatten", "HDF5_DATA": "HDF5Data", "HDF5_OUTPUT": "HDF5Output",
    "HINGE_LOSS": "HingeLoss", "IM2COL": "Im2col", "IMAGE_DATA": "ImageData", "INFOGAIN_LOSS": "InfogainLoss",
    "INNER_PRODUCT": "InnerProduct", "LRN": "LRN", "MEMORY_DATA": "MemoryData",
    "MULTINOMIAL_LOGISTIC_LOSS": "MultinomialLogisticLoss", "MVN": "MVN", "POOLING": "Pooling", "POWER": "Power",
    "RELU": "ReLU", "SIGMOID": "Sigmoid", "SIGMOID_CROSS_ENTROPY_LOSS": "SigmoidCrossEntropyLoss",
    "SILENCE": "Silence", "SOFTMAX": "Softmax", "SOFTMAX_LOSS": "SoftmaxWithLoss", "SPLIT": "Split", "SLICE": "Slice",
    "TANH": "TanH", "WINDOW_DATA": "WindowData", "THRESHOLD": "Threshold", "CROP": "Crop", "BN": "BN",
    "UPSAMPLE": "Upsample", "PRELU": "PReLU", "INTERP": "Interp", "IMAGE_SEG_DATA": "ImageSegData",
}  # fmt: skip

_V0_TYPES = {
    "accuracy": "Accuracy", "bnll": "BNLL", "concat": "Concat", "conv": "Convolution", "data": "Data",
    "dropout": "Dropout", "euclidean_loss": "EuclideanLoss", "flatten": "Flatten", "hdf5_data": "HDF5Data",
    "hdf5_output": "HDF5Output", "im2col": "Im2col", "images": "ImageData", "infogain_loss": "InfogainLoss",
    "innerproduct": "InnerProduct", "lrn": "LRN", "multinomial_logistic_loss": "MultinomialLogisticLoss",
    "pool": "Pooling", "relu": "ReLU", "sigmoid": "Sigmoid", "softmax": "Softmax", "softmax_loss": "SoftmaxWithLoss",
    "split": "Split", "tanh": "TanH", "window_data": "WindowData",
}  # fmt: skip

# layer type -> {flat V0 field: path of today's field}
_V0_FIELDS: dict[str, dict[str, str]] = {
    "Convolution": {
        "num_output": "convolution_param.num_output", "biasterm": "convolution_param.bias_term",
        "pad": "convolution_param.pad", "kernelsize": "convolution_param.kernel_size",
        "group": "convolution_param.group", "stride": "convolution_param.stride",
    },
    "InnerProduct": {"num_output": "inner_product_param.num_output", "biasterm": "inner_product_param.bias_term"},
    "Pooling": {
        "pool": "pooling_param.pool", "kernelsize": "pooling_param.kernel_size", "pad": "pooling_param.pad",
        "stride": "pooling_param.stride",
    },
    "LRN": {"local_size": "lrn_param.local_size", "alpha": "lrn_param.alpha", "beta": "lrn_param.beta",
            "k": "lrn_param.k"},
    "Concat": {"concat_dim": "concat_param.concat_dim"},
    "Dropout": {"dropout_ratio": "dropout_param.dropout_ratio"},
    "Data": {"batchsize": "data_param.batch_size", "cropsize": "transform_param.crop_size"},
    "ImageData": {"batchsize": "image_data_param.batch_size", "cropsize": "transform_param.crop_size"},
}  # fmt: skip


def upgrade_net(net: caffe_pb2.NetParameter, path: Path) -> None:
    """Bring `net` into today's form, in place. Raises FileFormatError or UnsupportedError naming the layer."""
    if net.layers and net.layer:
        raise FileFormatError("mixes `layers` (old form) and `layer` (new form)", file=path, remedy="use one of them")
    check_names(net, path)
    paddings: dict[str, tuple[str, int]] = {}
    for old in net.layers:
        if old.HasField("layer") and old.layer.type == "padding":
            paddings[next(iter(old.top), "")] = (next(iter(old.bottom), ""), old.layer.pad)
        else:
            _upgrade_layer(old, net.layer.add(), paddings, path)
    del net.layers[:]
    _inputs_to_layer(net, path)


def check_names(net: caffe_pb2.NetParameter, path: Path) -> None:
    """Raise FileFormatError for names that are not text (binary files can hold any bytes)."""
    layers: list[Any] = [*net.layer, *net.layers]
    for layer in layers:
        for name in (layer.name, *layer.bottom, *layer.top, *([layer.type] if isinstance(layer.type, bytes) else [])):
            if not isinstance(name, str):
                raise FileFormatError(f"name {name!r} is not UTF-8 text", file=path)
    for name in (net.name, *net.input):
        if not isinstance(name, str):
            raise FileFormatError(f"name {name!r} is not UTF-8 text", file=path)


def v1_type(old: caffe_pb2.V1LayerParameter) -> str:
    """Today's type name of a V1 layer; "" when the file names none."""
    return _V1_TYPES.get(_V1.LayerType.Name(old.type), "") if old.HasField("type") else ""


def _upgrade_layer(
    old: caffe_pb2.V1LayerParameter,
    new: caffe_pb2.LayerParameter,
    paddings: dict[str, tuple[str, int]],
    path: Path,
) -> None:
    new.bottom.extend(old.bottom)
    new.top.extend(old.top)
    if old.HasField("layer"):
        _upgrade_v0(old.layer, new, paddings, path)
        return
    new.name = old.name
    new.type = v1_type(old)
    fields = new.DESCRIPTOR.fields_by_name
    for spec, value in old.ListFields():
        target = fields.get(spec.name)
        if isinstance(value, Message) and target is not None and target.message_type is spec.message_type:
            getattr(new, spec.name).CopyFrom(value)
    new.include.extend(old.include)
    new.exclude.extend(old.exclude)


def _upgrade_v0(
    old: caffe_pb2.V0LayerParameter,
    new: caffe_pb2.LayerParameter,
    paddings: dict[str, tuple[str, int]],
    path: Path,
) -> None:
    if not isinstance(old.name, str) or not isinstance(old.type, str):
        raise FileFormatError("a layer name or type is not UTF-8 text", file=path)
    new.name = old.name
    new.type = _V0_TYPES.get(old.type, old.type)
    for source, target in _V0_FIELDS.get(new.type, {}).items():
        if not old.HasField(source):
            continue
        group, name = target.split(".")
        parameter, value = getattr(new, group), getattr(old, source)
        if group == "convolution_param" and name in ("pad", "kernel_size", "stride"):
            getattr(parameter, name).append(value)
        else:
            setattr(parameter, name, value)
    for index, bottom in enumerate(new.bottom):
        if bottom in paddings:
            _absorb_padding(new, index, *paddings[bottom], path)


def _absorb_padding(layer: caffe_pb2.LayerParameter, index: int, source: str, pad: int, path: Path) -> None:
    """V0 padding layers become the `pad` of the convolution or pooling that reads them."""
    layer.bottom[index] = source
    if layer.type == "Convolution":
        del layer.convolution_param.pad[:]
        layer.convolution_param.pad.append(pad)
    elif layer.type == "Pooling":
        layer.pooling_param.pad = pad
    else:
        raise UnsupportedError(
            "reads a V0 padding layer, which only Convolution and Pooling can",
            file=path,
            layer=layer.name,
            kind=layer.type,
        )


def _inputs_to_layer(net: caffe_pb2.NetParameter, path: Path) -> None:
    """`input:` with `input_shape` or groups of four `input_dim` becomes an Input layer at the front."""
    if not net.input:
        return
    shapes = [list(shape.dim) for shape in net.input_shape]
    if not shapes and net.input_dim:
        if len(net.input_dim) != 4 * len(net.input):
            raise FileFormatError(
                f"{len(net.input)} inputs need {4 * len(net.input)} input_dim values, found {len(net.input_dim)}",
                file=path,
            )
        shapes = [list(net.input_dim[i : i + 4]) for i in range(0, len(net.input_dim), 4)]
    if shapes and len(shapes) not in (1, len(net.input)):
        raise FileFormatError(f"{len(net.input)} inputs have {len(shapes)} input_shape entries", file=path)
    layer = caffe_pb2.LayerParameter(name="input", type="Input", top=list(net.input))
    for shape in shapes:
        layer.input_param.shape.add(dim=shape)
    rest = list(net.layer)
    del net.layer[:]
    net.layer.extend([layer, *rest])
    del net.input[:], net.input_dim[:], net.input_shape[:]
