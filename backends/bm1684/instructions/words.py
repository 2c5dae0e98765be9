"""Operands of typed instructions, and element-wise instructions on 32-bit words.

Operands become register fields that say where they lie. Instructions on words are task 3, in which every operand has
stride registers (bm1684.md 6.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import Eu, Precision, StrideCode, Task
from bmcompiler.backends.lanes import operands
from bmcompiler.backends.lanes.facts import Range, Shape, Strides
from bmcompiler.backends.lanes.operands import Immediate, Source, Words
from bmcompiler.errors import EncodingError
from bmcompiler.instructions.isa import Fields

_ALL = ("res0", "opd0", "opd1", "opd2")


class Commands(Protocol):
    """What instructions are added to; ranges are bytes of a lane, of L2 from `CHIP.l2_window` on."""

    def tiu(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a TIU command."""

    def gdma(self, reads: Sequence[Range], writes: Sequence[Range], **fields: int) -> Any:
        """Add a GDMA command; of global memory there are no ranges."""


def sizes(name: str, shape: Shape) -> Fields:
    """Size fields of `res0`, `opd0` or `opd1`."""
    return {f"{name}_{axis}": size for axis, size in zip("nchw", shape)}


def strides(name: str, steps: Strides) -> Fields:
    """Stride fields of an operand, in words; those before the first word count from 2**32 down."""
    return {f"{name}_{axis}_str": step & 0xFFFF_FFFF for axis, step in zip("nchw", steps)}


steps_of, bytes_of = partial(operands.steps_of, CHIP), partial(operands.bytes_of, CHIP)


def bytes_read(sources: Sequence[Source]) -> list[Range]:
    """The bytes of the operands that are tensors."""
    return [bytes_of(source) for source in sources if isinstance(source, Words)]


def placed(name: str, source: Source) -> Fields:
    """Address of a tensor, or an immediate."""
    if isinstance(source, Immediate):
        return {f"{name}_addr": source.bits, f"opt_{name}_const": 1}
    return {f"{name}_addr": local_address(source.address)}


def strided(name: str, source: Source, shape: Shape) -> Fields:
    """`placed`, with the strides that spread a tensor over `shape` along the axes where it has one element."""
    fields = placed(name, source) | {f"short_{name}_str": int(StrideCode.EXPLICIT)}
    if isinstance(source, Immediate):
        return fields
    n, c, h, w = (0 if a == 1 and b > 1 else s for a, b, s in zip(source.shape, shape, steps_of(source)))
    return fields | strides(name, (n, c, h, w))


def need_default_layout(what: str, *operands: Source) -> None:
    """Raise EncodingError where an operand of a command without stride registers has strides."""
    if any(isinstance(operand, Words) and operand.strides is not None for operand in operands):
        raise EncodingError(f"{what} works on tiles in the aligned default layout only")


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


def lookup_bytes(build: Commands, target: Words, source: Words, table: int, entries: int) -> None:
    """The entry that each byte of the words of `source` says: four words of `target` one after the other."""
    fields = {"opd1_addr": table, "opd1_h": entries // CHIP.execution_units, "opt_opd0_prec": int(Precision.INT8)}
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


def linear(build: Commands, target: Words, source: Words, factor: Source, added: Source) -> None:
    """target = source * factor + added, two roundings; the latter are immediates or a word per channel (6.7)."""
    build.tiu(
        [bytes_of(operand) for operand in (source, factor, added) if isinstance(operand, Words)],
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
