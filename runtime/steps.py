"""Any number of samples on a program of a fixed batch: in steps, the last one filled up with zeros."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bmcompiler.bmodel import TensorInfo
from bmcompiler.errors import RuntimeUseError
from bmcompiler.inputs.source import Samples
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.devices import LoadedProgram


def batch_of(program: LoadedProgram) -> int:
    """Samples of one run; a net without inputs has one."""
    return program.inputs[0].shape[0] if program.inputs else 1


def in_steps(
    program: LoadedProgram,
    values: Sequence[Array | Samples | None],
    batch: int,
    progress: Callable[[range], Iterable[int]],
) -> list[Array]:
    """Outputs for `batch` samples of device values; None is what the program keeps itself. Raises RuntimeUseError."""
    compiled = batch_of(program)
    axes = [] if batch == compiled else [_batch_axis(info, compiled) for info in program.outputs]
    parts: list[list[Array]] = []
    for first in progress(range(0, batch, compiled)):
        # an exact match may have inputs of different leading axes
        if batch == compiled:
            parts.append(program.run([None if value is None else np.asarray(value) for value in values]))
            continue
        step = [value[first : first + compiled] for value in values if value is not None]
        missing = compiled - step[0].shape[0]
        if missing:
            step = [np.concatenate([part, np.zeros((missing, *part.shape[1:]), part.dtype)]) for part in step]
        parts.append(program.run(step))
    if batch == compiled:
        return parts[0]
    joined = [np.concatenate(pieces, axis) for axis, pieces in zip(axes, zip(*parts))]
    return [value.take(range(batch), axis) for axis, value in zip(axes, joined)]


def _batch_axis(info: TensorInfo, batch: int) -> int:
    """Axis of an output that counts samples: the first, or axis 2 of vendor inner products (1, 1, N, features)."""
    if info.shape[0] == batch:
        return 0
    if info.shape[:2] == (1, 1) and len(info.shape) == 4 and info.shape[2] == batch:
        return 2
    raise RuntimeUseError(
        f"output '{info.name}' {list(info.shape)} has no axis of {batch} samples, so the model cannot run in steps",
        remedy=f"pass exactly {batch} samples",
    )
