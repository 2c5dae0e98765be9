"""The values of every layer as files, for looking at them with other tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from bmcompiler.accuracy.pairs import Pair, device_values, real_values
from bmcompiler.accuracy.statistics import float_values
from bmcompiler.files.kinds import ARRAYS
from bmcompiler.files.store import atomic_output, file_name
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array


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
