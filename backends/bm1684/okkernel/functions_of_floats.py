"""Functions of floats: conversions, tables, roots and exponentials, on tensors in the aligned layout.

What takes several commands follows the library's order, so that results are its own, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.backends.bm168x.calls import Arguments, Rule
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import Eu, Precision, Task
from bmcompiler.backends.bm1684.okkernel.elementwise import ONE, linear, need_one_lane, plain, sizes
from bmcompiler.backends.bm1684.okkernel.places import Tensor, in_default_layout
from bmcompiler.backends.bm1684.okkernel.recorder import Recorder
from bmcompiler.backends.bm1684.okkernel.rows import Emit, Function, in_group, within
from bmcompiler.backends.bm1684.okkernel.types import fp32_bits
from bmcompiler.backends.bm1684.tables import OFFSETS
from bmcompiler.backends.lanes.tables import Table

_Steps = Callable[[Recorder, Tensor, Tensor, Tensor, int], None]
"""Result, source, a place to work, terms of a series."""
_SERIES = 32
"""Terms of a series where the caller does not say."""
_ENTRIES = 256
_BYTES_AS_FLOATS = 0x30_1300
"""Offset in L2 of the floats of signed bytes (bm1684.md 8)."""


def _to_int(k: Recorder, target: Tensor, source: Tensor) -> None:
    k.tiu(
        tsk_typ=Task.SFU,
        tsk_eu_typ=Eu.FP32_TO_INT,
        opt_relu=1,
        opt_res0_prec=Precision.INT32,
        res0_addr=target.window,
        opd0_addr=source.window,
        **sizes("res0", target.shape),
    )


def _root(k: Recorder, target: Tensor, source: Tensor) -> None:
    """1 / sqrt."""
    k.tiu(
        tsk_typ=Task.SFU,
        tsk_eu_typ=Eu.RSQRT,
        opt_relu=1,
        res0_addr=target.window,
        opd0_addr=source.window,
        **sizes("res0", target.shape),
    )


def _lookup(k: Recorder, target: Tensor, source: Tensor, table: int) -> None:
    k.tiu(
        tsk_typ=Task.LUT,
        opt_relu=1,
        opd1_h=_ENTRIES // CHIP.execution_units,
        res0_addr=target.window,
        opd0_addr=source.window,
        opd1_addr=table,
        **sizes("res0", target.shape),
    )


def _series(k: Recorder, target: Tensor, source: Tensor, terms: int) -> None:
    """exp(source) - 1."""
    k.tiu(
        tsk_typ=Task.SFU,
        tsk_eu_typ=Eu.TAYLOR,
        opt_relu=1,
        opd1_n=terms,
        res0_addr=target.window,
        opd0_addr=source.window,
        opd1_addr=OFFSETS[Table.EXP_SERIES],
        **sizes("res0", target.shape),
    )


def _exp(k: Recorder, target: Tensor, source: Tensor, work: Tensor, terms: int) -> None:
    """exp of the whole part by a table, times that of the rest by its series."""
    _to_int(k, target, source)
    _lookup(k, target, target, _BYTES_AS_FLOATS)
    plain(k, Eu.SUB, work, source, target)
    _to_int(k, target, target)
    _lookup(k, target, target, OFFSETS[Table.POWERS_OF_E])
    _series(k, work, work, terms)
    plain(k, Eu.MAC, target, target, work)


def _sigmoid(k: Recorder, target: Tensor, source: Tensor, work: Tensor, terms: int) -> None:
    """1 / (1 + exp(-x))."""
    plain(k, Eu.SUB, work, 0, source)
    _exp(k, target, work, work, terms)
    plain(k, Eu.ADD, work, target, ONE)
    plain(k, Eu.DIVIDE, target, ONE, work)


def _tanh(k: Recorder, target: Tensor, source: Tensor, work: Tensor, terms: int) -> None:
    """1 - 2 * (1 / e) / (e + 1 / e) with e = exp(x)."""
    _exp(k, target, source, work, terms)
    plain(k, Eu.DIVIDE, work, ONE, target)
    plain(k, Eu.ADD, target, target, work)
    plain(k, Eu.DIVIDE, work, work, target)
    linear(k, target, work, fp32_bits(-2.0), ONE)


def _places(a: Arguments, *names: str) -> list[Tensor]:
    found = [in_default_layout(a, name, a.shape) for name in names]
    need_one_lane(*found)
    return found


def _with_work(steps: _Steps) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        target, source, work = _places(a, "dst", "src", "work")
        steps(k, target, source, work, _SERIES if a.get("num_series") is None else a.num_series)

    return emit


def _emit_to_int(k: Recorder, a: Arguments) -> None:
    _to_int(k, *_places(a, "dst", "src"))


def _emit_rsqrt(k: Recorder, a: Arguments) -> None:
    _root(k, *_places(a, "dst", "src"))


def _emit_sqrt(k: Recorder, a: Arguments) -> None:
    target, source = _places(a, "dst", "src")
    _root(k, target, source)
    plain(k, Eu.DIVIDE, target, ONE, target)


def _emit_lookup(table: int) -> Emit:
    def emit(k: Recorder, a: Arguments) -> None:
        target, source = _places(a, "dst", "src")
        _lookup(k, target, source, table)

    return emit


def _emit_taylor(k: Recorder, a: Arguments) -> None:
    target, source = _places(a, "dst", "src")
    _series(k, target, source, a.num_series)
    plain(k, Eu.ADD, target, target, ONE)


_ADDRESSES, _SHAPE = "local_addr_t dst_addr, local_addr_t src_addr, ", "const dim4 *shape"
_TERMS = within(1, 64, "num_series")
_APART = Rule("work_addr must be neither dst_addr nor src_addr", lambda a: a.work_addr not in (a.dst_addr, a.src_addr))
_IN_PLACE = Rule("dst_addr must not be src_addr", lambda a: a.dst_addr != a.src_addr)
_RECIPES = (
    ("exp", "exp(src), src in [-103, 88]", _exp, (_APART, _IN_PLACE)),
    ("sigmoid", "1 / (1 + exp(-src))", _sigmoid, (_APART,)),
    ("tanh", "tanh(src)", _tanh, (_APART, _IN_PLACE)),
)

ROWS = in_group(
    "Functions of floats",
    Function(
        f"void okk_bdc_fp32_to_int32({_ADDRESSES}{_SHAPE})", "src as an integer, halves away from 0", _emit_to_int
    ),
    Function(
        f"void okk_bdc_lookup_int32_to_fp32({_ADDRESSES}{_SHAPE})",
        "the signed byte src as a float",
        _emit_lookup(_BYTES_AS_FLOATS),
    ),
    Function(
        f"void okk_bdc_lookup_exp({_ADDRESSES}{_SHAPE})",
        "exp of the signed byte src",
        _emit_lookup(OFFSETS[Table.POWERS_OF_E]),
    ),
    Function(
        f"void okk_bdc_taylor_exp({_ADDRESSES}{_SHAPE}, int num_series)",
        "exp(src) by its series",
        _emit_taylor,
        (_TERMS,),
    ),
    Function(f"void okk_bdc_rsqrt({_ADDRESSES}{_SHAPE})", "1 / sqrt(src)", _emit_rsqrt),
    Function(f"void okk_bdc_sqrt({_ADDRESSES}{_SHAPE})", "sqrt(src)", _emit_sqrt),
    *(
        Function(
            f"void okk_bdc_{name}{end}({_ADDRESSES}local_addr_t work_addr, {_SHAPE}{more})",
            text,
            _with_work(steps),
            (*rules, *terms),
        )
        for name, text, steps, rules in _RECIPES
        for end, more, terms in (("", "", ()), ("_tunable", ", int num_series", (_TERMS,)))
    ),
)
