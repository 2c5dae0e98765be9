"""Seeded weights for Caffe nets that come without: `python models/caffe_fill.py NET.prototxt OUT.caffemodel`.

Weights are normal with variance 2 / fan-in (He initialisation), so that activations keep their size through the net;
biases are small. The same bytes on every machine.
"""

from __future__ import annotations

import argparse
import zlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler.frontends.caffe import import_caffe
from bmcompiler.frontends.caffe.layer import Layer, find_converter, local_converters
from bmcompiler.frontends.caffe.weights import packed_net

FILLED = ("Convolution", "Deconvolution", "InnerProduct")
Weights = dict[str, list[np.ndarray]]


def filled(prototxt: Path) -> Any:
    """A NetParameter with weights for every layer of the `FILLED` types in a prototxt. Raises BMError for a bad net."""
    found: Weights = {}

    def filling(kind: str):
        convert = find_converter(kind)
        assert convert is not None

        def fill(layer: Layer):
            layer.weights = lambda *shapes: found.setdefault(  # type: ignore[method-assign]
                layer.name, [seeded(f"{layer.name}.{i}", shape) for i, shape in enumerate(shapes)]
            )
            return convert(layer)

        return fill

    with local_converters({kind: filling(kind) for kind in FILLED}):
        import_caffe(prototxt)
    net = packed_net()(name=prototxt.stem)
    for name, arrays in found.items():
        layer = net.layer.add(name=name, type="Weights")
        for array in arrays:
            layer.blobs.add(shape={"dim": array.shape}, data=[array.tobytes()])
    return net


def seeded(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """float32 values that depend on name and shape only."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    size = np.sqrt(2 / prod(shape[1:])) if len(shape) > 1 else 0.05
    return (random.standard_normal(shape, np.float32) * np.float32(size)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write seeded weights for a Caffe net.")
    parser.add_argument("prototxt", type=Path)
    parser.add_argument("caffemodel", type=Path)
    given = parser.parse_args()
    given.caffemodel.write_bytes(filled(given.prototxt).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
