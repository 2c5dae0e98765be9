"""Caffe's own deploy nets with seeded weights on BM1880: both executions agree, CPU layers are named.

`tests/test_networks.py` has the same of light_inception_v1, which is googlenet, and of LeNet from Caffe.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.numeric.arith import quantize_real
from bmcompiler.runtime import Session

MODELS = Path(__file__).resolve().parent.parent / "models"


def filled(prototxt: Path) -> Any:
    spec = importlib.util.spec_from_file_location("caffe_fill", MODELS / "caffe_fill.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.filled(prototxt)


@pytest.mark.parametrize(
    ("name", "size", "on_cpu"),
    [
        pytest.param("alexnet", 227, {"lrn", "softmax"}, marks=pytest.mark.sweep),
        pytest.param("googlenet", 224, set(), marks=pytest.mark.sweep),
        pytest.param("caffenet", 227, {"lrn", "softmax"}, marks=pytest.mark.sweep),
        pytest.param("rcnn", 227, {"lrn"}, marks=pytest.mark.sweep),
        pytest.param("flickr_style", 227, set(), marks=pytest.mark.sweep),
    ],
)
@pytest.mark.slow
def test_deploy_nets_run_byte_equal(name: str, size: int, on_cpu: set[str], tmp_path: Path) -> None:
    prototxt = MODELS / "third_party" / f"caffe_{name}.prototxt"
    if not prototxt.exists():
        pytest.skip(f"{prototxt.name} is not fetched: run `make models`")
    weights = tmp_path / "net.caffemodel"
    weights.write_bytes(filled(prototxt).SerializeToString())
    shape = [1, 3, size, size]
    samples = np.random.default_rng(7).standard_normal((2, 3, size, size)).astype(np.float32)
    result = bmcompiler.compile(prototxt, weights, target="bm1880", data={"data": samples}, shapes=[[shape]])
    (argument,) = result.module.main.arguments
    device = {"data": quantize_real(samples[:1], argument.type.quant.threshold)}
    expected = run_module(result.module, device)
    found = Session(result.model).run(device, raw=True)
    assert {key: array.tobytes() for key, array in found.items()} == {k: a.tobytes() for k, a in expected.items()}
    rows = [row for row in result.rows if row.where == "cpu"]
    assert {row.kind for row in rows} - {"quantize", "dequantize"} == on_cpu and all(row.reason for row in rows)
