"""Every layer type against OpenCV's Caffe importer, or against numpy where OpenCV has no (or another) meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from caffe_nets import Arrays, header, layer, load, opencv, random, run

from bmcompiler.errors import BMError, UnsupportedError


class Case(NamedTuple):
    kind: str
    params: str = ""
    shape: tuple[int, ...] = (2, 6, 7, 9)
    weights: tuple[tuple[int, ...], ...] = ()
    low: float = -1.0
    inputs: int = 1
    outputs: int = 1


def conv(params: str, *weights: tuple[int, ...], kind: str = "Convolution", **more: Any) -> Case:
    return Case(kind, f"convolution_param {{ {params} }}", weights=weights, **more)


def pool(params: str, shape: tuple[int, ...] = (2, 6, 7, 9)) -> Case:
    return Case("Pooling", f"pooling_param {{ {params} }}", shape)


AS_OPENCV = {
    "conv": conv("num_output: 4 kernel_size: 3", (4, 6, 3, 3), (4,)),
    "conv without bias, padded, strided": conv(
        "num_output: 4 kernel_size: 3 pad: 1 stride: 2 bias_term: false", (4, 6, 3, 3)
    ),
    "conv with different height and width": conv(
        "num_output: 4 kernel_h: 1 kernel_w: 5 pad_h: 0 pad_w: 2 stride_h: 2 stride_w: 1", (4, 6, 1, 5), (4,)
    ),
    "conv with groups": conv("num_output: 4 kernel_size: 3 group: 2", (4, 3, 3, 3), (4,)),
    "depthwise": conv("num_output: 6 kernel_size: 3 group: 6 pad: 1", (6, 1, 3, 3), (6,)),
    "dilated conv": conv("num_output: 4 kernel_size: 3 dilation: 2 pad: 2", (4, 6, 3, 3), (4,)),
    "conv with old four-axis bias": conv("num_output: 4 kernel_size: 3", (4, 6, 3, 3), (1, 1, 1, 4)),
    "deconv": conv("num_output: 4 kernel_size: 4 stride: 2 pad: 1", (6, 4, 4, 4), (4,), kind="Deconvolution"),
    "deconv with groups": conv(
        "num_output: 6 kernel_size: 4 stride: 2 pad: 1 group: 6 bias_term: false", (6, 1, 4, 4), kind="Deconvolution"
    ),
    "inner product": Case("InnerProduct", "inner_product_param { num_output: 5 }", weights=((5, 378), (5,))),
    "inner product with old shapes": Case(
        "InnerProduct", "inner_product_param { num_output: 5 }", weights=((1, 1, 5, 378), (1, 1, 1, 5))
    ),
    "inner product on a later axis": Case(
        "InnerProduct", "inner_product_param { num_output: 5 axis: 2 bias_term: false }", weights=((5, 63),)
    ),
    "max pool rounds up": pool("pool: MAX kernel_size: 2 stride: 2"),
    "max pool padded": pool("pool: MAX kernel_size: 3 stride: 2 pad: 1", (1, 3, 8, 8)),
    "max pool, last window in the padding": pool("pool: MAX kernel_size: 2 stride: 2 pad: 1", (1, 3, 7, 8)),
    "max pool different height and width": pool("kernel_h: 2 kernel_w: 3 stride_h: 1 stride_w: 3 pad_h: 1 pad_w: 0"),
    "average pool": pool("pool: AVE kernel_size: 3 stride: 2"),
    "average pool padded": pool("pool: AVE kernel_size: 3 stride: 2 pad: 1", (1, 3, 8, 8)),
    "average pool padded, odd": pool("pool: AVE kernel_size: 3 stride: 2 pad: 1"),
    "global average": pool("pool: AVE global_pooling: true"),
    "global max": pool("pool: MAX global_pooling: true"),
    "max pool rounding down by ceil_mode": pool("kernel_size: 2 stride: 2 ceil_mode: false"),
    "prelu": Case("PReLU", weights=((6,),)),
    "prelu shared": Case("PReLU", "prelu_param { channel_shared: true }", weights=((1,),)),
    "relu": Case("ReLU"),
    "leaky relu": Case("ReLU", "relu_param { negative_slope: 0.1 }"),
    "relu6": Case("ReLU6", low=-10.0),
    "elu": Case("ELU"),
    "sigmoid": Case("Sigmoid"),
    "tanh": Case("TanH"),
    "absval": Case("AbsVal"),
    "bnll": Case("BNLL"),
    "power": Case("Power", "power_param { power: 3 scale: 0.5 shift: 2 }"),
    "power affine only": Case("Power", "power_param { scale: -2 shift: 0.25 }"),
    "power square": Case("Power", "power_param { power: 2 shift: 0.25 }"),
    "power root": Case("Power", "power_param { power: 0.5 shift: 2 }"),
    "exp": Case("Exp", "exp_param { scale: 0.5 shift: 0.3 }"),
    "exp base 2": Case("Exp", "exp_param { base: 2 scale: 0.5 shift: 0.3 }"),
    "lrn across": Case("LRN", "lrn_param { local_size: 5 alpha: 0.5 beta: 0.75 }"),
    "lrn within": Case("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 norm_region: WITHIN_CHANNEL }"),
    "eltwise product": Case("Eltwise", "eltwise_param { operation: PROD }", inputs=3),
    "eltwise sum": Case("Eltwise", inputs=3),
    "eltwise weighted": Case("Eltwise", "eltwise_param { operation: SUM coeff: 0.5 coeff: -1 }", inputs=2),
    "eltwise max": Case("Eltwise", "eltwise_param { operation: MAX }", inputs=2),
    "concat": Case("Concat", inputs=3),
    "concat axis": Case("Concat", "concat_param { axis: 2 }", inputs=2),
    "slice": Case("Slice", "slice_param { slice_point: 1 slice_point: 4 }", outputs=3),
    "flatten": Case("Flatten"),
    "flatten axes": Case("Flatten", "flatten_param { axis: 2 end_axis: -1 }"),
    "reshape": Case("Reshape", "reshape_param { shape { dim: 0 dim: 3 dim: -1 } }"),
    "reshape one axis": Case("Reshape", "reshape_param { shape { dim: 3 dim: -1 } axis: 1 num_axes: 1 }"),
    "softmax": Case("Softmax"),
    "softmax axis": Case("Softmax", "softmax_param { axis: 3 }"),
    "permute": Case("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }"),
    "reorg": Case("Reorg", "reorg_param { stride: 2 }", (2, 8, 4, 6)),
    "max pool with mask": pool("kernel_size: 2 stride: 2")._replace(outputs=2),
    "max pool padded with mask": pool("kernel_size: 3 stride: 2 pad: 1")._replace(outputs=2),
    "mvn": Case("MVN"),
    "mvn across channels": Case("MVN", "mvn_param { across_channels: true }"),
    "mvn, mean only": Case("MVN", "mvn_param { normalize_variance: false }"),
    "normalize": Case("Normalize", "norm_param { across_spatial: false channel_shared: false }", weights=((6,),)),
    "normalize over space": Case("Normalize", weights=((1,),)),
    "normalize with epsilon": Case("Normalize", "norm_param { across_spatial: false eps: 0.01 }", weights=((1,),)),
    "interp to a size": Case("Interp", "interp_param { height: 11 width: 4 }"),
    "interp by a factor": Case("Interp", "interp_param { zoom_factor: 3 }"),
    "shuffle": Case("ShuffleChannel", "shuffle_channel_param { group: 3 }"),
    "dropout": Case("Dropout"),
}


def net(case: Case) -> tuple[str, dict[str, Arrays], dict[str, np.ndarray]]:
    """Text, weights and inputs of a case."""
    names = [f"in{i}" for i in range(case.inputs)]
    outs = [f"out{i}" for i in range(case.outputs)]
    text = "".join(header(case.shape, name) for name in names)
    text += layer(case.kind, case.params, name="out0", bottom=" ".join(names), top=" ".join(outs))
    weights = {"out0": [random(s, i + 10) for i, s in enumerate(case.weights)]} if case.weights else {}
    inputs = {name: random(case.shape, i, case.low, abs(case.low)) for i, name in enumerate(names)}
    return text, weights, inputs


@pytest.mark.parametrize("name", AS_OPENCV)
def test_layer_equals_opencv(name: str, tmp_path: Path) -> None:
    text, weights, inputs = net(AS_OPENCV[name])
    ours = run(load(tmp_path, text, weights), inputs)
    for mine, reference in zip(ours, opencv(text, weights, inputs)):
        assert mine.shape == reference.shape
        np.testing.assert_allclose(mine, reference, rtol=1e-4, atol=1e-5)


def run_one(folder: Path, case: Case) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Outputs, inputs and weights of a case."""
    text, weights, inputs = net(case)
    return run(load(folder, text, weights), inputs), list(inputs.values()), list(weights.get("out0", ()))


def bn(x: np.ndarray, mean: np.ndarray, variance: np.ndarray, factor: float, eps: float) -> np.ndarray:
    shape = (1, -1, 1, 1)
    return (x - mean.reshape(shape) * factor) / np.sqrt(variance.reshape(shape) * factor + eps)


@pytest.mark.parametrize(("total", "factor"), [(4.0, 0.25), (0.0, 0.0)])
def test_batch_norm_divides_its_sums_by_the_third_blob(total: float, factor: float, tmp_path: Path) -> None:
    x, mean, variance = random((2, 3, 4, 5)), random((3,), 1), random((3,), 2, 0.5, 2)
    text = header(x.shape) + layer("BatchNorm", "batch_norm_param { eps: 0.01 }")
    weights = {"l": [mean, variance, np.array([total], np.float32)]}
    (y,) = run(load(tmp_path, text, weights), {"data": x})
    np.testing.assert_allclose(y, bn(x, mean, variance, factor, 0.01), rtol=1e-5, atol=1e-5)


def test_batch_norm_and_scale_as_opencv(tmp_path: Path) -> None:
    x = random((2, 3, 4, 5))
    text = header(x.shape) + layer("BatchNorm", name="bn", top="bn")
    text += layer("Scale", "scale_param { bias_term: true }", name="out0", bottom="bn", top="out0")
    blobs = [random((3,), 1), random((3,), 2, 0.5, 2), np.array([2], np.float32)]
    weights = {"bn": blobs, "out0": [random((3,), 3), random((3,), 4)]}
    (y,) = run(load(tmp_path, text, weights), {"data": x})
    np.testing.assert_allclose(y, opencv(text, weights, {"data": x})[0], rtol=1e-4, atol=1e-5)


def test_batch_statistics_are_refused(tmp_path: Path) -> None:
    text = header((1, 3, 4, 4)) + layer("BatchNorm", "batch_norm_param { use_global_stats: false }")
    with pytest.raises(UnsupportedError, match="use_global_stats: true"):
        load(tmp_path, text)


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("kind", ["Scale", "Bias"])
def test_scale_and_bias_along_any_axis(kind: str, axis: int, tmp_path: Path) -> None:
    x = random((2, 3, 4, 5))
    factor = random(x.shape[axis : axis + 1], 1)
    text = header(x.shape) + layer(kind, f"{kind.lower()}_param {{ axis: {axis} }}")
    (y,) = run(load(tmp_path, text, {"l": [factor]}), {"data": x})
    spread = factor.reshape([-1 if i == axis % 4 else 1 for i in range(4)])
    np.testing.assert_allclose(y, x * spread if kind == "Scale" else x + spread, rtol=1e-6)


def test_scale_over_several_axes(tmp_path: Path) -> None:
    x, factor, bias = random((2, 3, 4, 5)), random((3, 4), 1), random((3, 4), 2)
    text = header(x.shape) + layer("Scale", "scale_param { num_axes: 2 bias_term: true }")
    (y,) = run(load(tmp_path, text, {"l": [factor, bias]}), {"data": x})
    np.testing.assert_allclose(y, x * factor[None, :, :, None] + bias[None, :, :, None], rtol=1e-6, atol=1e-6)


def test_scale_by_a_second_bottom(tmp_path: Path) -> None:
    x, gate = random((2, 3, 4, 5)), random((2, 3), 1)
    text = header(x.shape) + header(gate.shape, "gate") + layer("Scale", "scale_param { axis: 0 }", bottom="data gate")
    (y,) = run(load(tmp_path, text), {"data": x, "gate": gate})
    np.testing.assert_array_equal(y, x * gate[:, :, None, None])


def test_lrn_with_k(tmp_path: Path) -> None:
    case = Case("LRN", "lrn_param { local_size: 3 alpha: 0.6 beta: 0.5 k: 2 }", (1, 4, 2, 2))
    (y,), (x,), _ = run_one(tmp_path, case)
    squares = np.pad(x**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    np.testing.assert_allclose(y, x / np.sqrt(2 + 0.2 * total), rtol=1e-5)


def test_average_of_a_padded_border_counts_the_padding(tmp_path: Path) -> None:
    """Caffe divides by the part of the window that lies in the padded image; ceil mode reaches beyond it."""
    params = "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }"
    text = header((1, 1, 4, 4)) + layer("Pooling", params)
    (y,) = run(load(tmp_path, text), {"data": np.ones((1, 1, 4, 4), np.float32)})
    # rows: windows [-1,2) [1,4) [3,6), the last clipped to the padded size 5
    np.testing.assert_allclose(y[0, 0], np.outer([2 / 3, 1, 1 / 2], [2 / 3, 1, 1 / 2]), rtol=1e-6)


NUMPY = {
    "round_mode": (
        Case("Pooling", "pooling_param { kernel_size: 2 stride: 2 round_mode: FLOOR }", (1, 2, 5, 5)),
        lambda x: [x[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2).max(axis=(3, 5))],
    ),
    "slice equal": (Case("Slice", "slice_param { axis: -1 }", outputs=3), lambda x: np.split(x, 3, axis=3)),
    "slice_dim": (Case("Slice", "slice_param { slice_dim: 1 }", outputs=2), lambda x: np.split(x, 2, axis=1)),
    "split": (Case("Split", outputs=2), lambda x: [x, x]),
    "concat_dim": (
        Case("Concat", "concat_param { concat_dim: 0 }", inputs=2),
        lambda x, y: [np.concatenate([x, y])],
    ),
    "tile": (Case("Tile", "tile_param { axis: -2 tiles: 2 }"), lambda x: [np.tile(x, (1, 1, 2, 1))]),
    "sum": (Case("Reduction", "reduction_param { axis: 1 coeff: 0.5 }"), lambda x: [x.sum(axis=(1, 2, 3)) * 0.5]),
    "mean": (Case("Reduction", "reduction_param { operation: MEAN axis: 2 }"), lambda x: [x.mean(axis=(2, 3))]),
    "asum": (Case("Reduction", "reduction_param { operation: ASUM }"), lambda x: [np.abs(x).sum()]),
    "sumsq": (Case("Reduction", "reduction_param { operation: SUMSQ axis: 3 }"), lambda x: [(x**2).sum(axis=3)]),
    "argmax": (Case("ArgMax"), lambda x: [x.reshape(2, -1).argmax(axis=1).reshape(2, 1, 1, 1)]),
    "argmax axis": (Case("ArgMax", "argmax_param { axis: 1 }"), lambda x: [x.argmax(axis=1, keepdims=True)]),
    "upsample": (
        Case("Upsample", "upsample_param { scale: 2 }"),
        lambda x: [x.repeat(2, axis=2).repeat(2, axis=3)],
    ),
    "interp from one pixel": (
        Case("Interp", "interp_param { height: 3 width: 4 }", (1, 2, 1, 1)),
        lambda x: [np.broadcast_to(x, (1, 2, 3, 4))],
    ),
    "crop": (
        Case("Crop", "crop_param { axis: 2 offset: 0 }", inputs=2),
        lambda x, y: [x],
    ),
    "log": (
        Case("Log", "log_param { base: 10 scale: 2 shift: 3 }"),
        lambda x: [np.log10(2 * x.astype(np.float64) + 3)],
    ),
    "power 0": (Case("Power", "power_param { power: 0 }"), lambda x: [np.ones_like(x)]),
    "elu alpha": (Case("ELU", "elu_param { alpha: 0.5 }"), lambda x: [np.where(x > 0, x, 0.5 * np.expm1(x))]),
    "swish": (Case("Swish", "swish_param { beta: 2 }"), lambda x: [x / (1 + np.exp(-2 * x))]),
    "mish": (Case("Mish"), lambda x: [x * np.tanh(np.log1p(np.exp(x)))]),
    "clip": (Case("Clip", "clip_param { min: -0.5 max: 0.25 }"), lambda x: [x.clip(-0.5, 0.25)]),
    "reshape to the front": (
        Case("Reshape", "reshape_param { shape { dim: 1 } axis: -5 num_axes: 0 }"),
        lambda x: [x[None]],
    ),
}


@pytest.mark.parametrize("name", NUMPY)
def test_layer_equals_numpy(name: str, tmp_path: Path) -> None:
    case, meaning = NUMPY[name]
    ours, inputs, _ = run_one(tmp_path, case)
    for mine, reference in zip(ours, meaning(*inputs), strict=True):
        assert mine.shape == reference.shape
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, reference, rtol=1e-5, atol=1e-6)


def test_crop_takes_the_window_at_the_offset(tmp_path: Path) -> None:
    x, like = random((1, 2, 6, 7)), random((1, 2, 3, 4), 1)
    text = header(x.shape) + header(like.shape, "like")
    text += layer("Crop", "crop_param { offset: 1 offset: 2 }", bottom="data like")
    (y,) = run(load(tmp_path, text), {"data": x, "like": like})
    np.testing.assert_array_equal(y, x[:, :, 1:4, 2:6])


def test_inner_product_with_transposed_weights(tmp_path: Path) -> None:
    x, w = random((2, 3, 4, 5)), random((60, 7), 1)
    text = header(x.shape) + layer(
        "InnerProduct", "inner_product_param { num_output: 7 transpose: true bias_term: false }"
    )
    (y,) = run(load(tmp_path, text, {"l": [w]}), {"data": x})
    np.testing.assert_allclose(y, x.reshape(2, 60) @ w, rtol=1e-5, atol=1e-5)


def test_depthwise_layer_of_the_branches_groups_by_channel(tmp_path: Path) -> None:
    x, w = random((1, 4, 5, 5)), [random((4, 1, 3, 3), 1), random((4,), 2)]
    params = "convolution_param { num_output: 4 kernel_size: 3 }"
    (y,) = run(load(tmp_path, header(x.shape) + layer("DepthwiseConvolution", params), {"l": w}), {"data": x})
    text = header(x.shape) + layer("Convolution", params[:-1] + "group: 4 }")
    (reference,) = run(load(tmp_path, text, {"l": w}), {"data": x})
    np.testing.assert_array_equal(y, reference)


def test_dummy_data_is_a_constant_or_an_input(tmp_path: Path) -> None:
    params = 'dummy_data_param { data_filler { type: "constant" value: 3 } shape { dim: 1 dim: 2 } }'
    text = header((1, 2)) + layer("DummyData", params, name="d", bottom="", top="d") + layer("Eltwise", bottom="data d")
    x = random((1, 2))
    (y,) = run(load(tmp_path, text), {"data": x})
    np.testing.assert_array_equal(y, x + 3)
    (y,) = run(load(tmp_path, text, shapes={"d": (1, 2)}), {"data": x, "d": x})
    np.testing.assert_array_equal(y, x + x)


def test_a_window_that_sees_nothing_is_refused(tmp_path: Path) -> None:
    text = header((1, 1, 5, 5)) + layer("Pooling", "pooling_param { kernel_size: 1 stride: 3 }")
    with pytest.raises(UnsupportedError, match="outside of the 5 input elements"):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("Pooling", "pooling_param { pool: STOCHASTIC kernel_size: 2 }", "stochastic"),
        ("LRN", "lrn_param { local_size: 4 }", "must be odd"),
        ("Eltwise", "", "takes 2 or more bottoms"),
        ("Convolution", "convolution_param { num_output: 1 }", "states no kernel size"),
        ("Convolution", "convolution_param { kernel_size: 1 }", "states no num_output"),
        ("Convolution", "convolution_param { num_output: 4 kernel_size: 3 group: 5 }", "group 5 does not divide"),
        ("Convolution", "convolution_param { num_output: 4 kernel_size: 3 stride: 0 }", "must be positive"),
        ("Concat", "concat_param { axis: 7 }", "axis 7 does not exist"),
        ("Permute", "permute_param { order: 1 order: 1 }", "is no order"),
        ("Reshape", "reshape_param { shape { dim: 5 dim: -1 } }", "cannot reshape"),
        ("Reshape", "reshape_param { shape { dim: -1 dim: -1 } }", "impossible shape"),
        ("Slice", "slice_param { slice_point: 9 }", "needs? .*slice points"),
        ("ShuffleChannel", "shuffle_channel_param { group: 4 }", "group 4 does not divide"),
    ],
)
def test_bad_settings_are_named(kind: str, params: str, message: str, tmp_path: Path) -> None:
    text = header((2, 6, 7, 9)) + layer(kind, params)
    weights = {"l": [np.zeros((4, 6, 3, 3), np.float32), np.zeros(4, np.float32)]}
    with pytest.raises(BMError, match=message) as raised:
        load(tmp_path, text, weights)
    assert f"net.prototxt: layer 'l' ({kind}): " in str(raised.value)
