"""Functions of whole tiles as sequences of TIU commands, each written once for evaluation and for code."""

from bmcompiler.backends.lanes.recipes.commands import Plane
from bmcompiler.backends.lanes.recipes.machine import Machine, Number, Register
from bmcompiler.backends.lanes.recipes.steps import Steps, record

__all__ = ["Machine", "Number", "Plane", "Register", "Steps", "record"]
