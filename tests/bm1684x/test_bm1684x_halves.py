"""Networks in fp16 and bf16: the bits of evaluation at every level, on the device alone, near the f32 results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from bmcompiler.backends.bm1684x.half_arithmetic import HALVES, HalfArithmetic
from bmcompiler.backends.bm1684x.lane_commands import PRECISIONS, immediate
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Value
from bmcompiler.ir.keys import SLICES
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.target import find_target
from bmcompiler.testing import Checked, check_op

DTYPES = {"f16": 6e-3, "bf16": 5e-2}
"""Types, and how far results of a few layers may be from f32."""


class Weights:
    """Reproducible random constants of a builder, of such a size that sums of products stay near 1."""

    def __init__(self, b: Builder) -> None:
        self.b, self.rng = b, np.random.default_rng(0)

    def __call__(self, *shape: int) -> Value:
        values: NDArray[np.float32] = self.rng.standard_normal(shape).astype(np.float32)
        return self.b.weight(values / np.float32(np.sqrt(values[0].size)), "w")


def checked(make: Callable[..., Value], shapes: list[tuple[int, ...]], dtype: str, seeds: int = 1) -> Checked:
    return check_op(make, shapes, target="bm1684x", quantize=dtype, seeds=seeds, close=DTYPES[dtype])


def classifier(b: Builder, x: Value) -> Value:
    w = Weights(b)
    y = b.max_pool(b.conv(x, w(20, 1, 5, 5), w(20)), kernel=(2, 2), strides=(2, 2))
    y = b.max_pool(b.conv(y, w(50, 20, 5, 5), w(50), activation="relu"), kernel=(2, 2), strides=(2, 2))
    return b.softmax(b.matmul(b.reshape(y, shape=(2, 800)), w(800, 10), w(10)), axis=1)


def mobile_block(b: Builder, x: Value) -> Value:
    """Depthwise with bias and stride, more channels than lanes, a sum, averages of few and of many elements."""
    w = Weights(b)
    wide = b.conv(x, w(72, 24, 1, 1), w(72), activation="relu6")
    deep = b.conv(wide, w(72, 1, 3, 3), w(72), group=72, pads=(1, 1, 1, 1), activation="relu6")
    out = b.add(b.conv(deep, w(24, 72, 1, 1)), x, activation="relu")
    few = b.avg_pool(out, kernel=(2, 2), strides=(2, 2))
    return b.matmul(b.reshape(b.avg_pool(few, kernel=(7, 6)), shape=(1, 24)), w(24, 130), w(130), activation="relu")


def moves(b: Builder, x: Value) -> Value:
    """What moves elements, deconvolution, groups, functions of choices."""
    w = Weights(b)
    y = b.conv(x, w(36, 6, 3, 3), w(36), group=2, pads=(1, 1, 1, 1), dilations=(1, 1))
    one, two = b.split(b.prelu(y, w(36), axis=1), axis=1, sizes=(16, 20))
    y = b.concat(b.pad(one, pads=(0, 0, 2, 2, 0, 0, 0, 0)), b.hard_swish(two), axis=1)
    y = b.deconv(y, w(40, 5, 2, 2), w(5), strides=(2, 2))
    return b.permute(b.clip(y, min=-0.5, max=0.75), order=(0, 2, 3, 1))


def attention(b: Builder, x: Value) -> Value:
    """Two heads over 70 rows, of which each product is batched; norm and softmax are computed in f32."""
    w = Weights(b)
    rows = b.layer_norm(x, b.weight(np.ones(48, np.float32), "g"), w(48), axis=2)

    def heads(axes: tuple[int, ...]) -> Value:
        made = b.matmul(rows, w(48, 48), w(48))
        return b.permute(b.reshape(made, shape=(1, 70, 2, 24)), order=axes)

    scores = b.matmul(heads((0, 2, 1, 3)), heads((0, 2, 1, 3)), transpose_right=True)
    mixed = b.matmul(b.softmax(b.mul(scores, b.weight(np.full(1, 0.2, np.float32), "s")), axis=3), heads((0, 2, 1, 3)))
    return b.add(b.matmul(b.reshape(b.permute(mixed, order=(0, 2, 1, 3)), shape=(1, 70, 48)), w(48, 48)), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (classifier, (2, 1, 28, 28)),
        (mobile_block, (1, 24, 14, 12)),
        (moves, (3, 12, 9, 7)),
        (attention, (1, 70, 48)),
    ],
)
def test_networks_give_the_bits_of_evaluation_at_every_level(
    make: Callable[..., Value], shape: tuple[int, ...], dtype: str
) -> None:
    done = checked(make, [shape], dtype)
    assert any(f"ops are computed in {dtype}" in note for note in done.result.notes)
    assert {row.where for row in done.result.rows} <= {"bm1684x", "alias"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles_of_channels_that_fill_no_row_of_lanes(dtype: str) -> None:
    def many(b: Builder, x: Value) -> Value:
        w = Weights(b)
        return b.conv(x, w(1000, 512, 1, 1), w(1000))

    checked(many, [(1, 512, 13, 13)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_two_tensors_broadcast(dtype: str) -> None:
    checked(lambda b, x, y: b.matmul(x, y), [(2, 3, 66, 40), (3, 40, 33)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_beyond_the_type_keep_a_layer_in_f32(dtype: str) -> None:
    large = np.full((4, 4, 1, 1), 1e5, np.float32)
    done = checked(lambda b, x: b.conv(x, b.weight(large, "w")), [(1, 4, 5, 5)], dtype)
    note = "1 ops are computed in bf16" if dtype == "bf16" else ""
    assert [one for one in done.result.notes if "ops are computed" in one] == ([f"{note}, 0 in f32"] if note else [])


@pytest.mark.parametrize("dtype", DTYPES)
def test_not_a_number_and_infinity_pass(dtype: str) -> None:
    """Casts, sums and maxima of the device and of evaluation agree on the bits of special values."""

    def make(b: Builder, x: Value) -> Value:
        w = Weights(b)
        return b.max(b.add(b.conv(x, w(4, 4, 1, 1)), b.mul(x, x)), b.weight(np.full(1, 0.5, np.float32), "m"))

    done = checked(make, [(1, 4, 4, 8)], dtype)
    values = np.array([3e38, np.inf, -np.inf, 1e30, -1e30, 1e-30, -0.0, 65520], np.float32)
    x = np.tile(values, (1, 4, 4, 1))
    with np.errstate(all="ignore"):
        wanted = run_module(done.result.module, {"x0": x}, target=find_target("bm1684x"))["y0"]
        found = Session(done.result.model).run({"x0": x}, raw=True)["y0"]
    assert np.array_equal(np.isnan(wanted), np.isnan(found))
    assert np.array_equal(wanted.view(np.uint32), found.view(np.uint32))


@pytest.mark.parametrize("dtype", HALVES)
def test_immediates_are_rounded_as_the_arithmetic_rounds(dtype: str) -> None:
    half = HALVES[dtype]
    assert isinstance(half, HalfArithmetic)
    for value in np.random.default_rng(0).standard_normal(200).astype(np.float32):
        bits = immediate(int(value.view(np.uint32)), PRECISIONS[dtype][0])
        stored = np.array([bits], np.uint16)
        assert stored == half.narrow(np.array([value])).view(np.uint16)
        assert stored == np.array([value]).astype(half.narrow(np.array([value])).dtype).view(np.uint16)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_attention_loads_its_input_and_stores_its_result_only(dtype: str) -> None:
    rows = checked(attention, [(1, 70, 48)], dtype).result.rows
    assert sum(row.loaded - row.weights for row in rows) == 4 * 70 * 48
    assert sum(row.stored for row in rows) == 4 * 70 * 48


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_map_of_few_channels_is_multiplied_as_rows(dtype: str) -> None:
    """As a convolution each of its channels would take the weights of 32."""

    def joined(b: Builder, x: Value) -> Value:
        return b.matmul(b.reshape(b.sqrt(b.mul(x, x)), shape=(1, 128)), Weights(b)(128, 128))

    kinds = {row.kind for row in checked(joined, [(1, 4, 1, 32)], dtype).result.rows}
    assert "matmul" in kinds and "conv" not in kinds


def test_a_map_in_a_layout_of_its_own_is_loaded_in_parts() -> None:
    """The first convolution reads rows as channels from global memory: a part computes while the next one arrives."""

    def few(b: Builder, x: Value) -> Value:
        made = b.conv(x, Weights(b)(64, 3, 6, 6), strides=(2, 2), pads=(2, 2, 2, 2))
        return b.max_pool(made, kernel=(4, 4), strides=(4, 4))

    done = checked(few, [(1, 3, 320, 320)], "f16").result
    (conv,) = (op for op in done.module.main.ops if op.short_name == "conv")
    (row,) = (row for row in done.rows if row.kind == "conv")
    assert conv.attributes[SLICES] == (1, 1, 4, 1)
    assert row.loaded - row.weights <= 3 * conv.operands[0].type.nbytes  # six rows of a window, by twos: none again
