"""Small Caffe nets made by the tests: prototxt text plus random weights, run by our importer and by OpenCV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler.frontends.caffe import caffe_pb2, import_caffe
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, verify_module

Arrays = Sequence[np.ndarray]


def header(shape: Sequence[int], name: str = "data") -> str:
    dims = " ".join(f"dim: {d}" for d in shape)
    return f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {dims} }} }} }}\n'


def layer(kind: str, params: str = "", name: str = "l", bottom: str = "data", top: str = "out") -> str:
    """One layer; several bottoms or tops are separated by blanks."""
    blobs = " ".join([f'bottom: "{b}"' for b in bottom.split()] + [f'top: "{t}"' for t in top.split()])
    return f'layer {{ name: "{name}" type: "{kind}" {blobs} {params} }}\n'


def caffemodel(weights: Mapping[str, Arrays]) -> caffe_pb2.NetParameter:
    net = caffe_pb2.NetParameter(name="weights")
    for name, arrays in (weights or {"unused": [np.zeros(1, np.float32)]}).items():
        new = net.layer.add(name=name, type="Any")
        for array in arrays:
            new.blobs.add(shape={"dim": array.shape}, data=array.ravel())
    return net


def save(folder: Path, text: str, weights: Mapping[str, Arrays] | None = None) -> tuple[Path, Path | None]:
    """Write net.prototxt and (with weights) net.caffemodel."""
    (folder / "net.prototxt").write_text(text)
    if weights is None:
        return folder / "net.prototxt", None
    (folder / "net.caffemodel").write_bytes(caffemodel(weights).SerializeToString())
    return folder / "net.prototxt", folder / "net.caffemodel"


def load(folder: Path, text: str, weights: Mapping[str, Arrays] | None = None, **options: Any) -> Module:
    module = import_caffe(*save(folder, text, weights), **options)
    verify_module(module)
    return module


def run(module: Module, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs in order."""
    results = run_module(module, inputs)
    return [results[name] for name in module.main.output_names]


def opencv(text: str, weights: Mapping[str, Arrays], inputs: Mapping[str, np.ndarray], name: str = "out0") -> Arrays:
    """All tops of the layer called `name` (its poolings add a mask of maxima), by OpenCV."""
    import cv2

    model = caffemodel(weights).SerializeToString()
    net = cv2.dnn.readNetFromCaffe(np.frombuffer(text.encode(), np.uint8), np.frombuffer(model, np.uint8))
    for blob, array in inputs.items():
        net.setInput(array, blob)
    return list(net.forwardAndRetrieve([name])[0])


def random(shape: Sequence[int], seed: int = 0, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)
