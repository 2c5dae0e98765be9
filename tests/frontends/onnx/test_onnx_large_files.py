"""Memory and time of importing a large file, and that reading around protobuf gives what protobuf gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import graph_model

from bmcompiler.errors import FileFormatError
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.frontends.onnx.large_tensors import LARGE, split_file
from bmcompiler.interpreter import run_module

_MEASURE = """
import json, re, sys, time
import numpy, onnx
from bmcompiler.frontends.onnx import import_onnx
import bmcompiler.frontends.onnx.importer
from bmcompiler.frontends.onnx.registry import load_converters
from bmcompiler.ops import load_all
load_converters(), load_all()
# of this process alone: ru_maxrss counts what the parent had before the exec
peak = lambda: int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
before, start = peak(), time.process_time()
module = import_onnx(sys.argv[1])
print(json.dumps([peak() - before, time.process_time() - start, len(module.weights)]))
"""


def layers(count: int, size: int) -> onnx.ModelProto:
    """A chain of products with `count` matrices of size x size float32."""
    rng = np.random.default_rng(5)
    weights = {f"w{i}": rng.standard_normal((size, size), np.float32) for i in range(count)}
    nodes = [helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(count)]
    return graph_model(nodes, {"t0": (1, size)}, [f"t{count}"], weights)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_file_of_100_megabytes_takes_little_more_than_its_size(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    onnx.save(layers(10, 1620), path)
    size = path.stat().st_size
    assert size > 100e6
    command = [sys.executable, "-c", _MEASURE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    grown, seconds, count = json.loads(done.stdout)
    print(f"{size / 1e6:.0f} MB: peak grows by {grown / size:.2f} x, {seconds:.2f} s")
    assert count == 10
    assert grown < 1.3 * size
    assert seconds < 3


def test_large_weights_from_the_file_equal_those_that_protobuf_reads(tmp_path: Path) -> None:
    model = layers(3, 160)
    model.graph.initializer.insert(1, numpy_helper.from_array(np.ones(3, np.float32), "small"))
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    rest, spans = split_file(path)
    assert sorted(spans) == [0, 2, 3] and len(rest) < LARGE
    feeds = {"t0": np.ones((1, 160), np.float32)}
    from_file, from_memory = run_module(import_onnx(path), feeds), run_module(import_onnx(model), feeds)
    np.testing.assert_array_equal(from_file["t3"], from_memory["t3"])


def test_a_weight_of_the_wrong_size_is_reported(tmp_path: Path) -> None:
    model = layers(1, 160)
    model.graph.initializer[0].dims[0] = 161
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    with pytest.raises(FileFormatError, match=r"'w0'.*needs 103040 bytes, but holds 102400"):
        import_onnx(path)


@pytest.mark.parametrize("cut", [1, 1000, 103_000])
def test_a_truncated_large_file_is_reported(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(layers(2, 160).SerializeToString()[:-cut])
    with pytest.raises(FileFormatError, match="not an ONNX model"):
        import_onnx(path)


def test_two_graphs_in_one_file_are_left_to_protobuf(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    data = layers(2, 160).SerializeToString()
    path.write_bytes(data + data)
    assert split_file(path) == (data + data, {})
