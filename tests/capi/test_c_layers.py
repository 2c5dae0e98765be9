"""Kernels in C as layers of networks: compiled into the program, with their cycles, and compared with a reference."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from c_programs import EXAMPLES, needs_compiler, program
from plugin_packages import on_path

import bmcompiler
from bmcompiler import testing
from bmcompiler.analysis.estimate import estimate
from bmcompiler.errors import UnsupportedError, UsageError, WrongProgramError
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.registry import PluginError
from bmcompiler.result import LayerRow
from bmcompiler.runtime import Session
from bmcompiler.target import find_target
from bmcompiler.tpukernel import c_kernel, register_layer

SHAPE = (2, 8, 13, 17)
OTHERS = """
#include <tpu_kernel.h>
static void weighted(const void *arguments)
{
    const tpu_layer_call_t *call = (const tpu_layer_call_t *)arguments;
    if (call->input_num == 2 && call->output_num == 1 && call->i32_num == 0 && call->local_bytes > 200000)
        tpu_layer_refuse(call, "it computes nothing");
}
TPUKERNEL_FUNC_REGISTER(weighted)

static void out_of_lane(const void *arguments)
{
    const tpu_layer_call_t *call = (const tpu_layer_call_t *)arguments;
    dim4 shape = {1, 1, 1, 100000};
    tpu_gdma_cpy_S2L(0, call->inputs->address, &shape, NULL, NULL, DT_FP32);
}
TPUKERNEL_FUNC_REGISTER(out_of_lane)

static void idle(const void *arguments) { UNUSED(arguments); }
TPUKERNEL_FUNC_REGISTER(idle)
"""


def weighted_sum(inputs: list[np.ndarray], i32: tuple[int, ...], f32: tuple[float, ...]) -> np.ndarray:
    """a + factor * b."""
    a, b = inputs
    return a + np.float32(f32[0]) * b


pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What a test registers stays in it."""
    with on_path():
        yield


@pytest.fixture(scope="module", params=["gcc", "g++"])
def library(built: Path, request: pytest.FixtureRequest) -> Path:
    return program(built, "tpukernel", EXAMPLES / "tpu_layer.c", request.param, "-shared", "-fPIC")


@pytest.fixture(scope="module")
def others(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("layer") / "others.c"
    source.write_text(OTHERS)
    return program(built, "tpukernel", source, "gcc", "-shared", "-fPIC")


def made(b: Builder, a: Value, gate: Value, name: str = "Weighted") -> Value:
    return b.customized(a, gate, sub_type=name, output_shapes=[a.shape], f32_params=[0.3])


def of_one(name: str, shape: tuple[int, ...] = SHAPE) -> Module:
    builder = Builder.new("net")
    a, b = (builder.input(each, TensorType(shape, "f32")) for each in "ab")
    with builder.at("mix"):
        y = made(builder, a, b, name=name)
    return builder.outputs([y], ["y"])


def row_of(name: str, shape: tuple[int, ...] = SHAPE) -> LayerRow:
    return bmcompiler.compile_module(of_one(name, shape), target="bm1684x", check=1).rows[0]


def test_a_kernel_in_c_is_a_layer_among_others(library: Path) -> None:
    """Its program is what `evaluate` says, to the bit, and what the reference says; f16 stays outside of it."""
    register_layer("Weighted", reference=weighted_sum)(c_kernel(library, "weighted"))

    def net(b: Builder, x: Value) -> Value:
        w = b.weight(np.linspace(-1, 1, x.type.size, dtype=np.float32).reshape(x.shape))
        return b.add(b.sigmoid(made(b, b.exp(x), w)), b.relu(made(b, x, b.tanh(x))))

    for quantize in ("f32", "f16"):
        checked = testing.check_op(net, [SHAPE], target="bm1684x", quantize=quantize, seeds=1, levels=(0, 2))
        assert [row.where for row in checked.result.rows if row.kind == "Weighted"] == ["bm1684x"] * 2


def test_its_package_is_that_which_asks_for_it(others: Path) -> None:
    """So another one of the same program may not take its name, and the next test starts without it."""
    register_layer("Mine", reference=weighted_sum)(c_kernel(others, "weighted"))
    with pytest.raises(UnsupportedError, match=r"'Mine' for bm1684x is registered twice: as .*test_c_layers"):
        register_layer("Mine", reference=weighted_sum)(c_kernel(others, "out_of_lane"))


def test_it_is_planned_with_its_cycles_and_saved(library: Path, tmp_path: Path) -> None:
    register_layer("Weighted", reference=weighted_sum)(c_kernel(library, "weighted"))
    result = bmcompiler.compile_module(of_one("Weighted"), target="bm1684x", check=1)
    row = next(row for row in estimate(result).layers if row.name == "mix")  # type: ignore[union-attr]
    op = next(op for op in result.module.main.ops if op.short_name == "customized")
    planned = find_target("bm1684x").cycles(op)
    assert planned is not None and planned > 0 and 0.9 * planned <= row.cycles <= 1.1 * planned
    result.save(tmp_path / "net.bmodel")
    a, b = np.random.default_rng(2).normal(size=(2, *SHAPE)).astype(np.float32)
    got = Session(tmp_path / "net.bmodel").run({"a": a, "b": b})["y"]
    np.testing.assert_array_equal(got, weighted_sum([a, b], (), (0.3,)))


def test_what_it_refuses_the_host_computes_and_says_why(others: Path, capfd: pytest.CaptureFixture[str]) -> None:
    register_layer("Nothing", reference=weighted_sum)(c_kernel(others, "weighted"))
    nothing = row_of("Nothing")
    assert (nothing.where, nothing.reason) == ("cpu", "it computes nothing")
    register_layer("Wide", reference=weighted_sum)(c_kernel(others, "out_of_lane"))
    wide = row_of("Wide")
    assert wide.where == "cpu" and wide.reason.startswith("tpu_gdma_cpy_S2L at others.c:15: "), wide.reason
    assert capfd.readouterr().err == ""


def test_one_that_is_not_its_reference_is_not_compiled(library: Path) -> None:
    register_layer("Off", reference=lambda inputs, i32, f32: inputs[0] - inputs[1])(c_kernel(library, "weighted"))
    with pytest.raises(WrongProgramError, match="kernel 'Off' is further from its reference"):
        row_of("Off")


def test_one_that_issues_nothing_is_an_error(others: Path) -> None:
    register_layer("Idle", reference=weighted_sum)(c_kernel(others, "idle"))
    with pytest.raises(PluginError, match=r"the kernel 'idle' of others-gcc\.so issued no command"):
        row_of("Idle")


def test_what_is_no_library_of_kernels_is_refused(others: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it registers no kernel 'heavy', only idle, out_of_lane, weighted"):
        c_kernel(others, "heavy")
    with pytest.raises(UsageError, match=r"absent\.so: there is no such file"):
        c_kernel(tmp_path / "absent.so", "weighted")
    (tmp_path / "empty.so").write_bytes(b"")
    with pytest.raises(UsageError, match="it cannot be loaded: "):
        c_kernel(tmp_path / "empty.so", "weighted")
    (tmp_path / "plain.c").write_text("int plain(void);\nint plain(void) { return 1; }\n")
    subprocess.run(["gcc", "-shared", "-o", str(tmp_path / "plain.so"), str(tmp_path / "plain.c")], check=True)
    with pytest.raises(UsageError, match=r"it registers no kernel 'plain'\."):
        c_kernel(tmp_path / "plain.so", "plain")


def test_two_libraries_may_call_their_kernels_alike(library: Path, others: Path) -> None:
    register_layer("Other", reference=weighted_sum)(c_kernel(others, "weighted"))
    register_layer("Weighted", reference=weighted_sum)(c_kernel(library, "weighted"))
    assert (row_of("Other").where, row_of("Weighted").where) == ("cpu", "bm1684x")
