"""Arithmetic of vector commands against exact fractions, what the chip refuses, and damaged commands."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from bm1684x_golden import Case, cases, streams
from exact_rounding import rounded, sixteen
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684x.codes import Ar, Precision, Rounding
from bmcompiler.backends.bm1684x.isa import AR, CMP, LONG, SFU, SG, TRANS, VC, tiu_format
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.errors import BMError, SimulatorError
from bmcompiler.instructions.isa import Format
from bmcompiler.numeric.floats import BF16, FP16
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1684x.vector.convert import convert
from bmcompiler.runtime.simulator.bm1684x.vector.functions import integer_result
from bmcompiler.runtime.simulator.bm1684x.vector.integers import exact, shifted
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.bm1684x.vector.rows import check_indices

_MODES = st.sampled_from(list(Rounding))
_INTEGERS = st.sampled_from([Precision.INT8, Precision.INT16, Precision.INT32])
_KINDS = st.builds(Kind, _INTEGERS, st.booleans())
_EXACT = {
    Ar.ADD: (np.add, Fraction.__add__),
    Ar.SUB: (np.subtract, Fraction.__sub__),
    Ar.MUL: (np.multiply, Fraction.__mul__),
}


def elements(kind: Kind) -> st.SearchStrategy[int]:
    limits = np.iinfo(kind.dtype)
    low, high = int(limits.min), int(limits.max)
    return st.one_of(st.integers(low, high), st.sampled_from([low, low + 1, -1 if low else 1, 0, 1, high - 1, high]))


def saturated(value: int, dtype: np.dtype) -> int:
    return max(int(np.iinfo(dtype).min), min(int(np.iinfo(dtype).max), value))


def wrapped(value: int, dtype: np.dtype) -> int:
    low = value % (1 << 8 * dtype.itemsize)
    return low - (1 << 8 * dtype.itemsize) if dtype.kind == "i" and low >> 8 * dtype.itemsize - 1 else low


@settings(max_examples=300)
@given(st.data(), st.sampled_from(list(_EXACT)), _KINDS, _KINDS, _INTEGERS, _MODES, st.booleans())
def test_integers_are_exact_then_shifted_then_fitted(
    data: st.DataObject, unit: Ar, a: Kind, b: Kind, to: Precision, mode: Rounding, saturating: bool
) -> None:
    pairs = data.draw(st.lists(st.tuples(elements(a), elements(b), st.integers(-63, 31)), min_size=1, max_size=6))
    x, y, shift = (np.array(side) for side in zip(*pairs))
    operation, reference = _EXACT[unit]
    target = integer_result(unit, a, b, to)
    values = exact(operation, x.astype(a.dtype), y.astype(b.dtype))
    fit = saturated if saturating else wrapped
    for amounts in (shift, int(shift[0])):
        want = []
        for left, right, amount in zip(x.tolist(), y.tolist(), np.broadcast_to(amounts, x.shape).tolist()):
            want.append(fit(rounded(reference(Fraction(left), Fraction(right)) * Fraction(2) ** amount, mode), target))
        assert shifted(values, amounts, mode, target, saturating=saturating).tolist() == want


def test_shifts_and_indices_end_where_their_results_are_known() -> None:
    values, int32 = np.array([1, -1], np.int32), np.dtype(np.int32)
    for shift, want in ((31, [1 << 31, -(1 << 31)]), (-63, [0, -1])):
        got = shifted(values, shift, Rounding.DOWN, np.dtype(np.int64), saturating=False)
        assert got.tolist() == want
    for shift in (32, -64):
        with pytest.raises(SimulatorError, match="31 to the left at most and 63 to the right"):
            shifted(values, shift, Rounding.DOWN, int32, saturating=True)
    check_indices(values, 2)
    with pytest.raises(SimulatorError, match="index 1 is outside of the 1 elements"):
        check_indices(values, 1)


_PATTERNS = st.one_of(st.integers(0, 0xFFFF), st.sampled_from([0x0001, 0x007F, 0x0080, 0x03FF, 0x0400, 0x3C00, 0x7BFF]))


@settings(max_examples=300)
@given(st.lists(st.tuples(_PATTERNS, _PATTERNS), min_size=1, max_size=30))
def test_sixteen_bit_floats_are_rounded_once(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(side, np.uint16) for side in zip(*pairs))
    for kind, mantissa, least, infinite in ((FP16, 10, -14, 0x7C00), (BF16, 7, -126, 0x7F80)):
        with np.errstate(all="ignore"):
            x, y = kind.number(a).astype(np.float64), kind.number(b).astype(np.float64)
            got = {"sum": kind.add(a, b), "difference": kind.subtract(a, b), "product": kind.multiply(a, b)}
            about = {"sum": x + y, "difference": x - y, "product": x * y}
        for name, results in got.items():
            for left, right, near, bits in zip(x, y, about[name], results.tolist()):
                if not np.isfinite(near):
                    assert bits == (0x7FFF if np.isnan(near) else infinite | (near < 0) << 15)
                    continue
                sides = Fraction(float(left)), Fraction(float(right))
                value = {"sum": sides[0] + sides[1], "difference": sides[0] - sides[1], "product": sides[0] * sides[1]}[
                    name
                ]
                sign = int(math.copysign(1, near) < 0) << 15
                size = abs(value)
                if kind is BF16 and size < Fraction(2) ** -126:  # no denormals: the exponent has no end, then flush
                    assert bits == sign | (0x80 if size >= Fraction(2) ** -126 * (1 - Fraction(1, 512)) else 0)
                else:
                    assert bits == sign | sixteen(size, False, Rounding.HALF_EVEN, mantissa, least, infinite)


@given(st.data(), st.sampled_from([Precision.FP32, Precision.BF16, Precision.FP16]), st.booleans(), _MODES)
def test_words_become_floats_rounded_once(data: st.DataObject, to: Precision, signed: bool, mode: Rounding) -> None:
    kind = Kind(Precision.INT32, signed)
    values = data.draw(st.lists(elements(kind), min_size=1))
    mantissa, largest = {Precision.FP32: (24, None), Precision.BF16: (8, None), Precision.FP16: (11, 65504)}[to]
    got = convert(np.array(values, kind.dtype), kind, Kind(to), mode)
    numbers = got if to == Precision.FP32 else {Precision.BF16: BF16, Precision.FP16: FP16}[to].number(got)
    for value, number in zip(values, numbers.tolist()):
        step = 1 << max(abs(value).bit_length() - mantissa, 0)
        want = rounded(Fraction(value, step), mode) * step
        if largest and abs(want) > largest:
            inward = mode in (Rounding.TO_ZERO, Rounding.DOWN if want > 0 else Rounding.UP)
            assert number == math.copysign(largest if inward else math.inf, want)
        else:
            assert number == want


@given(st.data(), st.sampled_from([Precision.FP32, Precision.BF16, Precision.FP16]), _KINDS, st.integers(0, 4))
def test_floats_become_integers_saturated(data: st.DataObject, of: Precision, to: Kind, mode: int) -> None:
    numbers = data.draw(st.lists(st.one_of(st.floats(width=16), st.integers(-9, 9).map(lambda n: n / 2)), min_size=1))
    source = {
        Precision.FP32: lambda x: x,
        Precision.FP16: lambda x: x.astype(np.float16).view(np.uint16),
        Precision.BF16: lambda x: (x.view(np.uint32) >> 16).astype(np.uint16),
    }[of](np.array(numbers, np.float32))
    exactly = source if of == Precision.FP32 else {Precision.FP16: FP16, Precision.BF16: BF16}[of].number(source)
    for number, result in zip(exactly.tolist(), convert(source, Kind(of), to, mode).tolist()):
        if math.isnan(number):
            assert result == 0
        else:
            big = int(math.copysign(1 << 40, number))
            assert result == saturated(
                big if math.isinf(number) else rounded(Fraction(number), Rounding(mode)), to.dtype
            )


# -- commands ----------------------------------------------------------------------------------------------------------


def run(layout: Format, **fields: int) -> Memories:
    memories = Memories()
    memories.local.bytes[0, :4] = 255
    compile_plan([CommandGroup(layout.pack(fields), b"")], memories).run()
    return memories


_ONE = {"res0_n": 1, "res0_c": 1, "res0_h": 1, "res0_w": 4}
_AR = {"tsk_typ": 3, "tsk_opd_num": 2, **_ONE}
_FP16_ALL = {"res0_prec": 1, "opd0_prec": 1, "opd1_prec": 1}
_REFUSED: list[tuple[Format, dict[str, int], str]] = [
    (AR, {**_AR, **_FP16_ALL, "tsk_eu_typ": Ar.DIVIDE}, "only fp32 can be divided"),
    (AR, {**_AR, **_FP16_ALL, "tsk_eu_typ": Ar.ADD_SATURATING}, "ADD_SATURATING does not exist for floats"),
    (AR, {**_AR, "tsk_eu_typ": Ar.ADD, "opd0_prec": 2, "opd1_prec": 2}, "one precision, got fp32, fp32, int8"),
    (AR, {**_AR, "tsk_eu_typ": Ar.CAST, "res0_prec": 5, "opd0_prec": 1}, "between fp16 and bf16 does not exist"),
    (AR, {**_AR, "tsk_eu_typ": Ar.CAST, "opd0_prec": 2, "opd2_n_str": 5}, "mode 5 does not exist for conversion"),
    (AR, {**_AR, "tsk_eu_typ": Ar.MAX, "opd0_sign": 1}, "must have the same sign bit"),
    (AR, {**_AR, "tsk_eu_typ": Ar.SELECT_GT, "res0_prec": 4, "opd2_const": 1}, "must not be wider than its operands"),
    (AR, {**_AR, "tsk_eu_typ": Ar.SELECT_GT}, "must be an immediate"),
    (AR, {**_AR, "tsk_eu_typ": Ar.ROTATE}, "rotations take int16 or int32"),
    (AR, {**_AR, "tsk_eu_typ": Ar.AND, "res0_prec": 2, "opd0_prec": 2, "opd1_prec": 2}, "takes integer precisions"),
    (AR, {**_AR, "tsk_eu_typ": Ar.ADD, "tsk_opd_num": 3, "opd2_const": 1, "opd2_addr": 32}, "31 to the left at most"),
    (AR, {**_AR, "tsk_eu_typ": 17}, "operation 17 does not exist"),
    (AR, {**_AR, "tsk_eu_typ": Ar.ADD, "opd0_prec": 6}, "precision code 6"),
    (AR, {**_AR, "tsk_eu_typ": Ar.ADD, "res0_addr": 0x3FFFD}, "of a lane of 262144 bytes"),
    (SFU, {"tsk_typ": 9, "tsk_eu_typ": 12, "res0_prec": 2, "opd0_prec": 2, "opd1_n": 1, **_ONE}, "two terms at least"),
    (SFU, {"tsk_typ": 9, "tsk_eu_typ": 17, "res0_prec": 1, "opd0_prec": 1, **_ONE}, "exist in fp32 only"),
    (SFU, {"tsk_typ": 9, "tsk_eu_typ": 15, "res0_prec": 4, "opd0_prec": 1, **_ONE}, "an integer of the same width"),
    (SG, {"tsk_typ": 6, "tsk_eu_typ": 9, **_ONE}, "operation 9 does not exist"),
    (
        SG,
        {"tsk_typ": 6, "tsk_eu_typ": 13, "opd0_w": 200, "opd1_c": 1, "opd1_w": 4, **_ONE},
        "index 255 is outside of the 200",
    ),
    (
        SG,
        {"tsk_typ": 6, "tsk_eu_typ": 13, "opd1_prec": 4, "opd0_w": 9, "opd1_c": 1, **_ONE},
        "must be uint8 or uint16, not int32",
    ),
    (TRANS, {"tsk_typ": 5, "tsk_eu_typ": 3, "res0_addr": 63 << 18, **_ONE, "res0_c": 2}, "passes the last lane"),
    (TRANS, {"tsk_typ": 5, "tsk_eu_typ": 4, **_ONE}, "do not lie in static memory"),
    (VC, {"tsk_typ": 14, "res0_c": 1, "res0_w": 1, "opd0_c": 1, "opd0_w": 4, "opd1_w": 5}, "must be 1 to 4"),
    (
        LONG,
        {"tsk_typ": 9, "tsk_eu_typ": 17, "res0_prec": 2, "opd0_prec": 2, "opd2_n_str": 900, **_ONE},
        "901 iterations",
    ),
    (CMP, {"tsk_typ": 13, "tsk_eu_typ": 21, **_ONE}, "comparison 21 does not exist"),
]


@pytest.mark.parametrize(("layout", "fields", "reason"), _REFUSED, ids=[row[2] for row in _REFUSED])
def test_what_the_chip_asserts_on_is_refused_with_a_sentence(
    layout: Format, fields: dict[str, int], reason: str
) -> None:
    with pytest.raises(SimulatorError, match=reason):
        run(layout, **fields)


@pytest.mark.parametrize("case", cases("vector")[::5], ids=str)
def test_long_forms_do_the_same(case: Case) -> None:
    layout = tiu_format(int.from_bytes(case.command[:8], "little"))
    short = layout.unpack(case.command)
    long = {name: value for name, value in short.items() if name in LONG.by_name and name != "cmd_short"}
    if layout in (CMP, SG):
        long |= {"opd1_prec": short.get("opd1_prec", short["opd0_prec"])}
    machines = [Memories(), Memories()]
    for memories, command in zip(machines, (case.command, LONG.pack(long))):
        memories.local.bytes[:, : 1 << 16] = np.arange(1 << 16) % 7
        at = 0
        for _, lane, offset, length in case.before[0].tolist():
            memories.local.bytes[lane, offset : offset + length] = case.before[1][at : at + length]
            at += length
        compile_plan([CommandGroup(command, b"")], memories).run()
    assert np.array_equal(machines[0].local.bytes, machines[1].local.bytes)


def test_masked_lanes_keep_what_they_have() -> None:
    fields = {"tsk_typ": 3, "tsk_eu_typ": Ar.COPY, "opd0_const": 1, "opd0_addr": 9, **_ONE, "res0_c": 64}
    memories = run(LONG, **fields, lane_mask_lo=0b10, lane_mask_hi=1, res0_addr=64)
    assert np.flatnonzero(memories.local.bytes[:, 64]).tolist() == [1, 32]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(cases("vector")), st.lists(st.integers(0, 511), min_size=1, max_size=3), st.integers(0, 255))
def test_damaged_commands_run_or_are_refused(case: Case, bits: list[int], noise: int) -> None:
    command = bytearray(case.command)
    for bit in bits:
        command[bit // 8 % len(command)] ^= 1 << bit % 8
    memories = _noisy(noise)
    try:
        compile_plan([streams(case._replace(command=bytes(command)))], memories).run()
    except BMError as error:
        assert str(error)


def _noisy(seed: int) -> Memories:
    memories = Memories()
    memories.local.bytes[:, :1024] = np.random.default_rng(seed).integers(0, 256, (64, 1024))
    return memories
