"""Neuron memory of real networks: at most a tenth more than what is alive at once, on every chip and level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bmcompiler import driver
from bmcompiler.target import find_target

MODELS = Path(__file__).resolve().parent.parent.parent / "models"
NETS: dict[str, tuple[str, tuple[int, ...]]] = {
    "lenet": ("lenet/deploy.prototxt", (1, 28, 28)),
    "resnet8": ("resnet8/resnet8_mnist.onnx", (1, 28, 28)),
    "mtcnn_pnet": ("third_party/mtcnn_pnet.onnx", (120, 160, 3)),
    "mtcnn_rnet": ("third_party/mtcnn_rnet.onnx", (24, 24, 3)),
    "mtcnn_onet": ("third_party/mtcnn_onet.onnx", (48, 48, 3)),
    "ppocr_v2_cls": ("third_party/ppocr_v2_cls.onnx", (3, 48, 192)),
    "ppocr_v4_det": ("third_party/ppocr_v4_det.onnx", (3, 320, 320)),
    "ppocr_v4_rec": ("third_party/ppocr_v4_rec.onnx", (3, 48, 320)),
    "mobilenetv2_160": ("third_party/mobilenetv2_160.onnx", (3, 160, 160)),
    "centerface_480": ("third_party/centerface_480.onnx", (3, 480, 480)),
    "res10_ssd_face": ("third_party/res10_ssd_face.prototxt", (3, 300, 300)),
    **{
        f"light_{name}": (f"third_party/light_{name}.onnx", (3, 224, 224))
        for name in ("resnet50", "squeezenet", "densenet121", "inception_v1", "inception_v2", "shufflenet")
    },
}
WEIGHTS = {"lenet": "lenet/lenet.caffemodel", "res10_ssd_face": "third_party/res10_ssd_face.caffemodel"}
QUICK = ("lenet", "resnet8")
NAMES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NETS]
MODES = (("bm1880", "int8"), ("bm1684", "f32"), ("bm1684", "int8"))
PADDING = 64 * 32
"""Bytes that alignment may add: the bound knows none, which shows where a whole net takes a few thousand bytes."""


@pytest.mark.parametrize("mode", MODES, ids="-".join)
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", NAMES)
def test_neuron_memory_is_close_to_what_is_alive_at_once(name: str, batch: int, mode: tuple[str, str]) -> None:
    (model, image), (target, precision) = NETS[name], mode
    if not (MODELS / model).exists():
        pytest.skip(f"{model} is not fetched: run `make models`")
    weights = MODELS / WEIGHTS[name] if name in WEIGHTS else None
    data: dict[str, np.ndarray] = {}
    options = {"target": target, "quantize": precision, "shapes": [[batch, *image]], "opt": 0}
    if precision == "int8":
        module = driver.load_network(MODELS / model, weights, shapes=[[1, *image]])
        samples = np.random.default_rng(0).standard_normal((batch, *image)).astype(np.float32)
        data = dict.fromkeys(module.main.input_names, samples)
    result = driver.compile(MODELS / model, weights, data=data or None, **options)
    for level in (0, 1, 2):
        totals = find_target(target).compile([result.module], level).totals
        size, bound = totals["neuron memory"], totals["neuron lower bound"]
        assert bound <= size <= max(1.1 * bound, bound + PADDING), f"level {level}: {size} bytes, at least {bound}"
