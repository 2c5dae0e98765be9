"""Digits in a picture: LeNet on windows of it, and a BMLang program that finds them.

    python examples/bmlang/detect_digits.py [FOLDER]

The network is an ordinary compiled model. What follows it is written in BMLang and compiled too: how well the ink lies
inside each window, boxes from places and sizes, a threshold for scores, the best of them, suppression of boxes that
overlap.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import bmcompiler
from bmcompiler import bmlang
from bmcompiler.bmlang import (
    BOTH,
    COEFF_TENSOR,
    FLOAT32,
    ArgParam,
    ConvParam,
    ReduceMethodType,
    ReduceParam,
    Tensor,
    TopkParam,
)

MODELS = Path(__file__).resolve().parent.parent.parent / "models"
WINDOW, STEP, BORDER = 28, 4, 4
HEIGHT, WIDTH = 56, 112
THRESHOLD, OVERLAP, MOST = 0.5, 0.3, 32


def scene(digits: Any) -> tuple[Any, list[tuple[int, int, int]]]:
    """A picture (H, W) of three digits, and their (top, left, label)."""
    picture, truth = np.zeros((HEIGHT, WIDTH), np.float32), []
    for number, (top, left) in ((8, (0, 4)), (10, (20, 40)), (25, (8, 80))):
        picture[top : top + WINDOW, left : left + WINDOW] = digits["test"][number, 0] / np.float32(255)
        truth.append((top, left, int(digits["labels"][number])))
    return picture, truth


def windows(picture: Any) -> tuple[Any, Any]:
    """(N, 1, 28, 28) pieces of the picture, and their places (N, 2): top, left."""
    places = [(y, x) for y in range(0, HEIGHT - WINDOW + 1, STEP) for x in range(0, WIDTH - WINDOW + 1, STEP)]
    pieces = [picture[y : y + WINDOW, x : x + WINDOW] for y, x in places]
    return np.stack(pieces)[:, None], np.array(places, np.float32)


def probabilities(pieces: Any, folder: Path) -> Any:
    """What LeNet, compiled for the BM1684, says of each window: (N, 10)."""
    net = MODELS / "lenet"
    model = folder / "lenet.bmodel"
    bmcompiler.compile(net / "deploy.prototxt", net / "lenet.caffemodel", target="bm1684", output=model)
    found = bmcompiler.runtime.Session(model).run({"data": pieces})["prob"]
    return found.reshape(len(pieces), -1)


def centred(picture: Tensor) -> Tensor:
    """How much of its ink a window has in its middle: 1 for all of it, less for what is cut or beside it."""
    kernel = np.full((1, 1, WINDOW, WINDOW), -2, np.float32)
    kernel[..., BORDER:-BORDER, BORDER:-BORDER] = 1
    ink = ConvParam(stride_h=STEP, stride_w=STEP)
    inside = bmlang.conv([picture, Tensor("kernel", FLOAT32, COEFF_TENSOR, list(kernel.shape), data=kernel)], ink)
    ones = Tensor("ones", FLOAT32, COEFF_TENSOR, list(kernel.shape), data=np.ones_like(kernel))
    whole = bmlang.maxs(bmlang.conv([picture, ones], ink), 20.0)
    return bmlang.reshape(inside / whole, (-1, 1))


def decoded(places: Any) -> Tensor:
    """Boxes y1, x1, y2, x2 of the windows' middles, from their centres and sizes."""
    size = WINDOW - 2 * BORDER
    corners = Tensor("places", FLOAT32, COEFF_TENSOR, list(places.shape), data=places)
    sizes = Tensor("sizes", FLOAT32, COEFF_TENSOR, list(places.shape), data=np.full_like(places, size))
    first = corners + BORDER
    return bmlang.concat([first, first + sizes], axis=1)


def postprocess(picture: Tensor, scores: Tensor, places: Any) -> tuple[Tensor, Tensor, Tensor]:
    """(boxes, labels, which): windows with a digit by falling score. Behind the last one, entries are void."""
    best = bmlang.reduce(scores, ReduceParam(ReduceMethodType.REDUCE_MAX, (1,)))
    labels = bmlang.reshape(bmlang.arg(scores, ArgParam(1), dtype=FLOAT32), (-1,))
    rating = bmlang.reshape(best * centred(picture), (-1,))
    values, order = bmlang.topk(rating, TopkParam(MOST, 0))
    boxes = bmlang.index_select(decoded(places), 0, order)
    kept = bmlang.nms_v2(boxes, values, OVERLAP, THRESHOLD, MOST, name="kept")
    picked = bmlang.index_select(boxes, 0, kept, name="boxes")
    named = bmlang.index_select(bmlang.index_select(labels, 0, order), 0, kept, name="labels")
    return picked, named, kept


def main(folder: Path) -> list[tuple[int, int, int]]:
    """Find the digits; returns (top, left, label) of each."""
    digits = np.load(MODELS / "digits.npz")
    data, truth = scene(digits)
    pieces, places = windows(data)
    scores = probabilities(pieces, folder)
    with bmlang.init(BOTH, "BM1684", folder / "detect") as program:
        picture = Tensor("picture", data=data[None, None])
        rated = Tensor("scores", data=scores)
        boxes, labels, kept = postprocess(picture, rated, places)
        made = program.compile_with_check("detect", program.inputs, [boxes, labels, kept])
    print(made)
    for row in made.host:
        print(f"  on the host: {row.layer} ({row.kind})")
    found = bmcompiler.runtime.Session(made.path).run({"picture": data[None, None], "scores": scores}, raw=True)
    count = int(found["kept_count"][0])
    results = []
    for box, label in zip(found["boxes"][:count], found["labels"][:count]):
        top, left = (int(x) - BORDER for x in box[:2])
        results.append((top, left, int(label)))
        print(f"{int(label)} at row {top}, column {left}")
    print("all found" if sorted(results) == sorted(truth) else f"there are {truth}")
    return results


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
