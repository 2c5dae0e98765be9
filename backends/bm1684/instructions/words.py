"""Element-wise instructions on 32-bit words: task 3, in which every operand has stride registers (bm1684.md 6.4)."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.instructions.operands import (
    Commands,
    Fields,
    bytes_of,
    bytes_read,
    need_default_layout,
    placed,
    sizes,
    steps_of,
    strided,
    strides,
)
from bmcompiler.backends.bm1684.isa import Eu, Precision, StrideCode, Task
from bmcompiler.backends.lanes.facts import Range
from bmcompiler.backends.lanes.operands import Immediate, Source, Words

_ALL = ("res0", "opd0", "opd1", "opd2")


def arithmetic(build: Commands, eu: Eu, target: Words, a: Source, b: Source, *, relu: bool = False) -> None:
    """target = a `eu` b in fp32. `relu`: an option that floats do not mind."""
    _add(build, eu, target, (a, b), opt_shift_typ=0, **({"opt_relu": 1} if relu else {}))


def bits(build: Commands, eu: Eu, target: Words, a: Source, b: Source, *, signed: bool = False) -> None:
    """target = a `eu` b of the bits of words: logic, and shifts, which keep the sign where `signed`."""
    _add(build, eu, target, (a, b), opt_shift_typ=int(signed), **_int32(*_ALL))


def select(build: Commands, eu: Eu, target: Words, a: Source, b: Source, chosen: int) -> None:
    """target = the word `chosen` where a is greater than b as a float, or has its bits, else 0."""
    kinds = _int32(*_ALL) if eu == Eu.SELECT_EQ else {}
    _add(build, eu, target, (a, b), opt_shift_typ=0, opd2_addr=chosen, opt_opd2_const=1, tsk_opd_num=3, **kinds)


def copy(build: Commands, target: Words, source: Source) -> None:
    """target = source, or an immediate everywhere."""
    _add(build, Eu.COPY, target, (source,), opt_shift_typ=0, tsk_opd_num=1, **_int32("res0", "opd0"))


def copy_as_bits(build: Commands, target: Words, source: Source) -> None:
    """`copy` with the precisions of `bits`, also in the fields of the operands that it has not."""
    _add(build, Eu.COPY, target, (source,), opt_shift_typ=0, tsk_opd_num=1, **_int32(*_ALL))


def weigh(build: Commands, target: Words, source: Words, weights: Words, *, add: bool) -> None:
    """target = source * weights, or target += source * weights, in fp32."""
    _add(build, Eu.MAC if add else Eu.MUL, target, (source, weights))


def limit(build: Commands, eu: Eu, target: Words, bound: int) -> None:
    """In place: target = target `eu` an immediate in fp32, in the aligned default layout."""
    touched = [bytes_of(target)]
    address = local_address(target.address)
    build.tiu(
        touched,
        touched,
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=eu,
        opt_relu=1,
        opt_shift_typ=0,
        opt_opd1_const=1,
        short_res0_str=StrideCode.ALIGNED,
        short_opd0_str=StrideCode.ALIGNED,
        opd1_addr=bound,
        res0_addr=address,
        opd0_addr=address,
        **sizes("res0", target.shape),
    )


def _int32(*names: str) -> Fields:
    return {f"opt_{name}_prec": int(Precision.INT32) for name in names}


def _add(build: Commands, eu: Eu, target: Words, sources: tuple[Source, ...], **fields: int) -> None:
    operands: Fields = {}
    for name, source in zip(("opd0", "opd1"), sources):
        operands |= strided(name, source, target.shape)
    reads = bytes_read(sources)
    if eu == Eu.MAC:
        reads.append(bytes_of(target))
    build.tiu(
        reads,
        [bytes_of(target)],
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=eu,
        short_res0_str=StrideCode.EXPLICIT,
        res0_addr=local_address(target.address),
        **sizes("res0", target.shape),
        **strides("res0", steps_of(target)),
        **operands,
        **fields,
    )


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
