"""Kernels, cores and synchronisation, and what a kernel asks of the chip, without commands (tpukernel-api.md 2, 3)."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.tpukernel import local
from bmcompiler.backends.bm1684x.tpukernel.recorder import Memory, Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.rules import at_least, within
from bmcompiler.backends.bm1684x.tpukernel.transfers import MOST_SIZE
from bmcompiler.backends.bm1684x.tpukernel.types import dim4
from bmcompiler.instructions.order import STREAMS, Engine

L2_USABLE = 0x1F_B000
_MOST_STEP = 128
_TYPE, _SHAPE = "data_type_t dtype", "const dim4 *shape"
_CHANNEL = "int c, int c_stride, data_type_t dtype"
_CACHED = "system_addr_t addr, unsigned long long size"
_WHOLE_BYTES = Rule("dtype must have whole bytes", lambda a: a.dtype.bits >= 8)
_COMMON = Rule("dtype must be a type of 8, 16 or 32 bits", lambda a: a.dtype.computes)
_LANE = within("start_idx", 0, CHIP.lanes - 1)


def _value(value: int) -> Emit:
    return lambda k, a: value


def _nothing(k: Recorder, a: Arguments) -> None:
    """One core without caches of its own: nothing to do."""


def _looks(memory: Memory) -> Emit:
    return lambda k, a: k.look(a.addr, memory)


_LOOKS: tuple[tuple[str, str, str, Emit, tuple[Rule, ...]], ...] = (
    ("tpu_global_mem_addr", "global_addr_t addr", "of global memory", _looks(Memory.GLOBAL), ()),
    ("tpu_l2_sram_addr", "system_addr_t addr", "of L2", _looks(Memory.L2), ()),
    (
        "tpu_local_mem_addr",
        "int start_idx, local_addr_t addr",
        "of a lane",
        lambda k, a: k.look(a.addr % CHIP.lmem_size, Memory.LOCAL, a.start_idx + a.addr // CHIP.lmem_size),
        (_LANE,),
    ),
    (
        "tpu_local_mem_addr_unified",
        "local_addr_t addr",
        "of the lane that the address is in",
        lambda k, a: k.look(a.addr % CHIP.lmem_size, Memory.LOCAL, a.addr // CHIP.lmem_size),
        (),
    ),
)
"""Name, parameters, what it points to, what gives it, rules."""


def _of_type(name: str) -> Emit:
    def emit(k: Recorder, a: Arguments) -> Any:
        return getattr(a.dtype, name)

    return emit


_KINDS = (
    ("int8", "an integer of 8 bits", 8, (False, True)),
    ("int16", "an integer of 16 bits", 16, (False, True)),
    ("int32", "an integer of 32 bits", 32, (False, True)),
    ("int4", "an integer of 4 bits", 4, (False, True)),
    ("signed_int", "a signed integer", 0, (True,)),
    ("unsigned_int", "an unsigned integer", 0, (False,)),
)


def _kind_is(bits: int, signs: tuple[bool, ...]) -> Emit:
    """An integer of so many bits, of any for 0, with one of the signs."""
    return lambda k, a: a.dtype.is_int and bits in (0, a.dtype.bits) and a.dtype.signed in signs


def _local_size(k: Recorder, a: Arguments) -> int:
    channel = local.aligned(0, dim4(1, 1, a.shape.h, a.shape.w), a.dtype).c if a.align else a.shape.h * a.shape.w
    size: int = a.shape.n * CHIP.channel_rows(a.start_idx, a.shape.c) * channel * a.dtype.size
    return size


CONTROL = in_group(
    "Kernel and synchronisation",
    Function("void tpu_initialize()", "ids of both engines begin again", lambda k, a: k.initialize()),
    Function(
        "void tpu_parallel_start()", "from here on the engines do not wait for each other", lambda k, a: k.start()
    ),
    Function("void tpu_parallel_end()", "from here on they do", lambda k, a: k.end()),
)
CORES = in_group(
    "Kernel and synchronisation",
    Function(
        "void tpu_poll()", "TIU and GDMA are done: the end of a kernel, or before a sort", lambda k, a: k.poll(*STREAMS)
    ),
    Function(
        "bool tpu_is_parallel_state()",
        "whether the engines run without waiting for each other",
        lambda k, a: k.parallel,
    ),
    Function("void tpu_hau_poll()", "the sort engine is done", lambda k, a: k.poll(Engine.HAU)),
    Function(f"void tpu_flush_cache({_CACHED})", "nothing: the simulator has no cache", _nothing),
    Function(f"void tpu_invalidate_cache({_CACHED})", "nothing: the simulator has no cache", _nothing),
    Function("void tpu_poll_descriptor()", "tpu_poll", lambda k, a: k.poll(*STREAMS)),
    *(
        Function(
            f"pointer_t {name}({parameters})",
            f"where the byte lies for the kernel's own processor, {what}, with all done that was issued",
            emit,
            rules,
        )
        for name, parameters, what, emit, rules in _LOOKS
    ),
    Function(
        "unsigned int tpu_gdma_get_filter_num()",
        "elements that the last masked select or nonzero kept, with all done that was issued; in C only",
        lambda k, a: k.kept(),
    ),
    Function("int tpu_core_index()", "0", _value(0)),
    Function("int tpu_core_num()", "1", _value(1)),
    Function("void tpu_sync_all()", "nothing: there is one core", _nothing),
    Function("int tpu_workitem_num()", "1", _value(1)),
    Function("int tpu_workitem_index()", "0", _value(0)),
    Function("int tpu_is_last_workitem()", "1", _value(1)),
    Function("int tpu_group_num()", "1", _value(1)),
    Function("int tpu_group_index()", "0", _value(0)),
    source=Known.DESCRIBED,
)
CHIP_FACTS = in_group(
    "The chip, types and layouts",
    Function("int tpu_npu_num()", "lanes", _value(CHIP.lanes)),
    Function("int tpu_bank_num()", "banks of a lane", _value(CHIP.lmem_banks)),
    Function("int tpu_local_mem_size_per_npu()", "bytes of a lane", _value(CHIP.lmem_size)),
    Function("int tpu_l2_sram_size()", "bytes of L2 for kernels", _value(L2_USABLE)),
    Function("unsigned long long tpu_l2_sram_get_start_addr()", "first address of L2", _value(CHIP.l2_window)),
    Function("unsigned long long tpu_global_mem_get_start_addr()", "of global memory", _value(CHIP.global_base)),
    Function("unsigned long long tpu_local_mem_get_start_addr()", "of local memory", _value(CHIP.lmem_window)),
    Function(
        "int tpu_gdma_shape_limit(int dim)", "largest n, c, h, w", lambda k, a: MOST_SIZE if 0 <= a.dim <= 3 else 0
    ),
    Function("int tpu_gdma_move_max_wstride_byte_len()", "largest stride of w in bytes", _value(_MOST_STEP)),
    Function("int tpu_npu_index(local_addr_t addr)", "the lane of an address", lambda k, a: local.lane_of(a.addr)),
    Function(
        "int tpu_bank_index(local_addr_t addr)",
        "the bank of an address",
        lambda k, a: a.addr % CHIP.lmem_size // CHIP.lmem_bank_size,
    ),
    Function(
        "int tpu_channle_num_per_npu(int start_idx, int num_channels)",
        "channels in the fullest lane",
        lambda k, a: CHIP.channel_rows(a.start_idx, a.num_channels),
        (_LANE, at_least(1, "num_channels")),
    ),
    Function(
        f"int tpu_eu_num({_TYPE})",
        "elements that a lane works on at once",
        lambda k, a: local.elements_at_once(a.dtype),
        (_COMMON,),
    ),
    Function(f"int tpu_data_type_size({_TYPE})", "bytes of an element", _of_type("size"), (_WHOLE_BYTES,)),
    Function(f"int tpu_data_type_bits({_TYPE})", "bits of an element", _of_type("bits")),
    Function(f"bool tpu_is_data_type_int({_TYPE})", "whether it is an integer", _of_type("is_int")),
    Function(f"bool tpu_is_data_type_fp({_TYPE})", "whether it is a float", _of_type("is_float")),
    Function(f"bool tpu_is_data_type_signed({_TYPE})", "whether it is signed", _of_type("signed")),
    Function(
        f"int tpu_aligned_feature_size(int h, int w, {_TYPE})",
        "bytes of a channel, aligned",
        lambda k, a: local.aligned(0, dim4(1, 1, a.h, a.w), a.dtype).c * a.dtype.size,
        (_COMMON, at_least(1, "h", "w")),
    ),
    Function(
        f"void tpu_aligned_stride(out dim4 *stride, int start_idx, {_SHAPE}, {_TYPE})",
        "strides of the 64-byte aligned layout",
        lambda k, a: local.aligned(a.start_idx, a.shape, a.dtype),
        (_LANE, _COMMON),
    ),
    Function(
        f"void tpu_compact_stride(out dim4 *stride, int start_idx, {_SHAPE})",
        "strides of the compact layout",
        lambda k, a: local.compact(a.start_idx, a.shape),
        (_LANE,),
    ),
    Function(
        f"void tpu_line_aligned_stride(out dim4 *stride, int start_idx, {_SHAPE}, {_TYPE})",
        "strides of the layout whose rows are aligned",
        lambda k, a: local.line_aligned(a.start_idx, a.shape, a.dtype),
        (_LANE, _COMMON),
    ),
    Function(
        f"void tpu_continuous_stride(out dim4 *stride, {_SHAPE})",
        "strides without gaps",
        lambda k, a: local.continuous(a.shape),
    ),
)
MORE_FACTS = in_group(
    "The chip, types and layouts",
    *(
        Function(f"bool tpu_is_data_type_{kind}({_TYPE})", f"whether it is {what}", _kind_is(size, signs))
        for kind, what, size, signs in _KINDS
    ),
    Function(f"bool tpu_is_data_type_fp8({_TYPE})", "whether it is a float of 8 bits", lambda k, a: a.dtype.is_float8),
    Function(
        f"int tpu_get_local_cstride(int h, int w, bool align, {_TYPE})",
        "elements from a channel to the next of its lane",
        lambda k, a: local.aligned(0, dim4(1, 1, a.h, a.w), a.dtype).c if a.align else a.h * a.w,
        (_COMMON, at_least(1, "h", "w")),
    ),
    Function(
        "int tpu_get_local_nstride(int c_stride, int c, int start_idx)",
        "elements from an image to the next",
        lambda k, a: a.c_stride * CHIP.channel_rows(a.start_idx, a.c),
        (_LANE, at_least(1, "c")),
    ),
    Function(
        f"int tpu_get_local_size({_SHAPE}, {_TYPE}, int start_idx, bool align)",
        "bytes of a tensor in the fullest lane",
        _local_size,
        (_LANE, _COMMON),
    ),
    Function(
        f"int tpu_npu_c_offset({_CHANNEL})",
        "bytes from channel 0 to channel c in the lane of c",
        lambda k, a: a.c // CHIP.lanes * a.c_stride * a.dtype.size,
        (_COMMON, at_least(0, "c")),
    ),
    Function(
        f"int tpu_unified_c_offset({_CHANNEL})",
        "what is added to the local address of channel 0 for that of channel c",
        lambda k, a: a.c % CHIP.lanes * CHIP.lmem_size + a.c // CHIP.lanes * a.c_stride * a.dtype.size,
        (_COMMON, at_least(0, "c")),
    ),
    Function("int tpu_cache_line_size()", "bytes of a line of the cache", _value(CHIP.alignment)),
    source=Known.DESCRIBED,
)
ROWS = (*CONTROL, *CORES, *CHIP_FACTS, *MORE_FACTS)
