"""Recorded commands with other codes, operands that are the same, channels up to the last lane, on special numbers.

`varied_commands` draws any field a little; here operations, types, roundings and shifts are drawn of all that there
are, and memory holds nothing but limits, ties and equals.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

import numpy as np
import special_numbers
import varied_commands
from varied_commands import SPECIAL, Command, Machine, commands

CODE = re.compile(
    r"eu_typ|prec|sign|shift|const$|relu|res_add|tran$|mode|format|lookup|mdsum|int8|func|kernel_rotate|num$"
)
"""Fields that say how a command computes."""
LANE_BYTES, LANES = {"bm1880": 1 << 16, "bm1684": 1 << 19, "bm1684x": 1 << 18}, {"bm1880": 32}
ROWS = 20011
"""Of memory that repeats, in other places of every lane."""
STAY = {"lrn_shift_num", "eu_half_en"}


def edge(rng: random.Random, chip: str) -> Command:
    """One of a chip."""
    kinds = commands(chip)
    command = rng.choice(kinds[rng.choice(list(kinds))])
    fields = dict(command.fields)
    codes = [field for field in command.layout.fields if CODE.search(field.name) and field.name not in STAY]
    for field in rng.sample(codes, min(len(codes), rng.choice((0, 1, 1, 2, 3)))):
        fields[field.name] = rng.randrange(1 << min(field.width, 5))
    for change in (_constants, _same, _channels, _lanes, _rounding):
        if rng.random() < 0.3:
            change(rng, chip, fields)
    return command._replace(fields={name: min(fields[name], _most(command, name)) for name in fields})


def _most(command: Command, name: str) -> int:
    return (1 << next(field.width for field in command.layout.fields if field.name == name)) - 1


def _constants(rng: random.Random, chip: str, fields: dict[str, int]) -> None:
    """Immediates are special numbers, too."""
    for name in ("opd0", "opd1", "opd2", "opd3"):
        if _is_constant(fields, name):
            fields[f"{name}_addr"] = int(rng.choice(SPECIAL.tolist()))


def _is_constant(fields: dict[str, int], name: str) -> bool:
    return bool(fields.get(f"{name}_const") or fields.get(f"opt_{name}_const")) and f"{name}_addr" in fields


def _same(rng: random.Random, chip: str, fields: dict[str, int]) -> None:
    """Two operands lie in the same place: all pairs are equal."""
    names = [name for name in ("opd0", "opd1", "opd2", "opd3") if fields.get(f"{name}_addr")]
    found = [f"{name}_addr" for name in names if not _is_constant(fields, name)]
    if len(found) > 1:
        one, other = rng.sample(found, 2)
        fields[one] = fields[other]


def _channels(rng: random.Random, chip: str, fields: dict[str, int]) -> None:
    """As many as there are lanes, one less, one more."""
    lanes = LANES.get(chip, 64)
    name = next((each for each in ("res0_c", "dst_c", "opd0_c") if each in fields), "")
    count = rng.choice((1, lanes - 1, lanes, lanes + 1, 2 * lanes))
    for each in fields if name else ():
        if each.endswith("_c") and fields[each] == fields[name]:
            fields[each] = count


def _lanes(rng: random.Random, chip: str, fields: dict[str, int]) -> None:
    """Tensors begin in another lane, all of them or one."""
    lanes = LANES.get(chip, 64)
    found = [name for name in fields if re.fullmatch(r"(opd|res)\d_addr", name) and not _is_constant(fields, name[:4])]
    first = rng.choice((0, 1, lanes - 1)) * LANE_BYTES[chip]
    for name in found if rng.random() < 0.7 else rng.sample(found, min(1, len(found))):
        within = fields[name] % (lanes * LANE_BYTES[chip])
        fields[name] += first + within % LANE_BYTES[chip] - within


def _rounding(rng: random.Random, chip: str, fields: dict[str, int]) -> None:
    """The BM1684X has its roundings and shifts where other commands have strides and addresses."""
    if chip == "bm1684x" and "opd2_n_str" in fields:
        fields["opd2_n_str"] = rng.randrange(8) + 8 * rng.choice((0, 0, 1, 2, 4))


def image(seed: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Bytes: every 64 of them special words, small bytes, halves of small numbers of one float type, or any."""
    rng = np.random.RandomState(seed)
    words = rng.randint(0, 1 << 32, (ROWS, 16), np.uint64).astype(np.uint32)
    small = (words.view(np.int8) >> 4).view(np.uint32)
    floats = (words.view(np.int32) >> 24).astype(np.float32) / np.float32(4)
    halves = (words.view(np.int16) >> 8).astype(np.float16) / np.float16(4)
    numbers = special_numbers.floats().view(np.uint32)
    choices = [numbers[words % numbers.size], SPECIAL[words % SPECIAL.size], small, floats, halves, words]
    kind = rng.randint(0, len(choices), ROWS)[:, None]
    made = np.choose(kind, [each.view(np.uint32) for each in choices]).astype("<u4").view(np.uint8)
    return np.resize(made, size)


@cache
def machine(chip: str) -> Machine:
    """A chip with such memory, which it has again after each command."""
    found = varied_commands.machine(chip)
    for number, part in enumerate(found.parts[: 3 if chip == "bm1684x" else 2]):
        part[...] = image(number, part.size * 8).view(np.uint64).reshape(part.shape)
    found.before = [part.copy() for part in found.parts]
    return found
