"""What is compiled, and how long it takes, is what was recorded: `tests/data/programs` (`--update-golden`).

A line is a program: cycles, commands, a digest of all of its bytes, its name. A change that is meant to leave programs
alone leaves these files alone; of another one their diff shows what it costs and what it gains, op by op.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import program_nets
import pytest
from cycle_nets import BYTES, FLOATS, MOVES
from lane_nets import Net
from level_nets import alone

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.ir import Module, Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target, unsupported_reason

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER / "ops"))
SHAPES = {"square": (1, 64, 28, 28), "images": (5, 20, 14, 30), "picture": (1, 3, 112, 96), "small": (2, 130, 7, 7)}
LEVELS = {"images": 0}
"""Of shapes that are not compiled at level 2."""
PRECISIONS = {"bm1684": ("f32", "int8"), "bm1684x": ("f32", "f16", "bf16", "int8"), "bm1880": ("int8",),
              "dv700": ("f16", "int8")}  # fmt: skip
OPS = [
    *((chip, part) for chip in PRECISIONS for part in ("samples", *SHAPES)),
    *((chip, "bytes") for chip in ("bm1684", "bm1880")),
]
NETWORKS = [
    # in bf16 all have the commands and cycles of f16; each second network has layers that those before it have
    pytest.param(chip, precision, number, marks=[pytest.mark.sweep] if precision == "bf16" or number % 2 else [])
    for chip, precisions in PRECISIONS.items()
    for precision in precisions
    for number in range(len(program_nets.MIXED if precision == "int8" else program_nets.FLOATS))
]


class Program(NamedTuple):
    """A line of a file."""

    cycles: int
    commands: int
    digest: str

    def against(self, before: Program | None) -> str:
        """What became of the program that was recorded."""
        if before is None:
            return f"new, {self.cycles} cycles"
        if self.cycles == before.cycles:
            return f"other bytes, {before.commands} -> {self.commands} commands, as many cycles"
        more = self.cycles - before.cycles
        return f"{before.cycles} -> {self.cycles} cycles, {more:+} ({100 * more / max(1, before.cycles):+.1f} %)"


def samples() -> Iterator[tuple[str, Module]]:
    """One small instance of every op."""
    from op_samples import SAMPLES

    for name, (types, make) in SAMPLES.items():
        b = Builder.new("net")
        made = make(b, *(b.input(f"x{i}", type) for i, type in enumerate(types)))
        values = made if isinstance(made, tuple) else (made,)
        yield name, b.outputs(list(values), [f"y{i}" for i in range(len(values))])


def of_shape(shape: tuple[int, ...]) -> Iterator[tuple[str, Module]]:
    """Ops in floats and in bytes, those that there are at this shape."""
    for kind, table in (("f32", FLOATS | MOVES), ("i8", BYTES | MOVES)):
        for name, make in table.items():
            net = Net([shape], 0, kind)
            try:
                made = make(net, net.inputs[0])
                yield f"{name} {kind}", net.module([made] if isinstance(made, Value) else list(made))
            except BMError:
                continue


RECORDED_VERSION = "0.1.0"
"""Model files say which version made them; a release is no other program."""


def recorded(chip: str, model: bmcompiler.bmodel.BModel) -> Program | None:
    """A compiled model as a line, None where no program of the chip is in it."""
    analysis = analysis_of(chip, model)
    if analysis is None:
        return None
    timing = analysis.timing()
    if bmcompiler.__version__ in model.producer:
        model.producer = model.producer.replace(bmcompiler.__version__, RECORDED_VERSION, 1)
    digest = sha256(b"".join(map(bytes, model.parts(file="")))).hexdigest()[:10]
    return Program(timing.cycles, sum(engine.commands for engine in timing.engines), digest)


def of_ops(chip: str, nets: Iterator[tuple[str, Module]], level: int) -> dict[str, Program]:
    """Programs of nets that are compiled as they are, if the chip has a kernel for all ops."""
    target, found = find_target(chip), {}
    for name, module in nets:
        ops = [op for op in module.main.ops if isinstance(op, TensorOp) and op.name != WEIGHT]
        if not module.main.arguments or any(unsupported_reason(target, op) is not None for op in ops):
            continue
        try:
            program = recorded(chip, target.compile([module], level).model)
        except UnsupportedError:  # an output that is a constant
            continue
        if program is not None:
            found[name] = program
    return found


def grouped(chip: str) -> Iterator[tuple[str, Module]]:
    """Nets of bytes whose layers are in groups."""
    target = find_target(chip)
    for make, shape in program_nets.BYTES:
        name, module = program_nets.byte_network(make, shape)
        run_pipeline(module, "group-layers", PassContext(target=target))
        yield name, module


def of_network(chip: str, precision: str, number: int) -> dict[str, Program]:
    """The program of a network that goes through all passes."""
    make, shape = program_nets.FLOATS[number]
    name, module = program_nets.network(make, shape)
    data = {"x": np.random.default_rng(1).standard_normal((2 * shape[0], *shape[1:]), np.float32)}
    result = bmcompiler.compile_module(
        module, target=chip, quantize=precision, data=data if precision == "int8" else None, check="never"
    )
    program = recorded(chip, result.model)
    assert program is not None
    return {name: program}


def path_of(chip: str, part: str) -> Path:
    """The file with the programs of a part, or of a precision."""
    return FOLDER / f"data/programs/{chip}_{part}.txt"


def read(path: Path) -> dict[str, Program]:
    """Programs as they were recorded, by name."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [line.split("\t") for line in lines]
    return {name: Program(int(cycles), int(commands), digest) for cycles, commands, digest, name in rows}


def write(path: Path, programs: dict[str, Program]) -> None:
    """Record them, by name."""
    lines = ["\t".join(map(str, (*program, name))) for name, program in sorted(programs.items())]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def compare(found: dict[str, Program], before: dict[str, Program]) -> None:
    """Fail with a line for each program that is not what it was."""
    changed = {name: one.against(before.get(name)) for name, one in found.items() if one != before.get(name)}
    changed |= dict.fromkeys(before.keys() - found.keys(), "gone")
    said = "; ".join(f"{name}: {words}" for name, words in changed.items())
    assert not changed, f"{said}. Where that is wanted: pytest --update-golden"


@pytest.mark.parametrize(("chip", "part"), OPS)
def test_programs_of_ops_are_those_that_were_recorded(chip: str, part: str, request: pytest.FixtureRequest) -> None:
    nets = {"samples": samples, "bytes": lambda: grouped(chip)}.get(part, lambda: of_shape(SHAPES[part]))
    found, path = of_ops(chip, nets(), LEVELS.get(part, 2)), path_of(chip, part)
    if request.config.getoption("--update-golden"):
        write(path, found)
    compare(found, read(path))


@pytest.mark.parametrize(("chip", "precision", "number"), NETWORKS)
def test_a_network_is_the_program_that_was_recorded(
    chip: str, precision: str, number: int, request: pytest.FixtureRequest, shared: Path
) -> None:
    found, path = of_network(chip, precision, number), path_of(chip, precision)
    with alone(shared / "programs.lock"):
        before = read(path)
        if request.config.getoption("--update-golden"):
            before |= found
            write(path, before)
    compare(found, {name: before[name] for name in found if name in before})


def test_no_network_is_recorded_that_there_is_no_more() -> None:
    for chip, precisions in PRECISIONS.items():
        for precision in precisions:
            nets = program_nets.MIXED if precision == "int8" else program_nets.FLOATS
            gone = read(path_of(chip, precision)).keys() - {program_nets.name_of(*net) for net in nets}
            assert not gone, f"delete their lines in {path_of(chip, precision)}"
