"""The instruction builder kernels emit through: addresses, ids and waits, moves between global and local memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import gcd
from typing import TYPE_CHECKING

from bmcompiler.backends.bm168x.build import FamilyBuild
from bmcompiler.backends.bm168x.builder import OTHER
from bmcompiler.backends.bm1684x.builder import CommandBuilder, place_neurons
from bmcompiler.backends.bm1684x.chip import CHIP, is_local
from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.backends.bm1684x.cycles import CycleTable
from bmcompiler.backends.bm1684x.instructions import transfers
from bmcompiler.backends.bm1684x.instructions.operands import Command
from bmcompiler.backends.bm1684x.lane_commands import RAW, LaneCommandMaker
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.counts import run_of
from bmcompiler.backends.lanes.facts import Range, Shape, Strides
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.backends.lanes.operands import Words, bytes_of
from bmcompiler.backends.lanes.transfers import Side
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.instructions.order import STREAMS

if TYPE_CHECKING:
    from bmcompiler.backends.bm1684x.tpukernel.recorder import Issued


class Build(LaneCommandMaker, FamilyBuild[CommandBuilder], LaneBuild):
    """One program under construction.

    Args:
        table: cycles by which commands are chosen that do the same.
        serial: makes every command wait for all before it.
    """

    chip = CHIP
    first_address = CHIP.global_base
    place_neurons = staticmethod(place_neurons)

    def __init__(self, table: CycleTable, plan: MemoryPlan, coefficients: Coefficients, serial: bool = False) -> None:
        self._cycles = table
        FamilyBuild.__init__(self, plan, coefficients, CommandBuilder(), serial)

    def fresh(self) -> None:
        super().fresh()
        self.start_tables()

    def issue(self, command: Command, reads: Sequence[Range] = (), writes: Sequence[Range] = ()) -> None:
        """Add a command; ranges are bytes within a lane."""
        self.ordered(command.engine, reads, writes, lambda after: self._builder.add(command, after=after))

    def recorded(self, commands: Sequence[Issued]) -> None:
        """Add what a kernel of TPUKernel issued, with the waits among its commands.

        It has all of local memory: it begins when all before it is done, and whatever uses lanes afterwards waits for
        it. So do its runs of ids for each other.
        """
        everything = [(0, CHIP.lmem_size)]
        for _, run in groupby(commands, key=lambda one: one.epoch):
            added = {engine: [self._builder.newest(engine)] for engine in STREAMS}
            for one in run:
                after = None if self.serial else [added[OTHER[one.engine]][one.wait]]
                ticket = self._builder.add(one.command, after=after)
                added[one.engine].append(ticket)
                self._hazards.note(one.engine, ticket, everything, everything)
        self.start_tables()

    # -- moves ---------------------------------------------------------------------------------------------------------
    def move(self, source: Side, target: Side, item: int) -> None:
        source, target = _swapped(source, target)
        to, of = (transfers.Side(side.address, side.shape, side.strides) for side in (target, source))
        commands = as_broadcasts(self._cycles, to, of, item) or as_sections(self._cycles, to, of, item)
        commands = commands or [transfers.copy_alike(to, of, RAW[item])]
        for command in commands:
            self.issue(command, source.touched, target.touched)

    def fill_side(self, target: Side, item: int, bits: int) -> None:
        side = transfers.Side(target.address, target.shape, target.strides)
        self.issue(transfers.fill(side, bits & 0xFFFF_FFFF, RAW[item]), (), target.touched)

    def lane_address(self, offset: int, lane: int) -> int:
        return transfers.in_window(lane * CHIP.lmem_size + offset)

    def load_words(self, source: int, dtype: str, shape: Shape, strides: Strides, address: int) -> None:
        item = {"i8": 1, "u8": 1, "bool": 1, "i16": 2, "u16": 2}.get(dtype, 4)
        self.load_low(source, item, shape, strides, address)
        if item == 1:
            self.widen_bytes(Words(address, shape), signed=dtype == "i8")

    def load_matrix(self, source: int, pitch: int, target: Matrix, transposed: bool = False) -> None:
        shape = (0, 0, target.columns, target.rows) if transposed else (0, 0, target.rows, target.columns)
        outer = transfers.Side(source, shape, (0, 0, pitch, 0))
        command = transfers.matrix(_in_lanes(target), outer, True, Precision.FP32, transposed)
        self.issue(command, (), [bytes_of(CHIP, target.words)])

    def store_matrix(self, target: int, pitch: int, source: Matrix) -> None:
        outer = transfers.Side(target, (0, 0, source.rows, source.columns), (0, 0, pitch, 0))
        command = transfers.matrix(_in_lanes(source), outer, False, Precision.FP32)
        self.issue(command, [bytes_of(CHIP, source.words)])


def as_broadcasts(table: CycleTable, to: transfers.Side, source: transfers.Side, item: int) -> list[Command]:
    """What all channels get, read once for each row of lanes; [] where it is something else, or no quicker so."""
    n, c, h, w = source.shape
    dense = w == 1 or source.strides[3] == to.strides[3] == 1
    if source.strides[1] or c == 1 or not dense or source.address < CHIP.global_base or not is_local(to.address):
        return []
    base, offset = divmod(to.address - CHIP.lmem_window, CHIP.lmem_size)
    commands, first = [], 0
    while first < c:
        down, lane = divmod(base + first, CHIP.lanes)
        count = min(CHIP.lanes - lane, c - first)
        address = transfers.in_window(lane * CHIP.lmem_size + offset + down * to.strides[1] * item)
        one = transfers.Side(source.address, (n, 1, h, w), source.strides)
        commands.append(transfers.broadcast(transfers.Side(address, (n, count, h, w), to.strides), one, RAW[item]))
        first += count
    size = n * h * w * item
    slow = table.tensor(size * c, h * w * item, True, False)
    return commands if len(commands) * table.wide(1, size, True) < slow else []


def as_sections(table: CycleTable, to: transfers.Side, source: transfers.Side, item: int) -> list[Command]:
    """Lanes that follow each other in global memory as sections of matrices, which pay less for short runs; [] if not.

    A command holds `CHIP.most_size` columns of up to four bytes, so that many channels take several.
    """
    load = is_local(to.address)
    local, outer = (to, source) if load else (source, to)
    n, c, h, w = source.shape
    size = h * w * item
    runs = {int(run_of((1, 1, h, w), side.strides)) for side in (local, outer)}
    dense = runs == {h * w} and (c == 1 or outer.strides[1] == h * w)
    if outer.address < CHIP.global_base or not is_local(local.address) or not dense:
        return []
    image, channel, pitch = (item * step for step in (*local.strides[:2], outer.strides[0]))
    unit = gcd(4, size, channel, local.address, outer.address, *((image, pitch) if n > 1 else ()))
    width = size // unit
    most = CHIP.most_size // width
    if not most or table.wide(n * c, size, load) >= table.tensor(n * c * size, size, load, not load):
        return []
    base, offset = divmod(local.address - CHIP.lmem_window, CHIP.lmem_size)
    commands = []
    for first in range(0, c, most):
        count, (down, lane) = min(most, c - first), divmod(base + first, CHIP.lanes)
        address = transfers.in_window(lane * CHIP.lmem_size + offset + down * channel)
        inside = transfers.Side(address, (n, count, 1, width), (image // unit, channel // unit, 0, 0))
        outside = transfers.Side(outer.address + first * size, (0, 0, n, count * width), (0, 0, pitch // unit, 0))
        commands.append(transfers.matrix(inside, outside, load, RAW[unit]))
    return commands


def _in_lanes(matrix: Matrix) -> transfers.Side:
    rows, sections, _, width = matrix.words.shape
    row, section, _, _ = CHIP.aligned_strides(matrix.words.shape)
    address = transfers.in_window(matrix.words.address)
    return transfers.Side(address, (rows, sections, 1, width), (row, section, 0, 0))


def _swapped(source: Side, target: Side) -> tuple[Side, Side]:
    """The same transfer with another axis as w: along w the GDMA cannot repeat (bm1684x.md 3.4)."""
    (n, c, h, w), by, to = source.shape, source.strides, target.strides
    if by[3] or w == 1:
        if w == 1 and not (by[3] and to[3]):
            by, to = (*by[:3], 1), (*to[:3], 1)
        return source._replace(strides=by), target._replace(strides=to)
    if h == 1 or by[2]:
        order = (0, 1, 3, 2)
    elif n == 1 or by[0]:
        order = (3, 1, 2, 0)
    else:  # all pixels repeat: rows continue each other in an aligned tensor
        flat = (n, c, h * w, 1)
        return (
            Side(source.address, flat, (by[0], by[1], 0, 1), source.touched),
            Side(target.address, flat, (to[0], to[1], to[3], 1), target.touched),
        )
    return _swapped(_reordered(source, order), _reordered(target, order))


def _reordered(side: Side, order: tuple[int, int, int, int]) -> Side:
    n, c, h, w = (side.shape[axis] for axis in order)
    a, b, d, e = (side.strides[axis] for axis in order)
    return side._replace(shape=(n, c, h, w), strides=(a, b, d, e))
