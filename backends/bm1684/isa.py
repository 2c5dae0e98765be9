"""The instruction tables of the BM1684 (bm1684.md 2, 3, 6.0): one bit-field table per engine and the codes in it."""

from __future__ import annotations

from enum import IntEnum

from bmcompiler.instructions import order
from bmcompiler.instructions.isa import Field, Format
from bmcompiler.instructions.order import IdFields

Engine = order.Engine


class Task(IntEnum):
    """`tsk_typ` of TIU commands."""

    CONV = 0
    POOL_OR_DEPTHWISE = 1
    MATRIX = 2
    TENSOR = 3
    MATRIX_INT8_256 = 4
    CONV_CORRELATION = 5
    LUT = 6
    SUM = 7
    SCALAR = 8
    SFU = 9
    LINEAR = 10
    ARRANGE = 11
    DECOMPRESS = 12
    COMPARE = 13
    VECTOR_CORRELATION = 14


class Eu(IntEnum):
    """`tsk_eu_typ` of TIU commands: what the execution units do."""

    MUL = 0
    MAC = 1
    ADD = 2
    SUB = 3
    MAX = 4
    MIN = 5
    SHIFT = 6
    AND = 7
    OR = 8
    XOR = 9
    SELECT_GT = 10
    SELECT_EQ = 11
    DIVIDE = 12
    TAYLOR = 13
    FP32_TO_INT = 14
    INT_NORMALIZE = 15
    FP32_NORMALIZE = 16
    RSQRT = 17
    ADD_TREE = 18
    COPY = 19
    SQUARE_SUM = 20
    SQUARE_DIFF = 21
    CMP = 22
    SELECT = 23
    CMP_SELECT = 24


class Precision(IntEnum):
    """Precision codes of TIU operands."""

    INT8 = 0
    FP16 = 1
    FP32 = 2
    INT16 = 3
    INT32 = 4


class StrideCode(IntEnum):
    """`short_*_str`: where the strides of a TIU operand come from."""

    ALIGNED = 0
    COMPACT = 1
    EXPLICIT = 3


class Direction(IntEnum):
    """GDMA transfers; the system side is global memory or L2."""

    SYSTEM_TO_LOCAL = 0
    LOCAL_TO_SYSTEM = 1
    SYSTEM_TO_SYSTEM = 2
    LOCAL_TO_LOCAL = 3


class Function(IntEnum):
    """`special_func` of GDMA commands."""

    COPY = 0
    NC_TRANSPOSE = 1
    LRN_SHIFT = 2
    CONVERT = 3
    FILL = 4
    CW_TRANSPOSE = 5
    WINOGRAD = 6
    FILTER = 7


class DataFormat(IntEnum):
    """Data formats of GDMA commands."""

    FP32 = 0
    INT16 = 1
    UINT8 = 2
    INT8 = 3
    FP16 = 4


FORMAT_BYTES = {
    DataFormat.FP32: 4,
    DataFormat.INT16: 2,
    DataFormat.UINT8: 1,
    DataFormat.INT8: 1,
    DataFormat.FP16: 2,
}
_ALL = 0xFFFF_FFFF


def _operand_sizes(name: str, first_bit: int, n_width: int) -> tuple[Field, ...]:
    c = first_bit + n_width
    return (
        Field(f"{name}_n", first_bit, n_width, 1),
        Field(f"{name}_c", c, 12, 1),
        Field(f"{name}_h", c + 12, 16, 1),
        Field(f"{name}_w", c + 28, 16, 1),
    )


def _operand_strides(name: str, short: int, long: int) -> tuple[Field, ...]:
    unit = "in words; conv kernels: in groups of 2 fp32 or 4 int8 values"
    return (
        Field(f"{name}_n_str", short, 19, 1, unit),
        Field(f"{name}_c_str", short + 19, 19, 1),
        Field(f"{name}_h_str", long, 32, 1),
        Field(f"{name}_w_str", long + 32, 32, 1),
    )


TIU = Format(
    "tiu",
    1024,
    (
        Field("cmd_en", 0, 1, 1),
        Field("cmd_end", 1, 1, doc="last command of a group; the runtime sets it"),
        Field("cmd_id_en", 2, 1, 1),
        Field("cmd_id_tpu", 3, 16, doc="own id"),
        Field("cmd_id_gdma", 19, 16, doc="GDMA id to wait for, 0 = none"),
        Field("cmd_keep", 35, 1),
        Field("cmd_intr_en", 36, 1),
        Field("tsk_typ", 37, 4, doc="0 conv, 1 pooling or depthwise, 2 matrix, 3 tensor, ..."),
        Field("tsk_eu_typ", 41, 5, doc="operation of the execution units"),
        Field("tsk_opd_num", 46, 2, 2, doc="operands; 3 = with bias"),
        Field("opt_right_shift", 48, 5),
        Field("opt_left_shift", 53, 5),
        Field("opt_shift_typ", 58, 1, 1, doc="of the shift operation: 1 arithmetic, 0 logical"),
        Field("opt_res_add", 59, 1, doc="accumulate onto the old result"),
        Field("opt_relu", 60, 1, doc="int8 conv, depthwise, matrix: the result saturates to the unsigned range"),
        Field("opt_left_tran", 61, 1, doc="left matrix is stored transposed"),
        Field("opt_winograd", 62, 1),
        Field("opt_kernel_rotate", 63, 1, doc="rotate the kernel by 180 degrees"),
        Field("opt_opd0_sign", 64, 1, doc="1 = signed"),
        Field("opt_opd1_sign", 65, 1, 1),
        Field("opt_opd2_sign", 66, 1, 1),
        Field("opt_res0_prec", 67, 3, 2, doc="0 int8, 1 fp16, 2 fp32, 3 int16, 4 int32"),
        Field("opt_opd0_prec", 70, 3, 2),
        Field("opt_opd1_prec", 73, 3, 2),
        Field("opt_opd2_prec", 76, 3, 2),
        Field("opt_opd0_const", 79, 1, doc="operand is the immediate in its address field"),
        Field("opt_opd1_const", 80, 1),
        Field("opt_opd2_const", 81, 1),
        Field("short_res0_str", 82, 3, doc="0 aligned layout, 1 compact, 3 stride registers"),
        Field("short_opd0_str", 85, 3),
        Field("short_opd1_str", 88, 3),
        Field("short_opd2_str", 91, 3, 2),
        Field("opd0_x_ins0", 94, 4, doc="zeros inserted between columns"),
        Field("opd0_y_ins0", 98, 4, doc="zeros inserted between rows"),
        Field("opd1_x_ins0", 102, 4, doc="dilation in W minus 1"),
        Field("opd1_y_ins0", 106, 4, doc="dilation in H minus 1"),
        Field("opd0_up_pad", 110, 4),
        Field("opd0_dn_pad", 114, 4),
        Field("opd0_lf_pad", 118, 4),
        Field("opd0_rt_pad", 122, 4),
        Field("res_op_x_str", 126, 4, 1, doc="stride in W"),
        Field("res_op_y_str", 130, 4, 1, doc="stride in H"),
        Field("tsk_lane_num_lo", 134, 32, _ALL, doc="lane mask"),
        Field("tsk_lane_num_hi", 166, 32, _ALL),
        *_operand_sizes("res0", 198, 16),
        *_operand_sizes("opd0", 258, 16),
        *_operand_sizes("opd1", 318, 12),
        Field("res0_h_shift", 374, 4),
        Field("res0_w_shift", 378, 4),
        Field("opd0_h_shift", 382, 4),
        Field("opd0_w_shift", 386, 4),
        Field("opd1_h_shift", 390, 4),
        Field("opd1_w_shift", 394, 4),
        *_operand_strides("res0", 398, 704),
        *_operand_strides("opd0", 436, 768),
        *_operand_strides("opd1", 474, 832),
        *_operand_strides("opd2", 512, 896),
        Field("res_add_sign", 550, 1, doc="sign of the old result of integer accumulation"),
        Field("opd0_neq1", 551, 1, doc="operand has one image, for all images of its 4N or 2N words"),
        Field("opd1_neq1", 552, 1),
        Field("opt_opd3_const", 553, 1),
        Field("reserved_554", 554, 22),
        Field("res0_addr", 576, 32),
        Field("opd0_addr", 608, 32, doc="address or immediate"),
        Field("opd1_addr", 640, 32, doc="address or immediate; of tables the offset in L2"),
        Field("opd2_addr", 672, 32, doc="address or immediate"),
        Field("res1_addr", 960, 32, doc="second result of compare"),
        Field("opd3_addr", 992, 32, doc="fourth operand of compare: address or immediate"),
    ),
)


def _sides(parts: str, first_bit: int, width: int, suffix: str, doc: str = "") -> tuple[Field, ...]:
    names = [f"{side}_{part}{suffix}" for side in ("src", "dst") for part in parts]
    return tuple(Field(name, first_bit + i * width, width, 0, doc) for i, name in enumerate(names))


GDMA = Format(
    "gdma",
    1024,
    (
        Field("pio_gdma_enable", 0, 1, 1),
        Field("des_type", 1, 1),
        Field("chain_end", 2, 1, doc="last command of a group; the runtime sets it"),
        Field("intr_en", 3, 1),
        Field("barrier_enable", 4, 1, 1),
        Field("stride_enable", 5, 1, doc="0 = aligned local layout, dense system layout"),
        Field("direction", 6, 2, doc="0 system to local, 1 local to system, 2 system to system, 3 local to local"),
        Field("acc_write_enable", 8, 1, doc="add to the destination, fp32"),
        Field("common_mode", 9, 1, doc="copy src_n_str elements linearly"),
        Field("prefetch_disable", 10, 1, 1),
        Field("hold_des_value", 11, 1),
        Field("reserved_12", 12, 4),
        Field("cmd_id", 16, 16, doc="own id"),
        Field("special_func", 32, 3, doc="0 copy, 1 N-C transpose, 3 conversion, 4 fill, 5 C-W transpose"),
        Field("dst_data_format", 35, 3, doc="0 fp32, 1 int16, 2 uint8, 3 int8, 4 fp16"),
        Field("chw_copy", 38, 1, doc="destination sizes are the source's"),
        Field("sys_mem_type", 39, 1, doc="0 tensor, 1 matrix"),
        Field("src_data_format", 40, 3),
        Field("lrn_shift_num", 43, 4, 1),
        Field("lrn_shift_dir", 47, 1),
        Field("eng0_sync_id", 48, 16, doc="TIU id to wait for, 0 = none"),
        Field("eng1_sync_id", 64, 16),
        Field("eng3_sync_id", 80, 16),
        Field("constant_value", 96, 32, doc="bits of the fill value"),
        *_sides("nchw", 128, 32, "_str", "in elements of the data format"),
        *_sides("nchw", 384, 16, ""),
        Field("src_addr_lo", 512, 32),
        Field("dst_addr_lo", 544, 32),
        Field("src_addr_hi", 576, 8),
        Field("dst_addr_hi", 584, 8),
        Field("reserved_592", 592, 16),
        *_sides("hw", 608, 8, "_shift"),
        Field("lane_mask_lo", 640, 32, _ALL),
        Field("lane_mask_hi", 672, 32, _ALL),
        Field("single_step", 704, 1),
        Field("debug_mode", 705, 1),
        Field("reserved_706", 706, 30),
        *(Field(f"reserved_{bit}", bit, 32) for bit in range(736, 1024, 32)),
    ),
)

FORMATS = {Engine.TIU: TIU, Engine.GDMA: GDMA}
COMMAND_BYTES = TIU.size
ID_FIELDS = {Engine.TIU: IdFields("cmd_id_tpu", "cmd_id_gdma"), Engine.GDMA: IdFields("cmd_id", "eng0_sync_id")}
OWN_ID = {engine: names.own for engine, names in ID_FIELDS.items()}
WAIT_ID = {engine: names.wait for engine, names in ID_FIELDS.items()}
