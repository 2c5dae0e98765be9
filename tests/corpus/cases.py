"""A case: all that one seed says, which network, for what it is compiled, and on which samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx

from . import attention, branches, chosen, classifiers, detectors, filters, mobile, pictures, sequences, tokens, warped
from .blocks import Net, drawn_net
from .graph import valid
from .shrink import Sample
from .sizes import enlarged

FAMILIES: dict[str, Callable[[Net], list[str]]] = {
    family.__name__: family
    for module in (
        classifiers,
        branches,
        mobile,
        detectors,
        chosen,
        pictures,
        warped,
        tokens,
        attention,
        sequences,
        filters,
    )
    for family in module.FAMILIES
}
SIZES = (
    *[(16, 16), (24, 32), (28, 28), (32, 32), (33, 47), (48, 48)] * 6,
    *[(64, 64), (56, 96)] * 4,
    (112, 112),
    (160, 160),
)
LARGE = (((56, 56), 4), ((40, 60), 8), ((60, 80), 8), ((45, 80), 16), ((45, 80), 24))
"""Sizes that weights and statistics are drawn for, and what rows and columns are multiplied by then."""
_LARGE_SHARE, _LARGEST_INT8 = 0.12, 480 * 640
"""How often; pixels of nets that are calibrated: the choice of modes runs them many times."""
BATCHES = (1, 1, 1, 1, 2, 3, 4, 5, 8, 16)
MODES = (
    ("bm1880", "int8"),
    ("bm1684", "f32"),
    ("bm1684", "int8"),
    ("bm1684x", "f32"),
    ("bm1684x", "f16"),
    ("bm1684x", "bf16"),
    ("bm1684x", "int8"),
    ("dv700", "f16"),
    ("dv700", "int8"),
)


@dataclass(frozen=True)
class Case:
    """A network, its inputs, and the modes it is compiled in.

    Attributes:
        data: samples by input name, on axis 0, two batches. modes: (chip, precision, level).
    """

    seed: int
    family: str
    model: onnx.ModelProto
    data: dict[str, np.ndarray]
    modes: tuple[tuple[str, str, int], ...]

    @property
    def batch(self) -> dict[str, np.ndarray]:
        """The inputs of one run."""
        shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in self.model.graph.input}
        return {name: value[: shapes[name][0]] for name, value in self.data.items()}


def drawn(seed: int, family: str | None = None, chip: str | None = None, modes: int = 3) -> Case:
    """The case of a seed. `chip`: only its modes.

    A net of large pictures is drawn for small ones, so that this takes no time, and is asked in one mode; where its
    constants fix the size it stays small.
    """
    random = np.random.default_rng(seed)
    name = list(FAMILIES)[int(random.integers(len(FAMILIES)))]
    name = name if family is None else family
    large = random.random() < _LARGE_SHARE
    size, factor = LARGE[int(random.integers(len(LARGE)))] if large else ((), 1)
    net = drawn_net(random, (size,) if large else SIZES, (1,) if large else BATCHES)
    net.g.outputs = net.given(FAMILIES[name](net))
    inputs = net.g.inputs
    data = {key: np.concatenate([value, np.flip(value, -1)]) for key, value in inputs.items()}
    sample = Sample(net.g.model(), data)
    larger = enlarged(sample, factor) if large else None
    known = [mode for mode in MODES if chip in (None, mode[0])]
    if larger is not None:
        sample, modes = larger, 1
        known = [mode for mode in known if mode[1] != "int8" or prod(size) * factor**2 <= _LARGEST_INT8] or known
    chosen = random.permutation(len(known))[:modes]
    wanted = tuple((*known[i], int(random.choice([0, 1, 2, 2]))) for i in chosen)
    return Case(seed, name, valid(sample.model), sample.data, wanted)
