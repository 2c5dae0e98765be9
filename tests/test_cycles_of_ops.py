"""No op takes more cycles on a chip than it did: the table is `tests/data/cycles` (`--update-golden`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cycle_nets import BYTES, FLOATS
from lane_nets import Net

from bmcompiler.analysis.profile import analysis_of
from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.ir import Module, Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.target import find_target, unsupported_reason

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER / "ops"))
CHIPS = ("bm1684", "bm1684x", "bm1880", "dv700")
SHAPES = {"square": (1, 64, 28, 28), "images": (5, 20, 14, 30), "picture": (1, 3, 112, 96), "small": (2, 130, 7, 7)}
SLACK = 1.01


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
    for kind, table in (("f32", FLOATS), ("i8", BYTES)):
        for name, make in table.items():
            net = Net([shape], 0, kind)
            try:
                made = make(net, net.inputs[0])
                yield f"{name} {kind}", net.module([made] if isinstance(made, Value) else list(made))
            except BMError:
                continue


def cycles_on(chip: str, module: Module) -> int | None:
    """Of the simulated program, None where the chip has no kernel for an op."""
    target = find_target(chip)
    ops = [op for op in module.main.ops if isinstance(op, TensorOp) and op.name != WEIGHT]
    if any(unsupported_reason(target, op) is not None for op in ops):
        return None
    try:
        analysis = analysis_of(chip, target.compile([module], 2).model)
    except UnsupportedError:  # an output that is a constant
        return None
    return None if analysis is None else analysis.timing().cycles


@pytest.mark.parametrize("part", ["samples", *SHAPES])
@pytest.mark.parametrize("chip", CHIPS)
def test_no_op_takes_longer_than_it_did(chip: str, part: str, request: pytest.FixtureRequest) -> None:
    path = FOLDER / f"data/cycles/{chip}_{part}.txt"
    nets = samples() if part == "samples" else of_shape(SHAPES[part])
    found = {name: cycles for name, module in nets if (cycles := cycles_on(chip, module)) is not None}
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{cycles}\t{name}\n" for name, cycles in found.items()), encoding="utf-8")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = {name: int(cycles) for cycles, name in rows}
    slower = {name: (wanted[name], found.get(name)) for name in wanted if found.get(name, 1e99) > SLACK * wanted[name]}
    assert not slower, "cycles then and now; where more is wanted: pytest --update-golden, then read the diff"
    assert set(found) == set(wanted), "ops came or went: pytest --update-golden, then read the diff"
