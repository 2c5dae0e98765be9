"""Functions of words, tables and choices; operands lie in the default layout (bm1684.md 6.5 to 6.9)."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.instructions.operands import (
    Commands,
    bytes_of,
    bytes_read,
    need_default_layout,
    placed,
    sizes,
    steps_of,
    strides,
)
from bmcompiler.backends.bm1684.isa import Eu, Precision, Task
from bmcompiler.backends.lanes.facts import Range
from bmcompiler.backends.lanes.operands import Immediate, Source, Words


def function(build: Commands, eu: Eu, target: Words, source: Words) -> None:
    """A special function of each word: conversions to int32, or 1 / sqrt of floats."""
    fields = {} if eu == Eu.RSQRT else {"opt_res0_prec": int(Precision.INT32)}
    _special(build, Task.SFU, eu, target, source, (), fields)


def series(build: Commands, target: Words, source: Words, table: int, terms: int) -> None:
    """c[0] * x + c[1] * x**2 + ..., coefficients from byte `table` of L2 on."""
    fields = {"opd1_addr": table, "opd1_n": terms}
    _special(build, Task.SFU, Eu.TAYLOR, target, source, _loaded(table, terms), fields)


def lookup(build: Commands, target: Words, source: Words, table: int, entries: int) -> None:
    """The entry that the low bits of each word say, of `entries` words from byte `table` of L2 on."""
    fields = {"opd1_addr": table, "opd1_h": entries // CHIP.execution_units}
    _special(build, Task.LUT, Eu.MUL, target, source, _loaded(table, entries), fields)


def _loaded(table: int, words: int) -> tuple[Range, ...]:
    """What is read of L2; the constant tables of the chip never change."""
    if not CHIP.l2_free[0] <= table < CHIP.l2_free[1]:
        return ()
    return ((CHIP.l2_window + table, CHIP.l2_window + table + 4 * words),)


def _special(
    build: Commands,
    task: Task,
    eu: Eu,
    target: Words,
    source: Words,
    tables: Sequence[Range],
    fields: dict[str, int],
) -> None:
    need_default_layout("a special function or lookup", source, target)
    build.tiu(
        [bytes_of(source), *tables],
        [bytes_of(target)],
        tsk_typ=task,
        tsk_eu_typ=eu,
        res0_addr=local_address(target.address),
        **sizes("res0", target.shape),
        **placed("opd0", source),
        **fields,
    )


def choose(build: Commands, target: Words, sources: Sequence[Source]) -> None:
    """target = a > b ? c : d; the stride registers of the first operand must hold the default ones (6.9)."""
    need_default_layout("a choice", target, *sources)
    address = local_address(target.address)
    fields = strides("opd0", steps_of(target))
    for name, source in zip(("opd0", "opd1", "opd2", "opd3"), sources):
        fields |= placed(name, source)
    build.tiu(
        bytes_read(sources),
        [bytes_of(target)],
        tsk_typ=Task.COMPARE,
        tsk_eu_typ=Eu.SELECT,
        tsk_opd_num=0,
        res0_addr=address,
        res1_addr=address,
        **sizes("res0", target.shape),
        **fields,
    )


def linear(build: Commands, target: Words, source: Words, factor: Immediate, added: Words | Immediate) -> None:
    """target = source * factor + added, two roundings; `added` is an immediate or a word per channel (6.7)."""
    reads = [bytes_of(source)]
    if isinstance(added, Words):
        reads.append(bytes_of(added))
    build.tiu(
        reads,
        [bytes_of(target)],
        tsk_typ=Task.LINEAR,
        tsk_eu_typ=Eu.MAC,
        tsk_opd_num=3,
        res0_addr=local_address(target.address),
        **sizes("res0", target.shape),
        **placed("opd0", source),
        **placed("opd1", added),
        **placed("opd2", factor),
    )
