"""bmcompiler.testing finds wrong kernels and says where; helpers of instruction classes cut work to local memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plugin_packages import on_path

from bmcompiler import testing
from bmcompiler.backends.bm1880 import bmkernel as bmk
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.custom import CustomizedTensorFixedInst, RowTile
from bmcompiler.backends.bm1880.kernels.elementwise import ElementwiseKernel as IntElementwiseKernel
from bmcompiler.backends.bm1880.kernels.elementwise import LocalTile
from bmcompiler.backends.lanes.kernels.functions.elementwise import ElementwiseKernel
from bmcompiler.bmnet import TensorOp
from bmcompiler.errors import UnsupportedError
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.custom import Customized
from bmcompiler.ops.elements.activation import Relu
from bmcompiler.plugins import custom_layers

SHAPE = (2, 3, 5, 33)


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Half of x is a custom layer everywhere in this file."""
    with on_path():
        custom_layers.register_cpu_function("TestHalf", lambda inputs, _i, _f: np.float32(0.5) * inputs[0])
        yield


def half(b: Builder, x: Any) -> Any:
    return b.customized(x, sub_type="TestHalf", output_shapes=[x.shape])


class Half(CustomizedTensorFixedInst):
    """Copies, since the threshold of the result is half that of the operand."""

    lost = 0

    def inst_name(self) -> str:
        return "TestHalf"

    def dump(self) -> None:
        """Nothing to say."""

    def encode(self) -> None:
        n, c, h, w = self.op_.input_shape(0).dims()
        for tile in self.row_tiles((n, c, h, w), tensors=1):
            shape = bmk.shape_t4(1, tile.c1 - tile.c0, tile.h1 - tile.h0, w)
            with self.local_tensors(shape, 1) as (x,):
                self.load_rows(x, 0, tile.n, tile.c0, tile.h0)
                self.work(x)
                self.store_rows(x, 0, tile.n, tile.c0, tile.h0)

    def work(self, x: bmk.tensor_lmem) -> None:
        """Between load and store."""

    def compute(self, inputs: list[np.ndarray], function: Any) -> np.ndarray:
        return inputs[0]


class Negates(Half):
    """Wrong for all values but 0."""

    def work(self, x: bmk.tensor_lmem) -> None:
        bmk.bmk1880_tpu_mul_const(self.ctx, bmk.bmk1880_mul_const_param_t(None, x, x, -1, True, 0))


class Races(Half):
    """Computes while the load is under way."""

    def encode(self) -> None:
        shape = bmk.shape_t4(*self.op_.input_shape(0).dims())
        with self.local_tensors(shape, 1) as (x,):
            bmk.bmk1880_parallel_enable(self.ctx)
            self.load_rows(x, 0, 0, 0, 0)
            bmk.bmk1880_tpu_relu(self.ctx, bmk.bmk1880_relu_param_t(x, x))
            bmk.bmk1880_parallel_disable(self.ctx)
            self.store_rows(x, 0, 0, 0, 0)

    def compute(self, inputs: list[np.ndarray], function: Any) -> np.ndarray:
        return np.maximum(inputs[0], np.int8(0))


def test_a_right_kernel_passes_and_its_error_is_measured() -> None:
    with custom_layers.tensor_insts([Half]):
        checked = testing.check_op(half, [SHAPE], target="bm1880", close=0.02)
    assert 0 < checked.error < 0.02
    assert [(row.kind, row.where) for row in checked.result.rows] == [("TestHalf", "bm1880")]
    assert checked.outputs["y0"].dtype == np.int8


def test_tiles_begin_in_whatever_image_channel_and_row() -> None:
    tiles: set[tuple[bool, ...]] = set()

    class Tiled(Half):
        def row_tiles(self, *arguments: Any, **named: Any) -> Iterator[RowTile]:
            for tile in super().row_tiles(*arguments, **named | {"tensors": 75}):
                tiles.add((tile.n > 0, tile.c0 > 0, tile.h0 > 0))
                yield tile

    with custom_layers.tensor_insts([Tiled]):
        testing.check_op(half, [(2, 70, 24, 40)], target="bm1880", close=0.02, levels=[2])
    assert tiles == set(product((False, True), repeat=3))


def test_a_wrong_kernel_is_told_where_it_differs_first() -> None:
    said = (
        r"^bm1880, opt=0, seed 0: tensor 'y0' differs first at n = 0, c = 0, h = 0, w = 0: "
        r"expected (-?)(\d+), got -?\2; \d+ of 990 values differ$"
    )
    with custom_layers.tensor_insts([Negates]), pytest.raises(testing.CheckError, match=said):
        testing.check_op(half, [SHAPE], target="bm1880")


@pytest.mark.usefixtures("races_allowed")
def test_commands_that_race_are_found() -> None:
    said = r"bm1880, opt=2: \d+ races, the first: command .* are not ordered"
    with custom_layers.tensor_insts([Races]), pytest.raises(testing.CheckError, match=said):
        testing.check_op(half, [(1, 3, 5, 33)], target="bm1880", levels=[2])


def test_a_meaning_that_differs_from_the_float_function_is_found() -> None:
    class Doubles(Half):
        def compute(self, inputs: list[np.ndarray], function: Any) -> np.ndarray:
            return np.maximum(inputs[0], np.int8(0))

        def work(self, x: bmk.tensor_lmem) -> None:
            bmk.bmk1880_tpu_relu(self.ctx, bmk.bmk1880_relu_param_t(x, x))

    with custom_layers.tensor_insts([Doubles]):
        assert testing.check_op(half, [SHAPE], target="bm1880").error > 0.5
        with pytest.raises(testing.CheckError, match=r"of their range away from those in float, allowed 0.02"):
            testing.check_op(half, [SHAPE], target="bm1880", close=0.02)


def test_an_op_that_runs_on_the_host_is_no_checked_kernel() -> None:
    with pytest.raises(testing.CheckError, match=r"layer 'op' \(TestHalf\) runs on the CPU, not on bm1880: Its type"):
        testing.check_op(half, [SHAPE], target="bm1880")
    testing.check_op(half, [SHAPE], target="bm1880", on_device=False)


@pytest.mark.parametrize(("factor", "right"), [(0.5, True), (0.25, False)])
def test_float_kernels_of_a_custom_layer(factor: float, right: bool) -> None:
    @custom_layers.register_kernel("bm1684", "TestHalf")
    class HalfKernel(ElementwiseKernel):
        ops = (Customized,)

        def recipe(self, op: Any) -> tuple[Any, ...]:
            return _scaled, factor

    for quantize in ("f32", "int8"):
        checked = testing.check_op(half, [SHAPE], target="bm1684", quantize=quantize)
        assert (checked.error < 1e-6) == right
        assert [row.where for row in checked.result.rows if row.kind == "TestHalf"] == ["bm1684"]


def _scaled(m: Any, x: Any, factor: float) -> Any:
    return m.mul(x, factor)


def test_a_float_kernel_that_emits_something_else_is_found() -> None:
    @custom_layers.register_kernel("bm1684", "TestHalf")
    class WrongKernel(ElementwiseKernel):
        ops = (Customized,)

        def recipe(self, op: Any) -> tuple[Any, ...]:
            return _scaled, 0.25

        def evaluate(self, op: Any, *arrays: Any) -> Any:
            return arrays[0] * np.float32(0.5)

    with pytest.raises(testing.CheckError, match=r"'y0' differs first at n = 0, c = 0, h = 0, w = 0: expected .*, got"):
        testing.check_op(half, [SHAPE], target="bm1684")


def sandwich(b: Builder, x: Any) -> Any:
    """The custom layer between ops of the chip."""
    return b.relu(half(b, b.relu(x)))


def test_an_instruction_class_is_a_barrier_between_layer_groups() -> None:
    with custom_layers.tensor_insts([Half]):
        rows = testing.check_op(sandwich, [SHAPE], target="bm1880").result.rows
    size = int(np.prod(SHAPE))
    (row,) = [row for row in rows if row.kind == "TestHalf"]
    assert (row.where, row.loaded, row.stored) == ("bm1880", size, size)


@pytest.mark.parametrize("target", ["bm1880", "bm1684"])
def test_a_kernel_takes_part_in_layer_groups(target: str) -> None:
    """Its operand and its result stay in local memory."""

    @custom_layers.register_kernel("bm1684", "TestHalf")
    class FloatKernel(ElementwiseKernel):
        ops = (Customized,)

        def recipe(self, op: Any) -> tuple[Any, ...]:
            return _scaled, 0.5

    @custom_layers.register_kernel("bm1880", "TestHalf")
    class IntKernel(IntElementwiseKernel):
        """A copy: the threshold of the result is half that of the operand."""

        ops = (Customized,)

        def compute(self, op: Any, build: Any, tile: LocalTile) -> None:
            build.tpu(bmk.bmk1880_tpu_copy, bmk.bmk1880_copy_param_t(tile.out, tile.x[0]))

        def evaluate(self, op: Any, *arrays: Any) -> Any:
            return arrays[0]

    rows = testing.check_op(sandwich, [SHAPE], target=target, close=0.02).result.rows
    (row,) = [row for row in rows if row.kind == "TestHalf"]
    assert (row.where, row.loaded, row.stored) == (target, 0, 0)


def test_kernels_say_what_they_serve() -> None:
    for ops, sub_type in (((), ""), ((Customized,), ""), ((Relu,), "TestHalf")):
        with pytest.raises(UnsupportedError, match="kernel K needs ops, and a sub type if and only if"):
            custom_layers.register_kernel("bm1684", sub_type)(type("K", (ElementwiseKernel,), {"ops": ops}))


def test_network_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(
        'name: "net"\ninput: "x" input_shape { dim: 1 dim: 4 }\n'
        'layer { name: "r" type: "ReLU" bottom: "x" top: "r" }\n'
        'layer { name: "s" type: "Softmax" bottom: "r" top: "s" }\n'
    )
    assert testing.check_network(path, target="bm1880", on_device=["r"]).error < 0.1
    with pytest.raises(testing.CheckError, match=r"layer 's' \(softmax\) runs on the CPU"):
        testing.check_network(path, target="bm1880", on_device=["r", "s"])


# -- comparing ---------------------------------------------------------------------------------------------------------
def test_what_is_the_same_passes() -> None:
    array = np.array([[1.0, np.nan, -0.0]], np.float32)
    testing.assert_same({"y": array}, {"y": array.copy()})
    testing.assert_same({"y": np.array([3], np.int8)}, {"y": np.array(3, np.int8)})


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        ({"a": 1}, {"b": 1}, "outputs are a, expected b"),
        ({"y": np.zeros((2, 3))}, {"y": np.zeros((3, 2))}, r"tensor 'y' is float64\[2, 3\], expected float64\[3, 2\]"),
        ({"y": np.zeros(2, "i1")}, {"y": np.zeros(2, "u1")}, r"tensor 'y' is int8\[2\], expected uint8\[2\]"),
        ({"y": np.array([0, 7, 9])}, {"y": np.array([0, 1, 2])}, r"at index \[1\]: expected 1, got 7; 2 of 3 values"),
        ({"y": np.float32([0.0])}, {"y": np.float32([-0.0])}, r"at index \[0\]: expected -0.0, got 0.0; 1 of 1"),
        ({"y": np.float32([1])}, {"y": np.float32([np.nan])}, r"expected nan, got 1.0"),
    ],
)
def test_what_differs_is_named(got: Any, want: Any, message: str) -> None:
    with pytest.raises(testing.CheckError, match=f"^seed 3: .*{message}"):
        testing.assert_same(got, want, "seed 3")


def test_random_shapes_begin_with_the_extremes_and_repeat() -> None:
    axes = ((1, 4), (2, 70))
    shapes = list(testing.random_shapes(6, *axes))
    assert shapes[:2] == [(1, 2), (4, 70)] and shapes == list(testing.random_shapes(6, *axes))
    assert all(low <= size <= high for shape in shapes for size, (low, high) in zip(shape, axes))
    assert shapes != list(testing.random_shapes(6, *axes, seed=1))


# -- cutting work ------------------------------------------------------------------------------------------------------
def inst(*shape: int) -> Half:
    made = Half()
    made.op_ = TensorOp([shape], [shape])
    return made


@given(st.integers(1, 10**6), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_flat_pieces_cover_all_bytes_and_fit(size: int, tensors: int) -> None:
    at = 0
    for offset, shape in inst(1).flat_pieces(tensors, size):
        assert offset == at
        at += shape.c * shape.w
        assert CHIP.lane_bytes((shape.n, shape.c, shape.h, shape.w)) * tensors <= CHIP.lmem_size
    assert at == size


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 300), st.integers(1, 90), st.integers(1, 300)),
    st.integers(1, 6),
    st.sampled_from([(1, 1, 0), (3, 1, 1), (5, 2, 2), (2, 2, 0)]),
)
@settings(max_examples=60, deadline=None)
def test_row_tiles_cover_the_result_and_fit(dims: Any, tensors: int, window: tuple[int, int, int]) -> None:
    n, c, h, w = dims
    kernel, stride, above = window
    height = (h - 1) * stride + kernel - 2 * above
    if height < 1:
        return
    seen = np.zeros((n, c, h), int)
    for tile in inst(1).row_tiles(dims, tensors, window, height):
        seen[tile.n, tile.c0 : tile.c1, tile.h0 : tile.h1] += 1
        assert 0 <= tile.first < tile.last <= height
        assert tile.first == max(0, tile.h0 * stride - above)
        rows = max(tile.last - tile.first, tile.h1 - tile.h0)
        assert CHIP.lane_bytes((1, tile.c1 - tile.c0, rows, w)) * tensors <= CHIP.lmem_size
        assert tile.c0 % CHIP.lanes == 0
    assert (seen == 1).all()


@pytest.mark.parametrize("more", [0, 1])
def test_row_tiles_fill_local_memory_to_its_last_byte(more: int) -> None:
    dims, fitting = (1, CHIP.lanes, 256, 64), CHIP.lmem_size // (256 * 64)
    assert CHIP.lane_bytes(dims) * fitting == CHIP.lmem_size
    assert (len(list(inst(1).row_tiles(dims, fitting + more))) > 1) == bool(more)


def test_what_cannot_fit_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"70 tensors with one row of .* exceed local memory"):
        next(inst(1, 1, 1, 1024).row_tiles((1, 1, 1, 1024), 70))
    rows = list(inst(1, 40, 80, 1024).row_tiles((1, 40, 80, 1024), 2))
    assert all(a.h1 == b.h0 or a.c1 == b.c0 for a, b in pairwise(rows)) and len(rows) > 2


def test_tensors_that_do_not_fit_are_refused_and_freed() -> None:
    class Greedy(Half):
        def encode(self) -> None:
            with self.local_tensors(bmk.shape_t4(1, 32, 32, 1024), 4):
                raise AssertionError

    said = r"layer 'op' \(TestHalf\): 4 tensors of shape \[1, 32, 32, 1024\] exceed 65536 bytes per lane"
    with custom_layers.tensor_insts([Greedy]), pytest.raises(UnsupportedError, match=said):
        testing.check_op(half, [SHAPE], target="bm1880")
