"""The codes in BM1684X commands: classes, operations, precisions, rounding modes, layouts."""

from __future__ import annotations

from enum import IntEnum

from bmcompiler.numeric.rounding import Rounding as Rounding  # noqa: PLC0414 (rounding modes are codes, too)


class Task(IntEnum):
    """`tsk_typ` of TIU commands."""

    CONV = 0
    POOL_OR_DEPTHWISE = 1
    MATRIX = 2
    ARITHMETIC = 3
    REQUANT = 4
    TRANSPOSE = 5
    GATHER = 6
    LAR = 7
    SFU = 9
    LINEAR = 10
    COMPARE = 13
    VECTOR = 14
    SYSTEM = 15


class Conv(IntEnum):
    """`tsk_eu_typ` of convolutions (bm1684x-cube.md 5)."""

    NORMAL = 0
    REQUANT = 1
    REQUANT_RELU = 2


class Pord(IntEnum):
    """`tsk_eu_typ` of pooling and depthwise convolutions (bm1684x-cube.md 6)."""

    DEPTHWISE = 0
    AVERAGE = 1
    DEPTHWISE_RELU = 2
    MAX = 4


class Matrix(IntEnum):
    """`tsk_eu_typ` of matrix products (bm1684x-cube.md 7, 8)."""

    NORMAL = 1
    REQUANT = 2
    REQUANT_RELU = 3
    NN = 4
    NT = 5
    TT = 6


class Ar(IntEnum):
    """`tsk_eu_typ` of arithmetic, and of vector commands as far as these have them (bm1684x-vector.md 4)."""

    MUL = 0
    NOT = 1
    ADD = 2
    SUB = 3
    MAX = 4
    MIN = 5
    SHIFT_LOGICAL = 6
    AND = 7
    OR = 8
    XOR = 9
    SELECT_GT = 10
    SELECT_EQ = 11
    DIVIDE = 12
    SELECT_LT = 13
    CAST = 14
    ADD_SATURATING = 15
    SUB_SATURATING = 16
    MAC = 18
    COPY = 19
    MUL_SATURATING = 20
    SHIFT_ARITHMETIC = 21
    ROTATE = 22
    MUL_HIGH = 23
    ABS = 26
    ABS_DIFFERENCE = 27
    FIRST_ONE = 29
    FIRST_ZERO = 30


class Requant(IntEnum):
    """`tsk_eu_typ` of requantization (bm1684x-cube.md 9)."""

    RQ0 = 0
    RQ1 = 1
    DQ0 = 3
    DQ1 = 4


class Trans(IntEnum):
    """`tsk_eu_typ` of transpositions and broadcasts (bm1684x-vector.md 9.1)."""

    CW = 0
    WC = 1
    LANE_COPY = 2
    LANE_BROADCAST = 3
    STATIC_BROADCAST = 4
    STATIC_DISTRIBUTE = 5


class Gather(IntEnum):
    """`tsk_eu_typ` of gather and scatter (bm1684x-vector.md 9.2)."""

    LIST = 0
    LIST_2D = 1
    SCATTER_LIST = 3
    SCATTER_LIST_2D = 4
    LANE = 5
    SCATTER_LANE = 6
    MASK = 8
    LANE_FAST = 13
    SCATTER_LANE_FAST = 14
    MASK_FAST = 15
    ROWS = 17
    SCATTER_ROWS = 18


class Sfu(IntEnum):
    """`tsk_eu_typ` of special functions (bm1684x-vector.md 6)."""

    TAYLOR = 12
    TAYLOR_FAST = 13
    NORMALIZE = 15
    RSQRT = 17


class Lin(IntEnum):
    """`tsk_eu_typ` of linear commands (bm1684x-vector.md 8)."""

    MAC = 1
    SQUARE_SUM = 20
    SQUARE_DIFFERENCE = 21


class Cmp(IntEnum):
    """`tsk_eu_typ` of compare and select (bm1684x-vector.md 7)."""

    MAX_AND_SELECT = 22
    SELECT_GT = 23
    SELECT_EQ = 24
    MIN_AND_SELECT = 25
    SELECT_LT = 26


class System(IntEnum):
    """`tsk_eu_typ` of system commands (bm1684x-cube.md 1)."""

    INTERRUPT_BARRIER = 0
    SPB = 1
    SWR = 2
    SWR_LOCAL = 3
    SWR_COLLECT = 4
    DATA_BARRIER = 5
    NOP = 30
    END = 31


UNITS: dict[Task, type[IntEnum]] = {
    Task.CONV: Conv,
    Task.POOL_OR_DEPTHWISE: Pord,
    Task.MATRIX: Matrix,
    Task.ARITHMETIC: Ar,
    Task.REQUANT: Requant,
    Task.TRANSPOSE: Trans,
    Task.GATHER: Gather,
    Task.SFU: Sfu,
    Task.LINEAR: Lin,
    Task.COMPARE: Cmp,
    Task.VECTOR: Ar,
    Task.SYSTEM: System,
}


class Precision(IntEnum):
    """Precision codes of TIU operands, and data formats of GDMA commands."""

    INT8 = 0
    FP16 = 1
    FP32 = 2
    INT16 = 3
    INT32 = 4
    BF16 = 5


ITEM_BYTES = {
    Precision.INT8: 1,
    Precision.FP16: 2,
    Precision.FP32: 4,
    Precision.INT16: 2,
    Precision.INT32: 4,
    Precision.BF16: 2,
}


class Layout(IntEnum):
    """Stride codes of TIU operands (bm1684x-vector.md 3)."""

    ALIGNED = 0
    COMPACT = 1
    PER_CHANNEL = 2
    FREE = 3
    TABLE = 4


class Move(IntEnum):
    """`cmd_type` of GDMA commands (bm1684x.md 3.1)."""

    TENSOR = 0
    MATRIX = 1
    MASKED_SELECT = 2
    GENERAL = 3
    CW_TRANSPOSE = 4
    NONZERO = 5
    SYSTEM = 6
    GATHER = 7
    SCATTER = 8


class Sort(IntEnum):
    """`kind` of commands of the sort engine: the type of what is sorted."""

    FP32 = 0
    INT32 = 1
    UINT32 = 2


class Function(IntEnum):
    """`special_func` of GDMA tensor commands (bm1684x.md 3.4)."""

    COPY = 0
    NC_TRANSPOSE = 1
    COLLECT = 2
    BROADCAST = 3
    DISTRIBUTE = 4
    COPY_4_BANKS = 5
    BROADCAST_4_BANKS = 6
