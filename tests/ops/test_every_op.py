"""What holds for each registered op: documentation, text form, verification, evaluation as declared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from op_samples import SAMPLES, build, random_array

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, verify_module
from bmcompiler.ops import load_all, parse_module
from bmcompiler.ops.builder import Builder

OPS = sorted(name for name, cls in load_all().items() if cls.__module__.startswith("bmcompiler.ops."))


def test_every_registered_op_has_a_sample_here() -> None:
    assert sorted(SAMPLES) == OPS


@pytest.mark.parametrize("name", OPS)
def test_docstring_shows_the_text_form_and_it_names_real_attributes(name: str) -> None:
    cls = load_all()[name]
    text = cls.__doc__ or ""
    assert f'= "tensorop.{name}"(' in text
    example = text.split(f'"tensorop.{name}"(', 1)[1].split(" : ", 1)[0]
    shown = example.partition("{")[2].partition("}")[0]
    names = {part.rsplit(",", 1)[-1].strip() for part in shown.split("=")[:-1]}
    assert names <= cls.attrs.keys()


@pytest.mark.parametrize("name", OPS)
def test_text_of_each_op_reads_back_to_the_same_text(name: str) -> None:
    module = build(name)
    text = str(module)
    again = parse_module(text)
    again.weights = module.weights
    verify_module(again)
    assert str(again) == text
    assert type(again.main.ops[0]) is type(module.main.ops[0])


@pytest.mark.parametrize("name", OPS)
def test_evaluation_has_the_inferred_types_and_leaves_its_inputs_alone(name: str) -> None:
    module, rng = build(name), np.random.default_rng(1)
    inputs = {key: random_array(rng, value.type) for key, value in zip(module.main.input_names, module.main.arguments)}
    before = {key: array.copy() for key, array in inputs.items()}
    for array in inputs.values():
        array.flags.writeable = False
    results = run_module(module, inputs)  # compares shapes and element types with the declared ones
    assert len(results) == len(module.main.output_names)
    for key, array in inputs.items():
        np.testing.assert_array_equal(array, before[key])


@pytest.mark.parametrize("name", OPS)
def test_clone_of_each_op_keeps_attributes_and_result_types(name: str) -> None:
    op = build(name).main.ops[-2]
    if name == "weight":
        pytest.skip("a weight's type is its own")
    copy = op.clone(op.operands)  # type: ignore[attr-defined]
    assert copy.attributes == op.attributes and copy.location == op.location
    for new, old in zip(copy.results, op.results, strict=True):
        assert (new.type.shape, new.type.dtype) == (old.type.shape, old.type.dtype)
        assert name == "quantize" or new.type == old.type
    assert name != "quantize" or copy.result.type.quant == op.result.type.quant


def whole_op_set() -> Module:
    """One function with the samples of all ops."""
    builder = Builder.new("all ops")
    outputs = []
    for name in OPS:
        types, make = SAMPLES[name]
        inputs = [builder.input(f"{name}{i}", type) for i, type in enumerate(types)]
        with builder.at(f'layer "{name}"', "zweite Ebene é"):
            made = make(builder, *inputs)
        outputs += made if isinstance(made, tuple) else (made,)
    return builder.outputs(outputs, [f"y{i}" for i in range(len(outputs))])


def test_xdsl_reads_a_module_with_every_op(tmp_path: Path) -> None:
    tool = shutil.which("xdsl-opt", path=str(Path(sys.executable).parent))
    if tool is None:
        pytest.skip("xdsl-opt is not installed beside this Python")
    module = whole_op_set()
    verify_module(module)
    path = tmp_path / "all.mlir"
    path.write_text(str(module), encoding="utf-8")
    command = [tool, "--allow-unregistered-dialect", "--print-op-generic", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for name in OPS:
        assert f'"tensorop.{name}"' in done.stdout
