"""Custom layers: the seed's classes, the decorator, and the entry point door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from caffe_nets import header, layer, load, random, run
from plugin_packages import install, on_path

from bmcompiler.bmnet import TensorOp, TensorShape
from bmcompiler.errors import BMError, UnsupportedError, UsageError
from bmcompiler.frontends.caffe import CustomizedCaffeLayer, caffe_layer
from bmcompiler.frontends.caffe.custom import custom_layers, register_custom_layer
from bmcompiler.frontends.caffe.layer import load_converters
from bmcompiler.ops.custom import register_cpu_function


class ScaledSum(CustomizedCaffeLayer):
    """factor * sum of the bottoms * weight; the factor comes from a message that Caffe does not know."""

    def layer_name(self) -> str:
        return "TestScaledSum"

    def dump(self) -> None:
        print(self.layer_.name)

    def codegen(self, op: TensorOp) -> None:
        op.add_output_shape().CopyFrom(op.input_shape(0))
        self.add_output_offset(0)
        param = op.mutable_tg_customized_param()
        param.add_i32_param(op.input_shape_size())
        param.add_f32_param(self.extra["scaled_sum_param"][0]["factor"][0])
        self.add_weight(self.blobs[0])


def scaled_sum(inputs: list[np.ndarray], i32: tuple[int, ...], f32: tuple[float, ...]) -> np.ndarray:
    return sum(inputs[: i32[0]]) * np.float32(f32[0]) * inputs[i32[0]]


TEXT = (
    header((1, 2), "a") + header((1, 2), "b") + layer("TestScaledSum", "scaled_sum_param { factor: 0.5 }", bottom="a b")
)


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What a test registers stays in it."""
    with on_path():
        yield


def install_here(folder: Path, **points: str) -> None:
    """A package whose entry points name parts of this module."""
    values = {name: f"{__name__}:{value}" for name, value in points.items()}
    install(folder, "test-layers", {"caffe_layers": values})


def test_a_layer_class_of_a_plugin_becomes_a_customized_op(tmp_path: Path) -> None:
    install_here(tmp_path, TestScaledSum="ScaledSum")
    register_cpu_function("TestScaledSum", scaled_sum)
    a, b, weight = random((1, 2)), random((1, 2), 1), random((1, 2), 2)
    with on_path(tmp_path):
        module = load(tmp_path, TEXT, {"l": [weight]})
    assert '"tensorop.customized"' in str(module)
    (y,) = run(module, {"a": a, "b": b})
    np.testing.assert_allclose(y, (a + b) * 0.5 * weight, rtol=1e-6)


def register_twice() -> None:
    caffe_layer("TestTwice")(lambda layer: layer.b.add(layer.x, layer.x))


def test_a_plugin_may_be_a_function_that_registers_converters(tmp_path: Path) -> None:
    install_here(tmp_path, **{"any-name": "register_twice"})
    x = random((1, 2))
    with on_path(tmp_path):
        (y,) = run(load(tmp_path, header((1, 2)) + layer("TestTwice")), {"data": x})
    np.testing.assert_array_equal(y, x + x)


def test_a_type_has_one_converter() -> None:
    load_converters()
    with pytest.raises(UnsupportedError, match="'ReLU' is registered twice"):
        caffe_layer("ReLU")(lambda layer: layer.x)


def test_wrong_number_of_outputs_is_reported(tmp_path: Path) -> None:
    class Nothing(ScaledSum):
        def layer_name(self) -> str:
            return "TestNothing"

        def codegen(self, op: TensorOp) -> None:
            """Adds no output."""

    register_custom_layer(Nothing)
    with pytest.raises(BMError, match=r"layer 'l' \(TestNothing\): its plugin gives 0 outputs for 1 tops"):
        load(tmp_path, header((1, 2)) + layer("TestNothing"))


@pytest.mark.parametrize("dims", [0, 9])
def test_shapes_that_no_tensor_has_are_reported(tmp_path: Path, dims: int) -> None:
    class Strange(ScaledSum):
        def layer_name(self) -> str:
            return "TestStrange"

        def codegen(self, op: TensorOp) -> None:
            shape = op.add_output_shape()
            for _ in range(dims):
                shape.add_dim(1)

    with (
        custom_layers([Strange]),
        pytest.raises(BMError, match=r"layer 'l' \(TestStrange\).*output 0 the shape \[.*not 1 to 8 sizes from 1 on"),
    ):
        load(tmp_path, header((1, 2)) + layer("TestStrange"))


def test_missing_cpu_function_is_reported(tmp_path: Path) -> None:
    class NoMeaning(ScaledSum):
        def layer_name(self) -> str:
            return "TestNoMeaning"

        def codegen(self, op: TensorOp) -> None:
            op.add_output_shape().CopyFrom(op.input_shape(0))

    register_custom_layer(NoMeaning)
    module = load(tmp_path, header((1, 2)) + layer("TestNoMeaning"))
    with pytest.raises(UnsupportedError, match="custom layer 'TestNoMeaning' has no CPU function"):
        run(module, {"data": random((1, 2))})


def test_seed_classes_check_their_indices() -> None:
    op = TensorOp([(1, 2, 3)])
    shape = op.add_output_shape()
    shape.add_dim(4)
    assert (op.output_shape_size(), op.output_shape(0).dim(0), shape.dim_size()) == (1, 4, 1)
    copy = TensorShape()
    copy.CopyFrom(op.input_shape(0))
    assert copy.dims() == (1, 2, 3)
    param = op.mutable_tg_customized_param()
    param.add_i32_param(-5)
    param.add_f32_param(0.5)
    known = op.tg_customized_param()
    assert (known.i32_param_size(), known.i32_param(0), known.f32_param_size(), known.f32_param(0)) == (1, -5, 1, 0.5)
    for call in (
        lambda: op.input_shape(1),
        lambda: shape.dim(-1),
        lambda: param.f32_param(1),
        lambda: op.global_input(0),
    ):
        with pytest.raises(UsageError):
            call()
    with pytest.raises(UsageError, match="does not fit"):
        param.add_i32_param(2**31)
    assert TensorOp([(1,)], [(1,)], None, [64], [128]).global_output(0) == 128
