"""Functions of whole tiles as sequences of commands, each written once for evaluation and for code."""

from bmcompiler.backends.lanes.recipes.emission import Plane
from bmcompiler.backends.lanes.recipes.recorder import Number, Recorder, Register
from bmcompiler.backends.lanes.recipes.steps import Steps, record

__all__ = ["Number", "Plane", "Recorder", "Register", "Steps", "record"]
