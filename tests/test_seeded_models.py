"""models/seeded.py, which is in no package: the same bytes each time, sane shapes, messages."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import onnx
import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "models" / "seeded.py"


@pytest.fixture(scope="module")
def seeded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("seeded", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_same_bytes_each_time(seeded: ModuleType, tmp_path: Path) -> None:
    first = seeded.seeded_model("mobilenetv2_160", tmp_path / "a")
    second = seeded.seeded_model("mobilenetv2_160", tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["centerface_480", "centerface_resize_480"])
def test_detector_has_four_heads_of_stride_4(seeded: ModuleType, tmp_path: Path, name: str) -> None:
    graph = onnx.load(seeded.seeded_model(name, tmp_path, batch_norm=False)).graph
    shapes = [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in graph.output]
    assert shapes == [[1, channels, 120, 120] for channels in (1, 2, 2, 10)]
    assert "BatchNormalization" not in {node.op_type for node in graph.node}


def test_unknown_name_is_told_on_one_line(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, "nonet", "--folder", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no seeded model is called 'nonet'; known: mobilenetv2_160" in done.stderr
