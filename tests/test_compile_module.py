"""A module in memory compiles as its file does, and stays as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.errors import UsageError, VerifyError
from bmcompiler.files.mlir import save_module
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ir.keys import GROUP
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session

SHAPE = (1, 8, 10, 10)
SAMPLES = np.random.default_rng(1).normal(0, 1, (4, *SHAPE[1:])).astype(np.float32)


def net() -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType(SHAPE))
    with b.at("conv"):
        weight = np.random.default_rng(0).normal(0, 0.1, (4, 8, 3, 3)).astype(np.float32)
        y = b.relu(b.conv(x, b.weight(weight, "w"), pads=(1, 1, 1, 1)))
    with b.at("pool"):
        return b.outputs([b.max_pool(y, kernel=(2, 2), strides=(2, 2))], ["y"])


@pytest.mark.parametrize(
    ("target", "quantize"), [("bm1880", "int8"), ("bm1684", "f32"), ("bm1684x", "f32"), ("dv700", "f16")]
)
def test_a_module_gives_the_bytes_that_its_file_gives(target: str, quantize: str, tmp_path: Path) -> None:
    module = net()
    save_module(module, tmp_path / "net.mlir")
    data = {"x": SAMPLES} if quantize == "int8" else None
    of_file = bmcompiler.compile(tmp_path / "net.mlir", target=target, quantize=quantize, data=data)
    before = str(module)
    result = bmcompiler.compile_module(
        module, target=target, quantize=quantize, data=data, output=tmp_path / "net.bmodel"
    )
    assert b"".join(result.model.parts()) == b"".join(of_file.model.parts()) == (tmp_path / "net.bmodel").read_bytes()
    assert result.notes == of_file.notes and str(result.module) == str(of_file.module)
    assert str(module) == before, "the module was changed"
    got = Session(bmodel.load(tmp_path / "net.bmodel")).run({"x": SAMPLES[:1]})["y"]
    want = run_module(module, {"x": SAMPLES[:1]})["y"]
    assert np.abs(got - want).max() <= 0.05 * np.abs(want).max()


def test_a_quantized_module_needs_no_samples() -> None:
    result = bmcompiler.compile_module(net(), target="bm1880", data={"x": SAMPLES})
    again = bmcompiler.compile_module(result.module, target="bm1880")
    assert again.model.weight_sets == result.model.weight_sets
    assert again.model.commands[0].cmdbuf == result.model.commands[0].cmdbuf


def test_groups_of_a_float_module_that_was_compiled_before_are_chosen_anew() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 16, 32, 32)))
    for _ in range(2):
        weight = np.random.default_rng(0).normal(0, 0.1, (16, 16, 3, 3)).astype(np.float32)
        x = b.relu(b.conv(x, b.weight(weight, "w"), pads=(1, 1, 1, 1)))
    module = b.outputs([x], ["y"])
    first, plain = (bmcompiler.compile_module(module, target="bm1684x", opt=opt) for opt in (2, 0))
    assert any(GROUP in op.attributes for op in first.module.walk())
    again = [bmcompiler.compile_module(first.module, target="bm1684x", opt=opt) for opt in (2, 0)]
    assert str(again[0].module) == str(first.module) and str(again[1].module) == str(plain.module)


def test_a_broken_module_is_refused() -> None:
    module = net()
    module.main.ops[-2].attributes["kernel"] = "two"
    with pytest.raises(VerifyError, match=r"layer 'pool'.*attribute 'kernel'"):
        bmcompiler.compile_module(module, target="bm1684")


def test_options_are_checked_as_for_files() -> None:
    with pytest.raises(UsageError, match="calibration data and images exclude each other"):
        bmcompiler.compile_module(net(), target="bm1880", data={"x": SAMPLES}, images=object())
    with pytest.raises(UsageError, match=r'got list\. Remedy: give a numpy array, or arrays by name, as in {"INPUT"'):
        bmcompiler.compile_module(net(), target="bm1880", data=[SAMPLES])
