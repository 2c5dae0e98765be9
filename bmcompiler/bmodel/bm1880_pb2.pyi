# mypy: disable-error-code="type-arg"
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Model(_message.Message):
    __slots__ = ("net_name", "chip", "node_num", "fmt", "command", "weight", "library", "type", "version", "weight_info", "producer")
    NET_NAME_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    NODE_NUM_FIELD_NUMBER: _ClassVar[int]
    FMT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_INFO_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    net_name: str
    chip: int
    node_num: int
    fmt: int
    command: _containers.RepeatedCompositeFieldContainer[Command]
    weight: _containers.RepeatedScalarFieldContainer[bytes]
    library: _containers.RepeatedCompositeFieldContainer[Library]
    type: str
    version: str
    weight_info: _containers.RepeatedCompositeFieldContainer[Weight]
    producer: str
    def __init__(self, net_name: _Optional[str] = ..., chip: _Optional[int] = ..., node_num: _Optional[int] = ..., fmt: _Optional[int] = ..., command: _Optional[_Iterable[_Union[Command, _Mapping]]] = ..., weight: _Optional[_Iterable[bytes]] = ..., library: _Optional[_Iterable[_Union[Library, _Mapping]]] = ..., type: _Optional[str] = ..., version: _Optional[str] = ..., weight_info: _Optional[_Iterable[_Union[Weight, _Mapping]]] = ..., producer: _Optional[str] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("input", "cmdbuf", "neuron_size", "output", "weight_index", "layers")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CMDBUF_FIELD_NUMBER: _ClassVar[int]
    NEURON_SIZE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_INDEX_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    input: _containers.RepeatedCompositeFieldContainer[Input]
    cmdbuf: bytes
    neuron_size: int
    output: _containers.RepeatedCompositeFieldContainer[Output]
    weight_index: int
    layers: str
    def __init__(self, input: _Optional[_Iterable[_Union[Input, _Mapping]]] = ..., cmdbuf: _Optional[bytes] = ..., neuron_size: _Optional[int] = ..., output: _Optional[_Iterable[_Union[Output, _Mapping]]] = ..., weight_index: _Optional[int] = ..., layers: _Optional[str] = ...) -> None: ...

class Input(_message.Message):
    __slots__ = ("shape", "threshold", "fmt", "offset", "name")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    FMT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    shape: Shape
    threshold: float
    fmt: int
    offset: int
    name: str
    def __init__(self, shape: _Optional[_Union[Shape, _Mapping]] = ..., threshold: _Optional[float] = ..., fmt: _Optional[int] = ..., offset: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("name", "shape", "offset", "threshold", "fmt")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    FMT_FIELD_NUMBER: _ClassVar[int]
    name: str
    shape: Shape
    offset: int
    threshold: float
    fmt: int
    def __init__(self, name: _Optional[str] = ..., shape: _Optional[_Union[Shape, _Mapping]] = ..., offset: _Optional[int] = ..., threshold: _Optional[float] = ..., fmt: _Optional[int] = ...) -> None: ...

class Shape(_message.Message):
    __slots__ = ("dim",)
    DIM_FIELD_NUMBER: _ClassVar[int]
    dim: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, dim: _Optional[_Iterable[int]] = ...) -> None: ...

class Weight(_message.Message):
    __slots__ = ("weight_offset", "weight_length")
    WEIGHT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    weight_offset: int
    weight_length: int
    def __init__(self, weight_offset: _Optional[int] = ..., weight_length: _Optional[int] = ...) -> None: ...

class Library(_message.Message):
    __slots__ = ("name", "lib_x86_64", "lib_armv8")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIB_X86_64_FIELD_NUMBER: _ClassVar[int]
    LIB_ARMV8_FIELD_NUMBER: _ClassVar[int]
    name: str
    lib_x86_64: bytes
    lib_armv8: bytes
    def __init__(self, name: _Optional[str] = ..., lib_x86_64: _Optional[bytes] = ..., lib_armv8: _Optional[bytes] = ...) -> None: ...
