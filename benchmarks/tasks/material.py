"""What samples are made of. No face, photo or word is in both splits; fonts are."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from PIL import Image, ImageFont

MODELS = Path(__file__).resolve().parents[2] / "models"
FETCHED = MODELS / "third_party"
Array = NDArray[Any]

CALIBRATION, METRIC = "calibration", "metric"
"""The splits."""
PHOTOS = {
    CALIBRATION: ("astronaut.png", "res10_ssd_face_photo1.jpg", "res10_ssd_face_photo2.jpg"),
    METRIC: ("chelsea.png", "coffee.png", "rocket.jpg"),
}
FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf")
WORDS = {
    CALIBRATION: (
        *("copper", "Friday", "lantern", "Museum", "orchard", "Pepper", "quarter", "Ribbon", "saddle", "Velvet"),
        *("walnut", "Yacht", "zebra", "Jigsaw", "basket", "Cinema", "Helmet", "engine", "fabric", "grape"),
        *("17", "308", "4.25", "1967", "52.90", "6:45", "8831"),
    ),
    METRIC: (
        *("anchor", "Bottle", "carpet", "Dinner", "eleven", "Farmer", "guest", "Hotel", "insect", "Jacket"),
        *("kernel", "Ladder", "mirror", "Needle", "oxygen", "Parcel", "quilt", "Rocket", "silver", "Thunder"),
        *("29", "614", "7.30", "1853", "96.05", "3:20", "2047"),
    ),
}


def draws(*what: object) -> RandomState:
    """The generator of one sample: its numbers depend on what it is for, and on nothing else."""
    return RandomState(zlib.crc32("/".join(map(str, what)).encode()))


def pick(r: RandomState, items: Any) -> Any:
    return items[r.randint(len(items))]


def between(r: RandomState, low: int, high: int) -> int:
    """A whole number, both ends included."""
    return int(r.randint(low, high + 1))


def colour(r: RandomState, low: int, high: int) -> tuple[int, int, int]:
    return between(r, low, high), between(r, low, high), between(r, low, high)


@cache
def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(FETCHED / name), size)


@cache
def _photo(name: str) -> Image.Image:
    return Image.open(FETCHED / name).convert("RGB")


def photo(r: RandomState, split: str, width: int, height: int) -> Image.Image:
    """A cut of a photo, between the whole of it and two thirds, of a size in pixels."""
    whole = _photo(pick(r, PHOTOS[split]))
    share = min(whole.width / width, whole.height / height) * r.uniform(0.65, 1)
    w, h = share * width, share * height
    x, y = r.uniform(0, whole.width - w), r.uniform(0, whole.height - h)
    return whole.resize((width, height), Image.Resampling.BILINEAR, box=(x, y, x + w, y + h))


@cache
def _patches() -> Array:
    """200 grey patches 25x25 in 0..255: 100 faces, then 100 others."""
    return np.clip(np.rint(np.load(FETCHED / "lfw_subset.npy") * 255), 0, 255)


def patch(r: RandomState, split: str, face: bool, size: int) -> Array:
    """A face or something else, relit, [size, size, 3] uint8: a split has every other patch."""
    number = 2 * between(r, 0, 49) + (split == METRIC) + (0 if face else 100)
    grey = _patches()[number][:, :: pick(r, (1, -1))] * r.uniform(0.8, 1.1)
    image = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))
    return np.repeat(np.asarray(image.resize((size, size), Image.Resampling.BILINEAR))[..., None], 3, axis=2)
