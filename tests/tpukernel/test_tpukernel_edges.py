"""Numbers at the edge of what a function takes, just inside and just outside, with calls that are right otherwise."""

from __future__ import annotations

import re
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import pytest
from tpukernel_golden import cases

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.tpukernel.local import _NARROW, _WIDE, place
from bmcompiler.backends.bm1684x.tpukernel.recorder import Recorder
from bmcompiler.backends.bm1684x.tpukernel.rows import Arguments
from bmcompiler.errors import EncodingError, UsageError
from bmcompiler.instructions.order import STREAMS, Engine
from bmcompiler.tpukernel import (
    DT_FP16,
    DT_FP32,
    DT_INT8,
    DT_INT16,
    DT_INT32,
    FUNCTIONS,
    GLOBAL_MEM_START,
    TABLE,
    data_type_t,
    dim4,
    recording,
    scalar_t,
)  # fmt: skip

TINY = 1e-30
EDGES: list[tuple[str, str, list[float], list[float], str]] = [
    ("tpu_bdc_fp32_pow_C", "C", [TINY], [], ""),
    ("tpu_bdc_fp32_C_pow", "C", [TINY, 2.0], [0.0, -1.0], "C must be positive"),
    ("tpu_bdc_fp32_logx", "base", [TINY, 0.5, 2.0], [0.0, 1.0, -2.0], "base must be positive and not 1"),
]
"""Function, parameter, what it takes, what it refuses, what the refusal says."""


@pytest.mark.parametrize(("name", "parameter", "taken", "refused", "words"), EDGES)
def test_edges(name: str, parameter: str, taken: list[float], refused: list[float], words: str) -> None:
    given = next(call[1] for case in cases() for call in case.calls if call[0] == name)
    at = [each.split()[-1] for each in TABLE[name].declared.rstrip(")").split(",")].index(parameter)
    for value in taken:
        with recording() as recorder:
            FUNCTIONS[name](*given[:at], value, *given[at + 1 :])
        assert recorder.commands
    for value in refused:
        with recording(), pytest.raises(UsageError, match=words):
            FUNCTIONS[name](*given[:at], value, *given[at + 1 :])


def test_names_of_types_say_what_they_are() -> None:
    for each in data_type_t:
        kind, bits = re.findall(r"DT_(FP8|FP20|B?FP|U?INT)(\d*)", each.name)[0]
        assert each.bits == {"FP8": 8, "FP20": 32}.get(kind) or each.bits == int(bits), each
        assert (each.is_int, each.is_float) == (kind.endswith("INT"), kind in ("FP8", "FP", "BFP")), each
        assert each.computes == (kind in ("FP", "BFP", "UINT", "INT") and int(bits) >= 8), each


RULES = {rule.text: rule for row in TABLE.values() for rule in row.rules}
BOUNDS = re.compile(r"([\w, ]+) must be (at least (\d+)|in \[(-?\d+), (\d+)\])")
BOUNDED = {text: found for text in RULES if (found := BOUNDS.fullmatch(text))}
MANY = {"stride": 2, "dilation": 2, "padding": 4}
"""Parameters of several numbers."""


def beyond(name: str, inside: int, outside: int) -> list[Any]:
    """Values of a parameter of which one number is outside."""
    if name not in MANY:
        return [outside]
    return [tuple(outside if each == at else inside for each in range(MANY[name])) for at in range(MANY[name])]


@pytest.mark.parametrize("text", sorted(BOUNDED))
def test_a_rule_holds_up_to_its_bounds(text: str) -> None:
    found, names = BOUNDED[text], BOUNDED[text][1].split(", ")
    low = int(found[3] or found[4])
    bounds = [(low, low - 1)] + ([(int(found[5]), int(found[5]) + 1)] if found[5] else [])
    for inside, outside in bounds:
        good = {name: (inside,) * MANY[name] if name in MANY else inside for name in names}
        assert RULES[text].holds(Arguments(good))
        for name in names:
            for value in beyond(name, inside, outside):
                assert not RULES[text].holds(Arguments({**good, name: value}))


def test_the_largest_plane_is_taken() -> None:
    limits = {text: int(text.rsplit(maxsplit=1)[1]) for text in RULES if text.startswith("h * w must be at most")}
    assert limits
    for text, most in limits.items():
        for h, w in ((1, most), (most, 1), (5, most // 5)):
            assert RULES[text].holds(Arguments({"shape": dim4(1, 1, h, w)}))
        for h, w in ((1, most + 1), (2, most // 2 + 1)):
            assert not RULES[text].holds(Arguments({"shape": dim4(1, 1, h, w)}))


def test_a_recording_ends_with_its_block() -> None:
    name, given = (
        "tpu_bdc_fp32_C_pow",
        next(c[1] for case in cases() for c in case.calls if c[0] == "tpu_bdc_fp32_C_pow"),
    )
    with recording() as outer:
        with recording() as inner:
            FUNCTIONS[name](*given)
        assert inner.commands and not outer.commands
        FUNCTIONS[name](*given)
    assert len(outer.commands) == len(inner.commands)
    with pytest.raises(UsageError):
        FUNCTIONS[name](*given)
    with pytest.raises(ZeroDivisionError), recording():
        raise ZeroDivisionError
    with pytest.raises(UsageError):
        FUNCTIONS[name](*given)


def test_a_kernel_has_ids_for_so_many_commands() -> None:
    name, given = "tpu_bdc_cpy", next(c[1] for case in cases() for c in case.calls if c[0] == "tpu_bdc_cpy")
    with recording() as recorder:
        recorder._last[Engine.TIU] = CHIP.max_command_id - 2
        FUNCTIONS[name](*given)
        with pytest.raises(EncodingError, match=f"at most {CHIP.max_command_id - 1} commands"):
            FUNCTIONS[name](*given)


@pytest.mark.parametrize("axis", range(4))
def test_every_stride_has_its_limit(axis: int) -> None:
    most = [_NARROW, _NARROW, _WIDE, _WIDE]

    def placed(step: int) -> Any:
        steps = dim4(*(step if each == axis else 1 for each in range(4)))
        return place("x", 0, dim4(1, 1, 1, 1), DT_FP32, steps)

    assert placed(most[axis])[axis] == most[axis]
    with pytest.raises(UsageError, match="n and c strides go up to"):
        placed(most[axis] + 1)


SHAPES = (dim4(2, 3, 4, 5), dim4(1, 64, 1, 7), dim4(1, 65, 3, 1), dim4(3, 130, 2, 2), dim4(1, 1, 1, 1))
CALLS = {
    "by the units": lambda at, *given: FUNCTIONS["tpu_bdc_cpy"](at, at // CHIP.lmem_size * CHIP.lmem_size, *given),
    "to the units": lambda at, shape, own, other, dtype: FUNCTIONS["tpu_bdc_cpy"](
        at // CHIP.lmem_size * CHIP.lmem_size, at, shape, other, own, dtype
    ),
    "loaded": lambda at, *given: FUNCTIONS["tpu_gdma_cpy_S2L"](at, GLOBAL_MEM_START, *given),
    "stored": lambda at, shape, own, other, dtype: FUNCTIONS["tpu_gdma_cpy_L2S"](
        GLOBAL_MEM_START, at, shape, other, own, dtype
    ),
}


def ends(shape: dim4, lane: int, strides: tuple[int, ...]) -> int:
    """Elements from the first to behind the last one in a lane, by trying all."""
    rows = (lane + shape.c - 1) // CHIP.lanes + 1
    places = product(range(shape.n), range(rows), range(shape.h), range(shape.w))
    return 1 + max(sum(i * step for i, step in zip(place, strides)) for place in places)


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("dtype", [DT_FP32, DT_FP16, DT_INT8])
def test_a_tensor_may_end_with_its_lane(name: str, dtype: Any) -> None:
    """One that begins a place further is refused, with strides of its own and with the layout's."""
    for shape, lane, stated in product(SHAPES, (0, 7), (True, False)):
        rows = (lane + shape.c - 1) // CHIP.lanes + 1
        once = CHIP.alignment // dtype.size
        plane = shape.h * shape.w if stated else -(-shape.h * shape.w // once) * once
        strides = dim4(rows * plane, plane, shape.w, 1)
        given = shape, strides if stated else None, None, dtype
        aligned = stated or "ed" in name
        step = dtype.size if aligned else CHIP.alignment
        last = (CHIP.lmem_size - ends(shape, lane, strides) * dtype.size) // step * step
        with recording() as recorder:
            CALLS[name](lane * CHIP.lmem_size + last, *given)
        assert recorder.commands
        if last + step == CHIP.lmem_size:  # the next lane begins
            continue
        with recording(), pytest.raises(UsageError, match="ends at byte"):
            CALLS[name](lane * CHIP.lmem_size + last + step, *given)


_INTEGERS = (DT_INT32, DT_INT16, DT_INT16, 0, 0, 1)
COMMUTATIVE = {
    **dict.fromkeys(("fp_add", "fp_mul", "fp_diff_abs"), (DT_FP32,)),
    **dict.fromkeys(("max", "min", "and", "or", "xor"), (DT_INT16,)),
    **dict.fromkeys(("int_mul", "int_add"), _INTEGERS),
}
"""Functions whose sources may change places, and what follows their strides."""


@pytest.mark.parametrize("name", sorted(COMMUTATIVE))
def test_the_source_with_strides_comes_first_where_either_may(name: str) -> None:
    """As the vendor's library turns sources round: one command for one sum, however it is written."""
    shape, strides = dim4(1, 64, 2, 3), dim4(64, 64, 16, 1)

    def commands(x: int, y: int, *given: dim4 | None) -> list[bytes]:
        with recording() as recorder:
            FUNCTIONS[f"tpu_bdc_{name}"](0, x, y, shape, None, *given, *COMMUTATIVE[name])
        return [command.data for command in recorder.commands]

    assert commands(0x4000, 0x8000, strides, None) == commands(0x8000, 0x4000, None, strides)
    assert commands(0x4000, 0x8000, None, None) != commands(0x8000, 0x4000, None, None)


STATIC = {
    "broadcast": lambda at, *given: FUNCTIONS["tpu_bdc_npu_bcast_from_static"](0, at, 4, *given),
    "distributed": lambda at, *given: FUNCTIONS["tpu_bdc_npu_distribute_from_static"](0, at, *given),
}


@pytest.mark.parametrize("name", sorted(STATIC))
@pytest.mark.parametrize("dtype", [DT_FP32, DT_FP16, DT_INT8])
def test_what_is_static_lies_in_static_memory(name: str, dtype: Any) -> None:
    count = 20
    last = CHIP.static_size - count * dtype.size
    for at in (0, dtype.size, last):
        with recording() as recorder:
            STATIC[name](at, count, dtype)
        assert recorder.commands
    for at in {last + dtype.size, last + 1, dtype.size - 1} - {0}:
        with recording(), pytest.raises(UsageError, match="do not lie in static memory"):
            STATIC[name](at, count, dtype)


MEMBERS = {"s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32, "f16": 16, "bf16": 16}


@pytest.mark.parametrize(("member", "bits"), MEMBERS.items())
def test_a_scalar_holds_the_bits_of_its_member(member: str, bits: int) -> None:
    for value in (0, 1, (1 << bits - 1) - 1, *((-1, -(1 << bits - 1)) if member[0] == "s" else ((1 << bits) - 1,))):
        made = scalar_t(**{member: value})
        assert made == value % (1 << bits)
        assert member != "s32" or made.s32 == value
    assert scalar_t(f32=-1.5) == 0xBFC0_0000 and scalar_t(0xBFC0_0000).f32 == -1.5
    with pytest.raises(UsageError):
        scalar_t(**{member: 0.5})


def local_addresses(name: str) -> list[int]:
    """Numbers of the parameters that are places of tensors; tables are checked where they are made."""
    found = enumerate(TABLE[name].parameters)
    return [number for number, each in found if each.base == "local_addr_t" and not each.name.endswith("table_addr")]


def test_no_tensor_begins_between_two_places() -> None:
    """Every local address of every recorded function is looked at: one of its calls is refused a byte further."""
    asked, refused = set(), set()
    for name, given, *_ in (call for case in cases() for call in case.calls if call[0] in TABLE):
        for at in local_addresses(name):
            asked.add((name, at))
            try:
                with recording():
                    FUNCTIONS[name](*given[:at], given[at] + 1, *given[at + 1 :])
            except UsageError:
                refused.add((name, at))
    assert asked == refused


NUMBERS = sorted(row.name for row in TABLE.values() if row.formula.isdigit())


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_said_to_be_a_number_is_that_number(name: str) -> None:
    """One core: its index is 0, their number 1."""
    with recording() as recorder:
        assert FUNCTIONS[name]() == int(TABLE[name].formula)
    assert not recorder.commands


@pytest.mark.parametrize("engine", STREAMS)
def test_a_kernel_has_as_many_commands_of_an_engine_as_there_are_ids(engine: Engine) -> None:
    ids: list[int] = []
    command: Any = SimpleNamespace(engine=engine, encode=lambda own, waits: ids.append(own) or b"")
    recorder = Recorder()
    recorder._last[engine] = CHIP.max_command_id - 3
    recorder.add(command, command)
    with pytest.raises(EncodingError, match=f"at most {CHIP.max_command_id - 1} commands"):
        recorder.add(command)
    assert ids == [CHIP.max_command_id - 2, CHIP.max_command_id - 1] and len(recorder.commands) == 2


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_registers_may_lie_side_by_side_but_not_in_each_other(order: tuple[int, ...], images: int) -> None:
    """Each begins where the one before ends: one step of the alignment earlier it is in it."""
    size, coefficients, table = images * 256, 64 * 256, 80 * 256
    places = [size * number for number in order]
    with recording() as recorder:
        FUNCTIONS["tpu_bdc_fp32_exp"](*places, coefficients, table, (images, 1, 8, 8))
    assert recorder.commands
    for register, number in enumerate(order):
        within = [place - 64 * (each == register) for each, place in enumerate(places)]
        if number:
            with recording(), pytest.raises(UsageError, match="overlap"):
                FUNCTIONS["tpu_bdc_fp32_exp"](*within, coefficients, table, (images, 1, 8, 8))
