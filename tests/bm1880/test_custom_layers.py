"""Custom layers on BM1880: the example package end to end, the CPU as second choice, words for broken plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_packages import install_project, on_path

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_AL,
    CTRL_NEURON,
    CTRL_WEIGHT,
    FMT_I8,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_max_param_t,
    bmk1880_parallel_enable,
    bmk1880_tl_alloc,
    bmk1880_tl_free,
    bmk1880_tpu_max,
    shape_t4,
)
from bmcompiler.backends.bm1880.custom import CustomizedTensorFixedInst, _place
from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.files.mlir import save_module
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins import custom_layers
from bmcompiler.plugins.registry import PluginError
from bmcompiler.runtime import Session

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_layer"
SHAPE = (1, 3, 5, 7)

SCRIPT = """
import sys
import numpy as np
import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.runtime import Session

rng = np.random.default_rng(0)
data = {name: rng.normal(0, size, (8, 5, 40, 33)).astype(np.float32) for name, size in (("a", 1.0), ("b", 3.0))}
result = bmcompiler.compile(sys.argv[1], target="bm1880", data=data, method="max", output="net.bmodel")
for row in result.rows:
    print(row.layer, row.kind, row.where)
inputs = dict(zip(("a", "b"), rng.integers(-128, 128, (2, 1, 5, 40, 33)).astype(np.int8)))
want = run_module(result.module, inputs)
got = Session("net.bmodel").run(inputs, raw=True)
assert all(np.array_equal(got[name], want[name]) for name in want), "simulator and evaluate differ"
real = Session("net.bmodel").run({name: array[:1] for name, array in data.items()})["out"]
exact = np.maximum(0.5 * np.abs(data["a"][0] - data["b"][0]) - 0.25, 0)
print("largest error", float(np.abs(real - exact).max()))
"""
NET = """
input: "a" input_shape { dim: 1 dim: 5 dim: 40 dim: 33 }
input: "b" input_shape { dim: 1 dim: 5 dim: 40 dim: 33 }
layer { name: "diff" type: "AbsDiff" bottom: "a" bottom: "b" top: "diff" abs_diff_param { gain: 0.5 } }
layer { name: "less" type: "Power" bottom: "diff" top: "less" power_param { shift: -0.25 } }
layer { name: "out" type: "ReLU" bottom: "less" top: "out" }
"""


def installed(folder: Path) -> dict[str, str]:
    """Environment in which the example is found as if it were installed: its folder and a matching dist-info."""
    install_project(folder, EXAMPLE)
    path = os.pathsep.join([str(folder), str(EXAMPLE), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}


def test_the_example_package_compiles_and_runs_equal_to_evaluate(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(NET)
    command = [sys.executable, "-c", SCRIPT, "net.prototxt"]
    done = subprocess.run(
        command, cwd=tmp_path, env=installed(tmp_path), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "diff AbsDiff bm1880" in done.stdout
    error = float(done.stdout.split("largest error")[1])
    assert error < 0.1, "the thresholds or factors are wrong"


# -- other plugins ---------------------------------------------------------------------------------------------------
class Peak(CustomizedTensorFixedInst):
    """max(x, constant weight): shows parameters, thresholds, constants and weights of the model."""

    def inst_name(self) -> str:
        return "TestPeak"

    def dump(self) -> None:
        print(self.op_.input_shape(0).dims())

    def encode(self) -> None:
        assert (self.get_global_neuron_base(), self.get_global_weight_base()) == (0, 0)
        param = self.op_.tg_customized_param()
        assert (param.sub_type(), param.i32_param(0), param.f32_param(0)) == ("TestPeak", 7, 0.5)
        assert self.m_calibrationParameter.name == "peak" and self.m_calibrationParameter.threshold_y == (4.0,)
        shape = shape_t4(*self.op_.input_shape(0).dims())
        x, low = (bmk1880_tl_alloc(self.ctx, shape, FMT_I8, CTRL_AL) for _ in range(2))
        bmk1880_gdma_load(self.ctx, x, self.op_.global_input(0), CTRL_NEURON)
        bmk1880_gdma_load(self.ctx, low, self.op_.global_input(1), CTRL_WEIGHT)
        bmk1880_tpu_max(self.ctx, bmk1880_max_param_t(x, x, low))
        bmk1880_gdma_load(self.ctx, low, self.add_weight(bytes([5]) * 105), CTRL_WEIGHT)
        bmk1880_tpu_max(self.ctx, bmk1880_max_param_t(x, x, low))
        bmk1880_gdma_store(self.ctx, x, self.op_.global_output(0), CTRL_NEURON)
        bmk1880_tl_free(self.ctx, low)
        bmk1880_tl_free(self.ctx, x)

    def compute(self, inputs: list[np.ndarray], function: Callable[..., Any] | None) -> np.ndarray:
        return np.maximum(np.maximum(inputs[0], inputs[1]), np.int8(5))


def module(sub_type: str = "TestPeak") -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType(SHAPE))
    with b.at("peak"):
        low = b.weight(np.linspace(-1, 1, 105).reshape(SHAPE).astype(np.float32), "low")
        y = b.customized(x, low, sub_type=sub_type, output_shapes=[SHAPE], i32_params=[7], f32_params=[0.5])
        y.op.attributes["source.tensor"] = "peak"
    return b.outputs([y], ["peak"])


def compiled(folder: Path, net: Module, table: str = "x 2\npeak 4\n") -> bmcompiler.Result:
    (folder / "table").write_text(table)
    return bmcompiler.compile_module(net, target="bm1880", table=folder / "table")


def test_instructions_alone_are_enough_with_a_table(tmp_path: Path) -> None:
    with custom_layers.tensor_insts([Peak]):
        result = compiled(tmp_path, module())
        bmodel.save(result.model, tmp_path / "net.bmodel")
        inputs = {"x": np.random.default_rng(1).integers(-128, 128, SHAPE).astype(np.int8)}
        want = run_module(result.module, inputs)["peak"]
        again = bmcompiler.load_network(_saved(result.module, tmp_path))
        np.testing.assert_array_equal(run_module(again, inputs)["peak"], want)
    (row,) = result.rows
    assert (row.layer, row.where, row.loaded, row.stored, row.weights, row.tiles) == (
        "peak",
        "bm1880",
        210,
        105,
        105,
        1,
    )
    got = Session(tmp_path / "net.bmodel").run(inputs, raw=True)["peak"]
    np.testing.assert_array_equal(got, want)


def _saved(net: Module, folder: Path) -> Path:
    save_module(net, folder / "int8.mlir")
    return folder / "int8.mlir"


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What a test registers stays in it."""
    with on_path():
        yield


def test_without_instructions_the_cpu_function_runs_and_the_summary_says_why(tmp_path: Path) -> None:
    custom_layers.register_cpu_function("TestPeak", lambda inputs, _i, _f: np.maximum(*inputs))
    result = compiled(tmp_path, module())
    (row,) = [row for row in result.rows if row.layer == "peak" and row.kind == "TestPeak"]
    assert row.where == "cpu" and row.reason.startswith("Its type needs instructions")
    assert row.reason.endswith("got TestPeak")
    bmodel.save(result.model, tmp_path / "net.bmodel")
    x = np.random.default_rng(1).normal(0, 1, SHAPE).astype(np.float32)
    got = Session(tmp_path / "net.bmodel").run({"x": x})["peak"]
    np.testing.assert_array_equal(got, run_module(result.module, {"x": x})["peak"])


def test_a_class_may_decline_an_op(tmp_path: Path) -> None:
    class Declines(Peak):
        def unsupported_reason(self) -> str | None:
            return f"rank {self.op_.input_shape(0).dim_size()} is not its favourite"

    custom_layers.register_cpu_function("TestPeak", lambda inputs, _i, _f: np.maximum(*inputs))
    with custom_layers.tensor_insts([Declines]):
        result = compiled(tmp_path, module())
    assert result.rows[-1].reason == "rank 4 is not its favourite"


def test_a_layer_that_nobody_can_run_is_named_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as raised:
        compiled(tmp_path, module("TestNobody"))
    text = str(raised.value)
    assert text.startswith("layer 'peak' (TestNobody): custom layer type 'TestNobody' can run ")
    assert text.endswith("Remedy: install the plugin for it (entry point group 'bmcompiler.tensor_insts')")


class Forgets(Peak):
    def encode(self) -> None:
        bmk1880_tl_alloc(self.ctx, shape_t4(1, 1, 1, 1), FMT_I8, CTRL_AL)


class Opens(Peak):
    def encode(self) -> None:
        bmk1880_parallel_enable(self.ctx)


class Divides(Peak):
    def encode(self) -> None:
        print(1 // self.get_global_weight_base())


class TooLarge(Peak):
    def encode(self) -> None:
        tensor = bmk1880_tl_alloc(self.ctx, shape_t4(1, 32, 1, 1024), FMT_I8, CTRL_AL)
        bmk1880_gdma_load(self.ctx, tensor, -1, CTRL_NEURON)


@pytest.mark.parametrize(
    ("cls", "error", "message"),
    [
        (Forgets, PluginError, "layer 'peak' .TestPeak.: encode.. of custom layer 'TestPeak' leaves 1 local tensors"),
        (Opens, PluginError, "leaves a parallel group open. Remedy: repair the plugin"),
        (Divides, PluginError, "encode.. of custom layer 'TestPeak' failed: ZeroDivisionError: integer division"),
        (TooLarge, BMError, "layer 'peak' .TestPeak.: bmk1880_gdma_load: "),
    ],
)
def test_broken_instructions_are_reported(cls: type[Peak], error: type[BMError], message: str, tmp_path: Path) -> None:
    with custom_layers.tensor_insts([cls]), pytest.raises(error, match=message):
        compiled(tmp_path, module())


def test_two_classes_for_one_type_are_refused() -> None:
    assert custom_layers.register_tensor_inst(Peak) is Peak
    custom_layers.register_tensor_inst(Peak)
    with pytest.raises(UnsupportedError, match="custom layer 'TestPeak' for bm1880 is registered twice"):
        custom_layers.register_tensor_inst(Forgets)


def test_rows_of_an_image_begin_where_their_strides_say() -> None:
    shape = (2, 3, 4, 5)
    places = np.arange(np.prod(shape)).reshape(shape)
    for n, c, h in np.ndindex(*shape[:3]):
        assert _place(shape, n, c, h)[0] == places[n, c, h, 0]
