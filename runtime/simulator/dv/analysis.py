"""Timing and trace of one DV700 program: the plugin `bmcompiler.analysis.profile.Analysis` of this chip.

Records are runs, commands without runs, and calls of the host. The device takes commands one after the other, so no two
of them can be in conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.checks import limits
from bmcompiler.backends.dv.driver.commands import NULL, Buf, ConvCommand, FcCommand
from bmcompiler.backends.dv.driver.stage_commands import subnet_commands
from bmcompiler.backends.dv.driver.structs import CMDRAW, DeviceType
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xStage, Bm168xTensor, CpuSubnet
from bmcompiler.bmodel.layers import decode_layers
from bmcompiler.errors import EncodingError, SimulatorError, UnsupportedError
from bmcompiler.runtime.simulator.analysis import Costs, ProgramAnalysis, layers_of
from bmcompiler.runtime.simulator.dv.cost import PROFILE, RunCost, TimingProfile, conv_costs, fc_cost
from bmcompiler.runtime.simulator.races import Accesses
from bmcompiler.runtime.simulator.timing import NO_WAIT, CommandList

ENGINES = ("CONV", "host")
_CONV, _HOST = range(2)
_HALF = 2  # bytes of an element


def analyze(model: object, program: int = 0, profile: TimingProfile = PROFILE) -> DvAnalysis:
    """Decode program number `program` of a model.

    Raises:
        UnsupportedError: a model of another chip.
        UsageError: there is no such program.
        SimulatorError, FileFormatError: a program, or a list of its layers, that cannot be decoded.
    """
    if not isinstance(model, Bm168xModel) or model.target != "dv700":
        raise UnsupportedError("this timing model knows dv700 programs only")
    ((net, stage),) = model.select(program).all_stages()
    return DvAnalysis(net.name, stage, profile)


@dataclass
class _Record:
    """A run, an FC command or a call of the host, with bytes by what they are."""

    name: str
    engine: int
    cost: RunCost
    features: int = 0
    once: int = 0


NOTHING = RunCost(0, 0, 0, 0, 0, 0)


class DvAnalysis(ProgramAnalysis):
    """See `ProgramAnalysis`."""

    def __init__(self, net: str, stage: Bm168xStage, profile: TimingProfile = PROFILE) -> None:
        self._records = list(_Decoder(profile).records(stage))
        engine = np.array([record.engine for record in self._records], np.int64)
        commands = CommandList(len(ENGINES), engine, np.full(len(engine), NO_WAIT, np.int64), engine == _HOST)
        spans = decode_layers(bytes(stage.layers).decode(errors="replace"), len(engine))
        numbers = np.arange(len(engine))
        super().__init__(net, ENGINES, commands, layers_of((spans, numbers)), profile, numbers)

    @cached_property
    def costs(self) -> Costs:
        rows = [(*vars(record.cost).values(), record.features, record.once) for record in self._records]
        *columns, ideal, features, once = np.array(rows, np.float64).reshape(-1, 9).T
        cycles, macs, weights, source, addend, written = (column.astype(np.int64) for column in columns)
        features, once = features.astype(np.int64), once.astype(np.int64)
        return Costs(cycles, macs, ideal, weights, source + addend, written, features, once)

    @cached_property
    def names(self) -> list[str]:
        return [record.name for record in self._records]

    def accesses(self) -> Accesses:
        """None: one engine does everything in the order of the program."""
        none = np.zeros(0, np.int64)
        boxes = np.zeros((0, 1), np.int64)
        return Accesses(none, none, none.astype(np.bool_), none, none, none, none, none, boxes, boxes, ())

    def host_calls(self) -> int:
        return int((self.commands.engine == _HOST).sum())


@dataclass
class _Border:
    """A map that is converted between host and device memory: its bytes, and those that no record has moved yet."""

    first: int
    size: int
    left: int

    def holds(self, place: Buf) -> bool:
        """Whether a buffer begins inside."""
        return self.first <= place.offs < self.first + self.size

    def take(self, wanted: int) -> int:
        """Bytes of `wanted` that are moved for the first time."""
        taken = min(wanted, self.left)
        self.left -= taken
        return taken


class _Decoder:
    """Records of a stage."""

    def __init__(self, profile: TimingProfile) -> None:
        self.profile = profile
        self._seen: set[int] = set()  # weights that were read before
        self._given: list[_Border] = []  # maps that still hold what the host has given

    def records(self, stage: Bm168xStage) -> Iterator[_Record]:
        """In program order. Bytes of what crosses the border to the host count as features."""
        for subnet in stage.subnets:
            if isinstance(subnet, CpuSubnet):
                yield _Record("host", _HOST, NOTHING)
                continue
            self._given = _borders(subnet.inputs)
            found = [pair for data in subnet_commands(subnet) for pair in self._command(data)]
            _count_outputs(found, _borders(subnet.outputs))
            yield from (record for record, _ in found)

    def _command(self, data: bytes) -> Iterator[tuple[_Record, Buf]]:
        """The records of a command, each with where its results go."""
        kind = int(np.frombuffer(data, CMDRAW, 1)[0]["device_type"])
        try:
            if kind == DeviceType.FC:
                yield self._fc(FcCommand.decode(data))
            elif kind == DeviceType.CONV:
                yield from self._conv(ConvCommand.decode(data))
            else:
                raise SimulatorError(f"the timing model knows no {DeviceType(kind).name} commands")
        except EncodingError as error:
            raise SimulatorError(error.reason) from error

    def _fc(self, command: FcCommand) -> tuple[_Record, Buf]:
        record = _Record("fc", _CONV, fc_cost(command, self.profile))
        self._count(record, command.weight_buf, command.input_buf, NULL, command.output_buf)
        return record, command.output_buf

    def _conv(self, command: ConvCommand) -> Iterator[tuple[_Record, Buf]]:
        refused = limits(command, CHIP)
        if refused:
            raise SimulatorError(f"the driver would refuse a CONV command: {refused.text}")
        target = command.output_buf
        for run, cost in zip(command.runs, conv_costs(command, self.profile)):
            record = _Record("conv" if run.has_conv else "run", _CONV, cost)
            self._count(record, run.weight_buf, command.input_buf, command.eltwise_buf, target)
            yield record, target
            target = Buf(target.mem, target.offs + cost.written)

    def _count(self, record: _Record, weights: Buf, source: Buf, addend: Buf, target: Buf) -> None:
        cost = record.cost
        if cost.weights and weights.offs not in self._seen:
            self._seen.add(weights.offs)
            record.once += cost.weights
        for nbytes, place in ((cost.source, source), (cost.addend, addend)):
            given = next((border for border in self._given if border.holds(place)), None)
            if nbytes and given is not None:
                record.features += nbytes
                record.once += given.take(nbytes)
        if cost.written:
            self._given = [border for border in self._given if not border.holds(target)]


def _count_outputs(found: Sequence[tuple[_Record, Buf]], outputs: list[_Border]) -> None:
    """Of the records that write an output the last ones make what the host gets: its memory may hold others before."""
    for record, target in reversed(found):
        border = next((border for border in outputs if border.holds(target)), None)
        taken = 0 if border is None else border.take(record.cost.written)
        record.features += taken
        record.once += taken


def _borders(tensors: Sequence[Bm168xTensor]) -> list[_Border]:
    """Maps of fp16 at the border of a subnet."""
    sizes = [(tensor.address, _HALF * prod(tensor.shape)) for tensor in tensors]
    return [_Border(first, size, size) for first, size in sizes]
