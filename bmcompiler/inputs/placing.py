"""Where a picture lies in a network's input, there and back.

Letterboxes are drawn as Ultralytics and OpenCV do (`cv2.resize`, INTER_LINEAR: two taps on each axis, so shrinking
aliases as it did in training), to within one step of a pixel. Everything else is scaled by Pillow over all pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bmcompiler.errors import UsageError
from bmcompiler.numeric.arrays import Array, Bytes, Doubles, Int32s
from bmcompiler.options import Preprocessing, numbers_of

if TYPE_CHECKING:
    from PIL.Image import Image

Size = tuple[int, int]
"""(height, width) in pixels."""
_COEFFICIENT_BITS = 11  # of OpenCV's taps
_COVERING = Preprocessing(keep_aspect=True)
"""How pictures of other sizes become those of a camera."""


@dataclass(frozen=True)
class Placement:
    """A picture of `picture` pixels covers `scaled` pixels of the input from (`top`, `left`) on, which may be negative.

    All sizes are (height, width).
    """

    picture: Size
    scaled: tuple[float, float]
    top: float
    left: float

    def to_image(self, points: ArrayLike) -> Doubles:
        """Coordinates of the input as those of the picture, inside of it.

        The last axis holds x and y in turns: a point, or a box as x1, y1, x2, y2.

        Raises:
            UsageError: the last axis has no even number of coordinates.
        """
        found = np.asarray(points, np.float64)
        if not found.ndim or found.shape[-1] % 2:
            raise UsageError(f"the last axis must hold x and y in turns, the shape is {list(found.shape)}")
        pairs = found.reshape(*found.shape[:-1], -1, 2)
        limits = np.array(self.picture[::-1], np.float64)
        pairs = (pairs - (self.left, self.top)) * (limits / self.scaled[::-1])
        return pairs.clip(0, limits).reshape(found.shape)


def placed(options: Preprocessing, size: Size, picture: Size) -> Placement:
    """Where a picture of one size lies in an input of another; of a camera's input, in what the model makes of it."""
    if options.camera is None:
        return _placed(options, size, picture)
    whole, scaled = _placed(_COVERING, options.camera, picture), seen_of_camera(options, options.camera, size)[1]
    down, across = (after / before for after, before in zip(scaled.scaled, options.camera))
    covered = whole.scaled[0] * down, whole.scaled[1] * across
    return Placement(picture, covered, scaled.top + whole.top * down, scaled.left + whole.left * across)


def seen_of_camera(options: Preprocessing, camera: Size, size: Size) -> tuple[tuple[int, int, int, int], Placement]:
    """What of a camera's picture is in an input of `size`: first row, first column, rows, columns; where it all lies.

    Only whole pixels are cut off, so that scaling begins and ends at their edges.
    """
    (height, width), place = camera, _placed(options, size, camera)
    if options.letterbox is not None:
        return (0, 0, height, width), place
    rows, columns = (
        max(1, min(have, round(want * have / scaled))) for have, want, scaled in zip(camera, size, place.scaled)
    )
    top, left = (height - rows) // 2, (width - columns) // 2
    down, across = size[0] / rows, size[1] / columns
    place = Placement(place.picture, (height * down, width * across), -top * down, -left * across)
    return (top, left, rows, columns), place


def _placed(options: Preprocessing, size: Size, picture: Size) -> Placement:
    height, width = picture
    if options.letterbox is None:
        resize = options.resize or size
        down, across = resize[0] / height, resize[1] / width
        if options.keep_aspect:
            down = across = max(down, across)
        scaled = height * down, width * across
        return Placement(picture, scaled, (size[0] - scaled[0]) / 2, (size[1] - scaled[1]) / 2)
    factor = min(size[0] / height, size[1] / width)
    whole = max(1, round(height * factor)), max(1, round(width * factor))
    top = left = 0
    if options.pad != "bottom-right":  # an odd row or column of border goes below, or to the right
        top, left = (size[0] - whole[0]) // 2, (size[1] - whole[1]) // 2
    return Placement(picture, whole, top, left)


def drawn(image: Image, options: Preprocessing, size: Size, channels: int) -> Bytes:
    """The picture in the input: pixels (height, width, channels), red first."""
    if options.camera is not None:
        options = _COVERING
    place = placed(options, size, (image.height, image.width))
    if options.letterbox is None:
        return _covering(image, place, size).reshape(*size, channels)
    fill = numbers_of(options.letterbox)
    out = np.empty((*size, channels), np.uint8)
    out[:] = fill[::-1] if options.channel_order == "bgr" else fill
    top, left, height, width = map(int, (place.top, place.left, *place.scaled))
    pixels = np.asarray(image, np.uint8).reshape(*place.picture, channels)
    out[top : top + height, left : left + width] = linear(pixels, (height, width))
    return out


def _covering(image: Image, place: Placement, size: Size) -> Bytes:
    from PIL.Image import Resampling

    (height, width), (down, across) = place.picture, (place.scaled[0] / image.height, place.scaled[1] / image.width)
    box_height, box_width = min(size[0] / down, height), min(size[1] / across, width)
    top, left = (height - box_height) / 2, (width - box_width) / 2
    box = (left, top, left + box_width, top + box_height)
    return np.asarray(image.resize((size[1], size[0]), Resampling.BILINEAR, box=box), np.uint8)


def linear(pixels: Bytes, size: Size) -> Bytes:
    """Pixels (height, width, channels) scaled to `size` between the two nearest on each axis; halves are a mean."""
    if pixels.shape[:2] == size:
        return pixels
    wide = pixels.astype(np.int32)
    if pixels.shape[:2] == (2 * size[0], 2 * size[1]):
        return ((wide[::2, ::2] + wide[1::2, ::2] + wide[::2, 1::2] + wide[1::2, 1::2] + 2) >> 2).astype(np.uint8)
    first, second, near, far = _taps(pixels.shape[1], size[1])
    rows = (wide[:, first] * near[:, None] + wide[:, second] * far[:, None]) >> 4
    first, second, near, far = (each[..., None, None] for each in _taps(pixels.shape[0], size[0]))
    return (_tap(rows, first, near) + _tap(rows, second, far) + 2 >> 2).astype(np.uint8)


def _tap(rows: Int32s, which: Array, factor: Int32s) -> Int32s:
    found: Int32s = rows[which[:, 0, 0]] * factor >> 16
    return found


def _taps(given: int, wanted: int) -> tuple[Array, Array, Int32s, Int32s]:
    """For each place wanted: the two places given beside it, and their factors in 1 / 2048."""
    places = ((np.arange(wanted) + 0.5) * (given / wanted) - 0.5).clip(0, given - 1)
    first = np.floor(places).astype(np.int64)
    far = np.rint((places - first) * (1 << _COEFFICIENT_BITS)).astype(np.int32)
    return first, np.minimum(first + 1, given - 1), (1 << _COEFFICIENT_BITS) - far, far
