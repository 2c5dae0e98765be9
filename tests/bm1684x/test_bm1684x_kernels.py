"""Kernels of the BM1684X in f32: what the simulator computes from the commands is what the chip's arithmetic says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bm1684x_nets import BM1684X, FULL, Net, check, check_op

from bmcompiler.backends.bm1684x.build import as_sections
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.backends.bm1684x.cycles import CycleTable
from bmcompiler.backends.bm1684x.instructions.transfers import Side
from bmcompiler.backends.bm1684x.timing_profile import PROFILE
from bmcompiler.backends.lanes.kernels.windows import winograd
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Value
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze

SMALL = 8192
"""Bytes of a lane in which the cases below take several tiles."""
Make = Callable[..., Any]


def convolution(
    inside: int, out: int, kernel: tuple[int, int], bias: bool = True, transposed: bool = False, **modes: Any
) -> Make:
    """conv or deconv with random weights; `inside` and `out` are channels of a group."""
    group = modes.get("group", 1)

    def make(net: Net, x: Value) -> Value:
        shape = (inside * group, out) if transposed else (out * group, inside)
        w, b = net.f32(*shape, *kernel), net.f32(out * group) if bias else None
        return (net.b.deconv if transposed else net.b.conv)(x, w, b, **modes)

    return make


CONVOLUTIONS: dict[str, tuple[Make, tuple[int, ...]]] = {
    "pads": (convolution(5, 70, (3, 3), pads=(1, 1, 1, 1), activation="relu"), (2, 5, 12, 9)),
    "strides": (convolution(66, 9, (3, 5), strides=(2, 3), pads=(0, 1, 2, 0)), (1, 66, 17, 21)),
    "dilations": (convolution(3, 4, (3, 2), dilations=(2, 3), pads=(2, 2, 0, 3), bias=False), (1, 3, 14, 14)),
    "groups": (convolution(3, 5, (3, 3), group=4, activation="relu6"), (2, 12, 8, 8)),
    "depthwise": (convolution(1, 1, (3, 3), group=130, pads=(1, 1, 1, 1), strides=(2, 2)), (2, 130, 15, 16)),
    "depthwise_plain": (convolution(1, 1, (5, 1), group=7, bias=False, dilations=(2, 1)), (1, 7, 19, 6)),
    "wide_padding": (convolution(2, 3, (19, 19), pads=(17, 17, 18, 16)), (1, 2, 12, 12)),
    "long_steps": (convolution(2, 3, (3, 3), strides=(18, 20)), (1, 2, 60, 70)),
    "cells": (convolution(70, 130, (3, 3), pads=(1, 1, 1, 1), activation="relu6"), (2, 70, 17, 15)),
    "cells_in_bands": (convolution(40, 64, (3, 3), pads=(0, 2, 1, 0), activation="relu"), (1, 40, 61, 47)),
    "cells_of_rounds": (convolution(200, 200, (3, 3), pads=(1, 1, 1, 1), bias=False), (1, 200, 14, 14)),
    "point": (convolution(200, 300, (1, 1)), (1, 200, 3, 5)),
    "deconv": (convolution(6, 7, (3, 3), transposed=True, strides=(2, 3), pads=(1, 0, 1, 1)), (2, 6, 7, 5)),
    "deconv_groups": (convolution(2, 3, (4, 4), transposed=True, strides=(2, 2), group=3), (1, 6, 5, 5)),
    "deconv_depthwise": (convolution(1, 1, (2, 2), transposed=True, strides=(2, 2), group=70), (1, 70, 6, 6)),
}


@pytest.mark.parametrize("lanes", [FULL, SMALL])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str, lanes: int) -> None:
    make, shape = CONVOLUTIONS[name]
    check_op(make, shape, lanes=lanes)


@pytest.mark.parametrize("name", ["cells", "cells_in_bands", "cells_of_rounds"])
def test_cells_of_results_take_fewer_products(name: str) -> None:
    """16 products for 4 results instead of 36 (Winograd), of which rounding up to vectors leaves some of the gain."""
    make, shape = CONVOLUTIONS[name]
    net = Net([shape])
    module = net.module([make(net, net.inputs[0])])
    (op,) = (op for op in module.main.ops if isinstance(op, Conv))
    n, c, h, w = op.type.shape
    direct = n * -(-c // 64) * -(-h * w // 16) * 9 * shape[1]
    assert winograd.suits(CHIP, op)
    assert analyze(check(module).model).timing().engines[0].busy < 0.8 * direct


def test_cells_are_for_maps_that_gain_by_them() -> None:
    """Few input channels, strides, and weights that take longer to load than to multiply keep their products."""
    for inside, size, modes in (
        (3, 64, {}),
        (64, 64, {"strides": (2, 2)}),
        (512, 7, {}),
        (64, 64, {"dilations": (2, 2)}),
    ):
        net = Net([(1, inside, size, size)])
        module = net.module([convolution(inside, 512, (3, 3), pads=(1, 1, 1, 1), **modes)(net, net.inputs[0])])
        (op,) = (op for op in module.main.ops if isinstance(op, Conv))
        assert not winograd.suits(CHIP, op)


def test_large_weights_arrive_in_shares() -> None:
    """The first channels are summed while the weights of the last ones are loaded: 36 KiB a lane and round of lanes."""
    net = Net([(1, 256, 7, 7)])
    module = net.module([convolution(256, 200, (6, 6), pads=(2, 3, 2, 3))(net, net.inputs[0])])
    compiled = check(module)
    assert isinstance(compiled.model, Bm168xModel)
    timing = analyze(compiled.model).timing()
    assert timing.cycles < 0.8 * sum(row.compute + row.transfer for row in timing.layers)


def product(left: bool = False, right: bool = False) -> Make:
    return lambda net, a, b: net.b.matmul(a, b, transpose_left=left, transpose_right=right)


def weighted(depth: int, columns: int, activation: str = "") -> Make:
    return lambda net, x: net.b.matmul(x, net.f32(depth, columns), net.f32(columns), activation=activation)


PRODUCTS: dict[str, tuple[Make, tuple[tuple[int, ...], ...]]] = {
    "plain": (product(), ((7, 33), (33, 50))),
    "batched": (product(), ((2, 3, 9, 40), (2, 3, 40, 17))),
    "repeated": (product(), ((4, 9, 40), (1, 40, 17))),
    "turned_left": (product(left=True), ((2, 40, 9), (2, 40, 17))),
    "turned_right": (product(right=True), ((2, 9, 40), (2, 17, 40))),
    "turned_both": (product(left=True, right=True), ((40, 9), (17, 40))),
    "weights": (weighted(130, 70, "relu"), ((5, 130),)),
    "many_columns": (weighted(40, 3000), ((3, 40),)),
    "chunks": (weighted(2100, 40), ((3, 2100),)),
}


@pytest.mark.parametrize("lanes", [FULL, 40000])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, lanes: int) -> None:
    make, shapes = PRODUCTS[name]
    check_op(make, *shapes, lanes=lanes)


def test_more_columns_than_local_memory_holds() -> None:
    check_op(weighted(1100, 5000, "relu"), (2, 1100))


POOLS: dict[str, Make] = {
    "max": lambda net, x: net.b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    "max_wide": lambda net, x: net.b.max_pool(x, kernel=(2, 14), strides=(1, 3)),
    "average": lambda net, x: net.b.avg_pool(x, kernel=(2, 2), strides=(2, 2)),
    "counted": lambda net, x: net.b.avg_pool(x, kernel=(3, 3), strides=(1, 2), pads=(1, 1, 1, 1)),
    "global": lambda net, x: net.b.avg_pool(x, kernel=(15, 14)),
}


@pytest.mark.parametrize("lanes", [FULL, SMALL])
@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str, lanes: int) -> None:
    check_op(POOLS[name], (2, 70, 15, 14), lanes=lanes)


def test_largest_of_special_numbers() -> None:
    """acc > v ? acc : v along rows of the window: of two zeros, and of a NaN and a number, the later one."""
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1, -1], np.float32)
    x = np.random.default_rng(3).choice(special, (2, 70, 6, 8)).astype(np.float32)
    net = Net([x.shape])
    module = net.module([net.b.max_pool(net.inputs[0], kernel=(2, 2), strides=(2, 2))])
    check(module, inputs={"x0": x})
    flushed = np.where(np.abs(x) < 1e-38, np.copysign(np.float32(0), x), x)
    first, *others = (flushed[:, :, row::2, column::2] for row in (0, 1) for column in (0, 1))
    for value in others:
        first = np.where(first > value, first, value)
    found = run_module(module, {"x0": x}, target=BM1684X.target)["y0"]
    same = (found.view(np.uint32) == first.view(np.uint32)) | np.isnan(found) & np.isnan(first)
    assert same.all()


OTHERS: dict[str, tuple[Make, tuple[tuple[int, ...], ...]]] = {
    "broadcast": (lambda net, a, b: net.b.add(a, b), ((2, 70, 6, 5), (1, 70, 1, 5))),
    "repeat_pixels": (lambda net, a, b: net.b.mul(a, b), ((2, 3, 6, 5), (2, 1, 1, 1))),
    "scalar_pixels": (lambda net, x: net.b.prelu(x, net.f32(70)), ((3, 70, 4, 4),)),
    "sigmoid": (lambda net, x: net.b.sigmoid(x), ((1, 130, 9, 9),)),
    "gelu": (lambda net, x: net.b.gelu(x), ((3, 197),)),
    "swish_in_banks": (lambda net, x: net.b.swish(x), ((1, 70, 30, 37),)),
    "power": (lambda net, a, b: net.b.pow(net.b.abs(a), b), ((5, 44), (5, 44))),
    "softmax_channels": (lambda net, x: net.b.softmax(x, axis=1), ((2, 90, 4, 5),)),
    "softmax_rows": (lambda net, x: net.b.softmax(x, axis=-1), ((2, 8, 16, 33),)),
    "reduce": (lambda net, x: net.b.reduce(x, method="mean", axes=(2, 3), keepdims=True), ((2, 70, 7, 9),)),
    "permute": (lambda net, x: net.b.permute(x, order=(0, 2, 3, 1)), ((2, 70, 6, 5),)),
    "turn_pixels": (lambda net, x: net.b.permute(x, order=(0, 2, 3, 1)), ((2, 6, 45, 79),)),
    "turn_channels": (lambda net, x: net.b.permute(x, order=(0, 3, 1, 2)), ((2, 45, 79, 6),)),
    "concat": (lambda net, a, b: net.b.concat(a, b, axis=1), ((2, 70, 4, 5), (2, 9, 4, 5))),
}


@pytest.mark.parametrize("lanes", [FULL, SMALL])
@pytest.mark.parametrize("name", OTHERS)
def test_the_house_of_lanes(name: str, lanes: int) -> None:
    make, shapes = OTHERS[name]
    check_op(make, *shapes, lanes=lanes)


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (1, 2, 0)])
def test_matrices_are_transposed_in_lanes(order: tuple[int, ...]) -> None:
    """Of single elements in global memory, each takes as long as 256 bytes: 2 * 21294 * 256 / 48 cycles."""
    net = Net([(1, 6, 3549)])
    compiled = check(net.module([net.b.permute(net.inputs[0], order=order)]))
    assert analyze(compiled.model).timing().cycles < 10_000


@pytest.mark.parametrize("dtype", ["i32", "i16", "u16", "i8", "u8"])
def test_the_larger_and_the_smaller_of_integers(dtype: str) -> None:
    def make(net: Net, a: Value, b: Value) -> Value:
        return net.b.max(net.b.min(net.b.maxs(a, value=3), b), net.b.mins(a, value=100))

    check_op(make, (2, 70, 3, 5), (2, 70, 3, 5), dtype=dtype)


def test_levels_give_the_same_bits() -> None:
    def make(net: Net, x: Value) -> Value:
        y = net.b.conv(x, net.f32(70, 3, 3, 3), net.f32(70), pads=(1, 1, 1, 1), activation="relu")
        z = net.b.conv(y, net.f32(70, 70, 1, 1), net.f32(70))
        return net.b.max_pool(net.b.concat(net.b.add(y, z), net.b.sigmoid(z), axis=1), kernel=(2, 2), strides=(2, 2))

    for level in (0, 1, 2):
        check_op(make, (1, 3, 16, 16), level=level)
        check_op(make, (1, 3, 16, 16), level=level, lanes=20000)


@pytest.mark.parametrize(
    ("channels", "size", "base", "commands"),
    [
        (64, 4, 0, 1),  # a bias: short runs
        (130, 36, 0, 1),  # channels beyond the last lane
        (96, 4096, 8, 2),  # more columns than a command has; not from the first lane on
        (64, 1028, 0, 0),  # long runs that are no whole number of 256 bytes: a strided copy is as quick
    ],
)
def test_lanes_move_as_sections_of_matrices(channels: int, size: int, base: int, commands: int) -> None:
    """Every byte of every channel is moved once, to the lane where a strided copy has it."""
    local = Side(CHIP.lmem_window + base * CHIP.lmem_size + 64, (1, channels, 1, size), (0, size, size, 1))
    outer = Side(CHIP.global_base, (1, channels, 1, size), (0, size, size, 1))
    found = as_sections(CycleTable(PROFILE), local, outer, 1)
    assert len(found) == commands
    places = []
    for command in found:
        fields = {name: int(value) for name, value in command.fields.items()}
        item = {Precision.INT8: 1, Precision.INT16: 2, Precision.FP32: 4}[Precision(fields["data_format"])]
        lane, offset = divmod(fields["dst_addr_lo"] - CHIP.lmem_window, CHIP.lmem_size)
        for section in range(fields["dst_c"]):
            down, at = divmod(lane + section, CHIP.lanes)
            places.append((at, offset + down * fields["dst_c_str"] * item, fields["dst_w"] * item))
        assert fields["src_w"] == fields["dst_c"] * fields["dst_w"]
    wanted = [((base + c) % CHIP.lanes, 64 + (base + c) // CHIP.lanes * size, size) for c in range(channels)]
    assert places == (wanted if commands else [])
