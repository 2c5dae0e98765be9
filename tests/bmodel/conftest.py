"""Small models for the container tests, and the vendor's files when they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command

ROOT = Path(__file__).resolve().parents[2]


def command(height: int, weight_index: int = 0, fill: int = 1) -> Command:
    """A program of 40 bytes for a 1 x 3 x height x 8 input; its outputs follow the input in activation memory."""
    data = 3 * height * 8
    return Command(
        inputs=[TensorInfo("data", (1, 3, height, 8), threshold=1.5)],
        outputs=[
            TensorInfo("prob", (1, 10, 1, 1), offset=data, threshold=0.25),
            TensorInfo("box", (1, 4, 1, 1), offset=data + 10),
        ],
        cmdbuf=bytes([fill]) * 40,
        neuron_size=data + 14,
        weight_index=weight_index,
    )


@pytest.fixture
def model() -> Bm1880Model:
    """Two input shapes, two weight sets."""
    return Bm1880Model("tiny", [command(8), command(16, 1, fill=2)], [bytes(range(64)), bytes(32)])


@pytest.fixture(scope="session")
def vendor_samples() -> Path:
    """Folder with the vendor's own model files; skips when there is none."""
    given = os.environ.get("BMCOMPILER_BM1880_SAMPLES")
    folder = Path(given) if given else ROOT.parent / "shared" / "hardware" / "bm1880_samples"
    if not (folder / "mtcnn_pnet.bmodel").is_file():
        pytest.skip(f"no vendor BM1880 model files in {folder}: set BMCOMPILER_BM1880_SAMPLES")
    return folder
