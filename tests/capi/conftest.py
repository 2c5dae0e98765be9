"""The C libraries, built once for all tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bmcompiler.capi.build import build
from bmcompiler.frontends.caffe import caffe_pb2

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 dim: 8 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "minus" type: "Minus" bottom: "conv" top: "minus" }
layer { name: "elu" type: "ELU" bottom: "minus" top: "elu" elu_param { alpha: 0.25 } }
"""
TABLE = "data 4\nconv 8\nminus 8\nelu 8\n"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("capi")
    build(folder, "gcc")
    return folder


@pytest.fixture(scope="session")
def net(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Files of a net: structure, weights, table."""
    folder, rng = tmp_path_factory.mktemp("net"), np.random.default_rng(0)
    weights = caffe_pb2.NetParameter(name="small")
    layer = weights.layer.add(name="conv", type="Convolution")
    for shape in ((4, 2, 3, 3), (4,)):
        layer.blobs.add(shape={"dim": shape}, data=rng.normal(0, 0.3, shape).astype(np.float32).ravel())
    files = folder / "net.prototxt", folder / "net.caffemodel", folder / "table"
    for file, content in zip(files, (NET.encode(), weights.SerializeToString(), TABLE.encode())):
        file.write_bytes(content)
    return files
