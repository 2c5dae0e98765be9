"""Questions about what a compilation takes: processor time and memory for deeper nets and larger pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from .depth import block_of, repeated
from .elsewhere import Compilation, compiled_elsewhere
from .graph import run_onnx
from .shrink import Sample
from .sizes import enlarged
from .trial import Arrays, CheckError, NotAskedError, Trial

NODES, TIMES = 60, 4
"""Nodes that a net has at least where it is compared with one of so many times the blocks."""
MORE = 1.5
"""Times linear that time and memory may be; what is quadratic in four times as much is four times linear."""
_PIXELS = 500_000
"""Numbers in an input beyond which a net is not made larger."""
_ROUNDS = 3
"""How often it is measured before it is believed."""
_SECONDS, _BYTES = 0.4, 48 << 20
"""What may be beside that, for clocks and allocators are coarse."""


def _need_small(trial: Trial) -> None:
    if max(value.size for value in trial.batch.values()) > _PIXELS:
        raise NotAskedError("large already")


def linear_in_depth(trial: Trial) -> None:
    """Four times the blocks take four times the time and memory, not sixteen."""
    _need_small(trial)
    block = block_of(trial.model)
    if block is None:
        raise NotAskedError("nothing in it can be repeated")
    times = max(1, -(-(NODES - len(trial.model.graph.node)) // len(block[2])) + 1)
    short, deep = (repeated(trial.model, block, each) for each in (times, TIMES * times))
    if not all(np.isfinite(value).all() for value in run_onnx(deep, trial.batch)):
        raise NotAskedError("deeper, it overflows")
    counts = [len(each.graph.node) for each in (short, deep)]
    _linear(trial, (short, trial.data), (deep, trial.data), counts[1] / counts[0], f"{counts[0]} and {counts[1]} nodes")


def linear_in_pixels(trial: Trial) -> None:
    """Four times the pixels take at most four times the time and memory."""
    _need_small(trial)
    sample = Sample(trial.model, trial.data)
    larger = enlarged(sample, 2)
    if larger is None:
        raise NotAskedError("its size is fixed inside")
    _linear(trial, (sample.model, sample.data), (larger.model, larger.data), 4, "four times the pixels")


def _linear(
    trial: Trial, small: tuple[onnx.ModelProto, Arrays], large: tuple[onnx.ModelProto, Arrays], factor: float, what: str
) -> None:
    """Raises CheckError where the large net takes more than its share.

    What looks so is measured again, and the least of each counts: what else the machine does only adds to it.
    """
    runs = []
    for _ in range(_ROUNDS):
        _, *run = compiled_elsewhere(trial, [small, small, large], check="never")
        runs.append(run)
        worst = excess(*map(_least, zip(*runs)), factor)
        if worst is None:
            return
    raise CheckError(worst[0], f"{what}: {worst[1]}")


def _least(runs: Sequence[Compilation]) -> Compilation:
    return Compilation("", min(run.seconds for run in runs), min(run.peak for run in runs))


def excess(small: Compilation, large: Compilation, factor: float) -> tuple[str, str] | None:
    """What grows faster than what is compiled: the kind of finding, and figures; None where nothing does."""
    if large.seconds > MORE * factor * small.seconds + _SECONDS:
        return (
            "compile time",
            f"{small.seconds:.2f} and {large.seconds:.2f} s, {large.seconds / small.seconds:.1f} times",
        )
    if large.peak > MORE * factor * small.peak + _BYTES:
        return "compile memory", f"{small.peak >> 20} and {large.peak >> 20} MB"
    return None
