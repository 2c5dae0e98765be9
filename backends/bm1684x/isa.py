"""The instruction tables of the BM1684X: every form of every command as a bit-field table.

Sources: bm1684x.md 3 (GDMA), bm1684x-cube.md 1 and 2, bm1684x-vector.md 2. Short forms of TIU commands use the field
names of the long form, so that a command means the same in both: what differs is where a field lies, and that short
forms lack some. A few operations use fields for other things: `opd2_n_str` is the rounding mode or the number of
iterations of vector commands, `opd1_n` the number of terms of a series, `opd1_w` the length of the last section of a
matrix or vector; gather and scatter have their limit and fill switches in `opd3_const` and `opd2_const`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bmcompiler.backends.bm1684x.codes import Move, Task
from bmcompiler.errors import EncodingError
from bmcompiler.instructions.isa import MAX_FIELD_BITS, Field, Format
from bmcompiler.instructions.order import STREAMS, Engine, IdFields

ID_FIELDS = {engine: IdFields("cmd_id", "cmd_id_dep") for engine in STREAMS}
ALL_LANES = (1 << 32) - 1

_TIU_HEAD = "1:20 cmd_id, 21:20 cmd_id_dep, 41:4 tsk_typ, 45:5 tsk_eu_typ, 55:4 cmd_id_en=1, 59:4 pwr_step"


def _sizes(first: int, *names: str, width: int = 16) -> str:
    """Fields of one width in a row."""
    return ", ".join(f"{first + width * i}:{width} {name}" for i, name in enumerate(names))


def _nchw(first: int, name: str) -> str:
    return _sizes(first, *(f"{name}_{axis}" for axis in "nchw"))


def _table(name: str, bits: int, *texts: str) -> Format:
    """A format from `bit[:width] name[=reset value]` items; what nobody names becomes `reserved_BIT`."""
    fields = []
    for item in ", ".join(texts).split(", "):
        place, label = item.split()
        first, _, width = place.partition(":")
        title, _, default = label.partition("=")
        fields.append(Field(title, int(first), int(width or 1), int(default or 0)))
    return Format(name, bits, tuple(_without_gaps(sorted(fields, key=lambda field: field.first_bit), bits)))


def _without_gaps(fields: list[Field], bits: int) -> Iterator[Field]:
    at = 0
    for field in [*fields, Field("end", bits, 1)]:
        while at < field.first_bit:
            width = min(MAX_FIELD_BITS, field.first_bit - at)
            yield Field(f"reserved_{at}", at, width)
            at += width
        if field.first_bit < bits:
            yield field
        at = max(at, field.end_bit)


def _tiu(name: str, bits: int, *texts: str, short: int = 1) -> Format:
    return _table(name, bits, f"0 cmd_short={short}", _TIU_HEAD, *texts)


_INSERTED = ("opd0_x_ins0", "opd0_y_ins0", "opd1_x_ins0", "opd1_y_ins0")
_PADS = ("opd0_up_pad", "opd0_dn_pad", "opd0_lf_pad", "opd0_rt_pad")
_STEPS = ("res_op_x_str", "res_op_y_str")

CONV = _tiu(
    "conv",
    512,
    "50 opd0_sign, 51 opd1_sign, 52 opd2_sign, 53:2 pad_mode, 63 res_add, 64 kernel_rotate, 65:3 res0_prec",
    "68:3 opd0_prec, 71 opd1_const, 72 opd2_const",
    _sizes(73, *_PADS, *_STEPS, width=4),
    "97 opd3_const, 98:3 opd0_str, 101:26 res0_addr, 127 intr_en",
    _sizes(128, *_INSERTED, width=4),
    "144:16 opd0_n_str",
    _nchw(160, "res0"),
    _sizes(224, "opd0_c", "opd0_h", "opd0_w", "opd1_h", "opd1_w", "opd0_c_str"),
    _sizes(320, "opd0_addr", "opd1_addr", "opd2_addr", "res1_addr", "opd3_addr", width=32),
    _sizes(480, "opd0_h_str", "opd0_w_str"),
)
PORD = _tiu(
    "pord",
    512,
    "50 kernel_rotate, 51 opd0_sign, 52 opd1_sign, 53:2 pad_mode, 63 opd1_const, 64 opd2_const, 65 opd3_const",
    "66:3 res0_prec, 69:3 opd0_prec",
    _sizes(72, *_INSERTED, *_PADS, *_STEPS, width=4),
    "112:3 opd2_n_str, 126 opd2_sign, 127 intr_en",
    _nchw(128, "res0"),
    _sizes(192, "opd0_h", "opd0_w", "opd1_h", "opd1_w"),
    _sizes(256, "res0_addr", "opd0_addr", "opd1_addr", "opd2_addr", "res1_addr", "opd3_addr", width=32),
)
MM = _tiu(
    "mm",
    384,
    "50 res_add, 51 left_tran, 52 opd0_const, 53 opd2_const, 63 intr_en, 64 opd0_sign, 65 opd1_sign, 66 opd2_sign",
    "67:3 res0_prec, 70:3 opd0_prec, 73:3 opd2_n_str, 112:16 res0_c, 128:16 res0_w, 144:16 opd0_n, 160:16 opd0_c",
    "176:16 opd0_w, 208:16 opd1_w",
    _sizes(224, "res0_addr", "opd0_addr", "opd1_addr", "opd2_addr", "opd3_addr", width=32),
)
MM2 = _tiu(
    "mm2",
    256,
    "50 opd0_sign, 51 opd1_sign, 52:3 res0_prec, 63 opd2_const",
    _sizes(64, "res0_c", "res0_w", "opd1_c", "opd1_w"),
    "128:3 opd0_prec, 131 opd0_const, 132 opd1_const, 133 res_add, 134:25 res0_addr, 159 intr_en",
    _sizes(160, "opd0_addr", "opd1_addr", "opd2_addr", width=32),
)
AR = _tiu(
    "ar",
    512,
    "50 opd0_const, 51 opd1_const, 52 opd2_const, 53:2 tsk_opd_num, 63 intr_en, 64:3 res0_prec, 67:3 opd0_prec",
    "70:3 opd1_prec, 73:3 opd2_prec, 76 opd0_sign, 77 opd1_sign, 78:3 res0_str, 81:3 opd0_str, 84:3 opd1_str",
    "87:3 opd2_n_str",
    _nchw(96, "res0"),
    _sizes(160, "res0_addr", "opd0_addr", "opd1_addr", "opd2_addr", width=32),
    _sizes(288, "res0_n_str", "res0_c_str", "opd0_n_str", "opd0_c_str", "opd1_n_str", "opd1_c_str"),
    "384:20 res0_h_str, 404:20 res0_w_str, 424:20 opd0_h_str, 444 opd2_sign, 448:20 opd0_w_str, 468:20 opd1_h_str",
    "488:20 opd1_w_str",
)
RQ = _tiu(
    "rq",
    256,
    "50 opd0_sign, 51 opd2_sign, 52:3 res0_prec, 63 opd1_const, 64:3 opd0_prec, 67:6 opd2_n_str, 73:27 res0_addr",
    "100:27 opd0_addr, 127 intr_en",
    _nchw(128, "res0"),
    "192:32 opd1_addr, 224:32 opd2_addr",
)
TRANS = _tiu(
    "trans",
    256,
    "50:3 res0_prec, 63 intr_en",
    _nchw(64, "res0"),
    "128:16 opd0_c, 144:16 opd0_w, 192:32 res0_addr, 224:32 opd0_addr",
)
SG = _tiu(
    "sg",
    384,
    "50 opd3_const, 51 intr_en, 52:3 opd0_str, 63 opd2_const",
    _nchw(64, "res0"),
    "128:16 opd0_h, 144:16 opd0_w, 160:16 opd1_c, 176:16 opd1_w, 192:3 res0_prec, 195:29 res0_addr, 224:3 opd0_prec",
    "227:29 opd0_addr, 256:3 opd1_prec, 259:29 opd1_addr, 288:32 opd2_addr, 320:32 res1_addr, 352:32 opd3_addr",
)
SGL = _tiu(
    "sgl",
    384,
    "53 opd3_const, 54 intr_en, 63 opd2_const, 64:3 res0_prec, 67:3 opd1_prec, 70:3 opd0_str",
    _nchw(80, "res0"),
    "144:16 opd0_h",
    _sizes(160, "res0_addr", "opd0_addr", "opd1_addr", "opd2_addr", "res1_addr", width=32),
)
SFU = _tiu(
    "sfu",
    256,
    "63 intr_en, 64:3 res0_prec, 67:3 opd0_prec, 70:2 opd2_n_str",
    _nchw(80, "res0"),
    "144:16 opd1_n, 160:32 res0_addr, 192:32 opd0_addr, 224:32 opd1_addr",
)
LIN = _tiu(
    "lin",
    256,
    "50 opd1_const, 51 opd2_const, 52:3 res0_prec, 63 intr_en",
    _nchw(64, "res0"),
    _sizes(128, "res0_addr", "opd0_addr", "opd1_addr", "opd2_addr", width=32),
)
CMP = _tiu(
    "cmp",
    384,
    "50 opd0_const, 51 opd1_const, 52 opd2_const, 53 opd3_const, 63 intr_en, 64:3 opd0_prec, 67:3 opd2_prec",
    "70:3 opd0_str, 73:3 opd1_str, 127 opd0_sign",
    _nchw(128, "res0"),
    _sizes(192, "res0_addr", "res1_addr", "opd0_addr", "opd1_addr", "opd2_addr", "opd3_addr", width=32),
)
VC = _tiu(
    "vc",
    384,
    "50 opd0_sign, 51 opd1_sign, 52:3 opd2_n_str, 63 intr_en, 64:3 res0_prec, 67:3 opd0_prec, 70:3 opd1_prec",
    "73:32 res0_addr, 128:32 opd0_addr",
    _sizes(176, "res0_c", "res0_w", "opd0_c", "opd0_w", "opd1_w"),
    "256:32 opd1_addr, 288:32 opd2_addr",
)
LAR = _tiu("lar", 128)
SYS = _tiu("sys", 128, "50:5 imm, 63 intr_en, 64:20 id_1, 84:20 id_2, 104:20 id_3", short=0)
LONG = _tiu(
    "long",
    1024,
    "50 eu_half_en, 51:2 tsk_opd_num, 53:2 pad_mode, 63 intr_en, 64 res_add, 65 relu, 66 left_tran, 68 kernel_rotate",
    "69 opd0_sign, 70 opd1_sign, 71 opd2_sign, 72:3 res0_prec, 75:3 opd0_prec, 78:3 opd1_prec, 81:3 opd2_prec",
    "84 opd0_const, 85 opd1_const, 86 opd2_const, 87:3 res0_str, 90:3 opd0_str, 93:3 opd1_str, 96:3 opd2_str",
    "99 res_add_sign, 126 opd3_const",
    _sizes(128, *_INSERTED, *_PADS, *_STEPS, width=4),
    _sizes(168, *(f"{name}_{axis}_shift" for name in ("res0", "opd0", "opd1") for axis in "hw"), width=4),
    f"192:32 lane_mask_lo={ALL_LANES}, 224:32 lane_mask_hi={ALL_LANES}",
    *(_nchw(first, name) for first, name in ((256, "res0"), (320, "opd0"), (384, "opd1"))),
    _sizes(448, *(f"{name}_{axis}_str" for name in ("res0", "opd0", "opd1", "opd2") for axis in "nc")),
    _sizes(576, "res0_addr", "opd0_addr", "opd1_addr", "opd2_addr", width=32),
    _sizes(704, *(f"{name}_{axis}_str" for name in ("res0", "opd0", "opd1", "opd2") for axis in "hw"), width=32),
    "960:32 res1_addr, 992:32 opd3_addr",
    short=0,
)

_SHORT: dict[int, Format] = {
    Task.CONV: CONV,
    Task.POOL_OR_DEPTHWISE: PORD,
    Task.ARITHMETIC: AR,
    Task.REQUANT: RQ,
    Task.TRANSPOSE: TRANS,
    Task.SFU: SFU,
    Task.LINEAR: LIN,
    Task.COMPARE: CMP,
    Task.VECTOR: VC,
}
_LAST_SG, _FIRST_MM2 = 16, 4
TIU_FORMATS = (*_SHORT.values(), MM, MM2, SG, SGL, LAR, SYS, LONG)


def tiu_format(head: int) -> Format:
    """The format of the command whose first 8 bytes are `head`. Raises EncodingError for classes that do not exist."""
    task, unit = head >> 41 & 15, head >> 45 & 31
    if task == Task.SYSTEM:
        return SYS
    if task == Task.LAR:
        return LAR
    if task not in _SHORT and task not in (Task.MATRIX, Task.GATHER):
        raise EncodingError(f"TIU commands of class {task} do not exist")
    if not head & 1:
        return LONG
    if task == Task.MATRIX:
        return MM2 if unit >= _FIRST_MM2 else MM
    if task == Task.GATHER:
        return SGL if unit > _LAST_SG else SG
    return _SHORT[task]


_GDMA_HEAD = (
    "0 intr_en, 1 stride_enable, 2 nchw_copy, 4 decompress_enable, 5:4 cmd_id_en=1, 9:20 cmd_id"
    ", 32:4 cmd_type, 36:3 special_func, 39 fill_constant_en, 40:3 data_format, 43:3 second_format, 64:20 cmd_id_dep"
)


def _address(first: int, name: str) -> str:
    return f"{first}:32 {name}_addr_lo, {first + 32}:8 {name}_addr_hi"


def _mask(first: int) -> str:
    return f"{first}:32 lane_mask_lo={ALL_LANES}, {first + 32}:32 lane_mask_hi={ALL_LANES}"


def _strides(first: int, side: str) -> str:
    return _sizes(first, *(f"{side}_{axis}_str" for axis in "nchw"), width=32)


def _gdma(name: str, bits: int, *texts: str, short: int = 1) -> Format:
    return _table(name, bits, f"3 cmd_short={short}", _GDMA_HEAD, *texts)


_FAR = (_address(512, "src"), _address(576, "dst"), _address(640, "index"), _mask(704))
TENSOR = _gdma(
    "dma",
    768,
    "96:32 constant_value",
    _strides(128, "src"),
    _strides(256, "dst"),
    _nchw(384, "src"),
    _nchw(448, "dst"),
    *_FAR,
    short=0,
)
INDEXED = _gdma(
    "dma.indexed",
    768,
    "96:32 constant_value",
    _sizes(128, "src_c_str", "src_h_str", "dst_c_str", "dst_h_str", "index_c_str", "index_h_str", width=32),
    "336:16 src_c, 352:32 src_h, 384:16 src_w, 400:16 dst_c, 416:32 dst_h, 448:16 dst_w, 464:16 index_c",
    "480:32 index_h",
    *_FAR,
    short=0,
)
GENERAL_SHORT = _gdma(
    "dma.general_short",
    384,
    "96:32 constant_value, 128:32 src_c_str, 160:16 dst_c",
    _address(192, "src"),
    _address(256, "dst"),
    _mask(320),
)
MATRIX_SHORT = _gdma(
    "dma.matrix_short",
    512,
    "96:32 pitch, 128:32 row_str, 160:32 section_str, 192:16 outer_h, 208:16 outer_w, 224:16 local_n, 240:16 local_c",
    "256:16 local_w",
    _address(288, "src"),
    _address(352, "dst"),
    _mask(448),
)
SELECT_SHORT = _gdma("dma.select_short", 512)
NONZERO_SHORT = _gdma("dma.nonzero_short", 384)
GDMA_SYS = _gdma("dma.sys", 128)
_GDMA_SHORT: dict[int, Format] = {
    Move.MATRIX: MATRIX_SHORT,
    Move.MASKED_SELECT: SELECT_SHORT,
    Move.GENERAL: GENERAL_SHORT,
    Move.NONZERO: NONZERO_SHORT,
    Move.SYSTEM: GDMA_SYS,
}
GDMA_FORMATS = (TENSOR, INDEXED, *_GDMA_SHORT.values())


def gdma_format(head: int) -> Format:
    """The format of the command whose first 8 bytes are `head`. Raises EncodingError for types that do not exist."""
    kind = head >> 32 & 15
    if head >> 3 & 1:
        if kind not in _GDMA_SHORT:
            raise EncodingError(f"GDMA commands of type {kind} have no short form")
        return _GDMA_SHORT[kind]
    if kind > Move.SCATTER or kind == Move.SYSTEM:
        raise EncodingError(f"GDMA commands of type {kind} do not exist in the long form")
    return INDEXED if kind >= Move.GATHER else TENSOR


SORT = _table(
    "sort",
    1152,
    "0:32 head=1, 512:32 setup=16842753, 896:3 kind, 901 flag_5=1, 903 descended, 904 index_en, 905 natural",
    "919 flag_23=1, 928:32 src_addr_lo, 960:8 src_addr_hi, 968:8 dst_addr_hi, 976:8 src_index_addr_hi",
    "984:8 dst_index_addr_hi, 992:32 dst_addr_lo, 1024:32 topk, 1056:32 len, 1088:32 src_index_addr_lo",
    "1120:32 dst_index_addr_lo",
)
"""The sort engine's command, as the vendor's library fills it; fields named by a bit are 1 in all of them."""


def sort_format(head: int) -> Format:
    """The format of a command of the sort engine. Raises EncodingError for what begins otherwise."""
    if (first := head & 0xFFFF_FFFF) != 1:
        raise EncodingError(f"commands of the sort engine begin with 1, not {first:#x}")
    return SORT


FORMATS = {Engine.TIU: TIU_FORMATS, Engine.GDMA: GDMA_FORMATS, Engine.HAU: (SORT,)}
FORMAT_OF = {Engine.TIU: tiu_format, Engine.GDMA: gdma_format, Engine.HAU: sort_format}
ADDRESS_LOW = 32  # bits of the low field of a GDMA address
