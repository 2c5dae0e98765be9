"""What a model file says of the networks that it was compiled from, beside their programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bmcompiler.ir import copy_module
from bmcompiler.ir.keys import INPUT_PICTURES, INPUT_RANGES

if TYPE_CHECKING:
    from bmcompiler.bmodel.model import BModel
    from bmcompiler.inputs import Data
    from bmcompiler.ir import Module
    from bmcompiler.options import Preprocessing


@dataclass
class AsRead:
    """What a model file says of the networks as they were read.

    Attributes:
        several: sizes that vary are told, by `modules`, copies.
        pictures: how they become the input, as it was said, or by saved IR; else the inputs' values are told.
        ranges: how large they are, by the samples or, where there are none, by saved IR, or else by the network.
    """

    several: bool
    pictures: Preprocessing | None
    modules: list[Module] = field(default_factory=list)
    ranges: dict[str, float] | None = None

    def look(self, module: Module, data: Data | None) -> None:
        """At a network before the passes; the first tells ranges, and keeps them for those who save it.

        Raises FileFormatError for what was kept and is malformed.
        """
        if self.several:
            self.modules.append(copy_module(module))
        kept_pictures = module.attributes.get(INPUT_PICTURES)
        if self.pictures is None and kept_pictures is not None:
            from bmcompiler.inputs.preprocessing import decoded as pictures_of

            self.pictures = pictures_of(kept_pictures)
        if self.pictures is None and self.ranges is None:
            from bmcompiler.inputs.ranges import by_training, decoded, encoded, in_samples
            from bmcompiler.quant.data import bind_data, check_data

            of_data = data is not None and in_samples(check_data(module.main, bind_data(module.main, data)))
            kept = module.attributes.get(INPUT_RANGES)
            self.ranges = of_data or (by_training(module) if kept is None else decoded(kept))
            module.attributes[INPUT_RANGES] = encoded(self.ranges)

    def note(self, model: BModel, first: Module) -> None:
        """Let all programs of a model say it, and the first network, which may be saved, what is said of pictures."""
        if self.several:
            from bmcompiler.sizes.note import note
            from bmcompiler.sizes.padding import sizes_of

            note(model, sizes_of(self.modules))
        if self.ranges:
            from bmcompiler.inputs.ranges import note as note_ranges

            note_ranges(model, self.ranges)
        if self.pictures is not None:
            from bmcompiler.inputs.preprocessing import note as note_pictures

            note_pictures(model, self.pictures)
            first.attributes[INPUT_PICTURES] = model.stages()[0].pictures
