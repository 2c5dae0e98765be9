"""Commands of a program under construction, and where its feature maps lie in device memory.

Host memory holds every value in float32, dense NCHW. Device memory holds those that device ops touch as WHC8 maps of
fp16; they are converted when a run of device ops begins and ends. In commands, memory 1 is the coefficients and memory
2 the feature maps; the runtime puts the handles of its own memories there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bmcompiler.backends.dv.commands import Buf, ConvCommand, FcCommand
from bmcompiler.backends.dv.geometry import Extent
from bmcompiler.codegen.build import BaseBuild
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import Lifetime, MemoryPlan, first_fit, root_of
from bmcompiler.codegen.schedule import Moved
from bmcompiler.ir import Operation, Value

COEFFICIENTS, MAPS = 1, 2
"""Numbers of the memories in commands of a model file."""
MAP_ALIGN = 64


def extent_of(value: Value) -> Extent:
    """Size of one sample of a value: a value of rank 4 is a map, any other a vector of channels."""
    shape = value.shape
    if len(shape) == 4:
        return Extent(shape[3], shape[2], 1, shape[1])
    return Extent(1, 1, 1, value.type.size // max(1, shape[0]) if shape else 1)


def map_bytes(value: Value) -> int:
    """Bytes of a value as WHC8 maps of fp16, one per sample."""
    return 2 * value.type.size


def plan_maps(ops: Sequence[Operation], inputs: Sequence[Value], outputs: Sequence[Value]) -> dict[Value, int]:
    """Offsets of all maps of a run of device ops: `inputs` come before the first op, `outputs` stay to the end."""
    read = {value: 0 for value in inputs}
    made: dict[Value, int] = {}
    for position, op in enumerate(ops):
        made.update((value, position) for value in op.results)
        for value in op.operands:
            read[value if value in read and value not in made else root_of(value)] = position
    ends = {**read, **dict.fromkeys(outputs, len(ops))}
    lives = {
        value: Lifetime(map_bytes(value), first, max(first, ends.get(value, first)))
        for value, first in [*((value, 0) for value in inputs), *made.items()]
    }
    first_fit(list(lives.values()), 0, MAP_ALIGN)
    return {value: life.offset for value, life in lives.items()}


class DvBuild(BaseBuild):
    """Commands since the last `finish`, as they go into a model file; `count` of all so far."""

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients) -> None:
        super().__init__(plan, coefficients)
        self.maps: dict[Value, int] = {}
        self.commands: list[bytes] = []
        self.count = 0

    def finish(self) -> list[bytes]:
        """The commands since the last call."""
        commands, self.commands = self.commands, []
        return commands

    def extent(self, value: Value) -> Extent:
        """How the map behind a value is laid out."""
        return extent_of(self._laid_out(value))

    def constants(self, offset: int) -> Buf:
        """A place among the coefficients."""
        return Buf(COEFFICIENTS, offset)

    def conv(self, command: ConvCommand, reads: Sequence[Value], written: Value) -> Moved:
        """One command per sample; a second value that is read is the addend."""
        for sample in range(written.shape[0]):
            source, *addend = (self._map(value, sample) for value in reads)
            placed = replace(command, input_buf=source, output_buf=self._map(written, sample))
            self._add((replace(placed, eltwise_buf=addend[0]) if addend else placed).encode())
        return self._moved(reads, written)

    def fc(self, command: FcCommand, read: Value, written: Value) -> Moved:
        """One command per sample."""
        for sample in range(written.shape[0]):
            source, target = self._map(read, sample), self._map(written, sample)
            self._add(replace(command, input_buf=source, output_buf=target).encode())
        return self._moved([read], written)

    def _moved(self, reads: Sequence[Value], written: Value) -> Moved:
        return Moved(sum(map(map_bytes, reads)), map_bytes(written), 0, written.shape[0])

    def _laid_out(self, value: Value) -> Value:
        return value if value in self.maps else root_of(value)

    def _map(self, value: Value, sample: int) -> Buf:
        return Buf(MAPS, self.maps[self._laid_out(value)] + sample * map_bytes(value) // value.shape[0])

    def _add(self, command: bytes) -> None:
        self.commands.append(command)
        self.count += 1
