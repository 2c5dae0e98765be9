"""Results of the golden programs (bm1880.md 16) and of the vendor's own model files."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import golden_cases
import numpy as np
import pytest

from bmcompiler import bmodel
from bmcompiler.bmodel.bm1880 import Bm1880Model
from bmcompiler.runtime.simulator.bm1880 import Memories, compile_plan

ROOT = Path(__file__).parents[2]
ROWS: list[dict[str, Any]] = json.loads((ROOT / "tests/data/bm1880_golden.json").read_text())
SAMPLES = Path(os.environ.get("BMCOMPILER_BM1880_SAMPLES", ROOT.parent / "shared/hardware/bm1880_samples"))
needs_samples = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="no vendor model files: set BMCOMPILER_BM1880_SAMPLES to their folder"
)


def run_row(case: str) -> dict[str, bytes]:
    cmdbuf, contents, results = golden_cases.build(case)
    memory = np.frombuffer(contents, np.uint8).copy()
    memories = Memories()
    memories.globals.map(0, memory)
    compile_plan(cmdbuf, memories).run()
    return {name: memory[at : at + size].tobytes() for name, at, size in results}


@pytest.mark.parametrize("row", ROWS, ids=[row["case"] for row in ROWS])
def test_results_equal_those_of_the_reference_model(row: dict[str, Any]) -> None:
    got = {name: f"{zlib.crc32(data):08x}({data[:4].hex()})" for name, data in run_row(row["case"]).items()}
    assert got == {result["name"]: f"{result['crc32']}({result['first']})" for result in row["results"]}


def sample(name: str) -> Bm1880Model:
    model = bmodel.load(SAMPLES / name)
    assert isinstance(model, Bm1880Model)
    return model


def run_command(model: Bm1880Model, index: int, data: bytes) -> list[bytes]:
    command = model.commands[index]
    memories = Memories()
    neuron = np.zeros(command.neuron_size, np.uint8)
    weights = np.frombuffer(model.weights[command.weight_index], np.uint8)
    memories.globals.map(0x2800000, weights)
    memories.globals.map(0x4000000, neuron)
    neuron[: len(data)] = np.frombuffer(data, np.uint8)
    plan = compile_plan(command.cmdbuf, memories, 0x4000000, 0x2800000)
    plan.run()
    return [neuron[output.offset : output.offset + output.size].tobytes() for output in command.outputs]


@needs_samples
def test_vendor_sample_gives_the_vendors_reference_output() -> None:
    data = (SAMPLES / "det1_input_1_3_12_12.bin").read_bytes()
    expected = (SAMPLES / "det1_output_1_3_12_12_ref.bin").read_bytes()
    assert b"".join(run_command(sample("det1_1_3_12_12.bmodel"), 0, data)) == expected


@needs_samples
def test_every_command_of_a_vendor_model_executes() -> None:
    model = sample("mtcnn_pnet.bmodel")
    rng = np.random.default_rng(1)
    for index, command in enumerate(model.commands):
        data = rng.integers(0, 256, command.inputs[0].size, np.uint8).tobytes()
        outputs = run_command(model, index, data)
        assert [len(output) for output in outputs] == [output.size for output in command.outputs]
        assert all(len(set(output)) > 1 for output in outputs)
