"""Ops of the DV700 beyond plain convolutions and poolings: on the device, with the bits of `evaluate`, near float."""

from __future__ import annotations

import numpy as np
import pytest
from dv_nets import Build, lowered, net, random_inputs, run_on_device, weights

from bmcompiler.backends.dv.arithmetic.accumulate import inner_product
from bmcompiler.backends.dv.driver.structs import MOST_SAMPLES
from bmcompiler.backends.dv.formats.packing_sizes import conv_size
from bmcompiler.backends.dv.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder
from bmcompiler.target import unsupported_reason

MAP = (2, 16, 11, 10)
FLAT = (3, 40)


def prelu(b: Builder, x: Value, *, count: int = 0) -> Value:
    return b.prelu(x, weights(b, count or x.shape[1]))


ON_DEVICE: dict[str, tuple[tuple[int, ...], Build]] = {
    "deconv": (
        MAP,
        lambda b, x: b.deconv(x, weights(b, 16, 5, 4, 3), weights(b, 5), strides=(2, 3), pads=(1, 0, 2, 1)),
    ),
    "deconv longer": (MAP, lambda b, x: b.deconv(x, weights(b, 16, 5, 2, 2), strides=(3, 3), output_pads=(2, 1))),
    "deconv relu": (MAP, lambda b, x: b.deconv(x, weights(b, 16, 9, 1, 1), strides=(2, 2), activation="relu")),
    "deconv depthwise": (
        MAP,
        lambda b, x: b.deconv(x, weights(b, 16, 1, 4, 4), group=16, strides=(2, 2), pads=(1,) * 4),
    ),
    "deconv dilated": (MAP, lambda b, x: b.deconv(x, weights(b, 16, 3, 3, 3), pads=(2,) * 4, dilations=(2, 2))),
    "deconv with rows apart": (
        MAP,
        lambda b, x: b.deconv(x, weights(b, 16, 3, 3, 3), pads=(3, 3, 1, 1), dilations=(3, 1)),
    ),
    "leaky relu": (MAP, lambda b, x: b.leaky_relu(x, slope=0.1)),
    "elu": (MAP, lambda b, x: b.elu(x)),
    "sigmoid": (MAP, lambda b, x: b.sigmoid(x)),
    "tanh": (MAP, lambda b, x: b.tanh(x)),
    "abs": (MAP, lambda b, x: b.abs(x)),
    "abs of tanh": (MAP, lambda b, x: b.abs(b.tanh(x))),
    "neg": (MAP, lambda b, x: b.neg(x)),
    "sigmoid of vectors": (FLAT, lambda b, x: b.sigmoid(x)),
    "prelu": (MAP, prelu),
    "prelu with one slope": (MAP, lambda b, x: b.prelu(x, weights(b, 1))),
    "prelu of vectors": (FLAT, prelu),
    "prelu of rows": ((2, 6, 9), prelu),
    "prelu of a conv": (MAP, lambda b, x: prelu(b, b.conv(x, weights(b, 7, 16, 3, 3), weights(b, 7)))),
    "scale": (MAP, lambda b, x: b.scale(x, weights(b, 16), weights(b, 16, seed=1))),
    "scale of vectors": (FLAT, lambda b, x: b.scale(x, weights(b, 40))),
    "upsample": (MAP, lambda b, x: b.upsample(x, scale=(2, 2))),
    "pad": (MAP, lambda b, x: b.pad(x, pads=(0, 0, 0, 0, 2, 0, 1, 3))),
    "lrn": (MAP, lambda b, x: b.lrn(x, size=5)),
    "relu of vectors": (FLAT, lambda b, x: b.relu(x)),
    "relu6": (MAP, lambda b, x: b.clip(x, min=0, max=6)),
    "upsample 4x4": (MAP, lambda b, x: b.upsample(x, scale=(4, 4))),
    "groups": (MAP, lambda b, x: b.conv(x, weights(b, 12, 4, 3, 3), weights(b, 12), group=4, pads=(1, 1, 1, 1))),
    "two kernels per channel": (MAP, lambda b, x: b.conv(x, weights(b, 32, 1, 3, 3), group=16)),
    "dilated without border": (MAP, lambda b, x: b.conv(x, weights(b, 5, 16, 3, 3), weights(b, 5), dilations=(3, 2))),
    "dilated even": (MAP, lambda b, x: b.conv(x, weights(b, 5, 16, 2, 2), dilations=(2, 2), strides=(2, 1))),
    "dilated groups": (MAP, lambda b, x: b.conv(x, weights(b, 4, 8, 3, 1), group=2, dilations=(2, 1))),
    "mean of the map": ((2, 5, 13, 13), lambda b, x: b.avg_pool(x, kernel=(13, 13))),
    "mean of a large map": ((1, 9, 56, 50), lambda b, x: b.avg_pool(x, kernel=(56, 50))),
    "mean of rows": ((1, 9, 3, 50), lambda b, x: b.avg_pool(x, kernel=(1, 50), strides=(1, 50))),
    "means side by side": ((1, 9, 16, 30), lambda b, x: b.avg_pool(x, kernel=(8, 15), strides=(8, 15))),
    "mean and sum": (
        (1, 8, 9, 9),
        lambda b, x: b.add(b.avg_pool(x, kernel=(9, 9)), b.avg_pool(b.neg(x), kernel=(9, 9))),
    ),
}
"""Name -> shape of the input, net."""


@pytest.mark.parametrize("name", ON_DEVICE)
def test_ops_run_on_the_device(name: str) -> None:
    shape, build = ON_DEVICE[name]
    module = net(build, shape)
    inputs = random_inputs(module)
    made = TARGET.compile([module], 2)
    assert {row.where for row in made.rows} == {"dv700"}, [row.reason for row in made.rows]
    (found,) = run_on_device(module, made, inputs).values()
    (exact,) = run_module(module, inputs).values()
    np.testing.assert_allclose(found, exact, atol=0.002 * max(1, np.abs(exact).max()), rtol=0.004)


@pytest.mark.parametrize("name", [name for name, (shape, _) in ON_DEVICE.items() if len(shape) == 4])
@pytest.mark.parametrize("precision", ["f16", "int8"])
def test_nets_of_two_ops_run_on_the_device(name: str, precision: str) -> None:
    """After a convolution and before one, as the passes of the target leave them: whatever joins, joins."""
    shape, build = ON_DEVICE[name]

    def surrounded(b: Builder, x: Value) -> Value:
        channels = x.shape[1]
        before = b.conv(x, weights(b, channels, channels, 3, 3), weights(b, channels), pads=(1, 1, 1, 1))
        made = build(b, before)
        return b.conv(made, weights(b, 9, made.shape[1], 1, 1))

    module = lowered(net(surrounded, shape), precision)
    made = TARGET.compile([module], 2)
    assert {row.where for row in made.rows} == {"dv700"}, [row.reason for row in made.rows]
    run_on_device(module, made, random_inputs(module))


@pytest.mark.parametrize("rows, commands", [(1, 1), (2, 1), (MOST_SAMPLES, 1), (MOST_SAMPLES + 1, 2)])
@pytest.mark.parametrize("transposed", [False, True])
def test_rows_of_a_product_share_commands(rows: int, commands: int, transposed: bool) -> None:
    """As many as the field for samples holds; the numbers are those of an FC command per row."""

    def build(b: Builder, x: Value) -> Value:
        shape = (3, 11) if transposed else (11, 3)
        return b.matmul(x, weights(b, *shape), weights(b, 3), transpose_right=transposed, activation="relu")

    module = net(build, (rows, 11))
    inputs = random_inputs(module)
    made = TARGET.compile([module], 2)
    assert made.totals["commands"] == commands and {row.where for row in made.rows} == {"dv700"}
    assert sum(row.weights for row in made.rows) == commands * conv_size(11, 1, 1, 3, False)
    (found,) = run_on_device(module, made, inputs).values()
    right, bias = (module.weights[value.op.attributes["key"]] for value in module.main.ops[-2].operands[1:])
    table = (right if transposed else right.T).astype(np.float16)
    for row in (0, rows // 2, rows - 1):
        sums = inner_product(inputs["x0"][row].astype(np.float16), table, bias.astype(np.float16))
        np.testing.assert_array_equal(found[row], np.maximum(sums.astype(np.float16), 0))


def test_products_go_on_with_what_follows() -> None:
    """Two layers, their activations and a sum: one command, the middle stays in the unified buffer."""

    def build(b: Builder, x: Value) -> Value:
        hidden = b.leaky_relu(b.matmul(x, weights(b, 40, 24), weights(b, 24)), slope=0.1)
        return b.add(b.matmul(hidden, weights(b, 24, 40), weights(b, 40)), x)

    module = lowered(net(build, (50, 40)))
    made = TARGET.compile([module], 2)
    assert [row.kind for row in made.rows] == ["matmul+leaky_relu", "matmul+add"]
    assert made.totals["commands"] == 1 and not made.rows[0].stored
    run_on_device(module, made, random_inputs(module))


SPECIAL = np.array([0, -0.0, 1e-7, -1e-7, 6e4, -6e4, 65520, -65520, np.inf, -np.inf, -2.5, 3], np.float32)


@pytest.mark.parametrize("name", ["leaky relu", "elu", "sigmoid", "tanh", "abs", "neg", "prelu", "scale", "upsample"])
def test_special_numbers(name: str) -> None:
    shape, build = (1, 12, 1, 1), ON_DEVICE[name][1]
    module = net(build if name != "scale" else lambda b, x: b.scale(x, weights(b, 12)), shape)
    run_on_device(module, TARGET.compile([module], 2), {"x0": SPECIAL.reshape(shape)})


LARGE = [(4, 4), (5, 5), (3, 5), (9, 6), (7, 7), (5, 3), (1, 4), (11, 10)]


@pytest.mark.parametrize("kernel", LARGE)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (5, 4)])
@pytest.mark.parametrize("form", ["no pads", "half", "one side", "rounded up"])
def test_largest_of_large_windows(kernel: tuple[int, int], strides: tuple[int, int], form: str) -> None:
    """Exactly the largest of the numbers in fp16, all of which are below 0, whatever the padding."""
    x = (np.random.default_rng(3).standard_normal((1, 9, 11, 10)) - 5).astype(np.float16).astype(np.float32)
    half, most = [size // 2 for size in kernel], [size - 1 for size in kernel]
    pads = {"half": (half[0], half[0], half[1], half[1]), "one side": (most[0], 0, 0, most[1])}.get(form, (0,) * 4)

    def build(b: Builder, v: Value) -> Value:
        return b.max_pool(v, kernel=kernel, strides=strides, pads=pads, ceil_mode=form == "rounded up")

    module = net(build, x.shape)
    made = TARGET.compile([module], 2)
    assert {row.where for row in made.rows} == {"dv700"}, [row.reason for row in made.rows]
    (found,) = run_on_device(module, made, {"x0": x}).values()
    np.testing.assert_array_equal(found, run_module(module, {"x0": x})["y0"])


LEGALIZED: dict[str, Build] = {
    "sub": lambda b, x: b.sub(b.relu(x), x),
}


@pytest.mark.parametrize("name", LEGALIZED)
def test_ops_become_others_that_run_on_the_device(name: str) -> None:
    exact = net(LEGALIZED[name], MAP)
    inputs = random_inputs(exact)
    (wanted,) = run_module(exact, inputs).values()
    module = lowered(exact)
    made = TARGET.compile([module], 2)
    assert {row.where for row in made.rows} == {"dv700"}, [row.reason for row in made.rows]
    (found,) = run_on_device(module, made, inputs).values()
    np.testing.assert_allclose(found, wanted, atol=0.004)


REFUSED: dict[str, tuple[Build, str]] = {
    "depthwise kernel": (lambda b, x: b.conv(x, weights(b, 16, 1, 8, 8), group=16), "Depthwise kernels have at most 7"),
    "dilation": (lambda b, x: b.conv(x, weights(b, 2, 16, 3, 3), dilations=(4, 4)), "result times stride must be"),
    "window": (lambda b, x: b.avg_pool(x, kernel=(8, 8)), "average pooling window 8 x 8: 1 to 7 can be used"),
    "windows": (
        lambda b, x: b.avg_pool(x, kernel=(11, 11), strides=(11, 11), pads=(5,) * 4, count_include_pad=True),
        "average pooling window 11 x 11",
    ),
    "bounds": (lambda b, x: b.clip(x, min=-1, max=1), "Bounds must be 0 and 6"),
    "kernel": (lambda b, x: b.deconv(x, weights(b, 16, 2, 8, 8)), "Kernels have at most 7 rows and columns"),
    "groups": (lambda b, x: b.deconv(x, weights(b, 16, 2, 2, 2), group=2), "Groups must be single channels"),
    "pads": (lambda b, x: b.deconv(x, weights(b, 16, 2, 2, 2), pads=(2, 0, 0, 0)), "Pads must not be larger"),
    "weights": (lambda b, x: b.deconv(x, b.reshape(b.neg(x), shape=(16, 2, 11, 10))), "Weights and bias must be const"),
    "alpha": (lambda b, x: b.elu(x, alpha=0.5), "alpha must be 1: got 0.5"),
    "slope": (lambda b, x: b.leaky_relu(x, slope=1e5), "The slope must be within fp16: got 100000.0"),
    "slopes": (
        lambda b, x: b.prelu(
            x, b.reshape(b.slice(x, starts=(0,) * 4, ends=(1, 16, 1, 1), steps=(1,) * 4), shape=(16,))
        ),
        "Slopes must be constants",
    ),
    "axis": (lambda b, x: b.prelu(x, weights(b, 10), axis=3), "Slopes must belong to channels, axis 1: got 3"),
    "factors": (lambda b, x: b.scale(x, weights(b, 11), axis=2), "Factors must belong to channels, axis 1: got 2"),
    "upsample": (lambda b, x: b.upsample(x, scale=(3, 3)), "Both scales must be the same power of two"),
    "pad mode": (lambda b, x: b.pad(x, pads=(0, 0, 0, 0, 1, 1, 1, 1), mode="edge"), "Rows and columns of zeros"),
    "pad channels": (lambda b, x: b.pad(x, pads=(0, 0, 1, 0, 0, 0, 0, 0)), "Rows and columns of zeros"),
    "pad size": (lambda b, x: b.pad(x, pads=(0, 0, 0, 0, 128, 0, 0, 0)), "above 127 (left, top)"),
    "lrn": (lambda b, x: b.lrn(x, size=3), "size must be 5, alpha 1e-4, beta 0.75 and k 1"),
    "lrn channels": (lambda b, x: b.lrn(b.conv(x, weights(b, 8, 16, 1, 1)), size=5), "LRN needs a multiple of 16"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_device_cannot_do_has_a_reason(name: str) -> None:
    build, text = REFUSED[name]
    module = net(build, (2, 16, 11, 10))
    op = [op for op in module.main.ops if op.short_name != "return"][-1]
    assert text in str(unsupported_reason(TARGET, op))
    made = TARGET.compile([module], 2)
    assert made.rows[-1].where == "cpu"
    run_on_device(module, made, random_inputs(module))
