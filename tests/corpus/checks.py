"""What is asked of every compilation: small functions in a table, each with a name that a failure is listed under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import rounded
from .costs import cliffs_are_few, cliffs_are_said, integers_are_not_slower, rows_have_bounds, twice_the_batch
from .growth import linear_in_depth, linear_in_pixels
from .identity import every_program_of_a_file, same_bytes, same_bytes_after_others, same_bytes_in_another_process
from .trial import CheckError, NotAskedError, Trial, same


def program_is_evaluate(trial: Trial) -> None:
    """Simulator and interpreter agree in every bit."""
    for name, wanted in trial.meant.items():
        same(trial.outputs[name], wanted, name)


def levels_agree(trial: Trial) -> None:
    """Floats have the same bits at all levels; so have integers, unless each level chose modes of its own."""
    if trial.precision == "int8":
        raise NotAskedError("each level chooses modes of its own")
    other = (trial.level + 1 + len(trial.model.graph.node) % 2) % 3
    found = trial.run(other)
    for name, wanted in trial.outputs.items():
        same(found[name], wanted, f"{name}, levels {other} and {trial.level}")


def near_float(trial: Trial) -> None:
    """Floats are what ONNX Runtime gives, as near as their type allows in this network."""
    if trial.precision == "int8":
        raise NotAskedError("how near integers are is said in the summary")
    far = rounded.too_far(trial.model, trial.batch, trial.real, trial.outputs, trial.precision)
    if far is not None:
        raise CheckError("far-from-float", far)


@dataclass(frozen=True)
class Check:
    """A question, and how often it is asked.

    Attributes:
        cost: whether a finding is about time, not about what is computed. noted: whether it is no fault at all.
    """

    ask: Callable[[Trial], None]
    share: float
    cost: bool = False
    noted: bool = False


CHECKS = {
    "no traceback": Check(lambda trial: void(trial.compiled()), 1),
    "program = evaluate": Check(program_is_evaluate, 1),
    "near float": Check(near_float, 0.8),
    "levels agree": Check(levels_agree, 0.4),
    "same bytes": Check(same_bytes, 0.1),
    "same bytes in another process": Check(same_bytes_in_another_process, 0.05),
    "same bytes after others": Check(same_bytes_after_others, 0.04),
    "every program of a file": Check(every_program_of_a_file, 0.1),
    "cliffs are said": Check(cliffs_are_said, 1, cost=True),
    "every row has a bound": Check(rows_have_bounds, 1, cost=True),
    "no cliffs": Check(cliffs_are_few, 1, cost=True, noted=True),
    "twice the batch": Check(twice_the_batch, 0.5, cost=True),
    "int8 not slower": Check(integers_are_not_slower, 0.6, cost=True),
    "linear in depth": Check(linear_in_depth, 0.03, cost=True),
    "linear in pixels": Check(linear_in_pixels, 0.03, cost=True),
}


def void(_: object) -> None:
    """Nothing."""
