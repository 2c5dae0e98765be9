"""Pixels as a camera gives them, made ready for a network by a BMLang program: python examples/bmlang/prepare_images.py

Bytes in rows of pixels (N, H, W, 3), blue first, become float32 planes, red first: cut to the middle, half as large,
normalised per channel, with an edge around. All of it is commands of the chip.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import bmcompiler
from bmcompiler import bmlang
from bmcompiler.bmlang import BOTH, COEFF_TENSOR, FLOAT32, INT32, PadType, PoolParam, PoolType, Tensor

HEIGHT, WIDTH, SIZE, EDGE = 60, 80, 48, 2
MEAN, DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


def picture(images: int = 2) -> Any:
    """Bytes (N, H, W, 3): smooth colours with some noise."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    planes = [128 + 90 * np.sin(x / 17 + k) * np.cos(y / 11 - k) for k in range(3)]
    smooth = np.stack(planes, axis=-1)[None].repeat(images, axis=0)
    return np.clip(smooth + rng.normal(0, 8, smooth.shape), 0, 255).astype(np.uint8)


def per_channel(numbers: tuple[float, ...]) -> Tensor:
    return Tensor(None, FLOAT32, COEFF_TENSOR, [1, 3, 1, 1], data=numbers)


def prepared(pixels: Tensor) -> Tensor:
    """The program."""
    top, left = (HEIGHT - SIZE) // 2, (WIDTH - SIZE) // 2
    images = pixels.shape[0] if pixels.shape else 0
    middle = bmlang.extract(pixels, (0, top, left, 0), (images, top + SIZE, left + SIZE, 3), (1, 1, 1, 1))
    planes = bmlang.permute(middle, (0, 3, 1, 2))
    swap = Tensor(None, INT32, COEFF_TENSOR, [3], data=[2, 1, 0])
    real = bmlang.index_select(bmlang.cast(planes, dtype=FLOAT32), 1, swap)
    half = bmlang.pool(real, PoolParam(2, 2, kernel_h=2, kernel_w=2, pooling_type=PoolType.AVE))
    inverse = per_channel(tuple(1 / d for d in DEVIATION))
    normal = bmlang.mul(half - per_channel(MEAN), inverse)
    return bmlang.pad(normal, 0.0, (0, 0, 0, 0, EDGE, EDGE, EDGE, EDGE), PadType.PAD_EDGE, name="planes")


def by_numpy(pixels: Any) -> Any:
    """The same in float64."""
    top, left = (HEIGHT - SIZE) // 2, (WIDTH - SIZE) // 2
    planes = pixels[:, top : top + SIZE, left : left + SIZE, ::-1].transpose(0, 3, 1, 2).astype(np.float64)
    half = planes.reshape(*planes.shape[:2], SIZE // 2, 2, SIZE // 2, 2).mean(axis=(3, 5))
    normal = (half - np.reshape(MEAN, (1, 3, 1, 1))) / np.reshape(DEVIATION, (1, 3, 1, 1))
    return np.pad(normal, ((0, 0), (0, 0), (EDGE, EDGE), (EDGE, EDGE)), mode="edge")


def main(folder: Path) -> float:
    """Compile, run, compare; returns the largest difference from numpy."""
    given = picture()
    with bmlang.init(BOTH, "BM1684", folder) as program:
        pixels = Tensor("pixels", data=given)
        planes = prepared(pixels)
        made = program.compile_with_check("prepare", [pixels], [planes])
    print(planes)
    assert not made.host
    found = bmcompiler.runtime.Session(made.path).run({"pixels": given}, raw=True)["planes"]
    error = float(np.abs(found - by_numpy(given)).max())
    print(f"{len(made.result.rows)} layers, none of them on the host; largest difference from numpy {error:.2g}")
    return error


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
