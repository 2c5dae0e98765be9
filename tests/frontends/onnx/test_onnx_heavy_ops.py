"""Convolution, pooling, resampling, recurrence and quantization against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import agree, op_model

RNG = np.random.default_rng(11)


def real(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def whole(*shape: int, dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def scales(*values: float) -> np.ndarray:
    return np.asarray(values, np.float32)


VOLUME = real(2, 4, 5, 6, 7)
IMAGE = real(2, 3, 5, 7)
_NEAREST = [
    {"coordinate_transformation_mode": where, "nearest_mode": rounding}
    for where in ("half_pixel", "asymmetric", "pytorch_half_pixel")
    for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
]
Case = tuple[str, Sequence[Any], Sequence[int], dict[str, Any]]
CASES: list[Case] = [
    ("Conv", [VOLUME, real(6, 2, 3, 2, 3), real(6)], [1, 2], {
        "group": 2, "strides": [2, 1, 2], "pads": [1, 0, 1, 0, 1, 2], "dilations": [2, 1, 1]}),
    ("Conv", [VOLUME, real(3, 4, 2, 2, 2)], [1], {"strides": [2, 1, 3], "auto_pad": "SAME_UPPER"}),
    ("Conv", [VOLUME, real(3, 4, 2, 1, 2)], [], {}),
    ("ConvTranspose", [VOLUME, real(4, 3, 2, 3, 2), real(6)], [1, 2], {
        "group": 2, "strides": [2, 1, 3], "pads": [1, 0, 1, 0, 1, 1], "dilations": [2, 1, 1]}),
    ("ConvTranspose", [real(1, 2, 4), real(2, 3, 3)], [1], {"strides": [2], "output_padding": [1]}),
    ("MaxPool", [VOLUME], [], {
        "kernel_shape": [2, 3, 2], "strides": [2, 1, 3], "pads": [1, 0, 0, 0, 1, 1], "ceil_mode": 1}),
    ("AveragePool", [VOLUME], [], {"kernel_shape": [3, 2, 2], "strides": [2, 2, 1], "pads": [1, 1, 0, 1, 0, 1]}),
    ("AveragePool", [VOLUME], [], {"kernel_shape": [3, 2, 2], "pads": [1, 1, 0, 1, 0, 1], "count_include_pad": 1}),
    ("GlobalAveragePool", [VOLUME], [], {}),
    ("GlobalMaxPool", [VOLUME], [], {}),
    ("GlobalLpPool", [IMAGE], [], {"p": 3}),
    ("LpPool", [IMAGE], [], {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [1, 0, 0, 1], "p": 1}),
    ("LpNormalization", [IMAGE], [], {"axis": 1, "p": 1}),
    ("Einsum", [real(2, 3, 4), real(2, 5, 4)], [], {"equation": "bik,bjk->bji"}),
    ("Einsum", [real(2, 5, 3, 4), real(2, 5, 4, 6)], [], {"equation": "...ik,...kj->...ij"}),
    ("Einsum", [real(2, 3), real(3, 4), real(4, 2)], [], {"equation": "ij,jk,ki->i"}),
    ("Einsum", [real(3, 3)], [], {"equation": "ii->i"}),
    ("Einsum", [real(2, 3, 4)], [], {"equation": "abc->ca"}),
    *(("Resize", [IMAGE, None, scales(1, 1, 1.7, 0.6)], [2], {"mode": "nearest", **how}) for how in _NEAREST),
    *(
        ("Resize", [IMAGE, None, None, np.asarray([2, 3, 9, 4])], [3], {
            "mode": mode, "coordinate_transformation_mode": where})
        for mode in ("linear", "cubic")
        for where in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    ),
    ("Resize", [IMAGE, None, scales(1, 1, 0.5, 0.7)], [2], {
        "mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}),
    ("QuantizeLinear", [IMAGE, scales(0.02, 0.1, 0.3), whole(3)], [1, 2], {"axis": 1}),
    ("QuantizeLinear", [IMAGE, scales(0.02)[0], np.uint8(120)], [1, 2], {}),
    ("DequantizeLinear", [whole(2, 3, 4), scales(0.02, 0.1, 0.3), whole(3)], [1, 2], {"axis": -2}),
    ("ConvInteger", [whole(1, 2, 6, 6, dtype="uint8"), whole(3, 2, 3, 3, dtype="uint8"), np.uint8(7), np.uint8(130)],
     [1, 2, 3], {"pads": [1, 1, 1, 1]}),
    ("MatMulInteger", [whole(3, 5, dtype="uint8"), whole(5, 4), np.uint8(9), whole(4)], [1, 2, 3], {}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_an_op_gives_what_onnx_runtime_gives(case: Case) -> None:
    op, inputs, constants, attributes = case
    model, feeds = op_model(op, inputs, constants, attributes, opset=17)
    agree(model, feeds, 2e-5)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_sample(mode: str, padding: str, corners: int) -> None:
    grid = RNG.uniform(-1.4, 1.4, (2, 4, 3, 2)).astype(np.float32)
    how = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    model, feeds = op_model("GridSample", [IMAGE, grid], [], how, opset=20)
    if mode == "cubic" and padding != "zeros":
        pytest.skip("ONNX Runtime clamps differently from the definition; the onnx suite has this case")
    agree(model, feeds, 1e-4)


@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("where", ["half_pixel", "output_half_pixel"])
def test_roi_align(samples: int, where: str) -> None:
    rois = np.asarray([[0, 0, 4, 3], [1, 2, 6, 4.5], [2, 1, 12, 9]], np.float32)
    how = {"output_height": 3, "output_width": 2, "sampling_ratio": samples, "coordinate_transformation_mode": where}
    model, feeds = op_model("RoiAlign", [IMAGE, rois, np.asarray([0, 1, 1])], [1, 2], {**how, "spatial_scale": 0.75})
    agree(model, feeds, 1e-4)


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrent_layers_with_lengths_and_initial_states(op: str, gates: int, direction: str) -> None:
    sets, hidden = 1 + (direction == "bidirectional"), 4
    rows = gates * hidden
    inputs = [
        real(5, 3, 2),
        real(sets, rows, 2),
        real(sets, rows, hidden),
        real(sets, 2 * rows),
        np.asarray([5, 3, 4], np.int32),
        real(sets, 3, hidden),
    ]
    if op == "LSTM":
        inputs += [real(sets, 3, hidden), real(sets, 3 * hidden)]
    constants = [i for i in range(len(inputs)) if i]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = 1
    model, feeds = op_model(op, inputs, constants, attributes, outputs=3 if op == "LSTM" else 2)
    agree(model, feeds, 1e-4)


@pytest.mark.parametrize(
    ("op", "gates", "activations", "alphas", "betas"),
    [
        ("RNN", 1, ["LeakyRelu"], [0.3], []),
        ("RNN", 1, ["ScaledTanh"], [0.7], [0.9]),
        ("GRU", 3, ["HardSigmoid", "Softsign"], [0.3], [0.4]),
        ("LSTM", 4, ["Sigmoid", "Affine", "Elu"], [0.4, 0.6], [0.1]),
    ],
)
def test_recurrent_layers_take_other_functions(
    op: str, gates: int, activations: list[str], alphas: list[float], betas: list[float]
) -> None:
    """Numbers are listed for the functions that have them alone."""
    given = {"activation_alpha": alphas, "activation_beta": betas}
    attributes = {"hidden_size": 4, "activations": activations} | {
        name: value for name, value in given.items() if value
    }
    inputs = [real(5, 3, 2), real(1, gates * 4, 2), real(1, gates * 4, 4)]
    model, feeds = op_model(op, inputs, [1, 2], attributes, outputs=2)
    agree(model, feeds, 1e-4)


def test_indices_of_maxima_lead_back_through_unpooling() -> None:
    model, feeds = op_model("MaxPool", [IMAGE], [], {"kernel_shape": [2, 2], "strides": [2, 2]}, outputs=2)
    agree(model, feeds)
    values, places = real(1, 2, 2, 2), np.asarray([0, 3, 8, 15, 17, 18, 26, 31]).reshape(1, 2, 2, 2)
    agree(*op_model("MaxUnpool", [values, places], [], {"kernel_shape": [2, 2], "strides": [2, 2]}))


def test_qlinear_conv_is_within_one_step_of_integer_arithmetic() -> None:
    from onnx_models import imported, reference

    # weights of 7 bits: ONNX Runtime's sums of products saturate to 16 bits on some processors
    x, w, bias = whole(1, 3, 8, 8, dtype="uint8"), whole(4, 3, 3, 3) // 2, whole(4, dtype="int32") // 2**18
    unit = [scales(0.02)[0], np.uint8(128)], [scales(0.01, 0.02, 0.015, 0.03), np.zeros(4, np.int8)]
    model, feeds = op_model(
        "QLinearConv", [x, *unit[0], w, *unit[1], scales(0.2)[0], np.uint8(100), bias], range(1, 9), {"pads": [1] * 4}
    )
    _, ours = imported(model, feeds)
    theirs = reference(model, feeds)
    assert np.abs(ours["y0"].astype(int) - theirs["y0"].astype(int)).max() <= 1


@pytest.mark.parametrize(
    ("dtype", "by_gate", "direction"), [("uint8", False, "bidirectional"), ("int8", True, "reverse")]
)
def test_dynamically_quantized_lstms_are_those_of_their_weights(dtype: str, by_gate: bool, direction: str) -> None:
    """As near to ONNX Runtime as 8 bits of inputs and states allow, and equal to the LSTM of the real weights."""
    from onnx_models import imported, reference

    sets, hidden, width = 1 + (direction == "bidirectional"), 4, 2
    # weights of 7 bits: ONNX Runtime's sums of products saturate to 16 bits on some processors
    integers = [whole(sets, rows, 4 * hidden, dtype=dtype) // 2 for rows in (width, hidden)]
    shape = (sets, 4 * hidden) if by_gate else (sets,)
    units = [np.linspace(0.008, 0.016, int(np.prod(shape)), dtype=np.float32).reshape(shape) for _ in integers]
    zeros = [np.full(shape, 0 if by_gate else 60, dtype) for _ in integers]
    x, bias, states = real(5, 3, width), real(sets, 8 * hidden), [real(sets, 3, hidden) for _ in range(2)]
    given = [x, *integers, bias, None, *states, None, units[0], zeros[0], units[1], zeros[1]]
    attributes = {"hidden_size": hidden, "direction": direction}
    constants = [i for i, array in enumerate(given) if i and array is not None]
    model, feeds = op_model("DynamicQuantizeLSTM", given, constants, attributes, outputs=3)
    model.graph.node[0].domain = "com.microsoft"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    parts = [each.reshape(sets, 1, -1).astype(np.float32) for each in (*units, *zeros)]
    weights = [(w - zero) * unit for w, unit, zero in zip(integers, parts[:2], parts[2:])]
    plain = [x, *(np.ascontiguousarray(w.transpose(0, 2, 1)) for w in weights), bias, None, *states]
    same, _ = op_model("LSTM", plain, [i for i in constants if i < 7], attributes, outputs=3)
    ours, wanted, theirs = imported(model, feeds)[1], imported(same, feeds)[1], reference(model, feeds)
    for name, value in ours.items():
        np.testing.assert_array_equal(value, wanted[name])
        assert np.linalg.norm(value - theirs[name]) < 0.05 * np.linalg.norm(theirs[name])
