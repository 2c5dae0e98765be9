"""Commands at the limits of what the simulator takes, and each of its checks by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import golden_cases
import numpy as np
import pytest

from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_NULL,
    FMT_I8,
    bmk1880_acquire_cmdbuf,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_matrix_mac_param_t,
    bmk1880_register,
    bmk1880_tl_prealloc_align,
    bmk1880_tpu_matrix_mac,
    shape_t2,
)
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import FORMATS, Engine, GdmaFunction
from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.errors import SimulatorError, UsageError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Quant, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime.session import Session
from bmcompiler.runtime.simulator.bm1880 import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1880.analysis import analyze
from bmcompiler.runtime.simulator.bm1880.cost import _side
from bmcompiler.testing import assert_same, random_arrays

MATRIX = "matrix_mac (5,100)x(100,70) rsh7 ->8"
FOLD = "matrix_mac_2"
WINOGRAD = next(name for name in golden_cases.CASES if name.startswith("winograd"))
LARGEST = "max_pooling k3x2 s2x2 pad t1 l1, x(2,40,9,10) i8"
OUTSIDE = (CHIP.lmem_window + CHIP.lmem_total) & 0xFFFF_FFFF


def changed(case: str, engine: Engine, **fields: int) -> tuple[bytes, bytes, list[Any]]:
    """A golden case whose first command of an engine has other fields."""
    cmdbuf, memory, results = golden_cases.build(case)
    data, layout = bytearray(cmdbuf), FORMATS[engine]
    found = records(cmdbuf)
    at = int(found.offset[found.of(engine)[0]])
    values = layout.unpack(bytes(data[at : at + layout.size])) | fields
    data[at : at + layout.size] = layout.encode_one(**values)
    return bytes(data), memory, results


def executed(cmdbuf: bytes, memory: bytes, results: list[Any]) -> np.ndarray:
    """The first result of a program."""
    memories, data = Memories(), np.frombuffer(memory, np.uint8).copy()
    memories.globals.map(0, data)
    compile_plan(cmdbuf, memories).run()
    _, at, size = results[0]
    return data[at : at + size].view(np.int8)


@pytest.mark.parametrize(
    ("case", "fields", "words"),
    [
        (MATRIX, {"opd0_h": 2}, "height 1"),
        (MATRIX, {"res0_h": 2}, "height 1"),
        (MATRIX, {"res0_n": 4}, "cannot hold"),
        (MATRIX, {"opd1_c": 2}, "cannot hold"),
        (MATRIX, {"opd1_w": 0, "opd1_n": 96}, "is not 96 deep"),
        (MATRIX, {"opd1_w": 33, "opd1_n": 129}, "is not 129 deep"),
        (MATRIX, {"opd1_n": 99}, "is not 99 deep"),
        (FOLD, {"opd0_n": 2}, "do not form a product"),
        (FOLD, {"opd0_h": 2}, "do not form a product"),
        (FOLD, {"opd0_w": 128}, "do not form a product"),
        (FOLD, {"res0_w": 128}, "do not form a product"),
        (WINOGRAD, {"res0_h": 7}, "even result size"),
        (WINOGRAD, {"res0_w": 7}, "even result size"),
        (WINOGRAD, {"conv_op_x_str": 2}, "no insertion, stride or dilation"),
        (WINOGRAD, {"conv_opd1_x_ins0": 1}, "no insertion, stride or dilation"),
        (WINOGRAD, {"conv_opd0_x_ins0": 1}, "no insertion, stride or dilation"),
        (LARGEST, {"res0_addr": CHIP.lanes * CHIP.lmem_size}, "beyond the last lane"),
    ],
)
def test_each_check_of_a_command_is_one_by_itself(case: str, fields: dict[str, int], words: str) -> None:
    with pytest.raises(SimulatorError, match=words):
        executed(*changed(case, Engine.TPU, **fields))


def test_local_memory_ends_where_its_window_ends() -> None:
    with pytest.raises(SimulatorError, match="is not in local memory"):
        executed(*changed(LARGEST, Engine.GDMA, dst_addr_lo=OUTSIDE))


def test_a_maximum_is_shifted_where_it_is_told_to_be() -> None:
    whole = executed(*golden_cases.build(LARGEST)).astype(np.int32)
    halves = executed(*changed(LARGEST, Engine.TPU, opt_right_shift=1))
    np.testing.assert_array_equal(halves, np.floor(whole / 2 + 0.5))


def test_a_maximum_of_a_widened_map_sees_what_was_inserted() -> None:
    """Two columns at a time of an element and what is inserted before it, which is less than all."""
    cmdbuf, memory, results = changed(LARGEST, Engine.TPU, conv_opd0_x_ins0=1)
    x = np.frombuffer(memory, np.int8)[: 2 * 40 * 90].reshape(2, 40, 9, 10)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 0)), constant_values=-128)
    want = np.stack([padded[:, :, y : y + 3].max(2) for y in (0, 2, 4, 6)], axis=2)[..., :5]
    np.testing.assert_array_equal(executed(cmdbuf, memory, results).reshape(want.shape), want)


@pytest.mark.parametrize("depth", [1, 15, 16, 17, 32, 33])
def test_the_last_chunk_of_a_matrix_has_one_column_or_is_full(depth: int) -> None:
    random = np.random.default_rng(depth)
    left, right = random.integers(-3, 4, (3, depth), np.int8), random.integers(-3, 4, (depth, 5), np.int8)
    memory = np.concatenate([left.ravel(), right.ravel(), np.zeros(15, np.int8)]).view(np.uint8)
    k = bmk1880_register()
    shapes = ((0, left.shape), (512, right.shape), (4096, (3, 5)))
    a, b, o = (bmk1880_tl_prealloc_align(k, at, shape_t2(*shape), FMT_I8) for at, shape in shapes)
    bmk1880_gdma_load(k, a, 0, CTRL_NULL)
    bmk1880_gdma_load(k, b, left.size, CTRL_NULL)
    none = {"bias": None, "lshift_width": 0, "rshift_width": 0, "res_is_int8": True, "ctrls": CTRL_NULL}
    bmk1880_tpu_matrix_mac(k, bmk1880_matrix_mac_param_t(res=o, left=a, right=b, **none))
    bmk1880_gdma_store(k, o, left.size + right.size, CTRL_NULL)
    found = executed(bmk1880_acquire_cmdbuf(k), memory.tobytes(), [("o", left.size + right.size, 15)])
    want = np.clip(left.astype(np.int32) @ right, -128, 127)
    np.testing.assert_array_equal(found.reshape(3, 5), want)


def renamed(size: int) -> Any:
    """A net whose second output is its input in another form."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, size), "i8", Quant(1 / 64)))
    return b.outputs([b.relu(b.slice(x, starts=(0, 0), ends=(1, 8), steps=(1, 1))), b.reshape(x, shape=(size, 1))],
                     ["y", "z"])  # fmt: skip


@pytest.mark.parametrize("size", [65535, 65537, 131101])
def test_outputs_that_are_inputs_are_copied_whatever_their_size(size: int) -> None:
    module = renamed(size)
    inputs = random_arrays(module)
    want = run_module(module, inputs, target=TARGET)
    assert_same(Session(TARGET.compile([module], 2).model).run(inputs, raw=True), want)


def test_channels_that_follow_each_other_are_one_run_however_large() -> None:
    """Three channels of 3 x 21846 bytes, whose stride has 17 bits."""
    plane = 3 * 21846
    fields = {"src_c": 3, "src_h": 3, "src_w": 21846, "src_h_str": 21846, "src_n_str": 3 * plane, "enable_stride": 1}
    fields |= {"function": GdmaFunction.NONE, "src_c_str_lo": plane & 0xFFFF, "src_c_str_hi": plane >> 16}
    columns = {name: np.array([value]) for name, value in fields.items()}
    side = _side(columns, "src", np.array([1]), np.array([False]))
    assert (side.size.tolist(), side.run.tolist()) == ([3 * plane], [3 * plane])


def test_programs_and_weights_are_counted_from_0() -> None:
    model = TARGET.compile([renamed(64)], 2).model
    assert analyze(model, 0).timing().cycles > 0
    with pytest.raises(UsageError, match="there is no program 1"):
        analyze(model, 1)
    without = replace(model, weights=(), commands=[replace(each, weight_index=0) for each in model.commands])
    assert analyze(without, 0).timing().cycles > 0
