"""`.mlir` files with their weights beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bmcompiler.errors import FileFormatError, UsageError, VerifyError
from bmcompiler.files.mlir import FRONTEND, load_module, save_module, side_file
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.registry import entry_points


def net() -> Module:
    rng = np.random.default_rng(1)
    builder = Builder.new("net")
    x = builder.input("data", TensorType((1, 3, 6, 6)))
    with builder.at("conv1"):
        weight = builder.weight(rng.normal(size=(4, 3, 3, 3)).astype(np.float32), "conv1/w:0")
        y = builder.conv(x, weight, builder.weight(np.zeros(4, np.float32), "file"), **{"source.tensor": "conv1_out"})
    with builder.at("split"):
        a, b = builder.split(y, axis=1, sizes=(1, 3), **{"source.tensor": ("a", "b")})
    with builder.at("relu"):
        c = builder.relu(b)
    return builder.outputs([c, a], ["result", "rest"])


def test_module_comes_back_with_its_weights(tmp_path: Path) -> None:
    module, path = net(), tmp_path / "net.v1.mlir"
    before = str(module)
    save_module(module, path)
    assert str(module) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.v1.mlir", "net.v1.weights.npz"]
    assert path.read_text(encoding="utf-8").count("sha256 = ") == 2
    loaded = load_module(path)
    assert str(loaded) == before
    inputs = {"data": np.ones((1, 3, 6, 6), np.float32)}
    for name, array in run_module(module, inputs).items():
        np.testing.assert_array_equal(run_module(loaded, inputs)[name], array)


def test_saving_again_over_mapped_weights_keeps_them_readable(tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    save_module(net(), path)
    first = side_file(path).read_bytes()
    loaded = load_module(path)
    save_module(loaded, path)
    assert side_file(path).read_bytes() == first
    assert loaded.weights["conv1/w:0"].shape == (4, 3, 3, 3)


def test_a_module_without_weights_has_no_side_file(tmp_path: Path) -> None:
    builder = Builder.new("net")
    x = builder.input("x", TensorType((2,)))
    module = builder.outputs([builder.relu(x)], ["y"])
    module.weights["unused"] = np.zeros(3, np.float32)
    path = tmp_path / "net.mlir"
    save_module(module, path)
    assert [p.name for p in tmp_path.iterdir()] == ["net.mlir"]
    assert str(load_module(path)) == str(module)


def test_wrong_weights_are_named(tmp_path: Path) -> None:
    path, module = tmp_path / "net.mlir", net()
    save_module(module, path)
    module.weights["file"] = np.ones(4, np.float32)
    module.weights.save(side_file(path))
    with pytest.raises(FileFormatError, match=r"weight 'file' is not the one .* Remedy"):
        load_module(path)
    del module.weights["file"]
    module.weights.save(side_file(path))
    with pytest.raises(FileFormatError, match=r"weight 'file' of .* is missing"):
        load_module(path)
    moved = side_file(path).rename(tmp_path / "moved.npz")
    with pytest.raises(FileFormatError, match=r"weights file .*net.weights.npz does not exist"):
        load_module(path)
    net().weights.save(moved)
    assert str(load_module(path, moved)) == str(net())


def test_a_failed_save_leaves_the_old_files(tmp_path: Path) -> None:
    path, module = tmp_path / "net.mlir", net()
    save_module(module, path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    module.main.attributes["bad"] = object()
    with pytest.raises(TypeError):
        save_module(module, path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert "sha256" not in module.main.ops[0].attributes


def test_text_that_breaks_a_rule_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    save_module(net(), path)
    path.write_text(path.read_text(encoding="utf-8").replace("sizes = [1, 3]", "sizes = [2, 2]"), encoding="utf-8")
    with pytest.raises(VerifyError, match="'split'"):
        load_module(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="not a text file"):
        load_module(path)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_module(net(), tmp_path / "net.mlir")
    return tmp_path / "net.mlir"


def test_the_frontend_is_found_through_its_entry_point() -> None:
    assert entry_points("bmcompiler.frontends")["mlir"]() is FRONTEND
    assert (FRONTEND.name, FRONTEND.suffixes) == ("mlir", (".mlir",))


@pytest.mark.parametrize(
    ("outputs", "shapes"),
    [
        (["conv1_out"], [(1, 4, 4, 4)]),
        (["conv1"], [(1, 4, 4, 4)]),
        (["b", "a"], [(1, 3, 4, 4), (1, 1, 4, 4)]),
        (["relu", "data"], [(1, 3, 4, 4), (1, 3, 6, 6)]),
        (["rest", "result"], [(1, 1, 4, 4), (1, 3, 4, 4)]),
    ],
)
def test_outputs_cut_the_net(saved: Path, outputs: list[str], shapes: list[tuple[int, ...]]) -> None:
    module = FRONTEND.load(saved, shapes=[(1, 3, 6, 6)], outputs=outputs, name="cut")
    assert module.main.name == "cut" and module.main.output_names == outputs
    assert [v.shape for v in module.main.returned] == shapes
    assert [list(r.shape) for r in run_module(module, {"data": np.ones((1, 3, 6, 6), np.float32)}).values()] == [
        list(shape) for shape in shapes
    ]
    assert ("tensorop.relu" in {op.name for op in module.main.ops}) == ("relu" in outputs or "result" in outputs)


def test_names_and_shapes_that_the_file_lacks(saved: Path) -> None:
    with pytest.raises(UsageError, match="no tensor or layer is called 'conv2'"):
        FRONTEND.load(saved, outputs=["conv1", "conv2"])
    with pytest.raises(UsageError, match=r"input 'data' of shape \[1, 3, 8, 8\] does not fit; inputs: data="):
        FRONTEND.load(saved, shapes=[(1, 3, 8, 8)])
    with pytest.raises(UsageError, match="input 'other'"):
        FRONTEND.load(saved, shapes={"other": (1, 3, 6, 6)})
    with pytest.raises(UsageError, match="2 shapes for 1 inputs"):
        FRONTEND.load(saved, shapes=[(1, 3, 6, 6), (1,)])
    saved.write_text('"builtin.module"() ({\n}) : () -> ()\n', encoding="utf-8")
    with pytest.raises(FileFormatError, match="no function"):
        FRONTEND.load(saved)
