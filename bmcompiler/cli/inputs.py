"""What commands that read samples share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bmcompiler.cli.common import printable
from bmcompiler.errors import UsageError

if TYPE_CHECKING:
    from bmcompiler.inputs import InputData
    from bmcompiler.options import ImageOptions

Images = TypeVar("Images")

FORMULA = """
Images become value = (pixel - mean) * scale per channel, pixels 0..255, in --channel-order. They are stretched to the
network's input; with --keep-aspect both sides are scaled alike and the middle is cut out; with --letterbox they are
scaled to fit on gray, as for most detectors: --letterbox --std 255. PATH of samples may be an .npz (one array per input
name, samples on axis 0), an .npy, or a folder of either, one sample or several per file.
"""
"""For the ends of help texts."""


def inputs_of(
    session: Any, option: str, path: Path | None, images: Path | None, told: Mapping[str, Any], limit: int | None
) -> InputData:
    """What a model is to run on: images as it says, but for what the options `told`. Warns of what looks wrong."""
    from bmcompiler.inputs import open_inputs
    from bmcompiler.inputs.preprocessing import merged

    differ: list[str] = []
    source: Path | ImageOptions = one_source(option, path, images)
    if images is not None:
        source, differ = merged(images, told, session.preprocessing)
    found: InputData = open_inputs(source, limit).bind(session.inputs)
    for text in differ + session.far_off(found):
        click.echo(f"warning: {printable(text)}", err=True)
    return found


def one_source(option: str, path: Path | None, images: Images | None) -> Path | Images:
    """The one of two that was given. Raises UsageError otherwise."""
    if path is not None and images is not None:
        raise UsageError(f"{option} and --images exclude each other")
    if images is not None:
        return images
    if path is None:
        raise UsageError(f"there are no samples: give {option} PATH or --images PATH")
    return path
