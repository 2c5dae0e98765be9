"""Commands of a program under construction, and where its feature maps lie in device memory.

Host memory holds every value in float32, dense NCHW. Device memory holds those that device ops touch as WHC8 maps of
fp16; they are converted when a run of device ops begins and ends. In commands, memory 1 is the coefficients and memory
2 the feature maps; the runtime puts the handles of its own memories there.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, Run
from bmcompiler.backends.dv.driver.geometry import Extent
from bmcompiler.backends.dv.formats.layout import nchw_to_whc8
from bmcompiler.backends.dv.lowering.parts import Part, packed, stored
from bmcompiler.codegen.build import BaseBuild
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan, root_of
from bmcompiler.ir import Value

COEFFICIENTS, MAPS = 1, 2
"""Numbers of the memories in commands of a model file."""


class MapPlace(NamedTuple):
    """Byte offset of the first sample of a map, and bytes from one sample to the next."""

    offset: int
    stride: int


def extent_of(value: Value) -> Extent:
    """Size of one sample of a value: a value of rank 4 is a map, any other a vector of channels."""
    shape = value.shape
    if len(shape) == 4:
        return Extent(shape[3], shape[2], 1, shape[1])
    return Extent(1, 1, 1, value.type.size // max(1, shape[0]) if shape else 1)


def samples_of(value: Value) -> int:
    """How many maps a value is."""
    return value.shape[0] if value.shape else 1


def map_bytes(value: Value) -> int:
    """Bytes of a value as WHC8 maps of fp16, one per sample."""
    return 2 * value.type.size


class DvBuild(BaseBuild):
    """Commands since the last `finish`, as they go into a model file.

    Attributes:
        places: where the maps of the present run of device ops lie.
        records: what the layers of a model file are counted in: runs, commands without runs, calls of the host.
        count: commands and calls of the host so far.
    """

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients) -> None:
        super().__init__(plan, coefficients)
        self.places: Mapping[Hashable, MapPlace] = {}
        self.commands: list[bytes] = []
        self.records = self.count = 0

    def finish(self) -> list[bytes]:
        """The commands since the last call."""
        commands, self.commands = self.commands, []
        return commands

    def extent(self, value: Value) -> Extent:
        """How the map behind a value is laid out."""
        return extent_of(value if value in self.places else root_of(value))

    def constants(self, offset: int) -> Buf:
        """A place among the coefficients."""
        return Buf(COEFFICIENTS, offset)

    def place(self, key: Hashable) -> MapPlace:
        """Where a map lies; a view is what it is a view of."""
        place = self.places.get(key)
        if place is None and isinstance(key, Value):
            place = self.places[root_of(key)]
        assert place is not None, "the plan has a place for each map"
        return place

    def map(self, key: Hashable, sample: int) -> Buf:
        """A sample of a map."""
        place = self.place(key)
        return Buf(MAPS, place.offset + sample * place.stride)

    def weighted(self, part: Part, flat: Extent | None) -> Run:
        """The run with its weights among the coefficients.

        Args:
            flat: the map that the run reads as a vector of channels, whose order is then that of the map.
        """
        filters = part.filters
        if filters is None:
            return part.run
        weights = filters.halves(*map(self.coefficients.array, filters.values))
        if flat is not None:
            order = nchw_to_whc8(np.arange(flat.elements).reshape(1, flat.c, flat.h, flat.w))[0]
            weights = weights._replace(weights=weights.weights[:, order])
        run = stored(part.run, weights)
        layout = f"{filters.layout}, format {run.weight_fmt:d}, kernel {run.kernel}, of {flat}"
        if filters.values:
            first, *more = filters.values
            offset = self.coefficients.place(first, layout, lambda *_: packed(run, weights), *more)
        else:
            offset = self.coefficients.constant(packed(run, weights).tobytes())
        return replace(run, weight_buf=self.constants(offset))

    def conv(self, command: ConvCommand) -> None:
        """A command whose buffers have their places."""
        self._add(command.encode(), len(command.runs))

    def host(self) -> None:
        """Count a call of the host."""
        self.records += 1
        self.count += 1

    def _add(self, command: bytes, runs: int) -> None:
        self.commands.append(command)
        self.records += runs
        self.count += 1
