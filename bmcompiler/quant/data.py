"""Calibration data checked against the inputs of a net, and cut into steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bmcompiler.errors import CalibrationError
from bmcompiler.inputs.source import Data, InputData, Samples, Source, take
from bmcompiler.ir import Function, TensorType
from bmcompiler.numeric.arrays import Array, Ints

Checked = Mapping[str, "Array | Samples"]
"""Arrays of a net's inputs in input order and in the inputs' element types, each (samples, *input_shape[1:])."""


@dataclass(frozen=True)
class _Input:
    name: str
    shape: tuple[int, ...]


def bind_data(function: Function, data: Data) -> InputData:
    """The samples for the inputs of a net, not checked yet. Raises BMError when they cannot be told apart."""
    if isinstance(data, Source):
        return data.bind([_Input(name, v.shape) for name, v in zip(function.input_names, function.arguments)])
    return data if isinstance(data, InputData) else InputData(data)


def check_data(function: Function, data: Data) -> Checked:
    """The samples of a net's inputs, see `Checked`. Arrays are checked now, `Samples` whenever they are read.

    Raises CalibrationError naming file, array, what was found and what was expected.
    """
    bound = bind_data(function, data)
    file = bound.file
    checked: dict[str, Array | Samples] = {}
    for name, argument in zip(function.input_names, function.arguments):
        if name not in bound:
            raise CalibrationError(
                f"no array is called '{name}' (found: {', '.join(bound) or 'none'})",
                file=file,
                remedy=f"save one array per network input: {', '.join(function.input_names)}",
            )
        given = bound[name]
        array = given if isinstance(given, Samples) else np.asarray(given)
        checked[name] = _Check(f"array '{name}'", argument.type, file).samples(array)
    unknown = [name for name in bound if name not in checked]
    if unknown:
        raise CalibrationError(
            f"array '{unknown[0]}' belongs to no input that the network reads",
            file=file,
            remedy=f"remove or rename it; the inputs are: {', '.join(function.input_names)}",
        )
    _check_counts(checked, _sizes(function), file)
    _need_variation(checked, file)
    return checked


def is_constant(array: Array) -> bool:
    """Whether samples of more than one element are one number everywhere."""
    return array[0].size > 1 and array.min() == array.max()


def _need_variation(arrays: Checked, file: object) -> None:
    """Something has to vary where floats are measured; a mask or a scale beside it may be the same in all samples."""
    looked = {name: _looked_at(array) for name, array in arrays.items()}
    floats = [name for name, array in looked.items() if array.dtype.kind == "f"]
    if not floats or not all(map(is_constant, looked.values())):
        return
    name, array = floats[0], looked[floats[0]]
    raise CalibrationError(
        f"array '{name}' is constant ({array.flat[0]:g} everywhere)",
        file=file,
        remedy="use real data of the kind the network will see",
    )


def _looked_at(array: Array | Samples) -> Array:
    """All of an array, and three samples of those that are read one by one."""
    return array.take(np.unique([0, len(array) // 2, len(array) - 1])) if isinstance(array, Samples) else array


def _check_counts(arrays: Checked, sizes: Mapping[str, int], file: object) -> None:
    """As many samples of each input, or samples for as many runs.

    An input whose leading axis is not the batch (the state of a recurrent layer) takes all of it in every run.
    """
    alike = len(set(sizes.values())) == 1
    runs = {-(-len(array) // sizes[name]) for name, array in arrays.items()}
    if len({len(array) for array in arrays.values()}) <= 1 or (len(runs) == 1 and not alike):
        return
    shown = ", ".join(f"'{name}' {len(array)}" for name, array in arrays.items())
    takes = ", ".join(f"{size} of '{name}'" for name, size in sizes.items())
    raise CalibrationError(
        f"the arrays have different numbers of samples: {shown}",
        file=file,
        remedy=None if alike else f"a run takes {takes}: give so many on axis 0 for each run",
    )


@dataclass(frozen=True)
class _Check:
    """What one input takes, and how to call the samples meant for it."""

    what: str
    wanted: TensorType
    file: object

    def samples(self, array: Array | Samples) -> Array | Samples:
        self.form(array)
        if isinstance(array, Samples):
            return _CheckedSamples(array, self)
        return self.values(array)

    def fail(self, found: str, remedy: str | None = None) -> CalibrationError:
        return CalibrationError(f"{self.what} {found}", file=self.file, remedy=remedy)

    def form(self, array: Array | Samples) -> None:
        if array.dtype.kind not in "fiub":
            raise self.fail(f"holds {array.dtype}, expected numbers")
        sample = self.wanted.shape[1:]
        if array.ndim != max(self.wanted.rank, 1) or array.shape[1:] != sample:
            expected = ", ".join(["samples", *map(str, sample)])
            raise self.fail(f"has shape {list(array.shape)}, expected ({expected})", _shape_remedy(array.shape, sample))
        if not len(array) or 0 in sample:
            raise self.fail("holds no sample", "give at least one sample; 100 or more are usual")

    def values(self, array: Array) -> Array:
        """The array in the input's element type."""
        wanted = self.wanted
        if wanted.is_float:
            with np.errstate(over="ignore"):
                array = array.astype(wanted.numpy, copy=False)
            if not np.isfinite(array).all():
                raise self.fail(f"holds NaN, infinity or values beyond {wanted.dtype}", "remove the broken samples")
            return array
        if array.dtype.kind == "f" and (not np.isfinite(array).all() or (array != np.trunc(array)).any()):
            raise self.fail(f"holds fractions, but the input takes whole numbers ({wanted.dtype})")
        if wanted.is_integer:
            limits = np.iinfo(wanted.numpy)
            if array.min() < limits.min or array.max() > limits.max:
                found = f"holds values outside {limits.min}..{limits.max}"
                raise self.fail(f"{found}, the range of the input ({wanted.dtype})")
        return array.astype(wanted.numpy)


def _shape_remedy(found: Sequence[int], sample: Sequence[int]) -> str:
    """Tells arrays of the other layout from arrays of another net."""
    if len(found) == 4 and tuple(found[1:]) != tuple(sample):
        if (found[3], found[1], found[2]) == tuple(sample):
            return "the array looks NHWC and the network takes NCHW: use array.transpose(0, 3, 1, 2)"
        if (found[2], found[3], found[1]) == tuple(sample):
            return "the array looks NCHW and the network takes NHWC: use array.transpose(0, 2, 3, 1)"
    return f"put the samples on axis 0, each shaped {list(sample)} as the network takes it"


class _CheckedSamples(Samples):
    def __init__(self, given: Samples, check: _Check) -> None:
        self._given, self._check = given, check
        self.shape, self.dtype = given.shape, check.wanted.numpy

    def take(self, indices: Sequence[int] | Ints) -> Array:
        return self._check.values(self._given.take(indices))


def batches(
    data: Checked | Mapping[str, Array], sizes: Mapping[str, int], steps: Iterable[int] | None = None
) -> Iterator[dict[str, Array]]:
    """The samples in steps of `sizes[name]` (one batch per input); the first samples fill up the last step.

    `steps`: which of the steps, all by default. A net without inputs has one.
    """
    counts = [-(-len(array) // sizes[name]) for name, array in data.items()]
    for step in range(next(iter(counts), 1)) if steps is None else steps:
        yield {name: take(array, step * sizes[name], (step + 1) * sizes[name]) for name, array in data.items()}


def some_steps(function: Function, data: Data, count: int) -> list[Mapping[str, Array]]:
    """Inputs of up to `count` runs of a net, from all over the samples. Raises CalibrationError as `check_data`."""
    return inputs_of(function, data, spread_steps(function, data, count))


def spread_steps(function: Function, data: Data, count: int) -> tuple[int, ...]:
    """Numbers of up to `count` steps, from all over the samples. Raises CalibrationError as `check_data`."""
    sizes = _sizes(function)
    arrays = check_data(function, data)
    steps = min((-(-len(array) // sizes[name]) for name, array in arrays.items()), default=1)
    count = min(count, steps)
    return tuple((2 * k + 1) * steps // (2 * count) for k in range(count))


def inputs_of(function: Function, data: Data, steps: Iterable[int]) -> list[Mapping[str, Array]]:
    """Inputs of the net in steps of these numbers. Raises CalibrationError as `check_data`."""
    shapes = {name: value.shape for name, value in zip(function.input_names, function.arguments)}
    chosen = batches(check_data(function, data), _sizes(function), steps)
    return [{name: array.reshape(shapes[name]) for name, array in step.items()} for step in chosen]


def _sizes(function: Function) -> dict[str, int]:
    """Samples of each input in one step."""
    return {name: value.shape[0] if value.shape else 1 for name, value in zip(function.input_names, function.arguments)}
