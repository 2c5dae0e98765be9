"""RNN and LSTM against the recurrences written out in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from caffe_nets import header, layer, load, random, run, save

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.numeric.arith import quantize_real
from bmcompiler.runtime import Session

T, N, D, S, U = 5, 3, 4, 2, 6
CONT = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], np.float32)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm(moved: np.ndarray, weight: np.ndarray, h: np.ndarray, c: np.ndarray) -> Sequence[np.ndarray]:
    """h of all steps, last h and c; `moved` (T, N, 4U) is W x + b."""
    steps = []
    for now, cont in zip(moved, CONT[..., None]):
        i, f, o, g = np.split(now + (h * cont) @ weight.T, 4, axis=1)
        c = cont * sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    return np.stack(steps), h[None], c[None]


def net(
    folder: Path, kind: str, arrays: dict[str, np.ndarray], blobs: list[np.ndarray], exposed: bool
) -> list[np.ndarray]:
    text = "".join(header(array.shape, name) for name, array in arrays.items())
    tops = "out" if not exposed else "out h_T c_T" if kind == "LSTM" else "out h_T"
    params = f"recurrent_param {{ num_output: {U} expose_hidden: {str(exposed).lower()} }}"
    text += layer(kind, params, bottom=" ".join(arrays), top=tops)
    return run(load(folder, text, {"l": blobs}), arrays)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("exposed", [False, True])
def test_lstm(static: bool, exposed: bool, tmp_path: Path) -> None:
    arrays = {"x": random((T, N, D)), "cont": CONT}
    blobs = [random((4 * U, D), 1), random((4 * U,), 2)]
    moved = arrays["x"] @ blobs[0].T + blobs[1]
    if static:
        arrays["s"] = random((N, S), 3)
        blobs.append(random((4 * U, S), 4))
        moved = moved + arrays["s"] @ blobs[2].T
    h = c = np.zeros((N, U), np.float32)
    if exposed:
        arrays["h0"], arrays["c0"] = random((1, N, U), 5), random((1, N, U), 6)
        h, c = arrays["h0"][0], arrays["c0"][0]
    blobs.append(random((4 * U, U), 7))
    found = net(tmp_path, "LSTM", arrays, blobs, exposed)
    for mine, expected in zip(found, lstm(moved, blobs[-1], h, c)):
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("exposed", [False, True])
def test_rnn(exposed: bool, tmp_path: Path) -> None:
    arrays = {"x": random((T, N, D)), "cont": CONT}
    w, b, v, u, d = (random(s, i) for i, s in enumerate([(U, D), (U,), (U, U), (U, U), (U,)]))
    h = np.zeros((N, U), np.float32)
    if exposed:
        arrays["h0"] = random((1, N, U), 9)
        h = arrays["h0"][0]
    found = net(tmp_path, "RNN", arrays, [w, b, v, u, d], exposed)
    outputs = []
    for x, cont in zip(arrays["x"], CONT[..., None]):
        h = np.tanh(x @ w.T + b + (h * cont) @ v.T)
        outputs.append(np.tanh(h @ u.T + d))
    np.testing.assert_allclose(found[0], np.stack(outputs), rtol=1e-4, atol=1e-5)
    if exposed:
        np.testing.assert_allclose(found[1], h[None], rtol=1e-4, atol=1e-5)


def test_one_step_of_an_lstm(tmp_path: Path) -> None:
    arrays = {"x": random((1, N, D)), "cont": CONT[:1]}
    blobs = [random((4 * U, D), 1), random((4 * U,), 2), random((4 * U, U), 7)]
    (found,) = net(tmp_path, "LSTM", arrays, blobs, False)
    zeros = np.zeros((N, U), np.float32)
    expected = lstm(arrays["x"] @ blobs[0].T + blobs[1], blobs[2], zeros, zeros)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("RNN", 1)])
def test_recurrences_run_on_bm1880(kind: str, gates: int, tmp_path: Path) -> None:
    text = header((T, N, D), "x") + header((T, N), "cont")
    text += layer(kind, f"recurrent_param {{ num_output: {U} }}", bottom="x cont")
    shapes = [(gates * U, D), (gates * U,), (gates * U, U), *([(U, U), (U,)] if kind == "RNN" else [])]
    files = save(tmp_path, text, {"l": [random(shape, i) for i, shape in enumerate(shapes)]})
    data = {"x": random((4 * T, N, D), 5), "cont": np.tile(CONT, (4, 1))}
    result = bmcompiler.compile(*files, target="bm1880", data=data)
    assert not [row for row in result.rows if row.where == "cpu"]
    device = {
        name: quantize_real(data[name][:T], argument.type.quant.threshold)
        for name, argument in zip(result.module.main.input_names, result.module.main.arguments)
    }
    found = Session(result.model).run(device, raw=True)["out"]
    assert found.tobytes() == run_module(result.module, device)["out"].tobytes()
