"""Trained networks keep their accuracy in int8 (interpreter on the quantized IR)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import Net

from bmcompiler.driver import load_network
from bmcompiler.evaluation.measures import About, found_kept
from bmcompiler.interpreter import run_function
from bmcompiler.ir import Module
from bmcompiler.numeric import arith
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.rebatch import rebatch

MODELS = Path(__file__).resolve().parents[2] / "models"
FLOAT_TOP1 = 0.964


def run_all(module: Module, samples: np.ndarray) -> list[np.ndarray]:
    """Real outputs for all samples, run as one batch."""
    function = rebatch(module.main, len(samples))
    assert function is not None
    quant = function.arguments[0].type.quant
    fed = samples if quant is None else arith.quantize_real(samples, quant.threshold)
    found = run_function(module, function, {function.input_names[0]: fed})
    return [
        found[name] if value.type.quant is None else arith.dequantize(found[name], value.type.quant.threshold)
        for name, value in zip(function.output_names, function.returned)
    ]


def quantized(module: Module, data: np.ndarray, options: str = "") -> Module:
    ctx = PassContext(data={module.main.input_names[0]: data})
    run_pipeline(module, f"canonicalize,calibrate{options},quantize", ctx, verify_each=True)
    return module


def load(name: str) -> Module:
    if name == "lenet":
        return load_network(MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel")
    return load_network(MODELS / "resnet8/resnet8_mnist.onnx")


@pytest.fixture(scope="module")
def digits() -> dict[str, Any]:
    file = np.load(MODELS / "digits.npz")
    scaled = {name: (file[name] / 255).astype(np.float32) for name in ("calib", "test")}
    return {**scaled, "labels": file["labels"]}


@pytest.mark.parametrize("method", ["", "{method=percentile}", "{method=mse}", "{method=max}"])
@pytest.mark.parametrize("name", ["lenet", "resnet8"])
def test_digits_are_read_within_half_a_point_of_float(name: str, method: str, digits: dict[str, Any]) -> None:
    module = quantized(load(name), digits["calib"], method)
    scores = run_all(module, digits["test"])[0].reshape(500, 10)
    assert (scores.argmax(axis=1) == digits["labels"]).mean() >= FLOAT_TOP1 - 0.005


def test_only_the_softmax_of_lenet_runs_on_the_cpu(digits: dict[str, Any]) -> None:
    module = quantized(load("lenet"), digits["calib"][:8])
    assert [op.label for op in module.main.ops if "place.cpu" in op.attributes] == ["prob"]
    assert not any("place.cpu" in op.attributes for op in quantized(load("resnet8"), digits["calib"][:8]).main.ops)


def faces(size: int) -> np.ndarray:
    """The 200 LFW patches as the nets take them: resized, in -1..1, three equal channels, height and width swapped."""
    cv2 = pytest.importorskip("cv2")
    patches = np.load(MODELS / "third_party/lfw_subset.npy").astype(np.float32)
    resized = np.stack([cv2.resize(patch, (size, size)) for patch in patches])
    scaled = (resized * 255 - 127.5) / 128
    return np.ascontiguousarray(np.repeat(scaled.transpose(0, 2, 1)[..., None], 3, axis=3), np.float32)


@pytest.mark.parametrize(("net", "size", "least"), [("pnet", 12, 0.96), ("rnet", 24, 0.99), ("onet", 48, 0.99)])
def test_face_nets_tell_faces_from_background(net: str, size: int, least: float) -> None:
    path = MODELS / f"third_party/mtcnn_{net}.onnx"
    if not path.exists() or not (path.parent / "lfw_subset.npy").exists():
        pytest.skip("third-party models are not there: run python models/fetch.py")
    samples = faces(size)
    module = quantized(load_network(path, shapes=[[1, size, size, 3]]), samples[::2])
    face = next(out for out in run_all(module, samples) if out.shape[-1] == 2).reshape(200, 2)[:, 1]
    assert ((face > 0.5) == (np.arange(200) < 100)).mean() >= least


def scores_far_below_0() -> Module:
    """A raw score for each of 36 places, -300 to 8: yes only where all features are small."""
    n = Net(5)
    x = n.relu(n.conv(n.input(1, 3, 8, 8), n.w(8, 3, 3, 3)))
    return n.done(n.reshape(n.conv(x, n.w(1, 8, 1, 1, low=-9, high=-1), n.fill(8.0, 1)), shape=(1, 36, 1)))


def test_scores_that_decide_at_0_have_fine_steps_there() -> None:
    """Not those that the sure noes would leave, as for who says that norms count."""
    random = np.random.default_rng(7)
    data = (random.uniform(0, 1, (32, 3, 8, 8)) ** 6 * random.normal(0, 4, (32, 3, 8, 8))).astype(np.float32)
    wanted = run_all(scores_far_below_0(), data)[0]
    kept, said = {}, {}
    for kind in ("auto", "norm"):
        ctx, module = PassContext(data={"data": data}, decisions=kind), scores_far_below_0()
        run_pipeline(module, "canonicalize,calibrate{method=auto},quantize", ctx, verify_each=True)
        kept[kind] = found_kept(run_all(module, data)[0], wanted, About(threshold=0)).share
        said[kind] = any("decides at 0: its scores end at -" in note for note in ctx.notes)
    assert wanted.min() < -100 and (wanted > 0).sum() > 50
    assert said == {"auto": True, "norm": False}
    assert kept["norm"] <= 0.95 and kept["auto"] >= 0.98
