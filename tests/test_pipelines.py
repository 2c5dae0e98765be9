"""The tables of passes: which run on a chip at which precision and level, in which order, and why."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bmcompiler.cli.common import run
from bmcompiler.cli.compile import cli
from bmcompiler.passes.rewriting import TargetPatternPass
from bmcompiler.passmanager import GROUP, Pipeline, find_pass, pass_names
from bmcompiler.pipelines import LEVELS, PHASES, WRITTEN, PassRow, Phase, PipelineTable
from bmcompiler.plugins.registry import entry_points
from bmcompiler.target import Target, find_target

GOLDEN = Path(__file__).parent / "data" / "pipelines.txt"
CHIPS = ("bm1684", "bm1684x", "bm1880", "dv700")
BUILT_IN = [name for name in pass_names() if entry_points(GROUP)[name].built_in]


def rows_of(target: Target) -> list[PassRow]:
    return [row for _, row in target.passes]


def test_all_pipelines_are_as_reviewed(golden: Callable[[Path, str], None]) -> None:
    rows = [
        f"{chip} {precision} {level}: {find_target(chip).pipeline(precision, level)}\n"
        for chip in CHIPS
        for precision in find_target(chip).precisions
        for level in LEVELS
    ]
    rows += [f"bm1684x {WRITTEN} {level}: {find_target('bm1684x').passes.text(WRITTEN, level)}\n" for level in LEVELS]
    golden(GOLDEN, "".join(rows))


def test_a_row_is_for_the_levels_and_precisions_that_it_says() -> None:
    rows = [PassRow("a", "", (1, 2)), PassRow("b{x=1}", "", precisions=("int8",)), PassRow("c", "", (2,), ("f32",))]
    table = PipelineTable(Phase("import", *rows[:1]), Phase("layout", *rows[1:]))
    assert [table.text("f32", level) for level in LEVELS] == ["", "a", "a,c"]
    assert [table.text("int8", level) for level in LEVELS] == ["b{x=1}", "a,b{x=1}", "a,b{x=1}"]


def test_what_chooses_types_has_no_place_where_they_are_written() -> None:
    rows = [PassRow("a", "", chooses=True), PassRow("b", ""), PassRow("c", "", precisions=(WRITTEN,))]
    table = PipelineTable(Phase("import", *rows))
    assert [table.text(precision, 0) for precision in ("f32", WRITTEN)] == ["a,b", "b,c"]


@pytest.mark.parametrize("chip", CHIPS)
def test_tables_are_well_formed(chip: str) -> None:
    """Phases in their order, each once; a row is a pass with a reason, for what the chip has."""
    target = find_target(chip)
    order = [PHASES.index(phase.name) for phase in target.passes.phases]
    assert order == sorted(set(order))
    for row in rows_of(target):
        assert len(Pipeline.parse(row.text).passes) == 1
        assert len(row.why.split()) > 2
        assert row.levels and set(row.levels) <= set(LEVELS) and set(row.precisions) <= {*target.precisions, WRITTEN}


def test_every_pass_has_a_row_of_a_chip_or_of_a_pass_made_of_others() -> None:
    rows = [row for chip in CHIPS for row in rows_of(find_target(chip))]
    rows += [row for name in BUILT_IN for row in find_pass(name).parts]
    homeless = set(BUILT_IN) - {row.text.partition("{")[0] for row in rows}
    assert not homeless, f"a row with a reason, in backends/CHIP/pipeline.py or canonicalize, for: {homeless}"


@pytest.mark.parametrize("name", BUILT_IN)
def test_passes_are_found_by_the_name_they_have(name: str) -> None:
    assert find_pass(name).name == name


def test_every_pass_of_the_tree_can_be_named() -> None:
    """A class of the rooms of passes that runs on a module is registered, if it is no base of others."""
    root = Path(__file__).resolve().parent.parent
    code = "import sys; sys.path.insert(0, 'tools'); import pass_lines; print(pass_lines.project(), end='')"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == (root / "pyproject.toml").read_text(encoding="utf-8"), "python tools/pass_lines.py"


@pytest.mark.parametrize("chip", CHIPS)
def test_help_prints_the_table_with_its_reasons(chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, "bmnet-compile", ["--target", chip, "--pipeline", "help", "--opt", "1"]) == 0
    printed = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    target = find_target(chip)
    for phase, row in target.passes:
        levels, precisions = " ".join(map(str, row.levels)), " ".join(row.precisions or target.precisions)
        assert f"{phase} {row.text} {levels} {precisions} {row.why}" in lines
    assert f"--quantize {target.precisions[0]} --opt 1: {target.pipeline(target.precisions[0], 1)}" in lines
    assert all(f"{row.text} {row.why}" in lines for row in find_pass("canonicalize").parts)
    assert "canonicalize: rounds: int = 10" in lines


ASKED = {
    "kept-orders": "least_cycles",
    "fill-image-slots": "target.image_slots(",
    "half-precision": "unsupported_reason(self._target, ",
    "row-parts": "target.planned_cycles(",
    "split-images": "target.planned_cycles(",
    "widen-floats": "unsupported_reason(self._target, ",
}
"""Passes in the tables of one chip alone that are no rules for a target: what they ask of any target, in their code."""


def test_what_serves_one_chip_lies_there_or_asks_the_target() -> None:
    everywhere = {row.name for row in find_pass("canonicalize").parts}
    for name in sorted(set(BUILT_IN) - everywhere):
        chips = [chip for chip in CHIPS if name in {row.name for row in rows_of(find_target(chip))}]
        cls = find_pass(name)
        if len(chips) > 1:
            assert cls.__module__.startswith("bmcompiler.passes."), f"{name} serves {chips}"
        elif name in ASKED:
            assert ASKED[name] in inspect.getsource(sys.modules[cls.__module__])
        elif not issubclass(cls, TargetPatternPass):
            home = type(find_target(chips[0])).__module__.removesuffix(".target")
            assert cls.__module__.startswith(f"{home}.passes."), f"{name} serves {chips[0]} alone"


@pytest.mark.parametrize(
    ("chip", "precision"), [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1880", "int8"), ("dv700", "f16")]
)
def test_a_compilation_imports_what_it_runs_alone(chip: str, precision: str, tmp_path: Path) -> None:
    program = f"""
import sys, numpy, bmcompiler
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
b = Builder.new("net")
b.outputs([b.relu(b.input("x", TensorType((1, 4))))], ["y"])
data = {{"x": numpy.arange(8, dtype="f4").reshape(2, 4)}} if {precision!r} == "int8" else None
bmcompiler.compile_module(b.module, target={chip!r}, quantize={precision!r}, data=data, opt=1, check="never")
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    names = find_target(chip).pipeline(precision, 1).split(",")
    names += [row.text for row in find_pass("canonicalize").parts]
    homes = {find_pass(name.partition("{")[0]).__module__ for name in names}
    others = {find_pass(name).__module__ for name in BUILT_IN} - homes
    loaded = set(done.stdout.split())
    assert len(others) > 10
    assert not others & loaded
    backends = {type(find_target(each)).__module__.removesuffix("target") for each in CHIPS if each != chip}
    assert not [name for name in loaded if name.startswith(tuple(backends))]
