"""What users rely on around the converters: shapes, cuts, constants, names, messages for models that cannot work."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import agree, graph_model, imported
from plugin_packages import on_path

from bmcompiler.errors import BMError, FileFormatError, ShapeError, UnsupportedError, UsageError
from bmcompiler.frontends.onnx import FRONTEND, import_onnx, onnx_op
from bmcompiler.ir import Module

node = helper.make_node
WEIGHT = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)


def conv_net(shape: tuple[Any, ...] = (1, 3, 8, 8), **changes: Any) -> onnx.ModelProto:
    """conv1 -> relu1 -> pool1, from `data` to `out`."""
    nodes = [
        node("Conv", ["data", "w"], ["c"], name="conv1", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"], name="relu1"),
        node("MaxPool", ["r"], ["out"], name="pool1", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    return graph_model(nodes, {"data": shape}, ["out"], {"w": WEIGHT}, **changes)


def op_names(module: Module) -> list[str]:
    return [op.short_name for op in module.main.ops if op.short_name not in ("weight", "return")]


def saved(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def message(error: type[BMError], run: Callable[[], Any]) -> str:
    with pytest.raises(error) as caught:
        run()
    text = str(caught.value)
    assert "\n" not in text
    return text


# -- names
def test_ops_carry_layer_and_tensor_names() -> None:
    module = import_onnx(conv_net(), name="net")
    ops = [op for op in module.main.ops if op.short_name in ("conv", "relu", "max_pool")]
    assert [op.location for op in ops] == [("conv1",), ("relu1",), ("pool1",)]
    assert [op.attributes["source.tensor"] for op in ops] == ["c", "r", "out"]
    assert (module.main.name, module.main.input_names, module.main.output_names) == ("net", ["data"], ["out"])


@pytest.mark.parametrize(("exponent", "op"), [(2.0, "mul"), (0.5, "sqrt"), (2.5, "pow")])
def test_squares_and_roots_are_no_powers(exponent: float, op: str) -> None:
    """A power takes a logarithm and an exponential; detectors square the sizes of their boxes."""
    power = {"e": np.asarray([exponent], np.float32)}
    module = import_onnx(graph_model([node("Pow", ["data", "e"], ["out"])], {"data": (1, 3, 8, 8)}, ["out"], power))
    assert op_names(module) == [op]


def test_a_split_names_all_its_results() -> None:
    model = graph_model([node("Split", ["x"], ["a", "b"], axis=1)], {"x": (1, 4)}, ["a", "b"], opset=11)
    (split,) = (op for op in import_onnx(model).main.ops if op.short_name == "split")
    assert split.attributes["source.tensor"] == ("a", "b")


def test_the_file_name_becomes_the_net_name(tmp_path: Path) -> None:
    assert FRONTEND.load(saved(conv_net(), tmp_path / "tiny.onnx")).main.name == "tiny"


# -- shapes
def test_given_shapes_replace_those_of_the_file() -> None:
    fixed = conv_net((10, 3, 8, 8))
    assert import_onnx(fixed, shapes=[(1, 3, 8, 8)]).main.returned[0].shape == (1, 4, 4, 4)
    assert import_onnx(fixed, shapes={"data": (2, 3, 6, 6)}).main.returned[0].shape == (2, 4, 3, 3)


def test_an_open_batch_becomes_one_with_a_note() -> None:
    module = import_onnx(conv_net(("N", 3, 8, 8)))
    assert module.main.arguments[0].shape == (1, 3, 8, 8)
    assert "compiled for 1" in module.attributes["notes"][0]


def test_dynamic_dimensions_ask_for_shapes() -> None:
    text = message(UnsupportedError, lambda: import_onnx(conv_net(("N", 3, "H", "W"))))
    assert "'data'" in text and "[N, 3, H, W]" in text and "shapes=[[1, 3, 224, 224]]" in text


@pytest.mark.parametrize(
    ("shapes", "error", "part"),
    [
        ([(1, 3, 8)], ShapeError, "4 axes"),
        ({"image": (1, 3, 8, 8)}, UsageError, "'image'"),
        ([(1, 3, 8, 8), (1,)], UsageError, "2 shapes are given for 1 inputs"),
        ([(1, 3, 0, 8)], UsageError, "1 or more"),
        ([(1, 5, 8, 8)], ShapeError, "conv1"),
        ([(1, 3, 2**30, 2**30)], ShapeError, "too large"),
    ],
)
def test_shapes_that_cannot_be_right_are_reported(shapes: Any, error: type[BMError], part: str) -> None:
    assert part in message(error, lambda: import_onnx(conv_net(), shapes=shapes))


def test_shape_arithmetic_is_folded() -> None:
    """The tail of exporters: flatten by the batch size that Shape reports."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n"], ["n1"], axes=[0]),
        node("Concat", ["n1", "minus"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["y"]),
    ]
    constants = {"zero": np.asarray(0, np.int64), "minus": np.asarray([-1], np.int64)}
    model = graph_model(nodes, {"x": (2, 3, 4)}, ["y"], constants, opset=11)
    module = agree(model, {"x": np.ones((2, 3, 4), np.float32)})
    assert op_names(module) == ["reshape"] and not module.weights


def test_weights_behind_cast_and_arithmetic_are_constants() -> None:
    nodes = [
        node("Cast", ["half"], ["w0"], to=TensorProto.FLOAT),
        node("Identity", ["w0"], ["w1"]),
        node("Mul", ["w1", "two"], ["w2"]),
        node("Transpose", ["w2"], ["w"], perm=[3, 2, 0, 1]),
        node("Constant", [], ["b"], value=numpy_helper.from_array(np.ones(4, np.float32))),
        node("Conv", ["x", "w", "b"], ["y"]),
    ]
    constants = {"half": WEIGHT.transpose(2, 3, 1, 0).astype(np.float16), "two": np.float32(2).reshape(1)}
    module = agree(graph_model(nodes, {"x": (1, 3, 5, 5)}, ["y"], constants), {"x": np.ones((1, 3, 5, 5), np.float32)})
    assert op_names(module) == ["conv"] and sorted(module.weights) == ["b", "w"]


def test_ops_without_a_numpy_form_are_folded_too() -> None:
    nodes = [node("Relu", ["w"], ["p"]), node("Softmax", ["p"], ["q"], axis=0), node("Conv", ["x", "q"], ["y"])]
    module = agree(
        graph_model(nodes, {"x": (1, 3, 5, 5)}, ["y"], {"w": WEIGHT}), {"x": np.ones((1, 3, 5, 5), np.float32)}
    )
    assert op_names(module) == ["conv"]


def test_initializers_repeated_as_inputs_stay_weights() -> None:
    model = conv_net()
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, WEIGHT.shape))
    assert import_onnx(model).main.input_names == ["data"]


def test_a_shared_weight_is_stored_once() -> None:
    nodes = [node("Mul", ["x", "w"], ["a"]), node("Add", ["a", "w"], ["y"])]
    module = import_onnx(graph_model(nodes, {"x": (3,)}, ["y"], {"w": np.ones(3, np.float32)}))
    assert [op.short_name for op in module.main.ops].count("weight") == 1


def test_constant_and_pass_through_outputs() -> None:
    nodes = [node("Identity", ["x"], ["y"]), node("Identity", ["w"], ["z"])]
    model = graph_model(nodes, {"x": (3,)}, ["y", "z"], {"w": np.ones(2, np.float32)})
    _, outputs = imported(model, {"x": np.arange(3, dtype=np.float32)})
    assert outputs["y"].tolist() == [0, 1, 2] and outputs["z"].tolist() == [1, 1]


def test_nodes_in_any_order_are_accepted() -> None:
    model = conv_net()
    nodes = list(reversed(model.graph.node))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert op_names(import_onnx(model)) == ["conv", "relu", "max_pool"]


# -- cuts
def test_outputs_cut_the_net_by_tensor_or_node_name() -> None:
    module = import_onnx(conv_net(), outputs=["relu1", "c"])
    assert module.main.output_names == ["r", "c"] and op_names(module) == ["conv", "relu"]


def test_an_unknown_output_names_similar_ones() -> None:
    assert "similar: relu1" in message(UsageError, lambda: import_onnx(conv_net(), outputs=["relu"]))


def test_ops_behind_a_cut_need_no_converter() -> None:
    nodes = [node("Relu", ["x"], ["r"]), node("Unique", ["r"], ["y"], name="values")]
    model = graph_model(nodes, {"x": (1, 4, 4)}, ["y"])
    assert op_names(import_onnx(model, outputs=["r"])) == ["relu"]
    text = message(UnsupportedError, lambda: import_onnx(model))
    for part in ("'values'", "Unique", "opset 17", 'outputs=["r"]', "bmcompiler.onnx_ops"):
        assert part in text


def test_a_converter_can_be_added_for_an_own_domain() -> None:
    model = graph_model([], {"x": (2,)}, ["y"])
    model.graph.node.append(node("Double", ["x"], ["y"], domain="com.example"))
    model.opset_import.append(helper.make_opsetid("com.example", 3))
    with on_path():

        @onnx_op("Double", domain="com.example")
        def double(source: Any, b: Any) -> Any:
            return b.add(source.input(0), source.input(0))

        assert imported(model, {"x": np.ones(2, np.float32)})[1]["y"].tolist() == [2, 2]
    assert "com.example" in message(UnsupportedError, lambda: import_onnx(model))


# -- models that cannot work
def single(op: str, shape: tuple[int, ...], *constants: np.ndarray, opset: int = 17, **attributes: Any) -> Any:
    names = [f"k{i}" for i in range(len(constants))]
    model = graph_model([], {"x": shape}, ["y"], dict(zip(names, constants)), opset=opset)
    model.graph.node.append(node(op, ["x", *names], ["y"], name="it", **attributes))
    return model


BROKEN = {
    "missing tensor": (lambda: graph_model([node("Relu", ["nothing"], ["y"])], {"x": (1,)}, ["y"]), FileFormatError),
    "missing input": (lambda: single("Conv", (1, 3, 8, 8)), FileFormatError),
    "missing attribute": (lambda: single("MaxPool", (1, 3, 8, 8)), FileFormatError),
    "attribute type": (lambda: single("LeakyRelu", (3,), alpha="a"), FileFormatError),
    "unknown attribute": (lambda: single("Relu", (3,), gain=2.0), UnsupportedError),
    "no such axis": (lambda: single("Concat", (1, 3), axis=5), ShapeError),
    "reshape": (lambda: single("Reshape", (1, 3), np.asarray([2, 2])), ShapeError),
    "window": (lambda: single("MaxPool", (1, 3, 2, 2), kernel_shape=[5, 5]), ShapeError),
    "broadcast": (lambda: single("Add", (1, 3), np.ones(4, np.float32)), ShapeError),
    "weight shape": (lambda: single("Conv", (1, 5, 8, 8), WEIGHT), ShapeError),
    "element types": (lambda: single("Add", (3,), np.ones(3, np.int32)), UnsupportedError),
    "resize mode": (lambda: single("Upsample", (1, 1, 2, 2), np.ones(4, np.float32) * 2, opset=9, mode="lanczos"),
                    UnsupportedError),
    "volume": (lambda: single("Conv", (1, 3, 2, 4, 4, 4), np.ones((1, 3, 1, 1, 1, 1), np.float32)), UnsupportedError),
    "training": (lambda: single("BatchNormalization", (1, 2), *[np.ones(2, np.float32)] * 4, training_mode=1),
                 UnsupportedError),
    "huge tile": (lambda: single("Tile", (1, 3), np.asarray([2**40, 2**20])), ShapeError),
    "zero step": (lambda: single("Slice", (4,), *(np.asarray([v]) for v in (0, 4, 0, 0))), ShapeError),
    "cycle": (lambda: graph_model([], {"x": (1,)}, ["y"]), FileFormatError),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_models_are_reported_with_file_and_node(kind: str, tmp_path: Path) -> None:
    make, error = BROKEN[kind]
    model = make()
    if kind == "cycle":
        model.graph.node.extend([node("Add", ["x", "y"], ["z"], name="it"), node("Relu", ["z"], ["y"])])
    path = saved(model, tmp_path / "broken.onnx")
    text = message(error, lambda: import_onnx(path))
    assert str(path) in text and ("'it'" in text or kind == "missing tensor")


HOSTILE: list[tuple[str, np.ndarray, dict[str, Any]]] = [
    ("ConstantOfShape", np.asarray([2**40, 2**20]), {}),
    ("ConstantOfShape", np.asarray([-5]), {}),
]


@pytest.mark.parametrize(("op", "value", "attributes"), HOSTILE)
def test_hostile_constant_sizes_are_refused(op: str, value: np.ndarray, attributes: dict[str, Any]) -> None:
    nodes = [node(op, ["k"], ["c"], name="it", **attributes), node("Add", ["x", "c"], ["y"])]
    model = graph_model([], {"x": (1,)}, ["y"], {"k": value})
    model.graph.node.extend(nodes)
    assert "'it'" in message(ShapeError, lambda: import_onnx(model))


@pytest.mark.parametrize(
    ("data", "part"),
    [(b"", "is empty"), (b"not a model at all", "not an ONNX model"), (b"\x08\x07", "holds no graph")],
)
def test_files_of_another_kind(data: bytes, part: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    assert part in message(FileFormatError, lambda: import_onnx(path))


def test_names_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "bytes.onnx"
    path.write_bytes(conv_net().SerializeToString().replace(b"relu1", b"\xff\xfe\xfd\xfc1"))
    assert "not UTF-8" in message(FileFormatError, lambda: import_onnx(path))


def test_messages_stay_on_one_line_whatever_the_names() -> None:
    model = graph_model([], {"x": (1,)}, ["y"])
    model.graph.node.append(node("No\nSuch", ["x"], ["y"], name="two\nlines"))
    assert "two\\nlines" in message(UnsupportedError, lambda: import_onnx(model))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "none.onnx: cannot be read" in message(FileFormatError, lambda: import_onnx(tmp_path / "none.onnx"))


@pytest.mark.parametrize("opset", [6, 99])
def test_opsets_outside_the_range(opset: int) -> None:
    model = conv_net()
    model.opset_import[0].version = opset
    assert f"opset {opset} is not supported" in message(UnsupportedError, lambda: import_onnx(model))


def test_a_model_without_opset() -> None:
    model = conv_net()
    del model.opset_import[:]
    assert "names no opset" in message(FileFormatError, lambda: import_onnx(model))


def test_sparse_initializers_are_refused_with_a_remedy() -> None:
    model = conv_net()
    model.graph.sparse_initializer.add()
    assert "dense initializers" in message(UnsupportedError, lambda: import_onnx(model))


# -- external data
def external(folder: Path, **entries: str) -> Path:
    """conv_net with its weight in weights.bin; `entries` change the reference."""
    model = conv_net()
    tensor = model.graph.initializer[0]
    (folder / "weights.bin").write_bytes(b"\0" * 16 + tensor.raw_data)
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "weights.bin", "offset": "16", "length": str(size), **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return saved(model, folder / "net.onnx")


def test_external_data_is_read_below_the_model(tmp_path: Path) -> None:
    module = import_onnx(external(tmp_path))
    np.testing.assert_array_equal(module.weights["w"], WEIGHT)


@pytest.mark.parametrize(
    ("entries", "part"),
    [
        ({"location": "/etc/passwd"}, "outside the model's folder"),
        ({"location": "../weights.bin"}, "outside the model's folder"),
        ({"location": "a/../../weights.bin"}, "outside the model's folder"),
        ({"location": "C:\\weights.bin"}, "outside the model's folder"),
        ({"location": ""}, "outside the model's folder"),
        ({"location": "none.bin"}, "is missing"),
        ({"location": "link.bin"}, "leads outside"),
        ({"offset": "9999"}, "truncated"),
        ({"offset": "-1"}, "not a plain number"),
        ({"length": "8"}, "says 8"),
        ({"length": "99999999999999999999"}, "not a plain number"),
    ],
)
def test_external_data_that_is_wrong_or_outside(entries: dict[str, str], part: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(b"\0" * 4096)
    os.symlink(tmp_path / "weights.bin", folder / "link.bin")
    path = external(folder, **entries)
    assert part in message(FileFormatError, lambda: import_onnx(path))


def test_external_data_needs_a_path(tmp_path: Path) -> None:
    model = onnx.load(external(tmp_path), load_external_data=False)
    assert "came without a path" in message(FileFormatError, lambda: import_onnx(model))


def test_an_onnx_model_takes_no_weights_file(tmp_path: Path) -> None:
    path = saved(conv_net(), tmp_path / "net.onnx")
    assert "no separate weights" in message(UsageError, lambda: FRONTEND.load(path, "weights.caffemodel"))
