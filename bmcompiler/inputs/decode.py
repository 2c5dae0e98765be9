"""One image file to a picture, by Pillow."""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from bmcompiler.errors import BMError, FileFormatError, UnsupportedError

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Formats that only hold pixels: Pillow also knows some that run other programs."""
MOST_PIXELS = 80_000_000
"""Larger images are refused before they are decoded; Pillow's own limits lie above."""
_UNREADABLE = (
    *(OSError, EOFError, ValueError, TypeError, SyntaxError, LookupError, AttributeError, RuntimeError),
    *(ArithmeticError, struct.error, zlib.error),
)
"""What Pillow's decoders raise for damaged files; UnidentifiedImageError is an OSError."""


def load_pillow() -> Any:
    """The module PIL.Image. Raises UnsupportedError when Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UnsupportedError(
            "images need Pillow, which is not installed", remedy="pip install 'bmcompiler[images]'"
        ) from error
    return Image


def picture(file: str | os.PathLike[str], channels: int) -> Image:
    """The image in a file, upright: gray for one channel, red first for three.

    Raises:
        FileFormatError: damaged, too large, of another kind than photos are; names the file.
        OSError: it cannot be opened.
    """
    pillow = load_pillow()
    with open(file, "rb") as stream:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _opened(pillow, stream, "L" if channels == 1 else "RGB")
        except pillow.DecompressionBombError as error:
            raise _too_large(" ".join(str(error).split())).located(file=file) from error
        except BMError as error:
            raise error.located(file=file) from None
        except _UNREADABLE as error:
            unknown = isinstance(error, pillow.UnidentifiedImageError)  # whose text shows Python's file object
            reason = "it is no image" if unknown else " ".join(str(error).split())[:200] or type(error).__name__
            raise FileFormatError(
                f"the image cannot be read ({reason})", file=file, remedy="replace the file or take it out"
            ) from error


def _opened(pillow: Any, stream: Any, mode: str) -> Image:
    """The decoded image in the wanted mode, upright."""
    from PIL import ImageOps

    image: Image = pillow.open(stream, formats=_FORMATS)
    if image.width * image.height > MOST_PIXELS:
        raise _too_large(f"{image.width} x {image.height} pixels")
    image.load()
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = pillow.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise FileFormatError("its pixels have more than 16 bits", remedy="save it with 8 bits per channel")
    return image if image.mode == mode else image.convert(mode)


def _too_large(what: str) -> BMError:
    return FileFormatError(f"the image is too large ({what})", remedy=f"the limit is {MOST_PIXELS:,} pixels; shrink it")
