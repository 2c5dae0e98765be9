"""Kernels and synchronisation, and what a kernel asks of the chip, without commands."""

from __future__ import annotations

from bmcompiler.backends.bm168x.calls import Arguments
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.okkernel import places
from bmcompiler.backends.bm1684.okkernel.recorder import Recorder
from bmcompiler.backends.bm1684.okkernel.rows import Emit, Function, in_group, within
from bmcompiler.errors import UsageError

_LANE = within(0, CHIP.lanes - 1, "start_idx")
_SHAPE = "const dim4 *shape"
_LAYOUT = f"out dim4 *stride, int start_idx, {_SHAPE}"
_DTCM = 0x202_0000, 0x5_F400
_L2_SIZE = CHIP.l2_free[1] - CHIP.l2_free[0]


def _value(value: int) -> Emit:
    return lambda k, a: value


def _poll(k: Recorder, a: Arguments) -> None:
    """A program ends when both engines are done: nothing to issue. Raises UsageError in parallel state."""
    if k.parallel:
        raise UsageError("the parallel state must end before", remedy="call okk_parallel_end()")


def _aligned(item: int) -> Function:
    return Function(
        f"void okk_128_byte_aligned_stride_for_{8 * item}bit({_LAYOUT})",
        f"strides of the layout whose channels begin at multiples of 128 bytes, of {8 * item} bits",
        lambda k, a: places.aligned(a.start_idx, a.shape, item),
        (_LANE,),
    )


CONTROL = in_group(
    "Kernel and synchronisation",
    Function("void okk_initialize()", "ids of both engines begin again", lambda k, a: k.initialize()),
    Function("void okk_poll()", "both engines are done: the end of a kernel", _poll),
    Function(
        "void okk_parallel_start()", "from here on the engines do not wait for each other", lambda k, a: k.start()
    ),
    Function("void okk_parallel_end()", "from here on they do", lambda k, a: k.end()),
    Function("bool okk_is_parallel_state()", "whether they do not", lambda k, a: k.parallel),
)
FACTS = in_group(
    "The chip and layouts",
    Function("int okk_npu_num()", "lanes", _value(CHIP.lanes)),
    Function("unsigned int okk_eu_num()", "words that a lane works on at once", _value(CHIP.execution_units)),
    Function("unsigned int okk_local_mem_size_per_npu()", "bytes of a lane", _value(CHIP.lmem_size)),
    Function("unsigned int okk_local_mem_bank_per_npu()", "banks of a lane", _value(CHIP.lmem_banks)),
    Function("unsigned int okk_local_mem_start_addr()", "of local memory", _value(CHIP.lmem_window)),
    Function("unsigned int okk_l2_sram_size()", "bytes of L2 for kernels", _value(0x25_E000)),
    Function(
        "unsigned int okk_l2_sram_start_addr()", "first address of these", _value(CHIP.l2_window + CHIP.l2_free[0])
    ),
    Function("unsigned int okk_dtcm_size()", "bytes of the processor's memory", _value(_DTCM[1])),
    Function("unsigned int okk_dtcm_start_addr()", "its first address", _value(_DTCM[0])),
    Function("unsigned long long okk_global_mem_start_addr()", "of global memory", _value(CHIP.global_base)),
    Function(
        "int okk_start_npu_index(local_addr_t addr)", "the lane of an address", lambda k, a: places.lane_of(a.addr)
    ),
    Function(
        "int okk_channle_num_per_npu(int start_idx, int num_channels)",
        "channels in the fullest lane",
        lambda k, a: CHIP.channel_rows(a.start_idx, a.num_channels),
        (_LANE, within(1, 1 << 20, "num_channels")),
    ),
    *(_aligned(item) for item in (4, 2, 1)),
    Function(
        f"void okk_compact_stride({_LAYOUT})",
        "strides of the layout without gaps in a lane",
        lambda k, a: places.compact(a.start_idx, a.shape),
        (_LANE,),
    ),
    Function(
        f"void okk_continuous_stride(out dim4 *stride, {_SHAPE})",
        "strides without gaps",
        lambda k, a: places.continuous(a.shape),
    ),
)
ROWS = (*CONTROL, *FACTS)
