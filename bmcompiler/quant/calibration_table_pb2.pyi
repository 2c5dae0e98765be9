# mypy: disable-error-code="type-arg"
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NetCalibrationParameter(_message.Message):
    __slots__ = ("name", "layer")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    name: str
    layer: _containers.RepeatedCompositeFieldContainer[LayerCalibrationParameter]
    def __init__(self, name: _Optional[str] = ..., layer: _Optional[_Iterable[_Union[LayerCalibrationParameter, _Mapping]]] = ...) -> None: ...

class LayerCalibrationParameter(_message.Message):
    __slots__ = ("name", "threshold_y", "right_shift_width", "threshold_x_quantized", "blob_param", "fusion_skipped", "bottom_unsigned", "top_unsigned", "convolution_param", "inner_product_param", "pooling_param", "relu_param", "prelu_param", "concat_param")
    NAME_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_Y_FIELD_NUMBER: _ClassVar[int]
    RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_X_QUANTIZED_FIELD_NUMBER: _ClassVar[int]
    BLOB_PARAM_FIELD_NUMBER: _ClassVar[int]
    FUSION_SKIPPED_FIELD_NUMBER: _ClassVar[int]
    BOTTOM_UNSIGNED_FIELD_NUMBER: _ClassVar[int]
    TOP_UNSIGNED_FIELD_NUMBER: _ClassVar[int]
    CONVOLUTION_PARAM_FIELD_NUMBER: _ClassVar[int]
    INNER_PRODUCT_PARAM_FIELD_NUMBER: _ClassVar[int]
    POOLING_PARAM_FIELD_NUMBER: _ClassVar[int]
    RELU_PARAM_FIELD_NUMBER: _ClassVar[int]
    PRELU_PARAM_FIELD_NUMBER: _ClassVar[int]
    CONCAT_PARAM_FIELD_NUMBER: _ClassVar[int]
    name: str
    threshold_y: _containers.RepeatedScalarFieldContainer[float]
    right_shift_width: int
    threshold_x_quantized: _containers.RepeatedScalarFieldContainer[int]
    blob_param: _containers.RepeatedCompositeFieldContainer[BlobParameter]
    fusion_skipped: int
    bottom_unsigned: _containers.RepeatedScalarFieldContainer[bool]
    top_unsigned: _containers.RepeatedScalarFieldContainer[bool]
    convolution_param: ConvolutionParameter
    inner_product_param: InnerProductParameter
    pooling_param: PoolingParameter
    relu_param: ReLUParameter
    prelu_param: PReLUParameter
    concat_param: ConcatParameter
    def __init__(self, name: _Optional[str] = ..., threshold_y: _Optional[_Iterable[float]] = ..., right_shift_width: _Optional[int] = ..., threshold_x_quantized: _Optional[_Iterable[int]] = ..., blob_param: _Optional[_Iterable[_Union[BlobParameter, _Mapping]]] = ..., fusion_skipped: _Optional[int] = ..., bottom_unsigned: _Optional[_Iterable[bool]] = ..., top_unsigned: _Optional[_Iterable[bool]] = ..., convolution_param: _Optional[_Union[ConvolutionParameter, _Mapping]] = ..., inner_product_param: _Optional[_Union[InnerProductParameter, _Mapping]] = ..., pooling_param: _Optional[_Union[PoolingParameter, _Mapping]] = ..., relu_param: _Optional[_Union[ReLUParameter, _Mapping]] = ..., prelu_param: _Optional[_Union[PReLUParameter, _Mapping]] = ..., concat_param: _Optional[_Union[ConcatParameter, _Mapping]] = ...) -> None: ...

class BlobParameter(_message.Message):
    __slots__ = ("name", "threshold_y", "right_shift_width")
    NAME_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_Y_FIELD_NUMBER: _ClassVar[int]
    RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    threshold_y: float
    right_shift_width: int
    def __init__(self, name: _Optional[str] = ..., threshold_y: _Optional[float] = ..., right_shift_width: _Optional[int] = ...) -> None: ...

class ConvolutionParameter(_message.Message):
    __slots__ = ("bn_right_shift_width", "scale_right_shift_width", "prelu_param", "relu_param")
    BN_RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    SCALE_RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    PRELU_PARAM_FIELD_NUMBER: _ClassVar[int]
    RELU_PARAM_FIELD_NUMBER: _ClassVar[int]
    bn_right_shift_width: int
    scale_right_shift_width: int
    prelu_param: PReLUParameter
    relu_param: ReLUParameter
    def __init__(self, bn_right_shift_width: _Optional[int] = ..., scale_right_shift_width: _Optional[int] = ..., prelu_param: _Optional[_Union[PReLUParameter, _Mapping]] = ..., relu_param: _Optional[_Union[ReLUParameter, _Mapping]] = ...) -> None: ...

class InnerProductParameter(_message.Message):
    __slots__ = ("prelu_param",)
    PRELU_PARAM_FIELD_NUMBER: _ClassVar[int]
    prelu_param: PReLUParameter
    def __init__(self, prelu_param: _Optional[_Union[PReLUParameter, _Mapping]] = ...) -> None: ...

class PoolingParameter(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReLUParameter(_message.Message):
    __slots__ = ("gt_scale", "le_scale", "gt_right_shift_width", "le_right_shift_width")
    GT_SCALE_FIELD_NUMBER: _ClassVar[int]
    LE_SCALE_FIELD_NUMBER: _ClassVar[int]
    GT_RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    LE_RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    gt_scale: int
    le_scale: int
    gt_right_shift_width: int
    le_right_shift_width: int
    def __init__(self, gt_scale: _Optional[int] = ..., le_scale: _Optional[int] = ..., gt_right_shift_width: _Optional[int] = ..., le_right_shift_width: _Optional[int] = ...) -> None: ...

class PReLUParameter(_message.Message):
    __slots__ = ("gt_scale", "gt_right_shift_width", "le_right_shift_width")
    GT_SCALE_FIELD_NUMBER: _ClassVar[int]
    GT_RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    LE_RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    gt_scale: int
    gt_right_shift_width: int
    le_right_shift_width: int
    def __init__(self, gt_scale: _Optional[int] = ..., gt_right_shift_width: _Optional[int] = ..., le_right_shift_width: _Optional[int] = ...) -> None: ...

class ConcatParameter(_message.Message):
    __slots__ = ("right_shift_width", "threshold_x_quantized", "need_quantize_num")
    RIGHT_SHIFT_WIDTH_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_X_QUANTIZED_FIELD_NUMBER: _ClassVar[int]
    NEED_QUANTIZE_NUM_FIELD_NUMBER: _ClassVar[int]
    right_shift_width: _containers.RepeatedScalarFieldContainer[int]
    threshold_x_quantized: _containers.RepeatedScalarFieldContainer[int]
    need_quantize_num: int
    def __init__(self, right_shift_width: _Optional[_Iterable[int]] = ..., threshold_x_quantized: _Optional[_Iterable[int]] = ..., need_quantize_num: _Optional[int] = ...) -> None: ...
