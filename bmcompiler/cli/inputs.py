"""What commands that read samples share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bmcompiler.errors import UsageError

if TYPE_CHECKING:
    from bmcompiler.options import ImageOptions

FORMULA = """
Images become value = (pixel - mean) * scale per channel, pixels 0..255, in --channel-order. They are stretched to the
network's input; with --keep-aspect both sides are scaled alike and the middle is cut out; with --letterbox they are
scaled to fit on gray, as for most detectors: --letterbox --std 255. PATH of samples may be an .npz (one array per input
name, samples on axis 0), an .npy, or a folder of either, one sample or several per file.
"""
"""For the ends of help texts."""


def one_source(option: str, path: Path | None, images: ImageOptions | None) -> Path | ImageOptions:
    """The one of two that was given. Raises UsageError otherwise."""
    if path is not None and images is not None:
        raise UsageError(f"{option} and --images exclude each other")
    if images is not None:
        return images
    if path is None:
        raise UsageError(f"there are no samples: give {option} PATH or --images PATH")
    return path
