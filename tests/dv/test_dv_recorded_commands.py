"""What driver, simulator and timing model say of commands with other values in some fields: `tests/data/commands`.

A line is a command: why it is refused, or the cost of its runs and a digest of what it leaves in memory. Recorded as it
is (`--update-golden`): what is right is held by the vendor's answers in `test_checks` and `test_dv_simulator`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import astuple
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import special_numbers
from dv_data import golden as recorded
from numpy.typing import NDArray

from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.checks_other import check_command
from bmcompiler.backends.dv.driver.commands import ConvCommand, FcCommand
from bmcompiler.backends.dv.driver.structs import CMDRAW, FC_V0, LAYOUTS, DeviceType
from bmcompiler.errors import BMError
from bmcompiler.runtime.simulator.dv import bind_command
from bmcompiler.runtime.simulator.dv.cost import PROFILE, conv_costs, fc_cost

FOLDER = Path(__file__).parents[1] / "data/commands"
SIZE, PLACE = 1 << 19, 1 << 15
"""Bytes of memory, and of what the buffers of a command begin apart in it."""
SMALL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 0x0101, 0x0102, 0x0202, 0x0303, 0x0503, 0x3C00, 0x8000, 0xFFFF)
PARTS, EDGES, EACH, LARGEST = 8, 3, 100, 20
LONGEST = 60
Raw = NDArray[Any]
Leaf = tuple[Raw, str]


@cache
def commands() -> list[bytes]:
    """Accepted by the vendor's driver or not, with memory where they have some; and one of each other kind."""
    data = recorded()
    found = [raw[:size].tobytes() for raw, size in zip(data["cmd_bytes"], data["cmd_len"])]
    found += [raw.tobytes() for raw in data["chain_cmd"]]
    fc = np.zeros((), FC_V0)
    fc["header"]["size"], fc["header"]["device_type"] = FC_V0.itemsize, DeviceType.FC
    for name in ("weight_buf", "input_buf", "output_buf"):
        fc[name]["mem"] = 1
    fc["input_size"], fc["output_size"] = 65, 10
    return [*found, *8 * [fc.tobytes()]]


def leaves(part: Raw) -> Iterator[Leaf]:
    """All numbers of a structure, of its runs those of the first three; none of the header or of buffers."""
    for name in part.dtype.names or ():
        inner = part[name]
        if name == "run":
            for run in inner[:3]:
                yield from leaves(run)
        elif inner.dtype.names and "mem" not in inner.dtype.names and name != "header":
            yield from leaves(inner)
        elif not inner.dtype.names and inner.ndim == 0:
            yield part, name


def varied(rng: random.Random) -> bytes:
    """A command with small maps, its buffers apart, and other values in up to three numbers."""
    data = rng.choice(commands())
    header = np.frombuffer(data, CMDRAW, 1)[0]
    layout = LAYOUTS.get((int(header["device_type"]), int(header["version"])))
    if layout is None or layout.itemsize > len(data):
        return data
    raw = np.frombuffer(data[: layout.itemsize], layout).copy()[0]
    found = list(leaves(raw))
    for part, name in found:
        if name in ("w", "h", "c", "m", "width", "height", "tex_width", "tex_height", "rect_width", "rect_height"):
            part[name] = min(int(part[name]), LARGEST)
    for part, name in rng.sample(found, rng.choice((0, 1, 1, 2, 3))):
        value, limits = int(part[name]), np.iinfo(part.dtype[name])
        value = rng.choice((value - 1, value + 1, 2 * value, *SMALL))
        part[name] = min(max(value, limits.min), limits.max)
    return apart(raw)


def apart(raw: Raw) -> bytes:
    """The structure's bytes, with buffers that begin one after the other in one memory."""
    buffers = [part for part in structures(raw) if "mem" in (part.dtype.names or ())]
    for number, buffer in enumerate(buffers):
        if buffer["mem"]:
            buffer["mem"], buffer["offs"] = 1, number % (SIZE // PLACE) * PLACE
    return raw.tobytes()


def structures(part: Raw) -> Iterator[Raw]:
    """The structures inside of one, and itself."""
    yield part
    for name in part.dtype.names or ():
        inner = part[name]
        for each in inner if inner.ndim else [inner]:
            if each.dtype.names:
                yield from structures(each)


@cache
def memory(edges: bool) -> NDArray[np.uint8]:
    """Halves between 2**-4 and 2**4, one in 64 of them with random bits; or nothing but limits, ties and equals."""
    if edges:
        return np.random.RandomState(9).choice(special_numbers.halves(), SIZE // 2).view(np.uint8)
    bits = np.random.RandomState(7).randint(0, 1 << 16, SIZE // 2).astype(np.uint16)
    halves = bits & 0x83FF | (11 + (bits >> 10 & 7)) << 10
    return np.where(bits >> 7 & 63 == 0, bits, halves).astype(np.uint16).view(np.uint8)


def told(data: bytes, edges: bool = False) -> str:
    refused = check_command(data, DvChip(), lambda handle: SIZE)
    if refused:
        return f"{refused.code} {refused.text}"[:LONGEST]
    kind = DeviceType(int(np.frombuffer(data, CMDRAW, 1)[0]["device_type"]))
    costs: list[Any] = []
    if kind == DeviceType.CONV:
        costs = conv_costs(ConvCommand.decode(data), PROFILE)
    elif kind == DeviceType.FC:
        costs = [fc_cost(FcCommand.decode(data), PROFILE)]
    words = [f"{'/'.join(f'{value:.6g}' for value in astuple(cost))}" for cost in costs[:3]]
    return " ".join([*words, ran(kind, data, edges)])


def ran(kind: DeviceType, data: bytes, edges: bool) -> str:
    """A digest of memory after a command, or why it is not run."""
    now = memory(edges).copy()
    try:
        bind_command(kind, data, DvChip(), lambda handle: now).run()
    except BMError as error:
        return str(error)[:LONGEST]
    changed = (now != memory(edges)).nonzero()[0]
    return blake2b(changed.tobytes() + now[changed].tobytes(), digest_size=5).hexdigest()


@pytest.mark.parametrize("part", range(PARTS))
def test_commands_do_what_was_recorded(part: int, golden: Callable[[Path, str], None]) -> None:
    rng = random.Random(f"dv700 {part}")
    golden(FOLDER / f"dv700_{part}.txt", "\n".join([*(told(varied(rng)) for _ in range(EACH)), ""]))


@pytest.mark.parametrize("part", range(EDGES))
def test_commands_do_with_limits_what_was_recorded(part: int, golden: Callable[[Path, str], None]) -> None:
    rng = random.Random(f"dv700 edges {part}")
    golden(FOLDER / f"dv700_edges_{part}.txt", "\n".join([*(told(varied(rng), True) for _ in range(EACH)), ""]))
