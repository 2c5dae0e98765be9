"""What a session does with pictures, by what its model says of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from bmcompiler.bmodel import TensorInfo
from bmcompiler.errors import RuntimeUseError
from bmcompiler.inputs import InputData, open_inputs, placed
from bmcompiler.inputs.preprocessing import decoded, far_from, merged
from bmcompiler.inputs.ranges import decoded as ranges_of
from bmcompiler.inputs.ranges import limit_of
from bmcompiler.numeric.arrays import Doubles
from bmcompiler.options import Preprocessing


class TakesPictures(ABC):
    """The part of a session that is about pictures."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Inputs of the first program."""

    @property
    @abstractmethod
    def pictures(self) -> str:
        """What the net says of pictures, as its file has it."""

    @property
    @abstractmethod
    def ranges(self) -> str:
        """What the net says of its inputs' values, as its file has it."""

    @property
    def preprocessing(self) -> Preprocessing | None:
        """How pictures become the input; None where the model does not say it."""
        return decoded(self.pictures)

    def images(self, path: str | Path) -> InputData:
        """Image files, or a folder of them, as the model takes them: `session.run(session.images("photos"))`.

        Raises:
            RuntimeUseError: the model does not say how. BMError, OSError: as `open_inputs`.
        """
        options, _ = merged(path, {}, self._said())
        return open_inputs(options).bind(self.inputs)

    def to_image(self, points: ArrayLike, size: tuple[int, int]) -> Doubles:
        """Coordinates in the input as those in a picture of `size` (height, width), in it; x and y in turns.

        Raises:
            RuntimeUseError: the model does not say how pictures become its input.
        """
        said, shape = self._said(), self.inputs[0].shape
        height, width = said.cut or (shape[2:] if said.layout == "nchw" else shape[1:3])
        return placed(said, (height, width), size).to_image(points)

    def _said(self) -> Preprocessing:
        if self.preprocessing is None:
            remedy = "compile it with preprocess, or take inputs.open_inputs and inputs.placed"
            raise RuntimeUseError("the model does not say how pictures become its input", remedy=remedy)
        return self.preprocessing

    def far_off(self, inputs: Mapping[str, Any]) -> list[str]:
        """Warnings about inputs of quite another range than the model was made for."""
        said = self.preprocessing if len(self.inputs) == 1 else None
        ranges = {} if said is not None else ranges_of(self.ranges)
        given = [info for info in self.inputs if info.name in inputs]
        found = [
            far_from(said, info, limit_of(info) or ranges.get(info.name, 0.0), inputs[info.name]) for info in given
        ]
        return [text for text in found if text]
