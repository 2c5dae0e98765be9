"""Instruction formats of the BM1880: record header, TIU, GDMA and CPU payloads (bm1880.md 3-5).

Reserved bits are fields of their own (`reserved_<bit>`), so decode followed by encode reproduces any payload.
"""

from __future__ import annotations

from enum import IntEnum

from bmcompiler.instructions.isa import Field, Format

# Formats of elements (bm1880.md 1); only I8 and U8 can be computed with.
FMT_I8 = 4
FMT_U8 = 9

# Control bits of kernel calls (bm1880.md 3).
CTRL_NULL = 0
CTRL_AL = 1 << 0
CTRL_RA = 1 << 2
CTRL_BN = 1 << 3
CTRL_TP = 1 << 5
CTRL_ADDR_ALIGN = 1 << 7
CTRL_RELU = 1 << 8
CTRL_KFLIP = 1 << 9
CTRL_WEIGHT = 1 << 10
CTRL_NEURON = 1 << 11
CTRL_WINOGRAD = 1 << 12
WINOGRAD_SCALE_SHIFT = 28

# Record header flags (byte 3).
FLAG_NEURON = 1
FLAG_WEIGHT = 2

RECORD_MAGIC = 0xA5
HEADER_SIZE = 8
MAX_SYNC_ID = 65535


class Engine(IntEnum):
    """Engine ids of record headers."""

    TPU = 0
    CPU = 1
    GDMA = 2


class Direction(IntEnum):
    """GDMA transfer directions."""

    LOAD = 0  # global to local
    STORE = 1  # local to global
    GLOBAL = 2  # global to global
    LOCAL = 3  # local to local


class GdmaFunction(IntEnum):
    """GDMA special functions (bm1880.md 5); 3, 4 and 5 are defined by the format, but no kernel call emits them."""

    NONE = 0
    TRANSPOSE = 1
    LRN_SHIFT = 2
    FORMAT = 3
    FILL = 4
    CW_TRANSPOSE = 5
    WINOGRAD = 6


class Task(IntEnum):
    """Values of the field tsk_typ of TIU commands."""

    CONV = 0
    WINDOW = 1  # depthwise convolution and pooling
    MATRIX_MAC = 2
    TENSOR = 3  # element-wise arithmetic, lookup, mdsum
    MATRIX_MAC_2 = 4


class TensorOp(IntEnum):
    """TIU tsk_eu_typ of Task.TENSOR."""

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
    COPY = 10


class WindowOp(IntEnum):
    """TIU tsk_eu_typ of Task.WINDOW."""

    MAX_POOLING = 0
    AVG_POOLING = 1
    DEPTHWISE = 2


class StrideCode(IntEnum):
    """TIU short stride codes."""

    ALIGNED = 0  # aligned default of the operand's own shape
    SPECIAL = 1  # convolution weight order (opd1), compact result (mdsum)
    UNALIGNED = 2  # bias
    EXPLICIT = 3  # the stride fields


class CpuOperation(IntEnum):
    """Word 0 of CPU records."""

    SYNC = 2
    PLUGIN = 3


HEADER = Format(
    "header",
    64,
    (
        Field("magic", 0, 8, RECORD_MAGIC),
        Field("len", 8, 8, doc="payload bytes; 0 = the mask field holds the length"),
        Field("engine", 16, 4, doc="0 TPU, 1 CPU, 2 GDMA"),
        Field("reserved_20", 20, 4, doc="the vendor's encoder leaves garbage here"),
        Field("neuron", 24, 1, doc="global address is relative to the neuron base"),
        Field("weight", 25, 1, doc="global address is relative to the weight base"),
        Field("reserved_26", 26, 6),
        Field("mask", 32, 32, doc="payload bytes when len is 0"),
    ),
)

TIU = Format(
    "tiu",
    896,
    (
        Field("cmd_en", 0, 1, 1),
        Field("cmd_end", 1, 1, doc="last descriptor of a list, set at DMA-buffer conversion"),
        Field("cmd_id_en", 2, 1, 1),
        Field("cmd_id_tpu", 3, 16, doc="own id"),
        Field("cmd_id_gdma", 19, 16, doc="GDMA id to wait for, 0 = none"),
        Field("cmd_keep", 35, 1),
        Field("cmd_intr_en", 36, 1, doc="set with cmd_end"),
        Field("tsk_typ", 37, 4, doc="0 conv/Winograd, 1 depthwise/pooling, 2 matrix_mac, 3 tensor, 4 matrix_mac_2"),
        Field("tsk_eu_typ", 41, 8, doc="sub-operation of the task"),
        Field("tsk_opd_num", 49, 2, 3, doc="operands read; 3 = with bias"),
        Field("opt_right_shift", 51, 5, 10),
        Field("opt_left_shift", 56, 5, 2),
        Field("opt_shift_typ", 61, 1, 1, doc="1 arithmetic, 0 logical"),
        Field("opt_rshift_typ", 62, 1, 1, doc="1 round half up, 0 floor"),
        Field("opt_res_add", 63, 1, doc="accumulate onto the old 16-bit result"),
        Field("opt_relu", 64, 1, 1, doc="ReLU before the right shift"),
        Field("opt_left_tran", 65, 1),
        Field("opt_winograd", 66, 1),
        Field("tens_mdsum", 67, 1),
        Field("tens_lookup", 68, 1),
        Field("opt_res0_sign", 69, 1, doc="1 = signed"),
        Field("opt_opd0_sign", 70, 1),
        Field("opt_opd1_sign", 71, 1, 1),
        Field("opt_opd2_sign", 72, 1, 1),
        Field("opt_res0_int8", 73, 1, 1, doc="1 = 8 bits, 0 = 16 bits"),
        Field("opt_opd0_int8", 74, 1, 1),
        Field("opt_opd1_int8", 75, 1, 1),
        Field("opt_opd2_int8", 76, 1),
        Field("opt_opd0_const", 77, 1, doc="operand is an immediate in its address field"),
        Field("opt_opd1_const", 78, 1),
        Field("opt_opd2_const", 79, 1),
        Field("short_nchwstr_same", 80, 1),
        Field("short_res0_str", 81, 2, doc="0 aligned, 1 weight order / compact, 2 unaligned, 3 explicit strides"),
        Field("short_opd0_str", 83, 2),
        Field("short_opd1_str", 85, 2),
        Field("short_opd2_str", 87, 2),
        Field("conv_opd0_x_ins0", 89, 4, doc="zeros after each column but the last"),
        Field("conv_opd0_y_ins0", 93, 4, doc="zeros after each row but the last"),
        Field("conv_opd0_x_ins0_last", 97, 4),
        Field("conv_opd0_y_ins0_last", 101, 4),
        Field("conv_opd1_x_ins0", 105, 4, doc="dilation in W minus 1"),
        Field("conv_opd1_y_ins0", 109, 4, doc="dilation in H minus 1"),
        Field("opd0_ins_val", 113, 8, doc="padding byte"),
        Field("reserved_121", 121, 7),
        Field("res0_n", 128, 12, 1),
        Field("res0_c", 140, 12, 1),
        Field("res0_h", 152, 12, 1),
        Field("res0_w", 164, 12, 16),
        Field("res0_addr", 176, 24, doc="lane * 65536 + offset"),
        Field("opd0_addr", 200, 24, doc="lane * 65536 + offset"),
        Field("opd1_addr", 224, 16, doc="offset in the lane, or immediate"),
        Field("reserved_240", 240, 16),
        Field("opd2_addr", 256, 16, doc="offset in the lane"),
        Field("opd0_c", 272, 12, 1),
        Field("opd0_h", 284, 12, 1),
        Field("opd0_w", 296, 12, 16),
        Field("opd1_h", 308, 12, 1, doc="kernel height of conv and pooling"),
        Field("opd1_w", 320, 12, 16, doc="kernel width of conv and pooling"),
        Field("conv_opd0_up_pad", 332, 4),
        Field("conv_opd0_dn_pad", 336, 4),
        Field("conv_opd0_lf_pad", 340, 4),
        Field("conv_opd0_rt_pad", 344, 4),
        Field("conv_op_x_str", 348, 4, doc="stride in W"),
        Field("conv_op_y_str", 352, 4, doc="stride in H"),
        Field("reserved_356", 356, 28),
        Field("opd0_n", 384, 12, 1),
        Field("opd1_n", 396, 12, 1),
        Field("opd1_c", 408, 12, 1),
        Field("opd2_n", 420, 12, 1),
        Field("opd2_c", 432, 12, 1),
        Field("opd2_h", 444, 12, 1),
        Field("opd2_w", 456, 12, 16),
        Field("reserved_468", 468, 32),
        Field("reserved_500", 500, 12),
        Field("res0_n_str", 512, 16, 16, doc="strides in bytes"),
        Field("res0_c_str", 528, 16, 16),
        Field("res0_h_str", 544, 16),
        Field("res0_w_str", 560, 16, 1),
        Field("res0_b_str", 576, 16, 16, doc="low plane to high plane"),
        Field("opd0_n_str", 592, 16, 16),
        Field("opd0_c_str", 608, 16, 16),
        Field("reserved_624", 624, 16),
        Field("opd0_h_str", 640, 16),
        Field("opd0_w_str", 656, 16, 1),
        Field("opd0_b_str", 672, 16, 16),
        Field("opd1_n_str", 688, 16, 16),
        Field("opd1_c_str", 704, 16, 16),
        Field("opd1_h_str", 720, 16),
        Field("opd1_w_str", 736, 16, 1),
        Field("reserved_752", 752, 16),
        Field("opd1_b_str", 768, 16, 16),
        Field("opd2_n_str", 784, 16, 16),
        Field("opd2_c_str", 800, 16, 16),
        Field("opd2_h_str", 816, 16),
        Field("opd2_w_str", 832, 16, 1),
        Field("opd2_b_str", 848, 16, 16),
        Field("reserved_864", 864, 32),
    ),
)

GDMA = Format(
    "gdma",
    512,
    (
        Field("valid", 0, 1, 1),
        Field("reserved_1", 1, 1),
        Field("list_end", 2, 1, doc="last descriptor of a list, set at DMA-buffer conversion"),
        Field("intr_en", 3, 1, doc="set with list_end"),
        Field("barrier", 4, 1, doc="set on every descriptor at DMA-buffer conversion"),
        Field("enable_stride", 5, 1, doc="0 = packed global, aligned local strides"),
        Field("direction", 6, 2, doc="0 load, 1 store, 2 global to global, 3 local to local"),
        Field("reserved_8", 8, 1),
        Field("add_result", 9, 1),
        Field("reserved_10", 10, 6),
        Field("cmd_id_gdma", 16, 16, doc="own id"),
        Field("function", 32, 3, doc="0 none, 1 transpose, 2 LRN shift, 4 fill, 6 Winograd weights"),
        Field("dst_fmt", 35, 2, 1),
        Field("src_fmt", 37, 3, 4),
        Field("matrix", 40, 1),
        Field("lrn_step", 41, 4, doc="LRN step, or Winograd scale factor"),
        Field("lrn_right", 45, 1),
        Field("copy_chw", 46, 1, doc="1 for plain load/store and LRN"),
        Field("reserved_47", 47, 1),
        Field("cmd_id_tpu", 48, 16, doc="TPU id to wait for, 0 = none"),
        Field("reserved_64", 64, 32),
        Field("fill_value", 96, 8),
        Field("reserved_104", 104, 24),
        Field("dst_h_str", 128, 16),
        Field("dst_c_str_lo", 144, 16),
        Field("dst_n_str", 160, 32),
        Field("src_h_str", 192, 16),
        Field("src_c_str_lo", 208, 16),
        Field("src_n_str", 224, 32),
        Field("dst_c", 256, 16),
        Field("src_c", 272, 16),
        Field("dst_w", 288, 16),
        Field("dst_h", 304, 16),
        Field("src_w", 320, 16),
        Field("src_h", 336, 16),
        Field("dst_addr_lo", 352, 32),
        Field("src_addr_lo", 384, 32),
        Field("src_n", 416, 16),
        Field("dst_addr_hi", 432, 8),
        Field("src_addr_hi", 440, 8),
        Field("src_c_str_hi", 448, 16),
        Field("dst_c_str_hi", 464, 16),
        Field("next", 480, 32, doc="address / 64 of the next descriptor, set at DMA-buffer conversion"),
    ),
)

# Head of a CPU payload; `param_size` parameter bytes follow at CPU.size, the payload is zero-padded to CPU_PAYLOAD.
CPU = Format(
    "cpu",
    384,
    (
        Field("operation", 0, 32, CpuOperation.PLUGIN, doc="2 sync, 3 run a plugin"),
        Field("tpu_count", 32, 32, doc="TPU descriptors before it, set at DMA-buffer conversion"),
        Field("gdma_count", 64, 32, doc="GDMA descriptors before it"),
        Field("tpu_offset", 96, 32, doc="TPU list in the DMA buffer / 256"),
        Field("gdma_offset", 128, 32, doc="GDMA list in the DMA buffer / 64"),
        Field("reserved_160", 160, 32),
        Field("reserved_192", 192, 32),
        Field("name_0", 224, 32, doc="library name, 16 bytes, NUL padded"),
        Field("name_4", 256, 32),
        Field("name_8", 288, 32),
        Field("name_12", 320, 32),
        Field("param_size", 352, 32, doc="bytes"),
    ),
)

CPU_PAYLOAD = 224
CPU_NAME_BYTES = slice(28, 44)

PAYLOAD_SIZE = {Engine.TPU: TIU.size, Engine.GDMA: GDMA.size}
FORMATS = {Engine.TPU: TIU, Engine.GDMA: GDMA, Engine.CPU: CPU}
