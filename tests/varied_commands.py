"""Recorded commands with other values in some of their fields, and everything that a simulator says of each of them.

Programs of a compiler have few values in most fields; these have the values around those that were recorded, and each
of a field that has few. Nothing says what is right of them: what they do is recorded as it is, and those that they are
made of are compared with the vendor's models in the tests of each chip.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.backends.bm1684 import isa as isa_1684
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import FORMATS as FORMATS_1880
from bmcompiler.backends.bm1880.isa import HEADER_SIZE
from bmcompiler.backends.bm1880.isa import Engine as Engine1880
from bmcompiler.bmodel.bm168x import Bm168xStage, CommandGroup, TpuSubnet
from bmcompiler.errors import BMError
from bmcompiler.instructions.isa import Field, Fields, Format
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator import bm1684, bm1684x, bm1880
from bmcompiler.runtime.simulator.analysis import ProgramAnalysis
from bmcompiler.runtime.simulator.bm1684.analysis import analyze as analyze_1684
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze as analyze_1684x
from bmcompiler.runtime.simulator.bm1880.analysis import Bm1880Analysis
from bmcompiler.runtime.simulator.bm1880.decoded import decode

FOLDER = Path(__file__).parent
sys.path += [str(FOLDER / name) for name in ("bm1684", "bm1684x", "bm1880")]
GLOBAL_BYTES = 1 << 22
BASE = 0x1_0000_0000
"""Where global memory of the younger chips begins."""
NUMBERING = {"cmd_id", "cmd_id_dep", "cmd_id_tpu", "cmd_id_gdma", "eng0_sync_id", "cmd_id_en"}
WORDS = ("tsk_typ", "tsk_eu_typ", "cmd_type", "direction", "function", "special_func")
"""Fields that say what a command does."""
FORM = {"bm1684x": {"cmd_short", "tsk_typ", "cmd_type"}}
"""Fields that stay: those of a command's place in its program, which is its only one, and of how long it is."""


class Command(NamedTuple):
    """Fields of a command; `head`: what is before them in a buffer of the BM1880."""

    engine: Any
    layout: Format
    fields: Fields
    head: bytes = b""

    @property
    def raw(self) -> bytes:
        return self.head + self.layout.pack(self.fields)

    @property
    def group(self) -> CommandGroup:
        return CommandGroup(b"", self.raw) if self.engine is Engine.GDMA else CommandGroup(self.raw, b"")


def varied(rng: random.Random, chip: str) -> Command:
    """One of a chip with other values in one to three fields, or in all of that name that had the same value."""
    kinds = commands(chip)
    command = rng.choice(kinds[rng.choice(list(kinds))])
    fields, stay = dict(command.fields), NUMBERING | FORM.get(chip, set())
    free = [one for one in command.layout.fields if one.name not in stay and not one.name.startswith("reserved")]
    for field in rng.sample(free, rng.choice((1, 1, 2, 3))):
        before, value = fields[field.name], _other(rng, field, fields[field.name])
        axis = field.name.partition("_")[2]
        twins = [name for name in fields if name.partition("_")[2] == axis and fields[name] == before]
        fields |= dict.fromkeys(twins if rng.random() < 0.5 and axis not in stay else [field.name], value)
    return command._replace(fields=fields)


def _other(rng: random.Random, field: Field, value: int) -> int:
    """A value of a field near the one it has, or one that is small."""
    most = (1 << field.width) - 1
    if field.width <= 4:
        return rng.randint(0, most)
    if field.name.endswith("_addr") or "addr_lo" in field.name:
        return min(max(value + rng.choice((-256, -128, -64, -4, -2, -1, 1, 2, 4, 8, 64, 128, 4096)), 0), most)
    near = (value - 1, value + 1, value + 2, value // 2, 2 * value, 0, 1, 2, 3, 4, 7, 8, 63, 65)
    return min(max(rng.choice(near), 0), most)


@cache
def commands(chip: str) -> dict[tuple[Any, ...], list[Command]]:
    """Recorded commands of a chip by what they do."""
    kinds: dict[tuple[Any, ...], list[Command]] = defaultdict(list)
    for command in {"bm1684": _of_1684, "bm1684x": _of_1684x, "bm1880": _of_1880}[chip]():
        kinds[(command.engine, *map(command.fields.get, WORDS))].append(command)
    return kinds


def _of_1684() -> Iterator[Command]:
    data = [dict(np.load(FOLDER / f"data/bm1684_{name}.npz")) for name in ("golden", "golden2", "random")]
    for file in data[:2]:
        for number in range(int(file["count"])):
            yield _command_1684(int(file[f"c{number:02d}_engine"]), file[f"c{number:02d}_cmd"].tobytes())
    for engine, raw in zip(data[2]["engine"].tolist(), data[2]["command"]):
        yield _command_1684(engine, raw.tobytes())


def _command_1684(engine: int, raw: bytes) -> Command:
    layout = isa_1684.FORMATS[Engine(engine)]
    return Command(Engine(engine), layout, layout.unpack(raw[: layout.size]))


def _of_1684x() -> Iterator[Command]:
    from bm1684x_golden import all_cases

    for case in all_cases():
        (layout,) = (stream := split(case.engine, case.command)).formats
        yield Command(case.engine, layout, *stream.fields())


def _of_1880() -> Iterator[Command]:
    from golden_cases import CASES, build

    for case in CASES:
        data, _, _ = build(case)
        index = records(data)
        for engine, at, length in zip(*(column.tolist() for column in (index.engine, index.offset, index.length))):
            if engine != Engine1880.CPU:
                layout = FORMATS_1880[Engine1880(engine)]
                fields = layout.unpack(bytes(data[at : at + length]))
                fields["cmd_id_gdma" if engine == Engine1880.TPU else "cmd_id_tpu"] = 0
                yield Command(Engine1880(engine), layout, fields, bytes(data[at - HEADER_SIZE : at]))


SPECIAL = np.array(
    [0, 1 << 31, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x00800000, 1, 2, 0x0000FFFF,
     0x4B000000, 0x3F000000, 0x3FC00000, 0x7FFFFFFF, 0x80808080, 0x7F7F7F7F, 0x01010101, 0xFFFFFFFF, 0x3C003C00,
     0x7C00FC00, 0x3F803F80, 0x80007FFF],
    "<u4",
)  # fmt: skip
"""Words that are limits, ties, equals or no numbers of some type."""


def image(seed: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Bytes, random in one half of every 4 KiB; the others are floats near 1; one word in four is special."""
    words = np.frombuffer(np.random.RandomState(seed).bytes(size), "<u4")
    floats = words & 0x807FFFFF | 119 + (words >> 23 & 15) << 23
    in_half = np.arange(len(words)) // 512 % 2 == 1
    plain = np.where(in_half, floats, words)
    return np.where(words >> 5 & 3 == 0, SPECIAL[(words >> 8) % len(SPECIAL)], plain).astype("<u4").view(np.uint8)


@dataclass
class Machine:
    """A simulated chip whose memory is as it was again after each command."""

    chip: str
    memories: Any

    def __post_init__(self) -> None:
        base = 0 if self.chip == "bm1880" else BASE
        outside = np.zeros(GLOBAL_BYTES, np.uint8)
        self.memories.globals.map(base, outside)
        more = [getattr(self.memories, name) for name in ("static", "l2") if hasattr(self.memories, name)]
        self.parts = [part.view(np.uint64) for part in (self.memories.local.bytes, outside, *more)]
        for number, part in enumerate(self.parts[: 3 if self.chip == "bm1684x" else 2]):
            part[...] = image(number, part.size * 8).view(np.uint64).reshape(part.shape)
        self.before = [part.copy() for part in self.parts]
        self.changed = [np.empty(part.shape, np.bool_) for part in self.parts]

    def run(self, command: Command) -> str:
        """A digest of what a command changes, or why it is refused."""
        return self.changes(lambda: self._plan(command))

    def changes(self, plan: Callable[[], Any]) -> str:
        """A digest of what a plan changes, or why it is refused."""
        try:
            plan().run()
        except BMError as error:
            self._again()
            return str(error)
        return self._again()

    def _plan(self, command: Command) -> Any:
        if self.chip == "bm1880":
            return bm1880.compile_plan(command.raw, self.memories, 1 << 16, 1 << 18)
        return {"bm1684": bm1684, "bm1684x": bm1684x}[self.chip].compile_plan([command.group], self.memories)

    def _again(self) -> str:
        found = blake2b(digest_size=5)
        for part, before, changed in zip(self.parts, self.before, self.changed):
            np.not_equal(part, before, out=changed)
            eights = changed.reshape(-1, 8)
            some = eights.view(np.uint64).ravel().nonzero()[0]
            row, column = eights[some].nonzero()
            at = np.unravel_index(8 * some[row] + column, part.shape)
            for values in (*at, part[at]):
                found.update(np.ascontiguousarray(values).tobytes())
            part[at] = before[at]
        return found.hexdigest()


def analysis(chip: str, command: Command) -> ProgramAnalysis:
    """Of a program with that command alone, between 64 KiB of weights and as much of inputs and outputs."""
    if chip == "bm1880":
        return Bm1880Analysis("net", decode(command.raw), [])
    stage = Bm168xStage([], [], BASE + (1 << 16), 1 << 20, [TpuSubnet([command.group], [], [])], bytes(1 << 16))
    return (analyze_1684 if chip == "bm1684" else analyze_1684x).of_stage("net", stage)


def told(chip: str, command: Command) -> str:
    """Cycles, multiply-accumulates, cycles at full rate, bytes by what they are, and the bytes that it touches."""
    try:
        cost = (found := analysis(chip, command)).costs
        columns = (cost.cycles, cost.macs, cost.weights, cost.loaded, cost.stored)
        numbers = [*(int(column.sum()) for column in columns), f"{cost.ideal.sum():.5g}"]
    except BMError:
        return "unknown"
    try:
        touched = blake2b(digest_size=3)
        for value in vars(found.accesses()).values():
            touched.update(np.asarray(value).astype(np.int64).tobytes() if isinstance(value, np.ndarray) else b"")
        return " ".join(map(str, [*numbers, touched.hexdigest()]))
    except BMError:
        return " ".join(map(str, [*numbers, "refused"]))


def machine(chip: str) -> Machine:
    """A chip with something in all of its memory."""
    return Machine(chip, {"bm1684": bm1684, "bm1684x": bm1684x, "bm1880": bm1880}[chip].Memories())
