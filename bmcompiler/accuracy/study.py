"""The whole study of a network on a target: both networks, their numbers, the culprits, and what would help.

The values of every layer can be written as files, for looking at them with other tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler.accuracy.causes import likely_cause
from bmcompiler.accuracy.culprits import rank
from bmcompiler.accuracy.pairs import Pair, make_pair, real_values
from bmcompiler.accuracy.statistics import Numbers, float_values, measure
from bmcompiler.driver import data_of, load_network, pipeline_for, table_of
from bmcompiler.errors import UsageError
from bmcompiler.evaluation.decisions import checked_kind
from bmcompiler.files.kinds import ARRAYS
from bmcompiler.files.store import atomic_output, file_name
from bmcompiler.inputs.camera import fused
from bmcompiler.inputs.spread import spread
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Function, Module, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import Network, Options, Path_, Progress
from bmcompiler.passmanager import PassContext
from bmcompiler.proof.sample import device_values
from bmcompiler.quant.data import batches, check_data
from bmcompiler.quant.mode_table import Row, save_modes
from bmcompiler.spelling import spelled
from bmcompiler.target import Target, find_target

WANTED = 0.02
"""Error of the outputs that a suggestion aims at."""

_TRIES = 3
"""Suggestions that are tried at most, each for half the error of the one before."""


@dataclass
class Study:
    """What was found.

    Attributes:
        pair, numbers: both networks and their layers. ranking: layer names, the worst culprit first.
        causes: by layer name, "" where nothing stands out. notes: what the passes said.
    """

    pair: Pair
    numbers: Numbers
    ranking: list[str]
    causes: dict[str, str]
    notes: list[str]

    @property
    def error(self) -> float:
        """Relative error of the worst output, its channels weighed alike."""
        return max((each.balanced for each in self.numbers.outputs.values() if each.signal is not None), default=0.0)


def study(
    model: Network,
    weights: Path_ | None,
    options: Options,
    *,
    samples: int = 8,
    culprit_samples: int = 2,
    dump: Path_ | None = None,
    progress: Progress | None = None,
) -> Study:
    """Compare the float network with its quantized form on the options' samples.

    Args:
        samples: how many are compared (all of them calibrate). culprit_samples: how many each layer is tried alone on.
        dump: folder for the values of every layer, made if it is not there.

    Raises BMError as `bmcompiler.compile` does, and UsageError without samples.
    """
    target = find_target(options.target)
    pipeline = pipeline_for(target, options)
    read: Callable[[], Module] = partial(
        load_network, model, weights, shapes=options.programs[0], outputs=options.outputs
    )
    if options.fuse_preprocess is not None:
        (read,), options, _ = fused([read], options)
    data = data_of(options)
    if data is None:
        raise UsageError(f"accuracy is measured on samples: pass {spelled('data')} or {spelled('images')}")
    module = read()
    ctx = PassContext(
        target=target, data=data, table=table_of(options), progress=progress, decisions=checked_kind(options.decisions)
    )
    pair = make_pair(module, target, pipeline, ctx)
    steps = list(steps_of(pair.real.main, data, samples))
    shown = steps if progress is None else progress(steps, "comparing", len(steps))
    numbers = measure(pair, shown, options.decisions)
    if dump is not None:
        dump_layers(pair, steps, Path(dump))
    ranking = rank(pair, numbers, steps[:culprit_samples], progress)
    causes = {name: likely_cause(pair, row) for name, row in numbers.layers.items()}
    return Study(pair, numbers, ranking, causes, ctx.notes)


def steps_of(function: Function, data: Any, most: int) -> Iterator[Mapping[str, Array]]:
    """Inputs of as many runs as `most` samples take, from all over the data."""
    arrays = check_data(function, data)
    sizes = {n: v.shape[0] if v.shape else 1 for n, v in zip(function.input_names, function.arguments)}
    shapes = {n: v.shape for n, v in zip(function.input_names, function.arguments)}
    there = min((-(-len(array) // sizes[n]) for n, array in arrays.items()), default=1)
    count = min(there, max(1, most // max(1, next(iter(sizes.values()), 1))))
    for step in batches(arrays, sizes, map(int, spread(count, there))):
        yield {n: a.reshape(shapes[n]) for n, a in step.items()}


def suggested(found: Study, wanted: float = WANTED) -> list[str]:
    """Layers that should be float: the worst culprits, as few as leave an error below `wanted`.

    Errors of layers add up as independent noise; inputs cannot be float by themselves.
    """
    errors = {name: found.numbers.layers[name].output_error or 0.0 for name in found.ranking}
    left = sum(error**2 for error in errors.values())
    chosen = []
    for name in found.ranking:
        if sqrt(max(left, 0.0)) <= wanted or not errors[name]:
            break
        if found.numbers.layers[name].layer.real.op is not None:
            chosen.append(name)
            left -= errors[name] ** 2
    return chosen


def confirmed(
    found: Study, trial: Callable[[list[str]], Study], wanted: float = WANTED
) -> tuple[list[str], Study] | None:
    """Suggested layers and what `trial` finds with them in float: the first within `wanted`, or the nearest to float.

    How other layers compute is chosen anew beside them, so that more are tried where that takes back what they bring.
    None where no table that was tried brings the outputs nearer to float than they are.
    """
    best: tuple[list[str], Study] | None = None
    tried: list[list[str]] = [[]]
    for times in range(_TRIES):
        layers = suggested(found, wanted / 2**times)
        if layers in tried:
            continue
        tried.append(layers)
        after = trial(layers)
        if after.error < (found if best is None else best[1]).error:
            best = layers, after
        if after.error <= wanted:
            break
    return best


def takes_table(target: Target, options: Options) -> bool:
    """Whether layers can be kept in float by a quantization table."""
    return any(each.takes_table for each in pipeline_for(target, options))


def write_suggestion(found: Study, layers: Iterable[str], path: Path_) -> None:
    """A quantization table for `bmnet-compile --quant-table`: these layers float, all others decided anew."""
    errors = {name: found.numbers.layers[name].output_error for name in layers}
    save_modes(path, (Row(name, "float", error, None, found.causes[name]) for name, error in errors.items()))


def with_table(options: Options, table: Path_) -> Options:
    """The same options with a quantization table."""
    return replace(options, quant_table=table)


def dump_layers(pair: Pair, steps: Iterable[Mapping[str, Array]], folder: Path) -> None:
    """Write NUMBER.LAYER.npz for every layer, numbered in the order of the float network.

    Arrays: `float` and `device`, real values (float32), and `codes`, the numbers of the chip; samples on axis 0.
    Raises OSError for a folder that cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, list[tuple[Array, Array]]] = {layer.name: [] for layer in pair.layers}
    for inputs in steps:
        real = float_values(pair, inputs)
        found: dict[Value, Array] = {}
        given = {
            name: device_values(inputs[name], argument.type)
            for name, argument in zip(pair.compiled.main.input_names, pair.compiled.main.arguments)
        }
        run_function(pair.compiled, pair.compiled.main, given, found.__setitem__, pair.target)
        for layer in pair.layers:
            kept[layer.name].append((real[layer.real], found[layer.compiled]))
    for number, layer in enumerate(pair.layers):
        floats, codes = (np.concatenate([np.atleast_1d(each[side]) for each in kept[layer.name]]) for side in (0, 1))
        with atomic_output(folder / f"{number:03}.{file_name(layer.name)}.npz", ARRAYS) as stream:
            np.savez(stream, float=floats, device=real_values(codes, layer.compiled.type), codes=codes)
