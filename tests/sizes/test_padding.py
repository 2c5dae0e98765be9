"""Which sizes may be padded: proven on graphs that do and on graphs that do not, and held to what they compute."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from size_nets import Build, Graph, model

from bmcompiler.driver import load_network
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.sizes.choice import fit
from bmcompiler.sizes.padding import sizes_of
from bmcompiler.sizes.syntax import parse_shapes

ROOT = Path(__file__).resolve().parents[2]
TEXT = "[[1,n={6,9,16},8],[1,n]]"


def _programs(build: Build, folder: Path, text: str = TEXT) -> list[Module]:
    path = model(build, str(folder / "net.onnx"))
    count = len(load_network(path, shapes=_first(path)).main.arguments)
    return [load_network(path, shapes=shapes[:count]) for shapes in parse_shapes(text)]


def _first(path: str) -> list[tuple[int, ...]]:
    import onnx

    inputs = onnx.load(path).graph.input
    return [{"x": (1, 6, 8), "mask": (1, 6)}[each.name] for each in inputs]


def _token(g: Graph) -> str:
    whole = g.attention(g.mask())
    return g.linear(g.op("Slice", whole, g.const([0], np.int64), g.const([1], np.int64), g.const([1], np.int64)))


def _masked_mean(g: Graph) -> str:
    wide = g.op("Unsqueeze", "mask", g.const([2], np.int64))
    total = g.op("ReduceSum", g.op("Mul", g.linear("x"), wide), g.const([1], np.int64), keepdims=0)
    return g.op("Div", total, g.op("ReduceSum", wide, g.const([1], np.int64), keepdims=0))


def _selected(g: Graph) -> str:
    seen = g.op("Unsqueeze", g.op("Cast", "mask", to=9), g.const([1], np.int64))
    scores = g.op("MatMul", g.linear("x"), g.op("Transpose", g.linear("x"), perm=[0, 2, 1]))
    return g.op("MatMul", g.op("Softmax", g.op("Where", seen, scores, g.const(-1e9)), axis=-1), g.linear("x"))


def _causal(g: Graph) -> str:
    length = g.op("Slice", g.op("Shape", "x"), g.const([1], np.int64), g.const([2], np.int64))
    table = g.const(np.triu(np.full((64, 64), -1e9), 1))
    zero, both = g.const([0, 0], np.int64), g.const([0, 1], np.int64)
    cut = g.op("Slice", table, zero, g.op("Concat", length, length, axis=0), both)
    return g.attention(cut)


def _positions(g: Graph) -> str:
    length = g.op("Slice", g.op("Shape", "x"), g.const([1], np.int64), g.const([2], np.int64))
    table = g.const(g.random.standard_normal((64, 8)))
    rows = g.op("Slice", table, g.const([0], np.int64), length, g.const([0], np.int64))
    return g.attention(g.mask(), g.op("Add", "x", rows))


NEUTRAL: dict[str, Build] = {
    "added mask": lambda g: g.attention(g.mask()),
    "selecting mask": _selected,
    "lowest float": lambda g: g.attention(g.mask(float(np.finfo(np.float32).min))),
    "causal table": _causal,
    "two layers": lambda g: g.attention(m := g.mask(), g.op("Relu", g.attention(m))),
    "positions": _positions,
    "by position": lambda g: g.op("Relu", g.linear("x")),
    "first token": _token,
    "masked mean": _masked_mean,
    "heads": lambda g: g.op(
        "Reshape", g.op("Reshape", g.linear("x"), g.const([0, -1, 2, 4], np.int64)), g.const([-1, 8], np.int64)
    ),
}
MIXING: dict[str, tuple[Build, str]] = {
    "no mask": (lambda g: g.attention(), "'softmax.*no mask keeps filled ones out"),
    "a second layer without one": (lambda g: g.attention(None, g.attention(g.mask())), "no mask keeps filled ones out"),
    "a mask too weak": (lambda g: g.attention(g.mask(-10.0)), "no mask keeps filled ones out"),
    "a mask of the wrong sign": (lambda g: g.attention(g.mask(10000.0)), "no mask keeps filled ones out"),
    "a mean": (lambda g: g.op("ReduceMean", "x", axes=[1]), "the mean over the axis that varies"),
    "a sum of what is not zero": (
        lambda g: g.op("ReduceSum", g.op("Add", g.linear("x"), g.const(1.0)), g.const([1], np.int64)),
        "the sum over the axis that varies",
    ),
    "the last token": (
        lambda g: g.op("Gather", "x", g.const(-1, np.int64), axis=1),
        "takes 15:16:1 of the axis that varies",
    ),
    "a class token": (lambda g: g.op("Concat", g.const(np.ones((1, 1, 8))), "x", axis=1), "behind positions that vary"),
    "a convolution": (
        lambda g: g.op("Conv", g.op("Transpose", "x", perm=[0, 2, 1]), g.const(np.ones((8, 8, 3))), pads=[1, 1]),
        "mixes positions",
    ),
    "a division by what may be 0": (
        lambda g: g.attention(g.mask(), g.op("Div", "x", g.op("ReduceL2", "x", axes=[2]))),
        "no mask keeps filled ones out|sums over the axis that varies",
    ),
    "a norm over all": (
        lambda g: g.op("Softmax", g.op("Reshape", "x", g.const([1, -1], np.int64)), axis=-1),
        "mixes positions",
    ),
}


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_may_be_padded_computes_the_same(name: str, tmp_path: Path) -> None:
    """The larger program on zeros behind the input gives what the program of the input's own size gives."""
    programs = _programs(NEUTRAL[name], tmp_path)
    (size,) = sizes = sizes_of(programs)
    assert size.mixes == "" and {axis for _, axis in size.axes} == {1}
    shapes = [[value.shape for value in each.main.arguments] for each in programs]
    random = np.random.default_rng(1)
    small, names = programs[-1], programs[-1].main.input_names
    given = {n: random.standard_normal(v.shape).astype(np.float32) for n, v in zip(names, small.main.arguments)}
    given |= {n: np.ones(array.shape, np.float32) for n, array in given.items() if n == "mask"}
    wanted = run_module(small, given)
    for larger in programs[:-1]:
        found = fit([[v.shape for v in larger.main.arguments]], sizes, shapes[-1])
        assert found is not None
        filled = {n: found.filled(index, given[n]) for index, n in enumerate(names)}
        for index, (key, array) in enumerate(run_module(larger, filled).items()):
            np.testing.assert_allclose(found.cut(index, array), wanted[key], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_positions_is_named(name: str, tmp_path: Path) -> None:
    build, said = MIXING[name]
    (size,) = sizes_of(_programs(build, tmp_path))
    assert size.cuts == ()
    assert re.search(said, size.mixes), size.mixes
    assert size.mixes.startswith("layer '")


def test_a_constant_that_depends_on_the_size_is_no_table(tmp_path: Path) -> None:
    def scaled(g: Graph) -> str:
        length = g.op("Slice", g.op("Shape", "x"), g.const([1], np.int64), g.const([2], np.int64))
        return g.op("Mul", g.linear("x"), g.op("Cast", length, to=1))

    (size,) = sizes_of(_programs(scaled, tmp_path))
    assert "is a constant that depends on the size" in size.mixes


def test_images_are_one_by_one_but_not_their_pixels() -> None:
    lenet = (ROOT / "models/lenet/deploy.prototxt", ROOT / "models/lenet/lenet.caffemodel")
    batches = [load_network(*lenet, shapes=shapes) for shapes in parse_shapes("[[{1,3,8},1,28,28]]")]
    (size,) = sizes_of(batches)
    assert (size.axes, size.cuts, size.mixes) == (((0, 0),), ((0, 0),), "")


def test_two_sizes_are_two(tmp_path: Path) -> None:
    path = model(lambda g: g.op("Relu", g.linear("x")), str(tmp_path / "net.onnx"), batch="b")
    programs = [load_network(path, shapes=shapes) for shapes in parse_shapes("[[{1,4},{6,9},8]]")]
    assert [(size.axes, size.cuts, size.mixes) for size in sizes_of(programs)] == [
        (((0, 0),), ((0, 0),), ""),
        (((0, 1),), ((0, 1),), ""),
    ]
