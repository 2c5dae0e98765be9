"""A detector that takes a camera's bytes beside float32: python benchmarks/bench_camera.py [CHIP...]

YOLOX finds characters on photos of 400x300 and 300x400, letterboxed by `--images` to its 416x416. A row shows, for
bytes in the network's order and in the other order and layout: the boxes of float32 (ONNX Runtime, the same pictures)
that the program finds as well, the median and the largest distance of their edges in pixels of the input, the bytes of
the input, and the estimated cycles; first for the program whose pictures the host prepares. Needs `make models` and
`pip install .[tasks]`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image
from tasks.detections import Box, overlap, yolox
from tasks.material import CALIBRATION, METRIC
from tasks.networks import NETWORKS
from tasks.text import characters

import bmcompiler
from bmcompiler import Result
from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.inputs import ImageOptions, open_inputs
from bmcompiler.runtime import Session

PRECISIONS = (("bm1880", "int8"), ("bm1684", "f32"), ("bm1684", "int8"), ("bm1684x", "f16"), ("bm1684x", "int8"))
PIXELS = ("bgr-nchw", "rgb-nhwc")
"""As the network was trained, and as most cameras give them."""
LETTERBOX = {"letterbox": 114, "channel_order": "bgr"}
SIZES = ((400, 300), (300, 400))


def pictures(folder: Path, split: str, count: int) -> Path:
    """Photos with characters as files; width and height by turns."""
    folder.mkdir()
    for index in range(count):
        pixels, _ = characters("camera", split, index)
        Image.fromarray(pixels[:312]).resize(SIZES[index % 2]).save(folder / f"{index:02}.png")
    return folder


def boxes(session: Session, folder: Path, count: int) -> list[list[Box]]:
    """What a program finds on each picture, in pixels of its input."""
    outputs = session.run(session.images(folder))
    return [yolox([each[index : index + 1] for each in outputs.values()]) for index in range(count)]


def compared(found: list[list[Box]], wanted: list[list[Box]]) -> str:
    """Boxes of float32 that have a partner, boxes without one, and how far edges are from their partners'."""
    far = []
    for mine, theirs in zip(found, wanted, strict=True):
        for box in theirs:
            near = max(mine, key=lambda each: overlap(each, box), default=None)
            if near is not None and overlap(near, box) > 0.5:
                far.append(np.abs(np.subtract(near, box)).max())
    of, ours = (sum(map(len, each)) for each in (wanted, found))
    near = f"edges {np.median(far):.3f}, at most {np.max(far):.3f} px" if far else "none near"
    return f"{len(far)}/{of} boxes, {ours - len(far)} others, {near}"


def cycles(result: Result) -> int:
    """Estimated cycles of one run."""
    return find_analyzer(result.target)(result.model, 0).timing().cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chips", nargs="*", metavar="CHIP")
    parser.add_argument("--count", type=int, default=6, help="pictures to look at")
    given = parser.parse_args()
    path = NETWORKS["yolox_chars"].files[0]
    with tempfile.TemporaryDirectory() as place:
        seen = pictures(Path(place, "seen"), CALIBRATION, 8)
        shown = pictures(Path(place, "shown"), METRIC, given.count)
        float32 = onnxruntime.InferenceSession(path)
        name = float32.get_inputs()[0]
        samples = np.asarray(open_inputs(ImageOptions(str(shown), **LETTERBOX)).bind([name])[name.name])
        wanted = [yolox(float32.run(None, {name.name: sample[None]})) for sample in samples]
        for chip, precision in PRECISIONS:
            if given.chips and chip not in given.chips:
                continue
            options = {"target": chip, "quantize": precision, "images": ImageOptions(str(seen), **LETTERBOX)}
            for pixels in (None, *PIXELS):
                result = bmcompiler.compile(path, **options, fuse_preprocess=pixels)
                session = Session(result.model)
                taken = np.prod(session.inputs[0].shape) * np.dtype(session.inputs[0].dtype).itemsize
                text = compared(boxes(session, shown, given.count), wanted)
                print(
                    f"{chip:8}{precision:5}{pixels or 'host':10}{text}, {taken} bytes, {cycles(result)} cycles",
                    flush=True,
                )


if __name__ == "__main__":
    main()
