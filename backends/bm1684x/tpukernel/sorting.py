"""The sort engine: its functions, and the polls that order it with the other engines.

Its commands have no ids and wait for nobody: they start when the kernel's processor issues them, beside what TIU and
GDMA do. `tpu_poll` before a sort waits for its numbers, `tpu_hau_poll` before the next command for its results.
"""

from __future__ import annotations

from bmcompiler.backends.bm1684x.codes import Sort
from bmcompiler.backends.bm1684x.instructions.operands import Command
from bmcompiler.backends.bm1684x.isa import ADDRESS_LOW, SORT
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments, Emit, Function, Known, Rule, in_group
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t
from bmcompiler.instructions.order import Engine

_KINDS = {data_type_t.DT_FP32: Sort.FP32, data_type_t.DT_INT32: Sort.INT32, data_type_t.DT_UINT32: Sort.UINT32}
_HOW = "int len, int K, bool descended, data_type_t dtype"
_ADDRESSES = ("output_addr", "output_data_addr", "output_idx_addr", "input_addr", "input_data_addr", "input_idx_addr")
_RULES = (
    Rule("dtype must be DT_FP32, DT_INT32 or DT_UINT32", lambda a: a.dtype in _KINDS),
    Rule("K must be in [1, len]", lambda a: 1 <= a.K <= a.len),
    Rule("addresses must be multiples of 4", lambda a: all((a.get(name) or 0) % 4 == 0 for name in _ADDRESSES)),
)


def _sort(source: str, result: str, index: str = "", given: str = "") -> Emit:
    """Of the numbers at an argument; with indices where they go, and where they come from if not by counting."""
    places = {"src": source, "dst": result, "dst_index": index, "src_index": given}

    def emit(k: Recorder, a: Arguments) -> None:
        fields = {"kind": _KINDS[a.dtype], "descended": int(a.descended), "topk": a.K, "len": a.len}
        fields |= {"index_en": int(bool(index)), "natural": int(bool(index) and not given)}
        for side, name in places.items():
            address = getattr(a, name) if name else 0
            fields[f"{side}_addr_lo"] = address & ((1 << ADDRESS_LOW) - 1)
            fields[f"{side}_addr_hi"] = address >> ADDRESS_LOW
        k.add(Command(Engine.HAU, SORT, fields))

    return emit


_DATA = "system_addr_t output_data_addr, system_addr_t output_idx_addr, system_addr_t"
ROWS = in_group(
    "Sort",
    Function(
        f"void tpu_hau_sort(system_addr_t output_addr, system_addr_t input_addr, {_HOW})",
        "the first K of the sorted numbers",
        _sort("input_addr", "output_addr"),
        _RULES,
    ),
    Function(
        f"void tpu_hau_sort_natural_index({_DATA} input_addr, {_HOW})",
        "the first K of the sorted numbers and their places (int32); equal ones keep their order",
        _sort("input_addr", "output_data_addr", "output_idx_addr"),
        _RULES,
    ),
    Function(
        f"void tpu_hau_sort_specific_index({_DATA} input_data_addr, system_addr_t input_idx_addr, {_HOW})",
        "the same with given indices, by which, unsigned, equal numbers are in order",
        _sort("input_data_addr", "output_data_addr", "output_idx_addr", "input_idx_addr"),
        _RULES,
    ),
    source=Known.DRAWN,
)
