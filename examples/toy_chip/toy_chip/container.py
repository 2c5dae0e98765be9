"""The model file: a plain one with a magic of its own."""

from bmcompiler.bmodel import Container
from bmcompiler.bmodel.plain import PlainModel


class ToyModel(PlainModel):
    """Programs for the toy chip."""

    container = "toy"
    magic = b"TOYCHIP\0"


CONTAINER = Container("toy", "toy chip model", ToyModel.is_one, "toy_chip.container")
read = ToyModel.read
