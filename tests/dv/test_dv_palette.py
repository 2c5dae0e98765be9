"""Weights of 8 bits on the DV700: half the coefficients, the bits of `evaluate`, results near those of fp16."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dv_nets import Build, lowered, net, random_inputs, run_on_device, weights

import bmcompiler
from bmcompiler.backends.dv.driver.commands import ConvCommand, FcCommand, Pair, Run
from bmcompiler.backends.dv.driver.stage_commands import subnet_commands
from bmcompiler.backends.dv.formats.packing import pack_conv
from bmcompiler.backends.dv.formats.palette import coded
from bmcompiler.backends.dv.kernels.pointwise import _is_smaller_apart
from bmcompiler.backends.dv.lowering.parts import Filters
from bmcompiler.backends.dv.target import TARGET
from bmcompiler.bmodel.bm168x import TpuSubnet
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Value
from bmcompiler.ir.keys import PALETTE
from bmcompiler.ops.builder import Builder

MODELS = Path(__file__).resolve().parent.parent.parent / "models"
NETS = {
    "lenet": ("lenet/deploy.prototxt", "lenet/lenet.caffemodel"),
    "resnet8": ("resnet8/resnet8_mnist.onnx", None),
}
MAP = (2, 16, 9, 10)


def flat(b: Builder, x: Value) -> Value:
    return b.reshape(b.neg(x), shape=(2, 1440))


LAYERS: dict[str, Build] = {
    "conv": lambda b, x: b.conv(x, weights(b, 40, 16, 3, 3), weights(b, 40)),
    "conv 1x1": lambda b, x: b.conv(b.conv(x, weights(b, 64, 16, 1, 1)), weights(b, 24, 64, 1, 1)),
    "depthwise": lambda b, x: b.conv(x, weights(b, 16, 1, 7, 7), group=16, pads=(3, 3, 3, 3)),
    "dilated": lambda b, x: b.conv(x, weights(b, 16, 16, 3, 3), pads=(2, 2, 2, 2), dilations=(2, 2)),
    "deconv": lambda b, x: b.deconv(x, weights(b, 16, 24, 4, 4), strides=(2, 2), pads=(1, 1, 1, 1)),
    "matmul": lambda b, x: b.matmul(flat(b, x), weights(b, 1440, 20), weights(b, 20)),
    "inner product": lambda b, x: b.matmul(flat(b, x), weights(b, 20, 1440), transpose_right=True),
    "wide prelu": lambda b, x: b.prelu(b.conv(x, weights(b, 32, 16, 5, 5), weights(b, 32)), weights(b, 32)),
}


def quantized(model: Any) -> list[bool]:
    """Of all runs and FC commands with weights: whether they are bytes."""
    found: list[bool] = []
    for subnet in model.nets[0].stages[0].subnets:
        for data in subnet_commands(subnet) if isinstance(subnet, TpuSubnet) else ():
            if len(data) == 72:
                found.append(FcCommand.decode(data).is_quantized)
            else:
                found += [run.is_quantized for run in ConvCommand.decode(data).runs if run.has_conv]
    return found


@pytest.mark.parametrize("name", LAYERS)
def test_layers_have_bytes_for_weights(name: str) -> None:
    exact = net(LAYERS[name], MAP)
    modules = {precision: lowered(net(LAYERS[name], MAP), precision) for precision in ("f16", "int8")}
    made = {precision: TARGET.compile([module], 2) for precision, module in modules.items()}
    assert not any(quantized(made["f16"].model)) and any(quantized(made["int8"].model))
    assert made["int8"].totals["weight memory"] < 0.8 * made["f16"].totals["weight memory"]
    inputs = random_inputs(exact)
    (found,) = run_on_device(modules["int8"], made["int8"], inputs).values()
    (wanted,) = run_module(exact, inputs).values()
    assert np.abs(found - wanted).max() <= 0.01 * np.abs(wanted).max()


def test_slopes_join_where_bytes_would_gain_less() -> None:
    """A PReLU excludes bytes; alone it takes 144 bytes per channel."""

    def build(b: Builder, x: Value) -> Value:
        x = b.prelu(b.conv(x, weights(b, 16, 16, 3, 3)), weights(b, 16))
        return b.prelu(b.conv(x, weights(b, 16, 16, 7, 7)), weights(b, 16))

    module = lowered(net(build, (1, *MAP[1:])), "int8")
    made = TARGET.compile([module], 2)
    assert quantized(made.model) == [False, True, False]
    run_on_device(module, made, random_inputs(module))


def test_few_different_weights_are_bytes_in_fp16_too() -> None:
    def build(b: Builder, x: Value) -> Value:
        signs = np.random.default_rng(0).choice([-1, 0, 1, -0.0], (32, 16, 3, 3)).astype(np.float32)
        return b.conv(x, b.weight(signs))

    module = net(build, (1, *MAP[1:]))
    made = TARGET.compile([module], 2)
    assert quantized(made.model) == [True]
    run_on_device(module, made, random_inputs(module))


def test_tables_begin_with_zero() -> None:
    found = coded(np.array([5, -0.0, -3, 5], np.float16))
    assert found is not None
    assert found.table.view(np.float16)[:4].tolist() == [0, -3, 5, 0] and found.indices.tolist() == [2, 0, 1, 2]
    assert coded(np.arange(1, 257, dtype=np.float16)) is None
    assert coded(np.arange(0, 256, dtype=np.float16)) is not None


@pytest.mark.parametrize("name", NETS)
def test_digits_keep_their_accuracy_with_half_the_coefficients(name: str) -> None:
    """Within 0.5 points of float on the test digits; the bits of `evaluate`."""
    data = np.load(MODELS / "digits.npz")
    images = data["test"].astype(np.float32).reshape(-1, 1, 28, 28) / 255
    model, blobs = (None if path is None else MODELS / path for path in NETS[name])
    network = bmcompiler.load_network(model, blobs, shapes=[images.shape])
    (source,) = network.main.input_names
    wide, made = (
        bmcompiler.compile(model, blobs, target="dv700", quantize=precision, shapes=[[20, 1, 28, 28]])
        for precision in ("f16", "int8")
    )
    assert made.totals["weight memory"] < 0.56 * wide.totals["weight memory"]
    assert any("come from tables of 256 numbers" in note for note in made.notes)
    run_on_device(made.module, made, {source: images[:20]})

    def right(outputs: dict[str, np.ndarray]) -> float:
        (scores,) = outputs.values()
        return float((scores.reshape(len(images), -1).argmax(axis=1) == data["labels"]).mean())

    session = bmcompiler.runtime.Session(made.model)
    assert right(session.run({source: images})) >= right(run_module(network, {source: images})) - 0.005


@pytest.mark.parametrize(("attributes", "apart"), [({}, False), ({PALETTE: 1}, True)])
def test_slopes_leave_a_convolution_only_where_its_weights_are_bytes_and_many(
    attributes: dict[str, Any], apart: bool
) -> None:
    for channels, many in ((8, False), (256, True)):
        for op in (SimpleNamespace(attributes=attributes), None):
            weight: Any = SimpleNamespace(type=SimpleNamespace(size=64 * channels * 9), op=op)
            run = Run(m=64, conv_enable=1, kernel=Pair(3, 3))
            filters = Filters((weight,), lambda *arrays: arrays, "")
            assert _is_smaller_apart(run, filters) == (apart and many and op is not None)
    assert not _is_smaller_apart(run, Filters((), lambda *arrays: arrays, ""))


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (5, 3)])
def test_slopes_leave_where_what_is_packed_is_less(kernel: tuple[int, int]) -> None:
    """Counted in bytes that are packed, at many sizes: both ways are met, and where one ends and the other begins."""
    (kx, ky), table, nearest = kernel, np.zeros(256, np.uint16), 1 << 20
    for m, channels in product((*range(1, 40), 64), (*range(1, 28), 64, 255)):
        halves, shape = np.zeros(m, np.uint16), (m, channels, ky, kx)
        alone = pack_conv(np.zeros((m, 1, 1, 1), np.uint16), halves, None, halves).size
        together = pack_conv(np.zeros(shape, np.uint16), halves, None, halves).size
        apart = pack_conv(np.zeros(shape, np.uint8), halves, table).size + alone
        palette = SimpleNamespace(attributes={PALETTE: 1})
        weight: Any = SimpleNamespace(type=SimpleNamespace(size=m * channels * kx * ky), op=palette)
        run = Run(m=m, conv_enable=1, kernel=Pair(kx, ky))
        found = _is_smaller_apart(run, Filters((weight,), lambda *arrays: arrays, ""))
        assert found == (apart < together), (m, channels)
        nearest = min(nearest, abs(apart - together))
    assert nearest <= 128
