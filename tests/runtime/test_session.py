"""Session: real values in and out, raw values, batches, choice of program, clear refusals."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NEURON,
    FMT_I8,
    bmk1880_acquire_cmdbuf,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_register,
    bmk1880_relu_param_t,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_relu,
    shape_t4,
)
from bmcompiler.backends.bm1880.cmdbuf import pack_cpu
from bmcompiler.backends.bm1880.isa import HEADER_SIZE
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.errors import BMError, FileFormatError, RuntimeUseError, SimulatorError, UnsupportedError
from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.runtime.cpu_functions import CpuMemory, register_cpu_function

SAMPLE = (2, 3, 4)
SIZE = 24


def relu_net(batch: int, extra: bytes = b"") -> Command:
    """y = relu(x), x at neuron 0, y behind it; `extra` records follow."""
    k = bmk1880_register()
    t = bmk1880_tl_prealloc_align(k, 0, shape_t4(batch, *SAMPLE), FMT_I8)
    bmk1880_gdma_load(k, t, 0, CTRL_NEURON)
    bmk1880_tpu_relu(k, bmk1880_relu_param_t(t, t))
    bmk1880_gdma_store(k, t, batch * SIZE, CTRL_NEURON)
    source = TensorInfo("x", (batch, *SAMPLE), threshold=4.0)
    result = TensorInfo("y", (batch, *SAMPLE), offset=batch * SIZE, threshold=2.0)
    return Command([source], [result], bmk1880_acquire_cmdbuf(k) + extra, 2 * batch * SIZE)


def session(*batches: int) -> Session:
    return Session(Bm1880Model("relu", [relu_net(batch) for batch in batches], []))


def samples(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, (count, *SAMPLE)).astype(np.float32)


def test_real_values_are_quantized_and_dequantized_with_the_thresholds() -> None:
    x = samples(1)
    y = session(1).run({"x": x})["y"]
    q = np.clip(np.floor(x.astype(np.float64) * 128 / 4 + 0.5), -128, 127)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, np.maximum(q, 0) * (2.0 / 128))


def test_raw_values_pass_unchanged() -> None:
    x = np.random.default_rng(0).integers(-128, 128, (1, *SAMPLE))
    y = session(1).run({"x": x}, raw=True)["y"]
    assert y.dtype == np.int8
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_inputs_and_outputs_describe_themselves() -> None:
    s = session(1)
    assert [(i.name, i.shape, i.dtype, i.threshold) for i in s.inputs] == [("x", (1, *SAMPLE), "int8", 4.0)]
    assert [(o.name, o.shape, o.dtype, o.threshold) for o in s.outputs] == [("y", (1, *SAMPLE), "int8", 2.0)]


@pytest.mark.parametrize("batches", [(1,), (4,), (3,), (1, 4), (4, 2)])
@pytest.mark.parametrize("count", [1, 2, 4, 7])
def test_any_number_of_samples_runs_in_steps(batches: tuple[int, ...], count: int) -> None:
    x = samples(count)
    expected = np.concatenate([session(1).run({"x": x[i : i + 1]})["y"] for i in range(count)])
    np.testing.assert_array_equal(session(*batches).run({"x": x})["y"], expected)


def test_samples_counted_on_axis_two_are_joined_there() -> None:
    command = relu_net(2)
    command.outputs[0].shape = (1, 1, 2, SIZE)
    y = Session(Bm1880Model("fc", [command], [])).run({"x": samples(3)})["y"]
    assert y.shape == (1, 1, 3, SIZE)
    np.testing.assert_array_equal(y.reshape(3, *SAMPLE), session(1).run({"x": samples(3)})["y"])


def test_a_session_can_be_run_again() -> None:
    s = session(1)
    first = s.run({"x": samples(1, 1)})["y"]
    kept = first.copy()
    s.run({"x": samples(1, 2)})
    np.testing.assert_array_equal(first, kept)


def test_unnamed_inputs_get_names() -> None:
    command = relu_net(1)
    command.inputs[0].name = ""
    s = Session(Bm1880Model("relu", [command], []))
    assert s.inputs[0].name == "input"
    s.run({"input": samples(1)})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "'x' is missing"),
        ({"x": samples(1), "z": samples(1)}, "no input 'z'"),
        ({"x": samples(1)[0]}, r"'x' \[2, 3, 4\] do not fit"),
        ({"x": np.zeros((1, 2, 3, 5))}, "do not fit"),
        ({"x": np.zeros((0, *SAMPLE))}, "leading axis is 0"),
        ({"x": np.full((1, *SAMPLE), np.nan)}, "NaN"),
        ({"x": np.full((1, *SAMPLE), "a")}, "numbers are needed"),
    ],
)
def test_unusable_inputs_are_refused(inputs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(RuntimeUseError, match=message):
        session(1).run(inputs)


@pytest.mark.parametrize(("value", "message"), [(0.5, "whole"), (128, "outside int8"), (-129.0, "outside int8")])
def test_raw_values_must_be_device_integers(value: float, message: str) -> None:
    with pytest.raises(RuntimeUseError, match=message):
        session(1).run({"x": np.full((1, *SAMPLE), value)}, raw=True)


def test_a_model_without_scales_needs_raw_values() -> None:
    command = relu_net(1)
    command.inputs[0].threshold = command.outputs[0].threshold = 0.0
    s = Session(Bm1880Model("relu", [command], []))
    with pytest.raises(RuntimeUseError, match="raw=True"):
        s.run({"x": samples(1)})
    mask = np.random.default_rng(1).random((1, *SAMPLE)) < 0.5
    np.testing.assert_array_equal(s.run({"x": mask})["y"], s.run({"x": mask.astype(np.int8)}, raw=True)["y"])
    codes = mask.astype(np.int8)
    np.testing.assert_array_equal(s.run({"x": codes})["y"], s.run({"x": codes}, raw=True)["y"])
    assert s.run({"x": np.ones((1, *SAMPLE), np.int8)}, raw=True)["y"].dtype == np.int8


def test_models_of_other_chips_and_missing_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="bm9999"):
        Session(Bm1880Model("relu", [relu_net(1)], [], chip=9999))
    with pytest.raises(RuntimeUseError, match="no device 8"):
        Session(Bm1880Model("relu", [relu_net(1)], []), device=8)
    text = tmp_path / "text.bmodel"
    text.write_text("hello")
    with pytest.raises(FileFormatError, match=r"text\.bmodel"):
        Session(text)


def test_a_saved_model_runs_the_same(tmp_path: Path) -> None:
    path = tmp_path / "relu.bmodel"
    bmodel.save(Bm1880Model("relu", [relu_net(2)], []), path)
    np.testing.assert_array_equal(Session(path).run({"x": samples(5)})["y"], session(1).run({"x": samples(5)})["y"])


PARAMETERS = 48
"""Byte of a CPU record's payload from which its parameters lie; their number is the word before (bm1880.md 3)."""


@pytest.fixture
def host_sum() -> Iterator[None]:
    """CPU function "tsum": float32 sum of int8 values; parameters: first byte, count, byte of the result."""

    def run(memory: CpuMemory, parameters: bytes) -> None:
        at, count, result = struct.unpack("<3I", parameters)
        total = arith.dequantize(memory.neuron[at : at + count].view(np.int8), 2.0).sum(dtype=np.float32)
        memory.neuron[result : result + 4] = np.frombuffer(np.float32(total).tobytes(), np.uint8)

    register_cpu_function("tsum", run)
    yield


def test_cpu_records_call_host_functions_and_float_outputs_pass_unchanged(host_sum: None) -> None:
    command = relu_net(1, extra=pack_cpu("tsum", struct.pack("<3I", SIZE, SIZE, 2 * SIZE)))
    command.neuron_size += 4
    command.outputs.append(TensorInfo("total", (1, 1), fmt=0, offset=2 * SIZE))
    for raw in (False, True):
        x = samples(1) if not raw else np.ones((1, *SAMPLE), np.int8)
        result = Session(Bm1880Model("sum", [command], [])).run({"x": x}, raw=raw)
        real = result["y"] if not raw else arith.dequantize(result["y"], 2.0)
        assert result["total"].dtype == np.float32
        assert result["total"][0, 0] == real.sum(dtype=np.float32)


def test_whole_numbers_that_float32_would_round_stay_whole() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 4), "i32"))
    made = bmcompiler.compile_module(b.outputs([b.add(x, x)], ["y"]), target="bm1684x", quantize="f32")
    given = np.array([[2**24 + 1, 3, -5, 2**30 - 1]], np.int32)
    np.testing.assert_array_equal(made.run({"x": given})["y"], 2 * given, strict=True)


def test_unknown_cpu_functions_are_named() -> None:
    s = Session(Bm1880Model("net", [relu_net(1, extra=pack_cpu("no_such_layer", b""))], []))
    with pytest.raises(RuntimeUseError, match="'no_such_layer'"):
        s.run({"x": samples(1)})


def test_parameters_of_host_functions_lie_in_their_record() -> None:
    got: list[bytes] = []
    register_cpu_function("tsize", lambda memory, parameters: got.append(parameters))
    record = pack_cpu("tsize", b"")
    room = len(record) - HEADER_SIZE - PARAMETERS
    for size in (room, room + 1):
        at = HEADER_SIZE + PARAMETERS - 4
        damaged = record[:at] + size.to_bytes(4, "little") + record[at + 4 :]
        s = Session(Bm1880Model("net", [relu_net(1, extra=damaged)], []))
        if size == room:
            s.run({"x": samples(1)})
            assert got == [bytes(room)]
            continue
        with pytest.raises(
            SimulatorError, match=f"{size} parameter bytes do not fit a record of {len(record) - 8} bytes"
        ):
            s.run({"x": samples(1)})


@pytest.mark.parametrize("byte", range(4))
def test_operations_of_records_are_words(byte: int) -> None:
    record = bytearray(pack_cpu("tsize", b""))
    record[HEADER_SIZE + byte] ^= 0x80
    s = Session(Bm1880Model("net", [relu_net(1, extra=bytes(record))], []))
    with pytest.raises(SimulatorError, match=f"CPU operation {3 ^ 0x80 << 8 * byte} does not exist"):
        s.run({"x": samples(1)})


def test_what_lies_behind_the_operation_of_a_record_is_none_of_it() -> None:
    called: list[bytes] = []
    register_cpu_function("tsize", lambda memory, parameters: called.append(parameters))
    record = bytearray(pack_cpu("tsize", b""))
    record[HEADER_SIZE + 4] ^= 0x80
    Session(Bm1880Model("net", [relu_net(1, extra=bytes(record))], [])).run({"x": samples(1)})
    assert called == [b""]


@pytest.mark.parametrize(
    ("error", "message"), [(BMError("no data"), ": no data"), (IndexError("5"), " failed: IndexError: 5")]
)
def test_failures_of_host_functions_name_command_and_function(error: Exception, message: str) -> None:
    def fail(memory: CpuMemory, parameters: bytes) -> None:
        raise error

    register_cpu_function("tfail", fail)
    s = Session(Bm1880Model("net", [relu_net(1, extra=pack_cpu("tfail", b""))], []))
    with pytest.raises(SimulatorError, match=r"command 3 \(CPU\): host function 'tfail'" + message):
        s.run({"x": samples(1)})
