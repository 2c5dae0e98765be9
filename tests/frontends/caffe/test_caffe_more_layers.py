"""Layers that OpenCV lacks or reads otherwise, against numpy forms of what Caffe computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from caffe_nets import header, layer, load, random, run

from bmcompiler.errors import BMError, RuntimeUseError, UnsupportedError


def made(
    folder: Path,
    kind: str,
    params: str,
    inputs: list[np.ndarray],
    weights: list[np.ndarray] | None = None,
    tops: int = 1,
) -> list[np.ndarray]:
    """Outputs of one layer on arrays."""
    names = [f"in{i}" for i in range(len(inputs))]
    text = "".join(header(array.shape, name) for name, array in zip(names, inputs))
    text += layer(kind, params, bottom=" ".join(names), top=" ".join(f"out{i}" for i in range(tops)))
    return run(load(folder, text, {"l": weights} if weights else None), dict(zip(names, inputs)))


def argmax(x: np.ndarray, count: int, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices in the order of pairs (value, index), the largest first: of equal values the later."""
    order = np.flip(np.argsort(x, axis=axis, kind="stable"), axis).take(range(count), axis=axis)
    return np.take_along_axis(x, order, axis), order.astype(np.float32)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("values", [False, True])
def test_argmax_along_an_axis_takes_the_last_of_equals(count: int, values: bool, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 3, (2, 6, 4, 5)).astype(np.float32)
    (y,) = made(
        tmp_path, "ArgMax", f"argmax_param {{ top_k: {count} axis: 1 out_max_val: {str(values).lower()} }}", [x]
    )
    np.testing.assert_array_equal(y, argmax(x, count, 1)[0 if values else 1])


@pytest.mark.parametrize("shape", [(2, 6, 4, 5), (3, 7)])
def test_argmax_over_all_but_the_batch(shape: tuple[int, ...], tmp_path: Path) -> None:
    x = np.random.default_rng(1).integers(0, 9, shape).astype(np.float32)
    best, order = argmax(x.reshape(shape[0], -1), 2, 1)
    rest = (1,) * (max(3, len(shape)) - 3)
    (y,) = made(tmp_path, "ArgMax", "argmax_param { top_k: 2 }", [x])
    np.testing.assert_array_equal(y, order.reshape(shape[0], 1, 2, *rest))
    (y,) = made(tmp_path, "ArgMax", "argmax_param { top_k: 2 out_max_val: true }", [x])
    np.testing.assert_array_equal(y, np.stack([order, best], 1).reshape(shape[0], 2, 2, *rest))


@pytest.mark.parametrize("reverse", [False, True])
def test_reorg_moves_pixels_as_the_branch_does(reverse: bool, tmp_path: Path) -> None:
    """The branch's own index arithmetic: a small plane's element (k, j, i) meets a large plane's by offset k // C'."""
    n, c, h, w, s = 2, 8, 4, 6, 2
    x = random((n, c, h, w))
    few = c // (s * s)
    k, j, i = np.indices((c, h, w))
    at = (i * s + k // few % s) + w * s * ((j * s + k // few // s) + h * s * (k % few))
    flat, expected = x.reshape(n, -1), np.empty((n, c * h * w), np.float32)
    if reverse:
        expected[:, at.ravel()] = flat
    else:
        expected[:] = flat[:, at.ravel()]
    (y,) = made(tmp_path, "Reorg", f"reorg_param {{ stride: {s} reverse: {str(reverse).lower()} }}", [x])
    assert y.shape == ((n, few, h * s, w * s) if reverse else (n, c * s * s, h // s, w // s))
    np.testing.assert_array_equal(y.reshape(n, -1), expected)


def test_axpy_scales_channels(tmp_path: Path) -> None:
    a, x, y = random((2, 3, 1, 1)), random((2, 3, 4, 5), 1), random((2, 3, 4, 5), 2)
    np.testing.assert_allclose(made(tmp_path, "Axpy", "", [a, x, y])[0], a * x + y, rtol=1e-6)


def test_threshold_is_strict(tmp_path: Path) -> None:
    x = np.array([[-1, 0.25, 0.5, np.nan]], np.float32)
    (y,) = made(tmp_path, "Threshold", "threshold_param { threshold: 0.25 }", [x])
    np.testing.assert_array_equal(y, [[0, 0, 1, 0]])


def test_im2col_unfolds_windows(tmp_path: Path) -> None:
    x = random((2, 3, 5, 6))
    (y,) = made(tmp_path, "Im2col", "convolution_param { kernel_h: 3 kernel_w: 2 pad: 1 stride: 2 }", [x])
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), axis=(2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(y, windows.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, 3, 4))


def test_embed_looks_rows_up(tmp_path: Path) -> None:
    index, weight, bias = np.array([[0, 4, 2], [1, 1, 3]], np.float32), random((5, 4), 1), random((4,), 2)
    (y,) = made(tmp_path, "Embed", "embed_param { num_output: 4 input_dim: 5 }", [index], [weight, bias])
    np.testing.assert_allclose(y, weight[index.astype(int)] + bias, rtol=1e-6)


def test_batch_reindex_leaves_out_and_repeats(tmp_path: Path) -> None:
    x, order = random((3, 2, 2)), np.array([2, 0, 2, 1], np.float32)
    np.testing.assert_array_equal(made(tmp_path, "BatchReindex", "", [x, order])[0], x[[2, 0, 2, 1]])


def test_parameter_is_its_blob(tmp_path: Path) -> None:
    x, value = random((2, 3)), random((2, 3), 1)
    text = header(x.shape) + layer("Parameter", "parameter_param { shape { dim: 2 dim: 3 } }", "p", "", "p")
    text += layer("Eltwise", bottom="data p")
    np.testing.assert_array_equal(run(load(tmp_path, text, {"p": [value]}), {"data": x})[0], x + value)


@pytest.mark.parametrize("pool", ["MAX", "AVE"])
def test_pyramid_pools_every_pixel(pool: str, tmp_path: Path) -> None:
    x = random((2, 3, 8, 8))
    (y,) = made(tmp_path, "SPP", f"spp_param {{ pyramid_height: 3 pool: {pool} }}", [x])
    reduce = np.max if pool == "MAX" else np.mean
    levels = [reduce(x.reshape(2, 3, b, 8 // b, b, 8 // b), axis=(3, 5)).reshape(2, -1) for b in (1, 2, 4)]
    np.testing.assert_allclose(y, np.concatenate(levels, axis=1), rtol=1e-5, atol=1e-6)


def test_pyramid_pads_what_is_missing(tmp_path: Path) -> None:
    """7 pixels in 2 windows: 4 taps each with 1 pixel of padding before, so rows 0..2 and 3..6."""
    x = random((1, 1, 7, 7))
    (y,) = made(tmp_path, "SPP", "spp_param { pyramid_height: 2 }", [x])
    cuts = (slice(0, 3), slice(3, 7))
    np.testing.assert_array_equal(y, [[x.max(), *(x[0, 0, r, c].max() for r in cuts for c in cuts)]])


def test_mvn_adds_its_epsilon_to_the_deviation(tmp_path: Path) -> None:
    x = random((2, 3, 4, 5))
    (y,) = made(tmp_path, "MVN", "mvn_param { eps: 0.5 }", [x])
    expected = (x - x.mean((2, 3), keepdims=True)) / (x.std((2, 3), keepdims=True) + 0.5)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_normalize_over_space_with_a_factor_per_channel(tmp_path: Path) -> None:
    x, factor = random((2, 3, 4, 5)), random((3,), 1)
    (y,) = made(tmp_path, "Normalize", "norm_param { channel_shared: false eps: 0.5 }", [x], [factor])
    norm = np.sqrt((x**2).sum(axis=(1, 2, 3), keepdims=True) + 0.5)
    np.testing.assert_allclose(y, x / norm * factor[:, None, None], rtol=1e-5)


@pytest.mark.parametrize("folded", [False, True])
def test_batch_norm_of_the_segmentation_branches(folded: bool, tmp_path: Path) -> None:
    x, (slope, bias, mean) = random((2, 3, 4, 5)), (random((1, 3, 1, 1), i) for i in range(1, 4))
    variance = random((1, 3, 1, 1), 4, 0.5, 2)
    blobs = [slope, bias] if folded else [slope, bias, mean, variance]
    params = "bn_param { bn_mode: 'INFERENCE' }" if folded else "bn_param { eps: 0.01 }"
    (y,) = made(tmp_path, "BN", params, [x], blobs)
    unit = x if folded else (x - mean) / np.sqrt(variance + 0.01)
    np.testing.assert_allclose(y, unit * slope + bias, rtol=1e-5, atol=1e-6)


# -- resizing ---------------------------------------------------------------------------------------------------------
def bilinear(x: np.ndarray, height: int, width: int) -> np.ndarray:
    """Corner pixels meet; each axis by np.interp."""
    for axis, count in ((2, height), (3, width)):
        at = np.linspace(0, x.shape[axis] - 1, count)
        known = np.arange(x.shape[axis])
        x = np.apply_along_axis(lambda row, at=at, known=known: np.interp(at, known, row), axis, x)
    return x


@pytest.mark.parametrize(
    ("params", "cut", "size"),
    [
        ("shrink_factor: 2", (0, 0), (5, 4)),
        ("zoom_factor: 2", (0, 0), (17, 13)),
        ("shrink_factor: 2 zoom_factor: 3", (0, 0), (13, 10)),
        ("height: 4 width: 20 pad_beg: -1 pad_end: -2", (1, 2), (4, 20)),
        ("zoom_factor: 2 pad_end: -1", (0, 1), (15, 11)),
        ("height: 1 width: 1", (0, 0), (1, 1)),
    ],
)
def test_interp_sizes_and_crops(params: str, cut: tuple[int, int], size: tuple[int, int], tmp_path: Path) -> None:
    x = random((2, 3, 9, 7))
    (y,) = made(tmp_path, "Interp", f"interp_param {{ {params} }}", [x])
    inside = x[:, :, cut[0] : 9 - cut[1], cut[0] : 7 - cut[1]]
    expected = inside[:, :, :1, :1] if size == (1, 1) else bilinear(inside, *size)
    assert y.shape == (2, 3, *size)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_interp_to_the_size_of_a_second_bottom(tmp_path: Path) -> None:
    x, like = random((1, 2, 4, 5)), random((1, 7, 8, 9))
    (y,) = made(tmp_path, "Interp", "", [x, like])
    np.testing.assert_allclose(y, bilinear(x, 8, 9), rtol=1e-5, atol=1e-6)


def segnet(folder: Path, params: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Pooling with its mask, then unpooling: the input and the result."""
    x = random(shape)
    text = header(shape) + layer("Pooling", "pooling_param { kernel_size: 2 stride: 2 }", "p", "data", "p mask")
    text += layer("Upsample", f"upsample_param {{ {params} }}", bottom="p mask")
    return x, run(load(folder, text), {"data": x})[0]


@pytest.mark.parametrize("params", ["scale: 2 pad_out_h: true", "upsample_h: 7 upsample_w: 6", "pad_out_h: true"])
def test_unpooling_puts_maxima_back(params: str, tmp_path: Path) -> None:
    x, y = segnet(tmp_path, params, (2, 3, 7, 6))
    assert y.shape == x.shape
    np.testing.assert_array_equal(y, np.where(y != 0, x, 0))
    assert (y != 0).sum() == 2 * 3 * 4 * 3


def test_a_mask_beyond_the_plane_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RuntimeUseError, match="outside of the 4 elements of a plane"):
        segnet(tmp_path, "upsample_h: 2 upsample_w: 2", (1, 1, 4, 4))


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "params", "reason"),
    [
        ("Filter", "", "depends on the data"),
        ("Python", 'python_param { module: "rpn.x" layer: "Y" }', r"Python code of its own .module 'rpn.x', class 'Y'"),
        ("Recurrent", "", "supported: RNN, LSTM"),
        ("SPP", "spp_param { pyramid_height: 2 pool: STOCHASTIC }", "stochastic"),
        ("Interp", "interp_param { pad_beg: 1 height: 3 width: 3 }", "0 and negative ones"),
    ],
)
def test_what_cannot_be_compiled_names_a_way_on(kind: str, params: str, reason: str, tmp_path: Path) -> None:
    text = header((1, 2, 4, 4)) + layer("ReLU", name="a", top="x") + layer(kind, params, bottom="x")
    with pytest.raises(UnsupportedError, match=rf"layer 'l' .{kind}.: .*{reason}.*Remedy: pass outputs=..x.. to end"):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("kind", "params", "bottoms", "message"),
    [
        ("ArgMax", "argmax_param { top_k: 50 axis: 1 }", 1, "top_k must be 1 to 8, got 50"),
        ("Reorg", "reorg_param { stride: 3 }", 1, "stride 3 does not divide"),
        ("Reorg", "", 1, "stride 0 does not divide"),
        ("Axpy", "", 3, "takes factors"),
        ("SPP", "spp_param { pyramid_height: 9 }", 1, "cannot be pooled into 4 x 4|cannot be pooled into"),
        ("SPP", "spp_param { pyramid_height: 90 }", 1, "pyramid_height must be 1 to 16"),
        ("Im2col", "convolution_param { kernel_size: 2000 }", 1, "cannot unfold"),
        ("Embed", "embed_param { num_output: 4 }", 1, "states no input_dim"),
        ("BatchReindex", "", 2, "one axis of indices"),
        ("Interp", "interp_param { height: 99999 width: 99999 }", 1, "cannot resize"),
        ("Interp", "interp_param { zoom_factor: 0 }", 1, "must be positive"),
        ("Interp", "interp_param { pad_end: -9 height: 3 width: 3 }", 1, "leave nothing"),
        ("Upsample", "upsample_param { scale: 65000 }", 2, "cannot make planes"),
        ("LSTM", "", 2, "states no num_output"),
        ("RNN", "recurrent_param { num_output: 2 }", 2, r"takes x .T, N, .... and cont"),
        ("MVN", "mvn_param { eps: 1 }", 0, "takes 1 bottoms"),
        ("BN", "", 1, "has no weights"),
    ],
)
def test_bad_settings_are_named(kind: str, params: str, bottoms: int, message: str, tmp_path: Path) -> None:
    text = header((2, 8, 6, 6)) + layer(kind, params, bottom=" ".join(["data"] * bottoms))
    with pytest.raises(BMError, match=message) as raised:
        load(tmp_path, text)
    assert f"net.prototxt: layer 'l' ({kind}): " in str(raised.value)


# -- data layers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["Data", "HDF5Data", "ImageData", "WindowData", "MemoryData", "AnnotatedData"])
def test_data_layers_are_inputs_of_the_shape_given(kind: str, tmp_path: Path) -> None:
    text = layer(kind, name="d", bottom="", top="data label") + layer("Power", "power_param { shift: 1 }")
    x = random((1, 2, 3, 3))
    module = load(tmp_path, text, shapes=[x.shape])
    assert module.main.input_names == ["data"]
    np.testing.assert_array_equal(run(module, {"data": x})[0], x + 1)
    with pytest.raises(UnsupportedError, match=rf"layer 'd' .{kind}.: input 'data' has no fixed shape.*with shapes"):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("ImageData", "transform_param { crop_size: 5 }"),
        ("WindowData", "window_data_param { crop_size: 5 }"),
        ("Data", "transform_param { crop_size: 5 mirror: true }"),
    ],
)
def test_data_layers_that_crop_say_their_shape(kind: str, params: str, tmp_path: Path) -> None:
    text = layer(kind, params, name="d", bottom="", top="data label") + layer("ReLU")
    assert load(tmp_path, text).main.arguments[0].shape == (1, 3, 5, 5)


def test_depthwise_layers_go_by_either_name(tmp_path: Path) -> None:
    x, weight = random((1, 4, 5, 5)), random((4, 1, 3, 3), 1)
    params = "convolution_param { num_output: 4 kernel_size: 3 bias_term: false }"
    kinds = ("ConvolutionDepthwise", "DepthwiseConvolution")
    first, second = (made(tmp_path, kind, params, [x], [weight])[0] for kind in kinds)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("old", "params", "new"),
    [
        ("THRESHOLD", "threshold_param { threshold: 0.25 }", "Threshold"),
        ("MVN", "mvn_param { normalize_variance: false }", "MVN"),
        ("ARGMAX", "argmax_param { top_k: 2 }", "ArgMax"),
        ("IM2COL", "convolution_param { kernel_size: 2 }", "Im2col"),
        ("INTERP", "interp_param { zoom_factor: 2 }", "Interp"),
    ],
)
def test_old_files_name_the_same_layers(old: str, params: str, new: str, tmp_path: Path) -> None:
    x = random((1, 2, 4, 4))
    text = 'input: "data" input_dim: 1 input_dim: 2 input_dim: 4 input_dim: 4\n'
    text += f'layers {{ name: "l" type: {old} bottom: "data" top: "out" {params} }}'
    (found,) = run(load(tmp_path, text), {"data": x})
    np.testing.assert_array_equal(found, made(tmp_path, new, params, [x])[0])
