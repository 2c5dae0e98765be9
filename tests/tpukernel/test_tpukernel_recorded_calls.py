"""What calls of the kernel library with drawn arguments say and issue: `tests/data/calls`, a file per heading.

A line is a call: its value, or why it is refused, or how many commands it issues, their digest, and of some what they
leave in memory. Recorded as it is (`--update-golden`): what is right is held by the vendor's recorded calls.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from hashlib import blake2b
from itertools import groupby, product
from pathlib import Path

import pytest
import varied_commands
from drawn_calls import ISSUING, SPECIAL, Arguments, drawn, group_of

from bmcompiler.errors import BMError
from bmcompiler.runtime.simulator.bm1684x import compile_plan
from bmcompiler.tpukernel import (
    FUNCTIONS,
    LOCAL_MEM_SIZE,
    TABLE,
    Program,
    data_type_t,
    program_of,
    recording,
    rounding_mode_t,
)

FOLDER = Path(__file__).parents[1] / "data/calls"
GROUPS = sorted({group_of(row) for row in TABLE.values()})
TRIES, EACH = 60, 8
"""Calls of a function, and of them those that are recorded: so many that are taken, so many that are refused."""
RUN, MOST = 2, 40
"""Of those that are taken so many run, where they issue few commands."""
LONGEST = 90


@cache
def machine() -> varied_commands.Machine:
    return varied_commands.machine("bm1684x")


def said(calls: Sequence[tuple[str, Arguments]], release: str) -> tuple[list[str], Program | None, bool]:
    """What each call says, the program of all, and whether none is refused."""
    words, fits = [], True
    with recording(release) as recorder:
        for name, arguments in calls:
            try:
                words.append(str(FUNCTIONS[name](**arguments)))
            except BMError as error:
                words.append(str(error).removeprefix(f"{name}: ")[:LONGEST])
                fits = False
    return words, program_of(recorder) if recorder.commands and not recorder.parallel else None, fits


def told(program: Program) -> str:
    digest = blake2b(digest_size=5)
    for command in program.commands:
        digest.update(bytes([int(command.engine)]) + command.data)
    return f"{len(program)} {digest.hexdigest()}"


def lines_of(name: str) -> Iterator[str]:
    """Calls that issue or answer something and calls that are refused, `EACH` of both where so many are drawn."""
    rng, taken, refused = random.Random(name), 0, 0
    for number in range(TRIES):
        words, program, fits = said([(name, drawn(rng, name))], ("seed", "measured")[number % 2])
        if (taken if fits else refused) < EACH:
            runs = program and taken < RUN and len(program) <= MOST
            taken, refused = taken + fits, refused + (not fits)
            found = [told(program)] if program else words
            left = [machine().changes(partial(compile_plan, program.groups, machine().memories))] if runs else []
            yield " ".join([name, *found, *left])[:LONGEST]


@pytest.mark.parametrize("group", GROUPS)
def test_calls_say_and_issue_what_was_recorded(group: str, golden: Callable[[Path, str], None]) -> None:
    names = [name for name, row in TABLE.items() if group_of(row) == group]
    golden(FOLDER / f"{group}.txt", "\n".join([*(line for name in names for line in lines_of(name)), ""]))


def is_taken(name: str, arguments: Arguments) -> bool:
    try:
        with recording():
            FUNCTIONS[name](**arguments)
    except BMError:
        return False
    return True


def last_place(name: str, arguments: Arguments, of: str) -> int:
    """The last aligned address inside of its lane that one operand of a call may have."""
    lane, step = arguments[of] // LOCAL_MEM_SIZE * LOCAL_MEM_SIZE, 64
    low, high = arguments[of] // step, (lane + LOCAL_MEM_SIZE) // step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_taken(name, {**arguments, of: step * middle}) else (low, middle)
    return step * low - lane


def test_operands_may_lie_up_to_the_places_that_were_recorded(golden: Callable[[Path, str], None]) -> None:
    lines = []
    for name, row in TABLE.items():
        rng, local = (
            random.Random(f"last {name}"),
            [each.name for each in row.parameters if each.base == "local_addr_t"],
        )
        calls = (drawn(rng, name) for _ in range(TRIES if local else 0))
        call = next((each for each in calls if is_taken(name, each)), None)
        if call is not None:
            lines.append(
                " ".join([name, *(f"{each} {last_place(name, call, each)}" for each in local if each in call)])
            )
    golden(FOLDER / "last_places.txt", "\n".join([*lines, ""]))


CONTROL = "tpu_parallel_start", "tpu_parallel_end", "tpu_initialize", "tpu_is_parallel_state"


def test_kernels_of_several_calls_issue_what_was_recorded(golden: Callable[[Path, str], None]) -> None:
    """With engines that wait for each other or do not, and ids that begin again."""
    lines = []
    for number in range(60):
        rng = random.Random(f"kernel {number}")
        names = [*rng.choices(CONTROL, k=6), *rng.choices(ISSUING, k=12)]
        rng.shuffle(names)
        calls = [(name, drawn(rng, name)) for name in names]
        words, program, _ = said([*calls, ("tpu_parallel_start", {}), ("tpu_parallel_end", {})], "seed")
        lines.append(" ".join([*(word[:5] for word in words), told(program) if program else "nothing"]))
    golden(FOLDER / "kernels.txt", "\n".join([*lines, ""]))


CASTS = [name for name in TABLE if name.endswith("cast") and TABLE[name].returns == "scalar_t"]


def cast(name: str, dst: data_type_t, src: data_type_t, how: Arguments) -> str:
    """A digest of what all special numbers become, where these types are not refused."""
    try:
        found = [FUNCTIONS[name](bits, dst, src, **how) for bits in SPECIAL]
    except BMError:
        return "refused"
    return blake2b(" ".join(map(str, found)).encode(), digest_size=5).hexdigest()


@pytest.mark.parametrize("name", CASTS)
def test_casts_of_special_numbers_are_those_recorded(name: str, golden: Callable[[Path, str], None]) -> None:
    rounded = any(each.name == "rounding_mode" for each in TABLE[name].parameters)
    lines = []
    for dst, src in product(data_type_t, data_type_t):
        hows = [{"rounding_mode": mode} for mode in rounding_mode_t] if rounded else [{}]
        found = [cast(name, dst, src, how) for how in hows]
        lines.append(" ".join([src.name, dst.name, *(each for each, _ in groupby(found))]))
    golden(FOLDER / f"{name}.txt", "\n".join([*lines, ""]))
