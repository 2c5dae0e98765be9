"""What programs and notebooks call: arguments, messages in Python's words, results and sessions."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler.api import FileRequest, ModuleRequest
from bmcompiler.bmodel import load
from bmcompiler.cli.compile import cli
from bmcompiler.errors import BMError, RuntimeUseError, UnknownOptionError, UsageError
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.options import ImageOptions, ModuleOptions, Options
from bmcompiler.runtime import Session
from bmcompiler.told import all_told

SAMPLES = np.random.default_rng(1).standard_normal((32, 4, 8, 8)).astype(np.float32)


def network(inputs: int = 1) -> Module:
    b = Builder.new("net")
    values = [b.input(name, TensorType((1, 4, 8, 8), "f32")) for name in ("x", "y")[:inputs]]
    weight = b.weight(np.random.default_rng(0).standard_normal((4, 4, 3, 3)).astype(np.float32))
    found = b.conv(values[0], weight, pads=(1, 1, 1, 1))
    b.function.set_outputs([b.softmax(found if inputs == 1 else b.add(found, values[1]), axis=1)], ["out"])
    return b.module


@pytest.fixture(scope="module")
def result() -> bmcompiler.Result:
    return bmcompiler.compile_module(network(), target="bm1684", quantize="int8", data={"x": SAMPLES})


def test_a_misspelt_argument_is_answered_with_the_right_one() -> None:
    for call in (bmcompiler.compile, bmcompiler.compile_module):
        with pytest.raises(UnknownOptionError, match=r"no argument 'quantise'. Remedy: did you mean quantize\?"):
            call("net.onnx", quantise="int8")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"did you mean table\?"):
        bmcompiler.compile("net.onnx", calibration_table="t")  # type: ignore[call-arg]
    with pytest.raises(UnknownOptionError, match="choose from module, target, quantize"):
        bmcompiler.compile_module(network(), zzz=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("options", [ImageOptions, Options, FileRequest, ModuleRequest])
def test_every_option_is_told(options: type) -> None:
    known = {each.name for each in fields(options)}
    assert {each.name for each in all_told(options)} == known
    for each in all_told(options):
        assert each.text.endswith("."), each.name
        assert set(re.findall(r"{(\w+)}", each.text)) <= known, each.name


@pytest.mark.parametrize("call", [ImageOptions, ModuleOptions, Options, bmcompiler.compile, bmcompiler.compile_module])
def test_docstrings_say_every_option(call: Callable[..., object]) -> None:
    told = inspect.getdoc(call) or ""
    for name in inspect.signature(call).parameters:
        inherited = call is Options and name in inspect.signature(ModuleOptions).parameters
        assert re.search(rf"^    {name}: \S", told, re.MULTILINE) or inherited, name


@pytest.mark.parametrize("number", [0, -1, float("nan"), float("inf"), "much"])
@pytest.mark.parametrize("name", ["limit", "max_cycles", "max_error"])
def test_numbers_are_in_their_range(name: str, number: object) -> None:
    with pytest.raises(UsageError, match=rf"^{name} must be a finite number,? (1 or more|above 0), got {number!r}"):
        Options(**{name: number})  # type: ignore[arg-type]


def test_values_that_no_chip_takes_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^opt must be 0, 1 or 2, got 7"):
        bmcompiler.compile_module(network(), target="bm1684", opt=7)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^method must be kl, max, percentile or mse, got 'best'"):
        bmcompiler.compile_module(network(), target="bm1684", method="best")  # type: ignore[arg-type]


def test_a_chip_is_to_be_named() -> None:
    with pytest.warns(FutureWarning, match=r"compile_module\(\) compiles for bm1880, .* one of .*bm1684x, ") as found:
        assert bmcompiler.compile_module(network(), opt=0, data={"x": SAMPLES}).model.target == "bm1880"
    assert [each.filename for each in found] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bmcompiler.compile_module(network(), target="bm1684x")


def test_remedies_name_arguments() -> None:
    with pytest.raises(BMError) as found:
        bmcompiler.compile_module(network(), target="dv700", quantize="f32")
    assert 'use quantize="f16", or int8 for weights' in str(found.value)
    with pytest.raises(BMError) as found:
        bmcompiler.compile_module(network(), target="bm1684", quantize="int8")
    assert "--" not in str(found.value) and "data" in str(found.value)
    with pytest.raises(BMError, match="leave out io_dtype"):
        bmcompiler.compile_module(network(), target="bm1684", quantize="f32", io_dtype="int8")


def test_a_result_is_a_few_lines_in_text_and_a_page_in_notebooks(result: bmcompiler.Result) -> None:
    assert repr(result).startswith("net for bm1684 in int8") and len(repr(result).splitlines()) <= 24
    assert "--layers" not in repr(result) and "conv" in result.layers()
    assert "srcdoc=" in result._repr_html_() and "&lt;h2&gt;Layers" in result._repr_html_()


def test_a_result_saves_runs_compares_and_reports(result: bmcompiler.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "net.bmodel")
    result.report(tmp_path / "net.html")
    assert "<h2>Layers" in (tmp_path / "net.html").read_text()
    outputs = result.run(SAMPLES[:3])
    assert outputs["out"].shape == (3, 4, 8, 8) and outputs["out"].dtype == np.float32
    stored = Session(tmp_path / "net.bmodel")
    assert (stored.run(SAMPLES[:3])["out"] == outputs["out"]).all()
    far = result.compare(SAMPLES[:3])["out"]
    assert 0 < far.error < 0.05 and far.cosine > 0.99 and 0 < far.largest < 0.5
    same = result.compare(SAMPLES[:3], outputs)["out"]
    assert (same.equal, same.largest, same.error) == (1.0, 0.0, 0.0)
    with pytest.raises(RuntimeUseError, match="the model has no output 'prob'"):
        result.compare(SAMPLES[:3], {"prob": SAMPLES})


def test_a_session_says_what_it_is_and_takes_the_only_input_bare() -> None:
    one = bmcompiler.compile_module(network(), target="bm1684").session()
    assert repr(one) == "<Session on bm1684: x 1x4x8x8 float32 -> out 1x4x8x8 float32>"
    two = bmcompiler.compile_module(network(2), target="bm1684").session()
    with pytest.raises(RuntimeUseError, match=r"has 2 inputs, one array was given\. Remedy: pass a dict with: x, y"):
        two.run(SAMPLES)


@pytest.mark.parametrize(
    ("chip", "precision"), [("bm1880", "int8"), ("bm1684", "f32"), ("bm1684x", "f32"), ("dv700", "f16")]
)
def test_model_files_say_version_and_options(chip: str, precision: str, tmp_path: Path) -> None:
    made = [
        bmcompiler.compile_module(network(), target=chip, data={"x": SAMPLES}, opt=1, output=tmp_path / name)
        for name in ("a", "b")
    ]
    said = f"bmcompiler {version('bmcompiler')}, precision {precision}, opt 1"
    assert load(tmp_path / "a").summary["producer"] == said == made[0].model.producer
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_package_knows_its_version() -> None:
    assert bmcompiler.__version__ == version("bmcompiler")


def test_public_functions_are_typed_without_any() -> None:
    functions = [bmcompiler.compile, bmcompiler.compile_module, bmcompiler.load_network]
    for owner in (bmcompiler.Result, bmcompiler.Difference, Session):
        functions += [each for name, each in vars(owner).items() if inspect.isfunction(each) and name[0] != "_"]
    for function in functions:
        signature = inspect.signature(function)
        arguments = [each for each in signature.parameters.values() if each.name != "self"]
        for annotation in [*(each.annotation for each in arguments), signature.return_annotation]:
            assert isinstance(annotation, str), f"{function.__qualname__} has an argument without type"
            names = {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)}
            assert "Any" not in names, f"{function.__qualname__}: {annotation}"


def test_an_option_is_said_and_can_be_given_wherever_networks_are_compiled() -> None:
    names = {each.name for each in fields(Options)}
    of_commands = {each.name for each in cli.params}
    assert names - of_commands == {"log", "pool", "progress", "preprocess"}, "an option of bmnet-compile"
    for said in (bmcompiler.compile.__doc__, f"{ModuleOptions.__doc__} {Options.__doc__}"):
        assert not [name for name in names if not re.search(rf"^ +{name}: ", str(said), re.MULTILINE)]


@pytest.mark.slow
def test_a_type_check_of_a_users_script_finds_a_misspelt_argument(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nimport bmcompiler\n\n"
        'result = bmcompiler.compile("net.onnx", target="bm1684", quantize="int8", data="calib.npz", opt=1)\n'
        'scores: np.ndarray = result.run(np.zeros((1, 3, 8, 8)))["prob"]\n'
        'print(bmcompiler.__version__, result.compare({"x": scores})["prob"].error + 1.0)\n'
        'bmcompiler.compile("net.onnx", quantise="int8")\n'
        'bmcompiler.compile("net.onnx", opt=7)\n'
        "result.sav()\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(script)]
    done = subprocess.run([*command, "--cache-dir", os.devnull], capture_output=True, text=True, check=False)
    errors = [line.split(": error: ")[0].rsplit(":", 1)[1] for line in done.stdout.splitlines() if ": error: " in line]
    assert errors == ["7", "8", "9"], done.stdout
