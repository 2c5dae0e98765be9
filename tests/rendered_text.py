"""Rendered text lines and pages for the OCR networks; the same pixels for the same seed and Pillow release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono")
Box = tuple[int, int, int, int]
"""left, top, right, bottom in pixels, the last two exclusive."""
_WORDS = (
    *("Invoice", "number", "total", "amount", "street", "garden", "window", "market", "silver", "yellow", "planet"),
    *("coffee", "bridge", "winter", "summer", "travel", "ticket", "office", "doctor", "school", "record", "camera"),
    *("letter", "island", "forest", "mountain", "kitchen", "library", "station", "airport", "Monday", "Friday"),
)
_LINE_HEIGHT, _LINE_WIDTH = 48, 192
_PAGE = 320
_LINES_PER_PAGE = 7
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def _font(fonts: Path, name: str, size: int) -> object:
    image_font = pytest.importorskip("PIL.ImageFont")
    path = fonts / f"{name}.ttf"
    if not path.exists():
        pytest.skip(f"{path.name} is not fetched: run `make models`")
    return image_font.truetype(str(path), size)


def _words(random: np.random.Generator, count: int) -> str:
    return " ".join(random.choice(_WORDS, count)) + f" {random.integers(10, 100)}"


def _noisy(image: NDArray[np.float32], random: np.random.Generator, deviation: float) -> NDArray[np.float32]:
    """Grey levels 0..255 with noise, rounded as a camera would."""
    return np.clip(np.rint(image + random.standard_normal(image.shape) * deviation), 0, 255).astype(np.float32)


def lines(fonts: Path, count: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """`count` text lines as PP-OCR's classifier takes them: count x 3 x 48 x 192 in -1..1, and 1 where upside down."""
    image = pytest.importorskip("PIL.Image")
    draw = pytest.importorskip("PIL.ImageDraw")
    random = np.random.default_rng(seed)
    turned = random.permutation(np.arange(count) % 2)
    pictures = []
    for index in range(count):
        font = _font(fonts, FONTS[index % len(FONTS)], int(random.integers(26, 33)))
        dark, light = int(random.integers(0, 80)), int(random.integers(180, 256))
        text = _words(random, 1)
        left, top, right, bottom = font.getbbox(text)
        line = image.new("L", (right - left + 16, _LINE_HEIGHT), light)
        draw.Draw(line).text((8 - left, (_LINE_HEIGHT - (bottom - top)) // 2 - top), text, fill=dark, font=font)
        if line.width > _LINE_WIDTH:
            line = line.resize((_LINE_WIDTH, _LINE_HEIGHT), image.Resampling.BILINEAR)
        if turned[index]:
            line = line.rotate(180)
        pixels = _noisy(np.asarray(line, np.float32), random, 8.0)
        picture = np.zeros((_LINE_HEIGHT, _LINE_WIDTH), np.float32)  # PP-OCR pads on the right with mid grey
        picture[:, : pixels.shape[1]] = pixels / 127.5 - 1
        pictures.append(np.repeat(picture[None], 3, axis=0))
    return np.stack(pictures), turned


def pages(fonts: Path, count: int, seed: int) -> Iterator[tuple[NDArray[np.float32], list[Box]]]:
    """Pages of 7 lines as PP-OCR's detector takes them: 1 x 3 x 320 x 320 with ImageNet's normalisation, and the
    lines' boxes."""
    image = pytest.importorskip("PIL.Image")
    draw = pytest.importorskip("PIL.ImageDraw")
    random = np.random.default_rng(seed)
    mean, deviation = (np.asarray(v, np.float32).reshape(3, 1, 1) for v in (_MEAN, _DEVIATION))
    pitch = _PAGE // _LINES_PER_PAGE
    for index in range(count):
        page = image.new("L", (_PAGE, _PAGE), int(random.integers(200, 256)))
        dark, canvas, boxes = int(random.integers(0, 80)), draw.Draw(page), []
        for row in range(_LINES_PER_PAGE):
            font = _font(fonts, FONTS[(index + row) % len(FONTS)], int(random.integers(15, 21)))
            text = _words(random, 2)
            left, top, right, bottom = font.getbbox(text)
            x = int(random.integers(4, max(5, _PAGE - 4 - (right - left))))
            y = row * pitch + int(random.integers(4, pitch - (bottom - top) - 4))
            canvas.text((x - left, y - top), text, fill=dark, font=font)
            boxes.append((x, y, min(x + right - left, _PAGE), y + bottom - top))
        pixels = _noisy(np.asarray(page, np.float32), random, 5.0) / 255
        yield ((pixels - mean) / deviation)[None].astype(np.float32), boxes


def found(score: NDArray[np.float32], boxes: list[Box]) -> int:
    """How many boxes of a 320 x 320 score map are more than 30 % above 0.3."""
    return sum(bool((score[top:bottom, left:right] > 0.3).mean() > 0.3) for left, top, right, bottom in boxes)
