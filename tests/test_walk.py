"""The way of one convolution from its file to commands, as ARCHITECTURE.md tells it: the rooms in which our code runs.

`python tests/test_walk.py` prints them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import bmcompiler
from bmcompiler.passmanager import Pass

ROOT = Path(__file__).resolve().parent.parent
MOST = 26


def conv_file(folder: Path) -> Path:
    """An ONNX file of one 3x3 convolution, 32 to 64 channels of 28 x 28."""
    weights = np.random.default_rng(0).standard_normal((64, 32, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv1", kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 28, 28])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64, 28, 28])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, folder / "conv.onnx")
    return folder / "conv.onnx"


class Walk:
    """What runs between `start` and `stop`: folders of ours, without passes that leave the network as it is."""

    def __init__(self) -> None:
        self.rooms: set[str] = set()
        self._pass: FrameType | None = None
        self._inside: set[str] = set()

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        if event == "call":
            if self._pass is None and frame.f_code.co_name == "run" and isinstance(frame.f_locals.get("self"), Pass):
                self._pass, self._inside = frame, set()
            self._note(frame.f_code.co_filename)
        elif event == "return" and frame is self._pass:
            self._pass = None
            if result is not None and result.modified:
                self.rooms |= self._inside

    def _note(self, file: str) -> None:
        if file.startswith(f"{ROOT}/") and (room := Path(file).parent.relative_to(ROOT).as_posix()):
            if self._pass is not None:
                self._inside.add(room)
            elif not room.startswith("passes"):  # a pass that is made has not run
                self.rooms.add(room)


def rooms_of_a_conv(folder: Path) -> set[str]:
    """Rooms of a compilation in f16 for the BM1684X. It is the second one: imports and tables of chips are there."""
    file, walk = conv_file(folder), Walk()
    for observer in (None, walk):
        sys.setprofile(observer)
        try:
            bmcompiler.compile(file, target="bm1684x", quantize="f16", check="never")
        finally:
            sys.setprofile(None)
    return {room for room in walk.rooms if not room.startswith((".", "tests"))}


def told() -> set[str]:
    """The rooms that the table of the walk names."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("## The way of a layer")[1].split("\n## ")[0]
    return set(re.findall(r"^\| \d+ \| \[`([\w/]+)`\]", table, re.MULTILINE))


def test_a_convolution_passes_few_rooms_and_those_that_architecture_tells(tmp_path: Path) -> None:
    entered = rooms_of_a_conv(tmp_path)
    assert entered == told()
    assert len(entered) <= MOST


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        found = sorted(rooms_of_a_conv(Path(place)))
    print(*found, f"{len(found)} rooms", sep="\n")
