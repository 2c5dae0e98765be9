"""Ops of a DV700 net join into runs and runs into commands; no level of optimisation changes a bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dv_nets import lowered, net, random_inputs, run_on_device, weights
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.dv.arithmetic.stages import max_pool, to_half
from bmcompiler.backends.dv.driver.commands import Pads, Pair
from bmcompiler.backends.dv.lowering.parts import UNROUNDED
from bmcompiler.backends.dv.target import TARGET
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.files.mlir import load_module, save_module
from bmcompiler.ir import Module, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import Compiled, find_target

MAP = (2, 16, 12, 10)


def conv(b: Builder, x: Value, m: int, k: int = 1, seed: int = 0, **attributes: Any) -> Value:
    p = k // 2
    return b.conv(x, weights(b, m, x.shape[1], k, k, seed=seed), weights(b, m), pads=(p, p, p, p), **attributes)


def pool(b: Builder, x: Value) -> Value:
    return b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))


def of_one(y: Value, build: Callable[[Value], Any]) -> Any:
    """What is built on a value that several ops read."""
    return build(y)


def same_bits_on_all_levels(module: Module) -> Compiled:
    """The program of level 2; those of levels 0 and 1 give its bits, which are those of `evaluate`."""
    inputs = random_inputs(module)
    programs = [TARGET.compile([module], level) for level in (0, 1, 2)]
    results = [run_on_device(module, made, inputs) for made in programs]
    for found in results[:2]:
        for name, array in results[2].items():
            assert found[name].tobytes() == array.tobytes(), name
    return programs[2]


# -- stages of one run ------------------------------------------------------------------------------------------------
JOINED: dict[str, tuple[Any, list[str]]] = {
    "pool": (lambda b, x: pool(b, conv(b, x, 8, 3)), ["conv+max_pool"]),
    "activation in the op, pool": (lambda b, x: pool(b, conv(b, x, 8, activation="relu6")), ["conv+max_pool"]),
    "leaky": (lambda b, x: b.leaky_relu(conv(b, x, 8), slope=0.1), ["conv+leaky_relu"]),
    "tanh, pool": (lambda b, x: pool(b, b.tanh(conv(b, x, 8))), ["conv+tanh+max_pool"]),
    "pool, sigmoid": (lambda b, x: b.sigmoid(pool(b, conv(b, x, 8))), ["conv+max_pool+sigmoid"]),
    "slopes": (lambda b, x: b.prelu(conv(b, x, 8, 3), weights(b, 8)), ["conv+prelu"]),
    "add": (lambda b, x: b.add(conv(b, x, 16, 3), x), ["conv+add"]),
    "add, relu, pool": (lambda b, x: pool(b, b.relu(b.add(x, conv(b, x, 16)))), ["conv+add+max_pool"]),
    "average, add, elu": (
        lambda b, x: b.elu(b.add(b.max_pool(x, kernel=(2, 2)), b.avg_pool(x, kernel=(2, 2)))),
        ["max_pool", "avg_pool+add+elu"],
    ),
    "one of two": (lambda b, x: b.add(conv(b, x, 8), conv(b, x, 8, 3, seed=5)), ["conv", "conv+add"]),
    "two readers": (lambda b, x: of_one(conv(b, x, 8), lambda y: b.add(pool(b, y), pool(b, b.relu(y)))), []),
    "falling slopes, pool": (
        lambda b, x: pool(b, b.prelu(conv(b, x, 8), weights(b, 8))),
        ["conv+prelu", "max_pool"],
    ),
    "falling, pool": (lambda b, x: pool(b, b.leaky_relu(conv(b, x, 8), slope=-0.5)), ["conv+leaky_relu", "max_pool"]),
    "average after conv": (lambda b, x: b.avg_pool(conv(b, x, 8), kernel=(2, 2)), ["conv", "avg_pool"]),
}


@pytest.mark.parametrize("name", JOINED)
def test_ops_join_into_runs(name: str) -> None:
    build, kinds = JOINED[name]
    made = same_bits_on_all_levels(lowered(net(build, MAP)))
    assert {row.where for row in made.rows} == {"dv700"}
    assert not kinds or [row.kind for row in made.rows] == kinds


def test_a_sum_in_the_run_of_its_convolution_is_rounded_once() -> None:
    """The convolution gives 2048 + 1/2 exactly, which fp16 does not have; with -2048 added the half survives."""

    def build(b: Builder, x: Value, addend: Value) -> Value:
        return b.add(b.conv(x, b.weight(np.array([2048, 0.5], np.float32).reshape(1, 2, 1, 1))), addend)

    module = lowered(net(build, (1, 2, 1, 1), (1, 1, 1, 1)))
    made = TARGET.compile([module], 2)
    (row,) = made.rows
    assert row.kind == "conv+add"
    inputs = {"x0": np.ones((1, 2, 1, 1), np.float32), "x1": np.full((1, 1, 1, 1), -2048, np.float32)}
    assert run_on_device(module, made, inputs)["y0"].item() == 0.5


def test_the_text_says_what_is_not_rounded(tmp_path: Path) -> None:
    """A module that was written and read gives the same program."""
    module = lowered(net(lambda b, x: b.add(conv(b, x, 16, 3), x), MAP))
    assert f"{UNROUNDED} = true" in str(module)
    save_module(module, tmp_path / "net.mlir")
    programs = [
        TARGET.compile([each], 2).model.nets[0].stages[0] for each in (module, load_module(tmp_path / "net.mlir"))
    ]
    first, second = programs
    assert first.coefficients == second.coefficients
    assert [subnet.source for subnet in first.subnets] == [subnet.source for subnet in second.subnets]


def test_a_mark_that_no_run_can_follow_is_an_error() -> None:
    module = net(lambda b, x: b.avg_pool(conv(b, x, 8), kernel=(2, 2)), MAP)
    next(op for op in module.main.ops if op.short_name == "conv").attributes[UNROUNDED] = True
    with pytest.raises(UnsupportedError, match="its reader cannot join it"):
        TARGET.compile([module], 2)


@given(st.integers(0, 2**32 - 1))
def test_the_largest_of_rounded_numbers_is_the_rounded_largest(seed: int) -> None:
    """Also of zeros with signs: so a convolution and the pooling after it may be one run."""
    random = np.random.default_rng(seed)
    x = (random.choice([0.0, -0.0, 1e-9, -1e-9, 1.0, -3e-8, 7e4], (6, 5, 3)) * random.random((6, 5, 3))).astype(
        np.float32
    )
    window = Pair(3, 2), Pair(1, 2), Pads(1, 1, 0, 1)
    rounded = max_pool(to_half(x).astype(np.float32), *window)
    assert to_half(rounded).tobytes() == to_half(max_pool(x, *window)).tobytes()


# -- commands of several runs -----------------------------------------------------------------------------------------
def bottleneck(b: Builder, x: Value, inner: int = 8) -> Value:
    y = conv(b, conv(b, conv(b, x, 8, activation="relu"), inner, 3, activation="relu"), 16)
    return b.relu(b.add(y, x))


def test_a_residual_block_is_one_command() -> None:
    made = same_bits_on_all_levels(lowered(net(lambda b, x: bottleneck(b, x, inner=4), MAP)))
    assert [row.kind for row in made.rows] == ["conv", "conv", "conv+add"]
    assert [row.commands for row in made.rows] == [1, 0, 0]
    assert [row.note.split("; ")[-1] for row in made.rows[:2]] == ["result stays in the unified buffer"] * 2
    assert [bool(row.stored) for row in made.rows] == [False, False, True]
    assert made.totals["kept in unified buffer"] == sum(row.outputs for row in made.rows[:2]) > 0


BROKEN: dict[str, tuple[Any, str]] = {
    "two readers": (lambda b, x: of_one(conv(b, x, 8), lambda y: (conv(b, y, 3), pool(b, y))), "readers"),
    "the caller": (
        lambda b, x: of_one(conv(b, x, 8), lambda y: (y, b.avg_pool(y, kernel=(2, 2)))),
        "the host or the caller",
    ),
    "an addend": (lambda b, x: b.add(conv(b, conv(b, x, 8, 3), 8), conv(b, x, 8, seed=3)), "adds it, from device"),
    "tiles": (
        lambda b, x: b.avg_pool(b.conv(x, weights(b, 64, 16, 1, 1)), kernel=(2, 2)),
        "writes the unified buffer but needs",
    ),
    "flat": (
        lambda b, x: b.matmul(b.reshape(conv(b, x, 1), shape=(2, 120)), weights(b, 120, 3)),
        "matmul reads its result flat",
    ),
    "sum": (lambda b, x: b.avg_pool(b.add(conv(b, x, 16), x), kernel=(2, 2)), "an addition writes device memory"),
    "dilation": (
        lambda b, x: conv(b, b.conv(x, weights(b, 8, 16, 3, 3), pads=(2, 2, 2, 2), dilations=(2, 2)), 8),
        "a dilated convolution must be alone",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_results_that_leave_the_unified_buffer_say_why(name: str) -> None:
    build, text = BROKEN[name]
    shape = (1, 16, 200, 200) if name == "tiles" else MAP
    made = same_bits_on_all_levels(lowered(net(build, shape)))
    assert any(text in row.note for row in made.rows), [row.note for row in made.rows]


@pytest.mark.parametrize(("channels", "commands"), [(64, 2), (32, 1)])
def test_a_chain_that_does_not_fit_is_cut_where_the_driver_says(channels: int, commands: int) -> None:
    """56 x 56 x 64 twice are 803,328 bytes of a unified buffer of 655,360; with 32 channels they fit."""
    module = lowered(net(lambda b, x: conv(b, conv(b, x, channels, 3), channels, 3), (1, channels, 56, 56)))
    made = same_bits_on_all_levels(module)
    assert made.totals["commands"] == commands
    assert ("the runs need 803328 bytes" in made.rows[0].note) == (commands == 2)


def test_a_command_has_at_most_32_runs() -> None:
    def build(b: Builder, x: Value) -> Value:
        for number in range(40):
            x = b.conv(x, weights(b, 2, 2, 1, 1, seed=number), activation="relu6")
        return x

    made = same_bits_on_all_levels(lowered(net(build, (1, 2, 3, 3))))
    assert [row.commands for row in made.rows] == [1, *[0] * 31, 1, *[0] * 7]


SEPARATE: dict[str, tuple[Any, str]] = {
    "two readers": (lambda b, x: of_one(conv(b, x, 8), lambda y: (pool(b, y), y)), "its result has 2 readers"),
    "order": (lambda b, x: b.tanh(b.relu(pool(b, x))), "no stage after max_pool+relu does tanh"),
    "limit": (
        lambda b, x: b.max_pool(b.conv(x, weights(b, 8, 16, 3, 3), pads=(2, 2, 2, 2), dilations=(2, 2)), kernel=(2, 2)),
        "a dilated convolution cannot share its run with pooling",
    ),
}


@pytest.mark.parametrize("name", SEPARATE)
def test_ops_that_stay_runs_of_their_own_say_why(name: str) -> None:
    build, text = SEPARATE[name]
    made = same_bits_on_all_levels(lowered(net(build, MAP)))
    assert any(f": {text}" in row.note and row.note.count("not in the run of") for row in made.rows)


@pytest.mark.parametrize("chip", [None, "bm1684"])
def test_the_pass_needs_its_chip(chip: str | None) -> None:
    target = None if chip is None else find_target(chip)
    with pytest.raises(UsageError, match="'join-runs' needs the DV700"):
        run_pipeline(net(bottleneck, MAP), "join-runs", PassContext(target=target))


def test_listings_tell_runs_and_why_results_leave_the_chip() -> None:
    def build(b: Builder, x: Value) -> Value:
        y = pool(b, bottleneck(b, x))
        return b.matmul(b.reshape(b.avg_pool(y, kernel=(2, 2)), shape=(1, 320)), weights(b, 320, 3))

    model = TARGET.compile([lowered(net(build, (1, 16, 12, 10)))], 2).model
    text = TARGET.disassemble(model)
    runs = [line.strip() for line in text.splitlines() if line.startswith("    run ")]
    assert "conv 1x1, relu, 8-bit weights 1:0x0; input -> unified buffer 10 x 12 x 8" in runs[0]
    assert runs[1].endswith("run 0 -> unified buffer 10 x 12 x 8")
    assert "conv 1x1, add, max pool 3x3, stride 2x2" in runs[2] and "run 1 -> output 5 x 6 x 16" in runs[2]
    assert runs[2].endswith("# an addition writes device memory and ends its command")
    assert runs[3].endswith("# the result is read flat")
    assert "add 2:0x" in text and "of 655,360 bytes" in text and "CONV 1 x 1 x 320" in text
    assert TARGET.describe(model) == [
        "program 0: 3 commands, 3 of them CONV with 5 runs; 2 results stay in the unified buffer; "
        "1 additions and 1 poolings are part of a run"
    ]


# -- concatenations ---------------------------------------------------------------------------------------------------
def branches(b: Builder, x: Value) -> Value:
    """Four branches from one map, as in Inception: one command."""
    three = conv(b, conv(b, x, 8, seed=1), 16, 3)
    pooled = conv(b, b.max_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1)), 5)
    return b.concat(conv(b, x, 8), three, conv(b, x, 24, seed=4, activation="relu"), pooled, axis=1)


def nested(b: Builder, x: Value) -> Value:
    """Parts are read after they were made, as in DenseNet."""
    one = b.concat(conv(b, x, 8), conv(b, x, 8, 3), axis=1)
    two = b.concat(one, conv(b, one, 8), axis=1)
    return conv(b, two, 3)


CONCATS: dict[str, tuple[Any, int, int]] = {
    "branches": (branches, 1, 1),
    "nested": (nested, 3, 5),
    "a part of the caller": (lambda b, x: b.concat(x, conv(b, x, 3), axis=1), 1, 1),
    "a part twice": (lambda b, x: of_one(conv(b, x, 8), lambda y: b.concat(y, y, axis=1)), 2, 4),
    "a part that is read": (
        lambda b, x: of_one(conv(b, x, 8), lambda y: (conv(b, b.concat(y, x, axis=1), 2), b.relu(y))),
        3,
        4,
    ),
}


@pytest.mark.parametrize("name", CONCATS)
def test_concatenations_are_made_in_place_or_copied(name: str) -> None:
    """One command takes all samples unless it makes a part of a larger map, whose samples have gaps between them."""
    build, alone, together = CONCATS[name]
    assert same_bits_on_all_levels(lowered(net(build, (1, *MAP[1:])))).totals["commands"] == alone
    made = same_bits_on_all_levels(lowered(net(build, MAP)))
    assert {row.where for row in made.rows} <= {"dv700", "alias"}
    assert made.totals["commands"] == together


def test_concatenations_off_the_groups_of_8_run_on_the_host() -> None:
    made = same_bits_on_all_levels(lowered(net(lambda b, x: b.concat(conv(b, x, 3), x, axis=1), MAP)))
    (row,) = [row for row in made.rows if row.where == "cpu"]
    assert row.reason == "All parts but the last must have a multiple of 8 channels"


# -- any net ----------------------------------------------------------------------------------------------------------
class Grower:
    """Adds ops to a net, on values that are drawn from all that there are."""

    def __init__(self, draw: Any, b: Builder, first: Value) -> None:
        self.draw, self.b, self.values, self.seed = draw, b, [first], 0

    def pick(self, shape: tuple[int, ...] | None = None) -> Value:
        return self.draw(st.sampled_from([v for v in self.values if shape is None or v.shape == shape]))

    def grow(self) -> None:
        b, x = self.b, self.pick()
        self.seed += 1
        m = self.draw(st.sampled_from([8, 16]))
        choices: dict[str, Any] = {
            "conv": lambda: conv(b, x, m, self.draw(st.sampled_from([1, 3])), self.seed),
            "depthwise": lambda: b.conv(x, weights(b, x.shape[1], 1, 3, 3), group=x.shape[1], pads=(1, 1, 1, 1)),
            "add": lambda: b.add(x, self.pick(x.shape)),
            "max": lambda: b.max_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1)),
            "average": lambda: b.avg_pool(b.pad(x, pads=(0, 0, 0, 0, 0, 2, 0, 2)), kernel=(3, 3)),
            "relu": lambda: b.relu(x),
            "leaky": lambda: b.leaky_relu(x, slope=self.draw(st.sampled_from([0.1, -0.3]))),
            "tanh": lambda: b.tanh(x),
            "slopes": lambda: b.prelu(x, weights(b, x.shape[1])),
            "concat": lambda: b.concat(x, self.pick(), axis=1),
            "neg": lambda: b.neg(x),
            "abs": lambda: b.abs(x),
            "sub": lambda: b.sub(x, self.pick(x.shape)),
            "hard sigmoid": lambda: b.hard_sigmoid(x),
            "host": lambda: b.softmax(x, axis=1),
        }
        self.values.append(choices[self.draw(st.sampled_from(list(choices)))]())


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_any_net_gives_the_same_bits_on_all_levels(data: st.DataObject) -> None:
    def build(b: Builder, x: Value) -> tuple[Value, ...]:
        grower = Grower(data.draw, b, x)
        for _ in range(data.draw(st.integers(1, 12))):
            grower.grow()
        unread = [value for value in grower.values[1:] if not value.uses]
        return tuple(dict.fromkeys([*unread, grower.pick(), grower.values[-1]]))

    same_bits_on_all_levels(lowered(net(build, (data.draw(st.sampled_from([1, 2])), 8, 4, 5))))
