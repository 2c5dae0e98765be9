"""Element types, enumerations and parameter structs of BMLang, as the vendor's header names and orders them.

Source: bmlang.md 3, 4.9, 4.10, 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from bmcompiler.frontends.bmlang.fields import Struct


class DataType(IntEnum):
    """Element types (bmlang.md 7.2). No operator takes UINT32 or DOUBLE; FLOAT16 and BFLOAT16 are the BM1684X's.

    The vendor's enumeration ends at DOUBLE: the number of BFLOAT16 is our own.
    """

    FLOAT32 = 0
    FLOAT16 = 1
    INT8 = 2
    UINT8 = 3
    INT16 = 4
    UINT16 = 5
    INT32 = 6
    UINT32 = 7
    DOUBLE = 8
    BFLOAT16 = 9

    @property
    def ir(self) -> str:
        """The element type of the IR."""
        return _IR[self]

    @property
    def is_integer(self) -> bool:
        """Whether elements are integers."""
        return self not in (DataType.FLOAT32, DataType.FLOAT16, DataType.BFLOAT16, DataType.DOUBLE)

    @property
    def is_signed(self) -> bool:
        """Whether elements may be negative."""
        return self not in (DataType.UINT8, DataType.UINT16, DataType.UINT32)

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return _BITS[self]


_IR = dict(zip(DataType, ("f32", "f16", "i8", "u8", "i16", "u16", "i32", "u32", "f64", "bf16")))
_BITS = dict(zip(DataType, (32, 16, 8, 8, 16, 16, 32, 32, 64, 16)))
FROM_IR = {ir: dtype for dtype, ir in _IR.items()}
"""IR element type -> DataType."""


class TensorKind(IntEnum):
    """What a tensor is: an activation (NEURON_TENSOR) or a constant that is stored with the program (COEFF_TENSOR)."""

    NEURON_TENSOR = 0
    COEFF_TENSOR = 1


class BmLangMode(IntEnum):
    """What an operator call does: compute on the host, record for the compiler, or both (bmlang.md 7.3)."""

    COMPUTE_CPU = 0
    COMPILE_TPU = 1
    BOTH = 2
    UNKNOWN_MODE = 3


class Arithmetic(IntEnum):
    """Whose float arithmetic eager results have.

    FRAMEWORK: that of the IR's meaning, as frameworks compute. CHIP: the chip's own, with its order of sums, flushed
    denormals and function approximations; results are then equal to those of the compiled program, bit for bit.
    Integers are the same in both.
    """

    FRAMEWORK = 0
    CHIP = 1


class QCalMode(IntEnum):
    """How integer convolutions and matrix products are rescaled (bmlang.md 3)."""

    LowPrecisionSymmetric = 0
    HighPrecisionSymmetric = 1
    HighPrecisionAsymmetric = 2


class ActiveType(IntEnum):
    """Functions of `active`."""

    ACTIVE_TANH = 0
    ACTIVE_SIGMOID = 1
    ACTIVE_RELU = 2
    ACTIVE_EXP = 3
    ACTIVE_ELU = 4
    ACTIVE_SQRT = 5
    ACTIVE_SQUARE = 6
    ACTIVE_RSQRT = 7
    ACTIVE_ABSVAL = 8
    ACTIVE_LN = 9
    UNKNOWN_ACTIVE_TYPE = 10


class PadType(IntEnum):
    """What `pad` fills in: a value, a mirror without or with the edge, or the edge."""

    PAD_CONSTANT = 0
    PAD_REFLECT = 1
    PAD_SYMMETRIC = 2
    PAD_EDGE = 3


class SelectType(IntEnum):
    """Comparisons of `select`: a > b, a >= b."""

    GREATER_THAN = 0
    GREATER_EQUAL = 1
    UNKNOWN_SELECT_OP = 2


class PoolType(IntEnum):
    """Largest value or mean of a window."""

    MAX = 0
    AVE = 1
    UNKNOWN = 2


class ReduceMethodType(IntEnum):
    """Reductions; PROD is the product of the reduced elements (bmlang.md 6, row 17)."""

    REDUCE_MEAN = 0
    REDUCE_SUM = 1
    REDUCE_MAX = 2
    REDUCE_MIN = 3
    REDUCE_PROD = 4


@dataclass(frozen=True)
class ConvParam(Struct):
    """Parameters of conv and deconv, in the order of the vendor's struct.

    The fields from `scale` on belong to integer inputs. `groups` equal to the channels in and out is a depthwise
    convolution. pad_h_t, pad_h_b, pad_w_l, pad_w_r: rows above and below, columns left and right.
    """

    dh: int = 1
    dw: int = 1
    pad_h_t: int = 0
    pad_h_b: int = 0
    pad_w_l: int = 0
    pad_w_r: int = 0
    stride_h: int = 1
    stride_w: int = 1
    groups: int = 1
    scale: float = 1.0
    mode: QCalMode = QCalMode.LowPrecisionSymmetric
    left_zero_point: int = 0
    right_zero_point: int = 0
    output_zero_point: int = 0


@dataclass(frozen=True)
class MatrixMulParam(Struct):
    """Parameters of an integer matrix product; not looked at for floats."""

    scale: float = 1.0
    mode: QCalMode = QCalMode.LowPrecisionSymmetric
    left_zero_point: int = 0
    right_zero_point: int = 0
    output_zero_point: int = 0


@dataclass(frozen=True)
class PoolParam(Struct):
    """Parameters of pool; a global pooling needs neither stride nor kernel.

    Below the map there are pad_h + pad_h_offset rows of padding, right of it pad_w + pad_w_offset columns.
    is_ave_count_zero_pad: padding counts in the divisor of a mean. ensure_pool_image: the last window is left out where
    it would begin beyond the map and its leading padding (bmlang.md 4.9).
    """

    stride_h: int = 1
    stride_w: int = 1
    pad_h: int = 0
    pad_w: int = 0
    pad_h_offset: int = 0
    pad_w_offset: int = 0
    kernel_h: int = 1
    kernel_w: int = 1
    pooling_type: PoolType = PoolType.MAX
    is_global_pooling: bool = False
    is_ceil_mode: bool = False
    is_ave_count_zero_pad: bool = True
    ensure_pool_image: bool = False


@dataclass(frozen=True)
class ReduceParam(Struct):
    """Parameters of reduce. axis_num: how many of axis_list count; None for all."""

    method: ReduceMethodType = ReduceMethodType.REDUCE_MEAN
    axis_list: tuple[int, ...] = ()
    axis_num: int | None = None
    keep_dims: bool = True


@dataclass(frozen=True)
class ArgParam(Struct):
    """Parameters of arg: method 0 finds the largest value, 1 the smallest."""

    axis: int
    method: int = 0


@dataclass(frozen=True)
class TopkParam(Struct):
    """Parameters of topk; descending: the largest first."""

    k: int = 1
    axis: int = 0
    descending: bool = True


@dataclass(frozen=True)
class ExpandDimsParam(Struct):
    """Parameters of expand_dims: `ndims` axes of size 1 at `axis`."""

    axis: int
    ndims: int = 1


@dataclass(frozen=True)
class ShapeFetchParam(Struct):
    """Parameters of shape_fetch: axes begin_axis up to and without end_axis (bmlang.md 6, row 19), every `step`-th."""

    begin_axis: int = 0
    end_axis: int = 1
    step: int = 1


@dataclass(frozen=True)
class LayerNormParam(Struct):
    """Parameters of layer_norm: the first axis of the statistics, and what is added to the variance."""

    axis: int = -1
    epsilon: float = 1e-5


class ResizeMode(IntEnum):
    """What `resize` gives for a place between elements: the nearest one, or a mean of two or four along each axis."""

    NEAREST = 0
    LINEAR = 1
    CUBIC = 2


@dataclass(frozen=True)
class ResizeParam(Struct):
    """Parameters of resize, whose result has `want` elements along an axis of `have`.

    NEAREST takes element floor(i * have / want). LINEAR and CUBIC (Keys' kernel, a = -0.75) look at the place
    (i + 0.5) * have / want - 0.5, with align_corners at i * (have - 1) / (want - 1); beyond the edge stands the edge.
    """

    mode: ResizeMode = ResizeMode.LINEAR
    align_corners: bool = False


@dataclass(frozen=True)
class UserCpuParam(Struct):
    """What customed_ops gives to a user's layer: the name of its CPU function, and numbers.

    The vendor's struct has a number for a layer that is compiled into the runtime; here `op_type` is the name under
    which a plugin or `register_cpu_function` provides it. output_shapes: one shape per output.
    """

    op_type: str
    output_shapes: tuple[tuple[int, ...], ...]
    i32_params: tuple[int, ...] = ()
    f32_params: tuple[float, ...] = ()
