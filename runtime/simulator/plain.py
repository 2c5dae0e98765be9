"""Programs in plain model files (`bmcompiler.bmodel.plain`) as the timing model and the race check see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from bmcompiler.bmodel.layers import decode_layers
from bmcompiler.bmodel.model import Buffer
from bmcompiler.bmodel.plain import PlainModel
from bmcompiler.chip import LaneChip
from bmcompiler.errors import EncodingError, SimulatorError, UnsupportedError
from bmcompiler.instructions.assembly import Syntax
from bmcompiler.instructions.isa import Columns, Fields, Format, rows_of, split_stream, stream_commands
from bmcompiler.numeric.arrays import Ints
from bmcompiler.runtime.simulator.analysis import Profile, ProgramAnalysis, layers_of
from bmcompiler.runtime.simulator.memories import NotingMemories, StepMaker
from bmcompiler.runtime.simulator.notes import LOCAL_SPACE
from bmcompiler.runtime.simulator.races import Accesses
from bmcompiler.runtime.simulator.timing import HOST, resolved


def decoded(data: Buffer, formats: Mapping[int, Format]) -> Iterator[tuple[int, Fields]]:
    """(engine, fields) of the commands of a stream. Raises SimulatorError for a piece of one."""
    try:
        yield from stream_commands(data, formats)
    except EncodingError as error:
        raise SimulatorError(error.reason) from error


@contextmanager
def command_errors(number: int, engine: str) -> Iterator[None]:
    """Errors name the command."""
    try:
        yield
    except SimulatorError as error:
        raise SimulatorError(f"command {number} ({engine}): {error.reason}") from error


def _split(data: Buffer, formats: Mapping[int, Format]) -> tuple[Ints, dict[int, Columns]]:
    try:
        return split_stream(data, formats)
    except EncodingError as error:
        raise SimulatorError(error.reason) from error


class PlainAnalysis(ProgramAnalysis):
    """Records are the commands of a program, and one of the host for each CPU subnet.

    Args:
        kind: the chip's container; `model` must be one of it.
        chip, step: its lanes, and what the simulator makes of a command.
        syntaxes: how the commands of engines 0 (arithmetic) and 1 are written.

    Attributes:
        fields: columns of each engine's commands; `at`: their records.

    Raises:
        UnsupportedError, UsageError, SimulatorError, FileFormatError: see `bmcompiler.analysis.profile`.
    """

    def __init__(
        self,
        model: object,
        program: int,
        *,
        kind: type[PlainModel],
        chip: LaneChip,
        syntaxes: Mapping[int, Syntax],
        step: StepMaker,
        profile: Profile,
    ) -> None:
        if not isinstance(model, kind):
            raise UnsupportedError(f"this timing model knows {kind.container} programs only")
        chosen = model.select(program).programs[0]
        formats = {number: syntax.layout for number, syntax in syntaxes.items()}
        self.chip, self._syntaxes, self._step = chip, syntaxes, step
        self._streams = [_split(part.data, formats) if part.device else None for part in chosen.parts]
        host = np.array([HOST], np.int64)
        engine = np.concatenate([np.zeros(0, np.int64), *(host if one is None else one[0] for one in self._streams)])
        self.fields = {number: _joined(self._columns(number), layout) for number, layout in formats.items()}
        self.at = {number: np.flatnonzero(engine == number) for number in syntaxes}
        own, wanted = np.zeros((2, len(engine)), np.int64)
        for number, records in self.at.items():
            own[records], wanted[records] = self.fields[number]["id"], self.fields[number]["wait"]
        names = (*(formats[number].name for number in sorted(formats)), "host")
        numbers = np.arange(len(engine))
        layers = layers_of((decode_layers(chosen.layers, len(engine)), numbers))
        super().__init__(model.net, names, resolved(names, engine, own, wanted), layers, profile, numbers)

    def _columns(self, number: int) -> list[Columns]:
        return [one[1][number] for one in self._streams if one is not None]

    def rows(self) -> Iterator[tuple[int, int, Fields]]:
        """(record, engine, fields) of every command, in order per engine."""
        for number, columns in self.fields.items():
            yield from ((record, number, row) for record, row in zip(self.at[number].tolist(), rows_of(columns)))

    @cached_property
    def names(self) -> list[str]:
        names = ["cpu"] * len(self.commands)
        for number, syntax in self._syntaxes.items():
            for record, name in zip(self.at[number].tolist(), syntax.mnemonics(self.fields[number])):
                names[record] = name
        return names

    def accesses(self) -> Accesses:
        memories = NotingMemories(self.chip)
        for record, engine, fields in self.rows():
            memories.notes.record = record
            with command_errors(record, self.engines[engine]):
                self._step(memories, engine, fields)
        return memories.notes.accesses(self.chip.lanes, self.chip.lmem_size, (LOCAL_SPACE,))

    def host_calls(self) -> int:
        return int((self.commands.engine == HOST).sum())


def _joined(parts: Sequence[Columns], layout: Format) -> Columns:
    empty = np.zeros(0, np.int64)
    return {field.name: np.concatenate([empty, *(part[field.name] for part in parts)]) for field in layout.fields}
