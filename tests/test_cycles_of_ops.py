"""No op takes more cycles on a chip than it did: the table is `tests/data/cycles` (`--update-golden`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cycle_nets import BYTES, FLOATS, MOVES, flat
from lane_nets import Net

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
    for kind, table in (("f32", FLOATS | MOVES), ("i8", BYTES | MOVES)):
        for name, make in table.items():
            net = Net([shape], 0, kind)
            try:
                made = make(net, net.inputs[0])
                yield f"{name} {kind}", net.module([made] if isinstance(made, Value) else list(made))
            except BMError:
                continue


def small_nets() -> Iterator[tuple[str, Module]]:
    """Nets whose layers share local memory: much to load ahead, branches, values that live long, products of rows."""

    def conv(net: Net, x: Value, channels: int, size: int = 3, **more: Any) -> Value:
        weight = net.f32(channels, x.shape[1], size, size)
        return net.b.conv(x, weight, net.f32(channels), pads=(size // 2,) * 4, activation="relu", **more)

    def classifier(net: Net, x: Value) -> Value:
        for channels in (32, 96, 256, 256, 512):
            x = conv(net, x, channels, strides=(2, 2) if channels < 512 else (1, 1))
        return net.b.matmul(flat(net, x), net.f32(x.type.size // x.shape[0], 100))

    def branches(net: Net, x: Value) -> Value:
        for _ in range(3):
            parts = conv(net, x, 48, 1), conv(net, conv(net, x, 24, 1), 40), conv(net, conv(net, x, 16, 1), 24, 5)
            x = net.b.concat(*parts, net.b.max_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1)), axis=1)
        return net.b.reduce(x, axes=(2, 3), method="mean")

    def hourglass(net: Net, x: Value) -> Value:
        seen = []
        for channels in (16, 32, 64):
            seen.append(conv(net, x, channels))
            x = net.b.max_pool(seen[-1], kernel=(2, 2), strides=(2, 2))
        for before in reversed(seen):
            x = conv(net, net.b.concat(net.b.upsample(x, scale=(2, 2)), before, axis=1), before.shape[1])
        return x

    def residual(net: Net, x: Value) -> Value:
        x = conv(net, x, 64)
        for _ in range(4):
            x = net.b.relu(net.b.add(x, conv(net, conv(net, x, 64), 64)))
        return x

    def attention(net: Net, x: Value) -> Value:
        rows = net.b.reshape(x, shape=(x.shape[0], x.type.size // x.shape[0] // 64, 64))
        q, k, v = (net.b.matmul(rows, net.f32(64, 64)) for _ in range(3))
        scores = net.b.softmax(net.b.matmul(q, k, transpose_right=True), axis=2)
        return net.b.layer_norm(net.b.add(rows, net.b.matmul(scores, v)), axis=2, epsilon=1e-5)

    for make, shape in (
        (classifier, (1, 3, 96, 96)), (branches, (2, 64, 14, 14)), (hourglass, (1, 8, 48, 64)),
        (residual, (1, 16, 28, 28)), (residual, (4, 3, 40, 40)), (attention, (2, 4, 28, 28)),
    ):  # fmt: skip
        net = Net([shape])
        yield f"{make.__name__} {'x'.join(map(str, shape))}", net.module([make(net, net.inputs[0])])


def byte_nets() -> Iterator[tuple[str, Module]]:
    """Nets of bytes as quantization leaves them."""

    def conv(net: Net, x: Value, channels: int, size: int = 3, **more: Any) -> Value:
        weight = net.integers("i8", channels, x.shape[1], size, size)
        return net.b.relu(net.b.conv(x, weight, pads=(size // 2,) * 4, rshift=9, **more))

    def residual(net: Net, x: Value) -> Value:
        x = conv(net, x, 64)
        for _ in range(3):
            x = net.b.mac_shift(x, conv(net, conv(net, x, 64), 64), multipliers=(3, 5), rshift=3)
        return conv(net, x, 96, strides=(2, 2))

    def branches(net: Net, x: Value) -> Value:
        for _ in range(3):
            x = net.b.concat(conv(net, x, 48, 1), conv(net, conv(net, x, 24, 1), 40), axis=1)
        return net.b.max_pool(x, kernel=(2, 2), strides=(2, 2))

    def rows(net: Net, x: Value) -> Value:
        """Views of maps as rows and back, functions of both."""
        x = conv(net, x, 32)
        row = net.b.lut(net.b.relu(flat(net, x)), net.integers("i8", 256))
        x = conv(net, net.b.muls_shift(net.b.reshape(row, shape=x.shape), multiplier=3, rshift=2), 40)
        return net.b.matmul(flat(net, x), net.integers("i8", x.type.size // x.shape[0], 100), rshift=9)

    for make, shape in (
        (residual, (1, 3, 56, 56)), (residual, (4, 16, 20, 20)), (branches, (2, 64, 14, 14)), (rows, (2, 8, 12, 12)),
    ):  # fmt: skip
        net = Net([shape], 0, "i8")
        yield f"{make.__name__} i8 {'x'.join(map(str, shape))}", net.module([make(net, net.inputs[0])])


def cycles_on(chip: str, part: str, module: Module) -> int | None:
    """Of the simulated program, None where the chip has no kernel for an op; nets go through the chip's own passes."""
    target = find_target(chip)
    if part == "nets":
        run_pipeline(module, target.pipeline("f16" if chip == "dv700" else "f32", 2), PassContext(target=target))
    if part == "bytes":
        run_pipeline(module, "group-layers", PassContext(target=target))
    ops = [op for op in module.main.ops if isinstance(op, TensorOp) and op.name != WEIGHT]
    if any(unsupported_reason(target, op) is not None for op in ops):
        return None
    try:
        analysis = analysis_of(chip, target.compile([module], 2).model)
    except UnsupportedError:  # an output that is a constant
        return None
    return None if analysis is None else analysis.timing().cycles


@pytest.mark.parametrize("part", ["samples", "nets", "bytes", *SHAPES])
@pytest.mark.parametrize("chip", CHIPS)
def test_no_op_takes_longer_than_it_did(chip: str, part: str, request: pytest.FixtureRequest) -> None:
    if (part, chip) in (("nets", "bm1880"), ("bytes", "dv700"), ("bytes", "bm1684x")):
        pytest.skip("it has none")
    path = FOLDER / f"data/cycles/{chip}_{part}.txt"
    nets = {"samples": samples, "nets": small_nets, "bytes": byte_nets}.get(part, lambda: of_shape(SHAPES[part]))()
    found = {name: cycles for name, module in nets if (cycles := cycles_on(chip, part, module)) is not None}
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{cycles}\t{name}\n" for name, cycles in found.items()), encoding="utf-8")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = {name: int(cycles) for cycles, name in rows}
    slower = {name: (wanted[name], found.get(name)) for name in wanted if found.get(name, 1e99) > SLACK * wanted[name]}
    assert not slower, "cycles then and now; where more is wanted: pytest --update-golden, then read the diff"
    assert set(found) == set(wanted), "ops came or went: pytest --update-golden, then read the diff"
