"""A compilation proves its program before it writes it: a wrong one is found, named, kept, and never written."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.cli.common import run
from bmcompiler.cli.compile import cli as compile_command
from bmcompiler.cli.run import cli as run_command
from bmcompiler.errors import UsageError
from bmcompiler.files.mlir import save_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.report.summary import summary
from bmcompiler.runtime.simulator.bm1684 import windows as windows_1684
from bmcompiler.runtime.simulator.bm1684x.cube import pool as pool_1684x
from bmcompiler.runtime.simulator.bm1880 import windows as windows_1880

SHAPE = (2, 8, 12, 12)
RNG = np.random.default_rng(0)
DATA = {"x": RNG.normal(0, 1, (4, *SHAPE[1:])).astype(np.float32)}
STEPS: dict[str, tuple[Any, str]] = {
    "bm1880": (windows_1880, "_max_pooling"),
    "bm1684": (windows_1684, "_max_pooling"),
    "bm1684x": (pool_1684x, "_largest"),
}
"""The simulators' steps of max pooling."""
MODES = (("bm1880", "int8"), ("bm1684", "int8"), ("bm1684", "f32"), ("bm1684x", "int8"), ("bm1684x", "f16"))
PROVEN = "program = evaluate, every bit"


def net() -> Module:
    b = Builder.new("net")
    y = b.input("x", TensorType(SHAPE))
    for layer in ("first", "second"):
        with b.at(layer):
            weight = RNG.normal(0, 0.2, (8, 8, 3, 3)).astype(np.float32)
            y = b.relu(b.conv(y, b.weight(weight, layer), pads=(1, 1, 1, 1)))
        if layer == "first":
            with b.at("pool"):
                y = b.max_pool(y, kernel=(2, 2), strides=(2, 2))
    return b.outputs([y], ["y"])


def options(target: str, precision: str) -> dict[str, Any]:
    return {"target": target, "quantize": precision, **({"data": DATA} if precision == "int8" else {})}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`broken(chip)`: from now on max pooling of the chip's simulator forgets one corner of each image."""

    def break_step(chip: str) -> None:
        module, name = STEPS[chip]
        right = getattr(module, name)

        def wrong(ops: Any, *rest: Any) -> Callable[[], None]:
            step, result = right(ops, *rest), ops.fields

            def run() -> None:
                assert result is not None
                if ops.fields["res0_h"] == SHAPE[2] // 2:
                    return
                step()

            return run

        monkeypatch.setattr(module, name, wrong)

    return break_step


@pytest.mark.parametrize(("target", "precision"), MODES)
def test_a_wrong_program_is_found_named_kept_and_not_written(
    target: str, precision: str, broken: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_module(net(), tmp_path / "net.mlir")
    np.savez(tmp_path / "data.npz", **DATA)
    broken(target)
    out, bad, ir = tmp_path / "net.bmodel", tmp_path / "bad", tmp_path / "final.mlir"
    words = [tmp_path / "net.mlir", "--target", target, "--quantize", precision, "--data", tmp_path / "data.npz"]
    words += ["-o", out, "--save-ir", ir, "--keep-bad", bad]
    assert run(compile_command, "bmnet-compile", [str(word) for word in words]) == 1
    said = capsys.readouterr().err
    assert "layer 'pool' (max_pool)" in said and "error of bmcompiler" in said and "differ, by" in said
    assert str(bad) in said
    assert not out.exists() and not ir.exists()
    kept = [line.strip() for line in (bad / "README.txt").read_text().splitlines() if line.strip().startswith("bmnet-")]
    assert len(kept) == 3
    for line in kept:
        command, *args = shlex.split(line)
        args = [str(bad / each) if "." in each and not each.startswith("--") else each for each in args]
        if command == "bmnet-compile":
            assert run(compile_command, command, args) == 0, "compiled again without a check"
        else:
            assert run(run_command, command, args) == 1
            assert "layer 'pool' (max_pool)" in capsys.readouterr().err
    sizes = [value.size for value in np.load(bad / "sample.npz").values()]
    assert sizes == [SHAPE[0] * 8 * 12 * 12], "the part is the op alone, on what it reads in the network"


@pytest.mark.parametrize(("target", "precision"), [*MODES, ("dv700", "f16")])
def test_a_right_program_says_so_everywhere(target: str, precision: str, tmp_path: Path) -> None:
    result = bmcompiler.compile_module(net(), **options(target, precision), check="always")
    assert result.checked is not None and result.checked.samples == 1
    assert result.checked.of_data == (precision == "int8")
    assert f"1 sample: {PROVEN}" in summary(result)
    result.report(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["checked"]["samples"] == 1
    result.report(tmp_path / "report.html")
    assert PROVEN in (tmp_path / "report.html").read_text()


def test_never_makes_no_proof(broken: Callable[[str], None]) -> None:
    broken("bm1684")
    result = bmcompiler.compile_module(net(), target="bm1684", check="never")
    assert result.checked is not None and not result.checked.samples
    assert 'no: check="never"' in summary(result)


def test_a_number_of_samples_is_taken_from_the_data_as_far_as_they_go() -> None:
    few = bmcompiler.compile_module(net(), **options("bm1880", "int8"), check=2).checked
    assert few is not None and (few.samples, few.of_data) == (2, True)
    most = bmcompiler.compile_module(net(), **options("bm1880", "int8"), check=9).checked
    assert most is not None and most.samples == len(DATA["x"]) // SHAPE[0]
    assert bmcompiler.compile_module(net(), target="bm1684", check=3).checked.samples == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("value", ["sometimes", "0", -1, 0, True, 1.5])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="check must be auto, never, always or a number of samples"):
        bmcompiler.compile_module(net(), target="bm1684", check=value)
