"""Samples with text: a line upright or turned, a line to read, a page of lines, characters on a photo."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from PIL import Image, ImageDraw

from tasks.detections import Box
from tasks.material import FONTS, WORDS, Array, between, colour, draws, font, photo, pick

LINE = 48
"""Pixels of height of a line to read."""
PAGE = 320
"""Pixels of a page."""
CHARACTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""No I, O, 0 and 1, which look alike."""


def _line(r: RandomState, split: str, widest: float, letters: int = 0) -> tuple[Image.Image, str]:
    """A word or two, dark on light and noisy; `widest` times as wide as high at most, with at least so many letters."""
    while True:
        words = " ".join(pick(r, WORDS[split]) for _ in range(between(r, 1, 2)))
        kind = font(pick(r, FONTS), between(r, 22, 34))
        left, top, right, bottom = (int(edge) for edge in kind.getbbox(words))
        width, height = right - left + between(r, 8, 16), bottom - top + between(r, 8, 14)
        if width <= widest * height and sum(map(str.isalpha, words)) >= letters:
            break
    image = Image.new("RGB", (width, height), colour(r, 190, 255))
    ImageDraw.Draw(image).text((4 - left, 4 - top), words, font=kind, fill=colour(r, 0, 90))
    noisy = np.asarray(image) + r.normal(0, r.uniform(2, 9), (height, width, 3))
    return Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)), words


def _strip(line: Image.Image, width: int) -> Array:
    """A line at its height, middle grey on its right, [LINE, width, 3] uint8."""
    used = min(width, round(line.width * LINE / line.height))
    strip = np.full((LINE, width, 3), 127, np.uint8)
    strip[:, :used] = line.resize((used, LINE), Image.Resampling.BILINEAR)
    return strip


def turned(name: str, split: str, index: int, width: int) -> tuple[Array, int]:
    """A line, and whether it stands on its head: every other one does. No numbers: 96 may be either."""
    line, _ = _line(draws(name, split, index), split, 320 / LINE, letters=6)
    return _strip(line.rotate(180) if index % 2 else line, width), index % 2


def line(name: str, split: str, index: int, width: int) -> tuple[Array, str]:
    """A line, and its characters without spaces."""
    image, words = _line(draws(name, split, index), split, width / LINE)
    return _strip(image, width), words.replace(" ", "")


def page(name: str, split: str, index: int) -> tuple[Array, list[Box]]:
    """Lines of 20 to 34 pixels below each other, and their boxes."""
    r = draws(name, split, index)
    sheet, boxes = Image.new("RGB", (PAGE, PAGE), colour(r, 190, 255)), []
    y = between(r, 4, 14)
    while y < PAGE - 40:
        image, _ = _line(r, split, 7)
        height = between(r, 20, 34)
        width = image.width * height // image.height
        x = between(r, 4, PAGE - 4 - width)
        sheet.paste(image.resize((width, height), Image.Resampling.BILINEAR), (x, y))
        boxes.append((x, y, x + width, y + height))
        y += height + between(r, 6, 18)
    return np.asarray(sheet), boxes


def characters(name: str, split: str, index: int) -> tuple[Array, list[Box]]:
    """Two rows of outlined characters on a photo 416x312, the grey 114 below it, and their boxes."""
    r = draws(name, split, index)
    image, boxes = photo(r, split, 416, 312), []
    pen = ImageDraw.Draw(image)
    for top in (6, 160):
        x = between(r, 8, 30)
        while x < 360:
            character, place, kind = (
                pick(r, CHARACTERS),
                (x, top + between(r, 0, 60)),
                font(pick(r, FONTS), between(r, 34, 54)),
            )
            box = pen.textbbox(place, character, font=kind, stroke_width=2)
            pen.text(place, character, colour(r, 0, 80), kind, stroke_width=2, stroke_fill=colour(r, 190, 255))
            boxes.append(box)
            x = int(box[2]) + between(r, 16, 50)
    return np.concatenate([np.asarray(image), np.full((104, 416, 3), 114, np.uint8)]), boxes
